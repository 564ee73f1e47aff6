"""A record and a colour terminal's stream go in, what a person sees goes out through rich. A record without a view shows its plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from memory_tools import render_text
from memory_tools.records import Report, Result
from memory_tools.render_text import count, number, one_line
from memory_tools.reports import CheckReport, Excerpt, FeedbackReport

BAR_CELLS = 6
_EIGHTHS = " ▏▎▍▌▋▊▉"
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U000323af"  # written without spaces: words are found inside
_WORD = re.compile(rf"(?P<run>[{_UNSPACED}]+)|[^\W{_UNSPACED}]+")
_LEVELS = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def show(record: object, stream: IO[str], plain: Callable[[object], str]) -> None:
    """Write the record in colour; from its `plain` text where it has no view of its own."""
    view = _VIEWS.get(type(record))
    # markup and highlight off: text from notes is never a command to rich either.
    console = Console(file=stream, markup=False, highlight=False, emoji=False, soft_wrap=False)
    if view is None:
        _lines(plain(record), console)
    else:
        view(record, console)


def bar(value: float, cells: int = BAR_CELLS) -> str:
    """A value in [0, 1] as a bar of `cells` cells, in steps of an eighth; anything above 0 shows."""
    eighths = max(round(min(max(value, 0.0), 1.0) * cells * 8), 1 if value > 0 else 0)
    full, part = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[part] if part else "")).ljust(cells, "·")


def matched_spans(query: str, text: str) -> Iterator[tuple[int, int]]:
    """Where the words of the query stand in the text, by the same tokens that the search compares."""
    from memory_tools.tokens import query_terms, tokenize

    wanted = {term.text for term in query_terms(query) if term.kind != "stop"}
    for match in _WORD.finditer(text):
        if match["run"] is not None:
            yield from _matched_pieces(match["run"], match.start(), wanted, tokenize)
        elif wanted.intersection(tokenize(match.group())):
            yield match.span()


def _matched_pieces(word: str, start: int, wanted: set[str], tokenize: Callable[[str], list[str]]) -> Iterator[tuple[int, int]]:
    pairs = [at for at in range(len(word) - 1) if wanted.intersection(t for t in tokenize(word[at : at + 2]) if len(t) > 1)]
    if pairs:
        yield from ((start + at, start + at + 2) for at in pairs)
    elif wanted.intersection(tokenize(word)):
        yield from ((start + at, start + at + 1) for at, letter in enumerate(word) if wanted.intersection(tokenize(letter)))


def _report(record: Report, console: Console) -> None:
    for place, result in enumerate(record.results, start=1):
        _result(place, result, record.query, console)
    if record.results:
        known = f"recall {record.recall} · memory-tools feedback last N --outcome success|failure" if record.recall else ""
        console.print(Text(f"{count(len(record.results), 'memory', 'memories')} · {known}".rstrip(" ·"), style="dim"))
    else:
        console.print(Text(render_text.nothing(record), style="bold yellow"))
    for dropped in record.dropped:
        console.print(Text(f"not shown: {render_text.left_out(dropped)}", style="dim"))
    _notes([w for w in record.warnings if not w.startswith(render_text.NOTHING)], record.degraded, console)


def _result(place: int, result: Result, query: str, console: Console) -> None:
    head = Text(f"{place:>2}  ", style="bold cyan")
    head.append(one_line(result.address), style="bold")
    head.append(f"  {lines_of(result)}", style="cyan")
    console.print(head)
    if len(result.headings) > 1:
        console.print(Padding(Text(one_line(" › ".join(result.headings)), style="dim"), (0, 0, 0, 4)))
    for line in render_text.quoted_lines(result.snippet):
        text = Text(line)
        for start, end in matched_spans(query, line):
            text.stylize("bold yellow", start, end)
        # The gutter stays beside every wrapped line, so quoted text is seen as quoted.
        for wrapped in text.wrap(console, max(console.width - 6, 20)):
            wrapped.rstrip()
            console.print(Text.assemble("    ", ("│ ", "dim"), wrapped))
    console.print(_parts(result))
    last = f"last used {result.last_used:%Y-%m-%d}" if result.last_used else ""
    why = "; ".join(part for part in (one_line(result.why), last) if part)
    if why:
        console.print(Padding(Text(why, style="dim italic"), (0, 0, 0, 4)))
    if result.similar:
        console.print(Text(f"    {count(result.similar, 'near-duplicate')} left out", style="dim"))
    if result.differs:
        console.print(Text(f"    older memories say otherwise: {', '.join(map(one_line, result.differs))}", style="yellow"))
    if result.explain:
        console.print(Padding(Text(render_text.explained(result.explain), style="dim"), (0, 0, 0, 4)))
    console.print()


def lines_of(result: Result) -> str:
    first, last = result.start_line, result.end_line
    return f"L{first}" if first == last else f"L{first}-L{last}"


def _parts(result: Result) -> Text:
    """Utility and its three parts as bars."""
    style = "bold green" if result.utility >= 0.7 else "bold yellow" if result.utility >= 0.5 else "bold red"
    line = Text("    utility ")
    line.append(f"{result.utility:.2f}", style=style)
    for name, value, colour in (("recency", result.recency, "blue"), ("relevance", result.relevance, "magenta")):
        line.append(f"  {name} ")
        line.append(bar(value), style=colour)
        line.append(f" {value:.2f}", style="dim")
    line.append("  success ")
    if result.success_rate is None:
        line.append("·" * BAR_CELLS + (" no outcome yet" if result.use_count else " not used yet"), style="dim")
    else:
        line.append(bar(result.success_rate), style="green")
        line.append(f" {result.success_rate:.0%}, {render_text.uses(result)}", style="dim")
    return line


def _excerpt(record: Excerpt, console: Console) -> None:
    head, *rest = render_text.plain(record) or [""]
    console.print(Text(head, style="bold"))
    width = len(str(max(record.end_line, 1)))
    lines = render_text.quoted_lines(record.text)
    for at, line in enumerate(lines, start=record.start_line):
        for part, wrapped in enumerate(Text(line).wrap(console, max(console.width - width - 3, 20))):
            wrapped.rstrip()
            console.print(Text.assemble((f"{'' if part else at:>{width}} │ ", "dim"), wrapped))
    for line in rest[len(lines) :]:
        console.print(Text(line, style="dim"))


def _feedback(record: FeedbackReport, console: Console) -> None:
    colours = {"success": "green", "failure": "red", "unknown": "yellow"}
    for one in record.recorded:
        line = Text(f"{one.outcome:<8}", style=colours.get(one.outcome, ""))
        line.append(one_line(one.address), style="bold")
        line.append(f"  {number(one.success_count)} of {number(one.use_count)} helped  utility ")
        line.append(f"{bar(one.utility)} {one.utility:.2f}", style="green")
        line.append("" if one.counted else "  known already, nothing counted", style="dim")
        console.print(line)
    _notes(record.warnings, (), console)


def _check(record: CheckReport, console: Console) -> None:
    for finding in record.findings:
        line = Text(f"{finding.level:<8}", style=_LEVELS.get(finding.level, ""))
        line.append(render_text.place_of(finding), style="bold")
        line.append(render_text.message_of(finding))
        line.append(f"  {finding.code}", style="dim")
        line.append("  fixed" if finding.fixed else "", style="green")
        console.print(line)
    if not record.findings:
        console.print(Text("ok", style="green"))


def _notes(warnings: tuple[str, ...] | list[str], degraded: tuple[str, ...], console: Console) -> None:
    for warning in warnings:
        console.print(Text(f"warning: {one_line(warning)}", style="yellow"))
    for code in degraded:
        console.print(Text(render_text.missing(code), style="yellow"))


def _lines(plain: str, console: Console) -> None:
    """A plain text, its names dim and what needs attention in yellow."""
    for line in plain.split("\n"):
        name = re.match(r"\S+:?\s+", line)
        if line.startswith(("warning:", "degraded:", "pending", "skipped:")):
            console.print(Text(line, style="yellow"))
        else:
            console.print(Text.assemble((name.group(), "dim"), line[name.end() :]) if name else Text(line))


_VIEWS: dict[type, Callable[..., None]] = {
    Report: _report,
    Excerpt: _excerpt,
    FeedbackReport: _feedback,
    CheckReport: _check,
}
