"""What is stored of a tool to the figures by which an agent or a person picks one. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from memory_tools.tool_records import ToolCall, statistics_of
from memory_tools.tool_reports import ToolStats
from memory_tools.tool_store import Loaded
from memory_tools.tool_usage import Asked

RECENT = 20  # calls that are compared with those before them
DEGRADED_BY = 0.1  # fall of the success rate


def stats_of(loaded: Loaded, asked: Asked | None, window: int) -> ToolStats:
    """Figures over the evaluated calls; `window`: how many of the newest a guideline looks at."""
    calls = loaded.evaluated
    figures = statistics_of(calls)
    recent, earlier = calls[-RECENT:], calls[:-RECENT]
    recent_rate = _rate(recent)
    earlier_rate = _rate(earlier) if earlier else None
    trend = "new" if earlier_rate is None else "degraded" if recent_rate < earlier_rate - DEGRADED_BY else "healthy"
    return ToolStats(
        tool_name=loaded.name,
        calls=figures.calls,
        pending=len(loaded.pending),
        success_rate=figures.success_rate,
        average_score=figures.average_score,
        average_time_s=figures.average_time_s,
        average_tokens=figures.average_tokens,
        recent_success_rate=recent_rate,
        earlier_success_rate=earlier_rate,
        trend=trend,
        composite=composite(calls),
        retrieved=asked.found if asked else 0,
        last_retrieved=asked.last if asked and asked.found else None,
        summarized=bool(calls) and all(c.is_summarized for c in calls[-window:]),
    )


def composite(calls: Sequence[ToolCall]) -> float:
    """0.4 success + 0.4 score + 0.2 / (1 + seconds), over all evaluated calls, in [0, 1]; 0 without any."""
    if not calls:
        return 0.0
    seconds = sum(c.time_cost for c in calls) / len(calls)
    score = sum(c.score or 0.0 for c in calls) / len(calls)
    return _rate(calls) * 0.4 + score * 0.4 + (1 / (1 + seconds)) * 0.2


def ordered(tools: Sequence[ToolStats]) -> tuple[ToolStats, ...]:
    return tuple(sorted(tools, key=lambda t: (-t.composite, t.tool_name)))


def _rate(calls: Sequence[ToolCall]) -> float:
    return sum(c.success for c in calls) / len(calls) if calls else 0.0
