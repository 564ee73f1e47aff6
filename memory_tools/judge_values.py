"""What judges are asked and what they answer, and the interface that all of them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from memory_tools.errors import InvalidInput
from memory_tools.tool_records import Advice, Statistics, ToolCall

MAX_GUIDELINE = 20_000  # characters; what an agent reads at one go
MIN_GUIDELINE = 20


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Of one call. `score` is 0.0 or 1.0."""

    summary: str
    evaluation: str
    score: float


@dataclass(frozen=True, slots=True)
class Guideline:
    """Markdown for one tool, and what of it a program can use."""

    text: str
    parameters: Mapping[str, Advice] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a judge has no answer. Nothing is lost by it: the call waits, the guideline stays."""

    reason: str


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What a guideline is distilled from. `calls`: the newest ones, oldest first; `statistics` are theirs."""

    tool_name: str
    calls: tuple[ToolCall, ...]
    statistics: Statistics
    previous: str = ""


class Judge(Protocol):
    """`instant`: answers at once and without a network, so it may be asked while files are locked. `name` becomes the author."""

    @property
    def name(self) -> str: ...

    @property
    def instant(self) -> bool: ...

    def evaluate(self, calls: Sequence[ToolCall], earlier: Sequence[ToolCall]) -> list[Evaluation | Failure]:
        """One answer for each call. `earlier`: calls of the same tools that are known already. Does not raise."""
        ...

    def summarize(self, requests: Sequence[SummaryRequest]) -> list[Guideline | Failure]:
        """One answer for each tool. Does not raise."""
        ...


def checked_guideline(text: str) -> str:
    """A guideline as it may be stored. Raises InvalidInput for an empty or overlong one."""
    text = text.strip()
    if len(text) < MIN_GUIDELINE:
        raise InvalidInput(f"the guideline is empty or shorter than {MIN_GUIDELINE} characters")
    if len(text) > MAX_GUIDELINE:
        raise InvalidInput(f"the guideline has {len(text):,} characters, at most {MAX_GUIDELINE:,}")
    return text
