"""Numbers from the configuration in, validated settings of the utility stage out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from memory_tools.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Weights:
    """What each input counts in the utility. Not negative, not all zero; they need not sum to 1 (the utility is capped)."""

    recency: float = 0.3
    success_rate: float = 0.4
    relevance: float = 0.3

    def __post_init__(self) -> None:
        for name in _names(self):
            check_number(f"weights.{name}", getattr(self, name), 0.0, math.inf)
        if self.total <= 0.0:
            raise InvalidInput("weights are all zero", "give at least one of recency, success_rate, relevance a positive weight")

    @property
    def total(self) -> float:
        return self.recency + self.success_rate + self.relevance

    @classmethod
    def of(cls, given: Mapping[str, float]) -> Weights:
        """From a mapping; what is not given keeps its default, an unknown name is an error that says the nearest one."""
        for name in given:
            if name not in _names(cls):
                raise InvalidInput(f"weights.{name} is not known", nearest(name, _names(cls)))
        return cls(**given)


@dataclass(frozen=True, slots=True)
class Settings:
    """How utilities are made; the names are the configuration's keys. Half-lives in days."""

    weights: Weights = field(default_factory=Weights)
    feedback_bonus: float = 0.1
    utility_threshold: float = 0.5
    use_half_life_days: float = 14.0  # of the recency that is shown and enters the utility
    edit_half_life_days: float = 1095.0  # of the recency that orders `balanced`: 90 days cost 3 to 7 points of recall, 3 years nothing
    success_prior: float = 0.5  # success expected of a section that was never judged
    prior_strength: float = 2.0  # judged uses that the prior is worth
    min_judged: float = 3.0  # `balanced` drops nothing that was judged less often
    memrl_lambda: float = 0.5
    memrl_alpha: float = 0.3
    pool: int = 20  # passages of stage 1 that a policy re-orders

    def __post_init__(self) -> None:
        if isinstance(self.weights, Mapping):
            object.__setattr__(self, "weights", Weights.of(self.weights))
        for name, low, high in _RANGES:
            check_number(name, getattr(self, name), low, high)
        for name in ("use_half_life_days", "edit_half_life_days"):
            if getattr(self, name) <= 0.0:
                raise InvalidInput(f"{name} must be above 0, not {getattr(self, name)!r}")
        if not isinstance(self.pool, int) or isinstance(self.pool, bool) or self.pool < 1:
            raise InvalidInput(f"pool must be a whole number of at least 1, not {self.pool!r}")


_RANGES = (
    ("feedback_bonus", 0.0, 1.0),
    ("utility_threshold", 0.0, 1.0),
    ("use_half_life_days", 0.0, math.inf),
    ("edit_half_life_days", 0.0, math.inf),
    ("success_prior", 0.0, 1.0),
    ("prior_strength", 0.0, math.inf),
    ("min_judged", 0.0, math.inf),
    ("memrl_lambda", 0.0, 1.0),
    ("memrl_alpha", 0.0, 1.0),
)


def check_number(name: str, value: object, low: float, high: float) -> None:
    """An error unless value is a finite number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInput(f"{name} must be a finite number, not {value!r}")
    if not low <= value <= high:
        limits = f"at least {low:g}" if math.isinf(high) else f"between {low:g} and {high:g}"
        raise InvalidInput(f"{name} must be {limits}, not {value!r}")


def _names(owner: type[Weights] | Weights) -> list[str]:
    return [f.name for f in fields(owner)]


def nearest(name: str, known: Sequence[str]) -> str:
    """A hint that names the known word most like this one."""
    import difflib  # only a mistake pays for it

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
