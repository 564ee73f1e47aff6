"""Reports of tool memory to the plain text that a pipe carries and an agent reads. Guidelines are quoted line by line: they are data."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from memory_tools.render_text import QUOTE, count, one_line, quoted_lines
from memory_tools.tool_names import file_stem
from memory_tools.tool_records import Statistics, ToolMemory
from memory_tools.tool_reports import RecordReport, RetrieveReport, StatsReport, SummaryReport, ToolStats


def plain(report: RecordReport | RetrieveReport | SummaryReport | StatsReport) -> str:
    lines = {RecordReport: _record, RetrieveReport: _retrieve, SummaryReport: _summary, StatsReport: _stats}[type(report)](report)  # type: ignore[operator]
    return "\n".join(lines)


def _record(report: RecordReport) -> list[str]:
    lines = [report.answer]
    lines += [f"refused call {r.index + 1}: {one_line(r.reason)}" for r in report.refused]
    lines += [f"pending: {one_line(reason)}" for reason in report.pending_reasons]
    if report.masked:
        lines.append(f"{count(report.masked, 'secret')} masked")
    lines += [_head(m) for m in report.memories]
    return [*lines, *_warnings(report.warnings)]


def _retrieve(report: RetrieveReport) -> list[str]:
    lines = [report.answer]
    for memory in report.memories:
        lines += ["", _head(memory)]
        lines += [f"{QUOTE}{line}".rstrip() for line in quoted_lines(memory.content)] or ["no guideline yet: memory-tools tool summarize"]
        lines += _warnings(memory.warnings)
    if report.missing:
        lines += ["", f"no memory of: {', '.join(one_line(n) for n in report.missing)}"]
    return [*lines, *_warnings(report.warnings)]


def _summary(report: SummaryReport) -> list[str]:
    lines = [report.answer]
    lines += [f"summarized: {_place(m)}" for m in report.memories if m.when_to_use in report.summarized]
    lines += [f"failed: {one_line(f.tool_name)}: {one_line(f.reason)}" for f in report.failed]
    if report.missing:
        lines.append(f"no memory of: {', '.join(one_line(n) for n in report.missing)}")
    return [*lines, *_warnings(report.warnings)]


def _stats(report: StatsReport) -> list[str]:
    rows: list[tuple[str, ...]] = [("tool", "calls", "success", "score", "time", "tokens", "trend", "composite", "retrieved")]
    rows += [_row(t) for t in report.tools]
    widths = [max(_cells(row[n]) for row in rows) for n in range(len(rows[0]))]
    lines = [_aligned(row, widths) for row in rows]
    if not report.tools:
        lines = [] if report.missing else ["No tool has a memory yet."]
    if report.best is not None and len(report.tools) > 1:
        lines.append(f"best: {one_line(report.best)}")
    degraded = [t for t in report.tools if t.trend == "degraded"]
    lines += [
        f"degraded: {one_line(t.tool_name)}: {t.recent_success_rate:.0%} of the newest 20 calls, {t.earlier_success_rate or 0:.0%} before"
        for t in degraded
    ]
    lines += [f"asked for {count(n, 'time')} without a memory: {one_line(name)}" for name, n in report.wanted.items()]
    if report.missing:
        lines.append(f"no memory of: {', '.join(one_line(n) for n in report.missing)}")
    return [*lines, *_warnings(report.warnings)]


def _aligned(row: tuple[str, ...], widths: list[int]) -> str:
    left = (0, 6)  # the texts; figures stand to the right
    blanks = [" " * (width - _cells(cell)) for cell, width in zip(row, widths, strict=True)]
    return "  ".join(cell + blank if n in left else blank + cell for n, (cell, blank) in enumerate(zip(row, blanks, strict=True))).rstrip()


def _cells(text: str) -> int:
    """Columns on a screen: a Chinese character takes two."""
    return sum(1 + (unicodedata.east_asian_width(character) in "WF") for character in text)


def _row(t: ToolStats) -> tuple[str, ...]:
    return (
        one_line(t.tool_name),
        f"{t.calls}" + (f"+{t.pending}" if t.pending else ""),
        f"{t.success_rate:.0%}",
        f"{t.average_score:.2f}",
        "-" if t.average_time_s is None else f"{t.average_time_s:.1f} s",
        "-" if t.average_tokens is None else f"{t.average_tokens:.0f}",
        t.trend,
        f"{t.composite:.2f}",
        f"{t.retrieved}",
    )


def _head(memory: ToolMemory) -> str:
    pending = f", {len(memory.pending)} pending" if memory.pending else ""
    return f"{one_line(memory.when_to_use)} · {_place(memory)} · {_figures(memory.statistics)}{pending}"


def _place(memory: ToolMemory) -> str:
    folder = "" if memory.workspace_id == "default" else f"workspaces/{memory.workspace_id}/"
    return f"{folder}memory/tools/{file_stem(memory.when_to_use)}.md"


def _figures(s: Statistics) -> str:
    if not s.calls:
        return "no calls"
    parts = [count(s.calls, "call"), f"success {s.success_rate:.0%}", f"score {s.average_score:.2f}"]
    parts += [] if s.average_time_s is None else [f"{s.average_time_s:.1f} s"]
    parts += [] if s.average_tokens is None else [f"{s.average_tokens:.0f} tokens"]
    return ", ".join(parts)


def _warnings(warnings: Iterable[str]) -> list[str]:
    return [f"warning: {one_line(w)}" for w in warnings]
