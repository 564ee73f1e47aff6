"""What a caller asks for, checked: arguments in, a valid request out, with what was not given taken from the configuration. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from string import punctuation
from typing import TYPE_CHECKING

from memory_tools.config_keys import CHECKS
from memory_tools.errors import InvalidInput
from memory_tools.settings import Settings, Weights

if TYPE_CHECKING:
    from memory_tools.config import Config

MAX_QUERY_CHARS = 20_000
MAX_PHRASINGS = 16
_SILENT = frozenset(punctuation + "？！。，、；：…“”‘’（）《》「」【】—·¿¡")  # a query of these and white space alone asks nothing


@dataclass(frozen=True, slots=True)
class Ask:
    """A valid request. `now` is in the user's time zone."""

    phrasings: tuple[str, ...]
    context: str | None
    max_results: int
    min_score: float
    max_chars: int | None
    policy: str
    strict: bool
    explain: bool
    now: datetime
    include_archive: bool = False


def ask(
    config: Config,
    query: str | Sequence[str],
    context: str | None,
    max_results: int | None,
    min_score: float | None,
    max_chars: int | None,
    policy: str | None,
    strict: bool,
    explain: bool,
    now: datetime | None,
    include_archive: bool,
) -> Ask:
    """A valid request, with what was not given taken from the configuration. Raises InvalidInput."""
    for name, value in {"max_results": max_results, "min_score": min_score, "policy": policy}.items():
        if value is not None:
            CHECKS[name](name, value)
    if max_chars is not None and (isinstance(max_chars, bool) or not isinstance(max_chars, int) or max_chars < 1):
        raise InvalidInput(f"max_chars: expected a whole number from 1, not {max_chars!r}")
    if context is not None:
        if not isinstance(context, str) or len(context) > MAX_QUERY_CHARS:
            raise InvalidInput(f"context: expected a text of at most {MAX_QUERY_CHARS} characters")
        check_text("context", context)
    moment = now or datetime.now(UTC)
    return Ask(
        phrasings=phrasings_of(query),
        context=context if context and context.strip() else None,
        max_chars=max_chars,
        strict=strict,
        explain=explain,
        now=(moment if moment.tzinfo else moment.replace(tzinfo=config.zone())).astimezone(config.zone()),
        include_archive=include_archive,
        max_results=config.max_results if max_results is None else int(max_results),
        min_score=config.min_score if min_score is None else float(min_score),
        policy=config.policy if policy is None else policy,
    )


_UTILITY_KEYS = (
    "feedback_bonus", "utility_threshold", "use_half_life_days", "edit_half_life_days", "success_prior", "prior_strength", "min_judged",
    "memrl_lambda", "memrl_alpha", "pool",
)  # fmt: skip


def settings_of(config: Config) -> Settings:
    """The settings of the utility stage, as configured."""
    return Settings(weights=Weights.of(config.weights), **{key: getattr(config, key) for key in _UTILITY_KEYS})


def with_threshold(settings: Settings, threshold: float | None) -> Settings:
    """The settings with another utility threshold, [0, 1]; the same ones where None."""
    if threshold is None:
        return settings
    value = CHECKS["utility_threshold"]("threshold", threshold)
    return replace(settings, utility_threshold=value)  # type: ignore[arg-type]


def phrasings_of(query: str | Sequence[str]) -> tuple[str, ...]:
    """The phrasings of a query, blank ones left out. Raises InvalidInput where nothing is left or it is no text."""
    given = [query] if isinstance(query, str) else list(query) if isinstance(query, list | tuple) else None
    if given is None or not all(isinstance(p, str) for p in given):
        raise InvalidInput("query: expected a text or a list of texts")
    kept = tuple(dict.fromkeys(p.strip() for p in given if _asks(p)))
    if not kept:
        empty = "holds no word" if any(p.strip() for p in given) else "is empty"
        raise InvalidInput(f"query: {empty}", "say in a few words what you are looking for")
    if len(kept) > MAX_PHRASINGS or sum(map(len, kept)) > MAX_QUERY_CHARS:
        raise InvalidInput(f"query: more than {MAX_PHRASINGS} phrasings or {MAX_QUERY_CHARS} characters")
    for phrase in kept:
        check_text("query", phrase)
    return kept


def _asks(phrase: str) -> bool:
    return any(c not in _SILENT and not c.isspace() for c in phrase)


def check_text(name: str, text: str) -> None:
    """Raises InvalidInput for what cannot be stored or sent as UTF-8."""
    if "\0" in text:
        raise InvalidInput(f"{name}: holds a NUL character")
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise InvalidInput(f"{name}: holds half a surrogate pair, which is no character")
