"""What came of one tool-memory call, to the answer, success flag and document that every face shows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from memory_tools.tool_records import Json, Refused, ToolMemory

REQUIRED = "tool_names is required"
NO_MATCH = "No matching tool memories found"


@dataclass(frozen=True, slots=True)
class Failed:
    """A tool that was not summarised; its guideline and its marks are as before."""

    tool_name: str
    reason: str


@dataclass(frozen=True, slots=True)
class RecordReport:
    """`added` calls were stored, of which `pending` still wait for a judge; `masked` secrets were replaced in them."""

    total: int
    added: int = 0
    duplicates: int = 0
    refused: tuple[Refused, ...] = ()
    pending: int = 0
    pending_reasons: tuple[str, ...] = ()
    masked: int = 0
    memories: tuple[ToolMemory, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def success(self) -> bool:
        return self.added + self.duplicates > 0

    @property
    def answer(self) -> str:
        if self.total == 0:
            return "No valid tool_call_results"
        head = f"Successfully recorded {self.total}" if self.success else "Recorded 0"
        return f"{head} tool calls: {self.added} added, {self.duplicates} duplicate, {len(self.refused)} refused, {self.pending} pending"

    def document(self) -> dict[str, Json]:
        metadata: dict[str, Json] = {
            "memory_list": [m.document() for m in self.memories],
            "refused": [{"index": r.index, "reason": r.reason} for r in self.refused],
            "masked_secrets": self.masked,
        }
        if self.pending:
            metadata["pending"] = {"count": self.pending, "reasons": list(self.pending_reasons)}
        return _document(self.answer, self.success, metadata, self.warnings)


@dataclass(frozen=True, slots=True)
class RetrieveReport:
    """The memories found, in the order asked. Iterating it iterates them."""

    asked: tuple[str, ...]
    memories: tuple[ToolMemory, ...] = ()
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    named: bool = True  # False: no names were given at all

    def __iter__(self) -> Iterator[ToolMemory]:
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)

    @property
    def success(self) -> bool:
        return bool(self.memories)

    @property
    def answer(self) -> str:
        if not self.named:
            return REQUIRED
        return f"Successfully retrieved {len(self.memories)} tool memories" if self.memories else NO_MATCH

    def document(self) -> dict[str, Json]:
        metadata: dict[str, Json] = {"memory_list": [m.document() for m in self.memories], "missing": list(self.missing)}
        return _document(self.answer, self.success, metadata, self.warnings)


@dataclass(frozen=True, slots=True)
class SummaryReport:
    """Which tools got a new guideline, which were up to date, and which a judge failed on."""

    asked: tuple[str, ...]
    summarized: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    failed: tuple[Failed, ...] = ()
    missing: tuple[str, ...] = ()
    memories: tuple[ToolMemory, ...] = ()
    warnings: tuple[str, ...] = ()
    named: bool = True

    @property
    def success(self) -> bool:
        return bool(self.summarized or self.skipped)

    @property
    def answer(self) -> str:
        if not self.named:
            return REQUIRED
        done = len(self.summarized) + len(self.skipped) + len(self.failed)
        if not done:
            return NO_MATCH
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return (
            f"Successfully processed {done} tool memories: {len(self.summarized)} summarized, "
            f"{len(self.skipped)} skipped{failed} (already up-to-date)"
        )

    def document(self) -> dict[str, Json]:
        metadata: dict[str, Json] = {"memory_list": [m.document() for m in self.memories], "missing": list(self.missing)}
        if self.failed:
            metadata["failed"] = [{"tool_name": f.tool_name, "reason": f.reason} for f in self.failed]
        return _document(self.answer, self.success, metadata, self.warnings)


@dataclass(frozen=True, slots=True)
class ToolStats:
    """One tool's figures. Rates in [0, 1], times in seconds; `trend`: healthy, degraded, or new without earlier calls."""

    tool_name: str
    calls: int
    pending: int
    success_rate: float
    average_score: float
    average_time_s: float | None
    average_tokens: float | None
    recent_success_rate: float
    earlier_success_rate: float | None
    trend: str
    composite: float
    retrieved: int
    last_retrieved: str | None
    summarized: bool  # all of the newest calls are in the guideline

    def document(self) -> dict[str, Json]:
        return {
            "tool_name": self.tool_name,
            "total_calls": self.calls,
            "pending_calls": self.pending,
            "success_rate": self.success_rate,
            "average_score": self.average_score,
            "average_time_cost": self.average_time_s,
            "average_token_cost": self.average_tokens,
            "recent_success_rate": self.recent_success_rate,
            "earlier_success_rate": self.earlier_success_rate,
            "trend": self.trend,
            "composite": self.composite,
            "retrieved": self.retrieved,
            "last_retrieved": self.last_retrieved,
            "up_to_date": self.summarized,
        }


@dataclass(frozen=True, slots=True)
class StatsReport:
    """All tools asked for, the best composite first. `wanted`: asked for so often and without a memory."""

    tools: tuple[ToolStats, ...]
    wanted: Mapping[str, int] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[ToolStats]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self.tools)

    @property
    def best(self) -> str | None:
        """The tool with the highest composite among those with calls."""
        return next((t.tool_name for t in self.tools if t.calls), None)

    def document(self) -> dict[str, Json]:
        return {
            "tools": [t.document() for t in self.tools],
            "best": self.best,
            "most_retrieved": [t.tool_name for t in sorted(self.tools, key=lambda t: (-t.retrieved, t.tool_name)) if t.retrieved],
            "without_memory": [{"tool_name": n, "asked": c} for n, c in self.wanted.items()],
            "missing": list(self.missing),
            "warnings": list(self.warnings),
        }


def _document(answer: str, success: bool, metadata: dict[str, Json], warnings: tuple[str, ...]) -> dict[str, Json]:
    if warnings:
        metadata["warnings"] = [*warnings]
    return {"answer": answer, "success": success, "metadata": metadata}
