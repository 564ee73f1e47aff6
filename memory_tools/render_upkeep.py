"""Records of tending the scores to plain text: tables, plans and what was moved. Beside render_text, so that a search does not load it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from memory_tools.archive import Done, Kept, Moved, Plan
from memory_tools.render_text import count, number, one_line
from memory_tools.scores_merge import Merged
from memory_tools.skill import Installed
from memory_tools.standing import Row, Tuning
from memory_tools.upkeep import Recalculated, ScoreTable


def plain(record: object) -> list[str] | None:
    """The lines of a record of these modules, None for any other."""
    write = _WRITERS.get(type(record))
    return None if write is None else list(write(record))


def _table(record: ScoreTable) -> Iterable[str]:
    if not record.memories:
        yield "no memory has a history yet: say what helped with memory-tools feedback"
        return
    yield "utility  helped       uses  last used   address"
    for row in record.memories:
        judged = row.success_count + row.fail_count
        helped = f"{number(row.success_count)} of {number(judged)}" if judged else "not judged"
        used = f"{number(row.use_count):>4}  {_day(row.last_used):<10}"
        yield f"{row.utility:7.2f}  {helped:<11}  {used}  {one_line(row.address)}{_marks(row)}"


def _marks(row: Row) -> str:
    trend = {"up": "helps more lately", "down": "helps less lately"}.get(row.trend or "", "")
    marks = (("pinned", row.pinned), ("muted", row.muted), ("liked", row.positive_feedback), (trend, bool(trend)))
    words = [word for word, holds in marks if holds]
    return f"  ({', '.join(words)})" if words else ""


def _day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment is not None else "-"


def _tuning(record: Tuning) -> Iterable[str]:
    memories = count(record.memories, "memory", "memories")
    yield f"{number(record.outcomes)} outcomes of {memories}; the threshold in use is {record.current:g}"
    if record.outcomes:
        yield "threshold  kept: helped  failed   dropped: helped  failed"
    for row in record.rows if record.outcomes else ():
        mark = "*" if row.threshold == record.current else " "
        kept = f"{number(row.kept_success):>12}  {number(row.kept_failure):>6}"
        yield f"{row.threshold:>8.2f} {mark}{kept}   {number(row.dropped_success):>15}  {number(row.dropped_failure):>6}"
    yield record.note if record.proposal is None else f"proposal: utility_threshold {record.proposal:g}. {record.note}"


def _plan(record: Plan) -> Iterable[str]:
    if record.proposed:
        yield f"{count(len(record.proposed), 'memory', 'memories')} would move to memory/archive/; --yes moves them"
    else:
        yield "nothing to archive"
    for one in record.proposed:
        helped = f"helped {number(one.success_count)} of {number(one.success_count + one.fail_count)}"
        place = f"L{one.start_line}-L{one.end_line}"
        yield f"{one.utility:.2f}  {helped}, last used {_day(one.last_used)}  {one_line(one.address)}  {place}"
    yield from _kept(record.kept)


def _done(record: Done) -> Iterable[str]:
    yield from (f"moved  {one_line(one.was)} -> {one_line(one.address)}" for one in record.moved)
    if not record.moved:
        yield "nothing was moved"
    yield from _kept(record.kept)


def _restored(record: Moved) -> Iterable[str]:
    was = "" if record.was == record.address else f"  (was {one_line(record.was)})"
    yield f"restored  {one_line(record.address)}{was}"


def _kept(kept: tuple[Kept, ...]) -> Iterable[str]:
    yield from (f"kept  {one_line(one.address)}: {one_line(one.reason)}" for one in kept)


def _recalculated(record: Recalculated) -> Iterable[str]:
    state = "brought up to date" if record.written else "up to date"
    yield f"{count(record.memories, 'memory', 'memories')} with a history, {state}"
    for word, addresses in (("orphaned", record.orphaned), ("returned", record.returned), ("forgotten", record.expired)):
        yield from (f"{word}: {one_line(address)}" for address in addresses)
    yield from (f"warning: {one_line(warning)}" for warning in record.warnings)


def _merged(record: Merged) -> Iterable[str]:
    orphans = f", {count(record.orphans, 'orphan')}" if record.orphans else ""
    yield f"{one_line(record.path)}: {count(record.entries, 'memory', 'memories')}{orphans}"
    yield from (f"changed on both sides, added up: {one_line(address)}" for address in record.both)


def _installed(record: Installed) -> Iterable[str]:
    for page in record.pages:
        yield f"{page.state:<9}  {one_line(str(page.path))}" + (f"  {one_line(page.note)}" if page.note else "")


_WRITERS: dict[type, Callable[..., Iterable[str]]] = {
    ScoreTable: _table,
    Tuning: _tuning,
    Plan: _plan,
    Done: _done,
    Moved: _restored,
    Recalculated: _recalculated,
    Merged: _merged,
    Installed: _installed,
}
