"""Memories that no longer help in, moved byte for byte to memory/archive/YYYY-MM.md, or back. Nothing is deleted.

The archive is written before the note loses the section, and the note gets it back before the archive loses it: what is killed between
leaves a section twice, and doing it again ends it. A person's notes: all other bytes stay as they are, and a move that would change how
the rest of a file reads is not made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from memory_tools import archived, durable, files, plain_files
from memory_tools.archived import Held, Part
from memory_tools.entries import Entry
from memory_tools.errors import MemoryToolsError, NotFound
from memory_tools.records import Trace
from memory_tools.score_values import time_text
from memory_tools.settings import Settings
from memory_tools.utility import counts, stored_utility
from memory_tools.walk import source_of

FOLDER = "memory/archive"
_SOURCES = ("memory", "knowledge")


@dataclass(frozen=True, slots=True)
class Proposed:
    """A section that would be moved."""

    address: str
    id: str
    path: str
    start_line: int
    end_line: int
    utility: float
    use_count: float
    success_count: float
    fail_count: float
    last_used: datetime | None
    edited: datetime | None


@dataclass(frozen=True, slots=True)
class Kept:
    """A section of low utility that stays, and why."""

    address: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    proposed: tuple[Proposed, ...]
    kept: tuple[Kept, ...] = ()


@dataclass(frozen=True, slots=True)
class Moved:
    """A section that was moved: its address before and now."""

    was: str
    address: str
    path: str  # of the file that holds it now


@dataclass(frozen=True, slots=True)
class Done:
    moved: tuple[Moved, ...]
    kept: tuple[Kept, ...] = ()


def plan(
    workspace: Path, entries: Mapping[str, Entry], traces: Iterable[Trace], now: datetime, settings: Settings, after_days: float
) -> Plan:
    """What archiving would move: judged at least `min_judged` times, of stored utility below the threshold, neither edited nor used for
    `after_days`. Never what is pinned, what was not tried, a lead section, or a section with a subsection that stays. Writes nothing.

    `entries` by section id, `traces` of all sections, as the index has them.
    """
    low: dict[str, list[tuple[Trace, Entry, float]]] = {}
    for trace in traces:
        entry = entries.get(trace.id)
        if entry is None or entry.pinned or source_of(trace.path) not in _SOURCES or "#" not in trace.address:
            continue
        utility = stored_utility(entry.usage(), now, settings)
        edited = entry.edited if entry.edited and entry.body in ("", trace.body) else trace.edited
        newest = max((t for t in (edited, entry.last_used) if t), default=None)
        idle = newest is None or now - newest >= timedelta(days=after_days)
        if entry.judged >= settings.min_judged and utility < settings.utility_threshold and idle:
            low.setdefault(trace.path, []).append((trace, entry, utility))
    proposed: list[Proposed] = []
    kept: list[Kept] = []
    for path in sorted(low):
        try:
            parts = archived.parts_of(path, _read(workspace, path))
        except MemoryToolsError as e:
            kept += [Kept(trace.address, e.message) for trace, _, _ in low[path]]
            continue
        at = {(p.section.address, p.body): p for p in parts}
        chosen = {trace.address: (trace, entry, utility) for trace, entry, utility in low[path] if (trace.address, trace.body) in at}
        for address in _with_subsections(parts, set(chosen)):
            del chosen[address]
            kept.append(Kept(address, "has subsections that are not archived"))
        for trace, entry, utility in sorted(chosen.values(), key=lambda c: c[0].order):
            section = at[trace.address, trace.body].section
            uses, success, fail = counts(entry.usage())
            proposed.append(
                Proposed(
                    trace.address, trace.id, path, section.start_line, section.end_line, round(utility, 4), uses, success, fail,
                    entry.last_used, entry.edited or trace.edited,
                )
            )  # fmt: skip
    return Plan(tuple(proposed), tuple(kept))


def _with_subsections(parts: Sequence[Part], chosen: set[str]) -> list[str]:
    """Those of the chosen that have a subsection which is not chosen."""
    blocked = []
    for i, part in enumerate(parts):
        if part.section.address not in chosen:
            continue
        for below in parts[i + 1 :]:
            if below.level <= part.level:
                break
            if below.section.address not in chosen:
                blocked.append(part.section.address)
                break
    return blocked


def apply(workspace: Path, planned: Plan, now: datetime) -> Done:
    """Move what was planned. `now` in the user's time zone names the archive. A section that changed since stays, with the reason."""
    path = f"{FOLDER}/{now:%Y-%m}.md"
    target = files.writable(workspace, path)
    moved: list[Moved] = []
    kept: list[Kept] = []
    by_path: dict[str, list[Proposed]] = {}
    for one in planned.proposed:
        by_path.setdefault(one.path, []).append(one)
    for note, wanted in sorted(by_path.items()):
        try:
            source = files.writable(workspace, note)
            with durable.lock(target), durable.lock(source):
                move = _Move(note, _bytes(source), path, _bytes(target), now)
                gone = move.choose(wanted, kept)
                if gone:
                    durable.replace(target, move.archive)
                    if _bytes(source) != move.before:  # saved by an editor, which asks for no lock
                        move.undo(target)
                        kept += [Kept(one.was, "changed meanwhile") for one in gone]
                        continue
                    durable.replace(source, move.note)
            moved += gone
        except MemoryToolsError as e:
            kept += [Kept(one.address, e.message) for one in wanted]
    return Done(tuple(moved), tuple(kept))


class _Move:
    """One note and one archive, with the sections that can go from the first to the second without changing anything else."""

    def __init__(self, path: str, note: bytes, archive_path: str, archive: bytes, now: datetime) -> None:
        self.path, self.archive_path, self.now = path, archive_path, now
        self.before, self._archive = note, archive
        self.note, self.archive = note, archive

    def choose(self, wanted: Sequence[Proposed], kept: list[Kept]) -> list[Moved]:
        parts = archived.parts_of(self.path, self.before)
        ids = {one.address: one.id for one in wanted}
        lines = {one.address: (one.start_line, one.end_line) for one in wanted}
        chosen = [p for p in parts if lines.get(p.section.address) == (p.section.start_line, p.section.end_line)]
        kept += [Kept(a, "changed meanwhile") for a in ids if a not in {p.section.address for p in chosen}]
        while chosen:
            reason = self._try(parts, chosen, ids)
            if not reason:
                break
            part, why = reason
            leaves = {part.section.address, *_with_subsections(parts, {p.section.address for p in chosen if p is not part})}
            kept += [Kept(p.section.address, why) for p in chosen if p.section.address in leaves]
            chosen = [p for p in chosen if p.section.address not in leaves]
        at = {h.record.address: h.line for h in archived.held(self.archive)} if chosen else {}
        there = {p.section.start_line: p.section.address for p in archived.parts_of(self.archive_path, self.archive)} if chosen else {}
        return [Moved(p.section.address, there[at[p.section.address]], self.archive_path) for p in chosen]

    def undo(self, target: Path) -> None:
        if self._archive:
            durable.replace(target, self._archive)
        else:
            durable.remove(target)

    def _try(self, parts: Sequence[Part], chosen: Sequence[Part], ids: Mapping[str, str]) -> tuple[Part, str] | None:
        """The bytes after the move, in `note` and `archive`; or the first section that cannot go, and why."""
        self.note, self.archive = self.before, self._archive
        # Moved before, when the note could not be written any more.
        note = archived.digest(self.before)
        held = {h.record.address for h in archived.held(self._archive) if h.record.note == note}
        for part in reversed(chosen):  # from the end, so that the lines above stay where they are
            chunk, rest = archived.cut(self.note, part.section)
            before = _contents(archived.parts_of(self.path, self.note), without=part)
            if _contents(archived.parts_of(self.path, rest)) != before:
                return part, "without it the rest of the note would read differently"
            self.note = rest
        for part in chosen:
            chunk, _ = archived.cut(self.before, part.section)
            if part.section.address in held:
                continue
            record = archived.record_of(part, parts, chunk, ids[part.section.address], time_text(self.now), self.before)
            longer = archived.put(self.archive, f"Archive {self.now:%Y-%m}", record, chunk)
            line = archived.held(longer)[-1].line
            there = archived.parts_of(self.archive_path, longer)
            last = there[-1] if there else None
            as_before = _contents(archived.parts_of(self.archive_path, self.archive)) if self.archive else _contents(there[:-1])
            if last is None or (last.section.start_line, last.body) != (line, part.body) or _contents(there[:-1]) != as_before:
                return part, "in the archive it would read differently (an open code fence or comment?)"
            self.archive = longer
        return None


def _contents(parts: Sequence[Part], without: Part | None = None) -> list[tuple[str, str, int]]:
    return [(p.section.heading, p.body, p.level) for p in parts if without is None or p.section.start_line != without.section.start_line]


def restore(workspace: Path, address: str) -> Moved:
    """Put an archived section back where it was. `address`: the one it had, or the one it has in the archive. Raises NotFound."""
    path, one = _find(workspace, address)
    note = one.record.address.partition("#")[0]
    source, target = files.writable(workspace, note), files.writable(workspace, path)
    with durable.lock(target), durable.lock(source):
        content, before = _bytes(target), _bytes(source)
        again = next((h for h in archived.held(content) if h.record == one.record), None)
        if again is None:
            raise NotFound(f"{address}: was restored meanwhile")
        line = archived.place(note, before, again, [h for p in _archives(workspace) for h in archived.held(_read(workspace, p))])
        after, at = archived.insert(note, before, line, again.text)
        if again.record.back == archived.digest(before):  # restored before, when the archive could not be written any more
            after, at = before, line + 1
        else:
            content = archived.marked(content, again, after)
            durable.replace(target, content)
            durable.replace(source, after)
        rest = archived.take(content, next(h for h in archived.held(content) if h.start == again.start))
        if rest:
            durable.replace(target, rest)
        else:
            durable.remove(target)
    there = [p for p in archived.parts_of(note, after) if p.section.start_line == at]
    return Moved(again.record.address, there[0].section.address if there else note, note)


def _find(workspace: Path, address: str) -> tuple[str, Held]:
    known: list[str] = []
    for path in reversed(_archives(workspace)):  # the newest first
        content = _read(workspace, path)
        at = {p.section.start_line: p.section.address for p in archived.parts_of(path, content)}
        for one in reversed(archived.held(content)):
            if address in (one.record.address, at.get(one.line)):
                return path, one
            known.append(one.record.address)
    import difflib

    near = difflib.get_close_matches(address, known, n=3, cutoff=0.5) or known[:3]
    raise NotFound(
        f"{address}: nothing archived has this address", f"archived are: {', '.join(near)}" if near else "nothing is archived yet"
    )


def _archives(workspace: Path) -> list[str]:
    folder = workspace / FOLDER
    try:
        return sorted(f"{FOLDER}/{p.name}" for p in folder.iterdir() if p.suffix == ".md" and p.is_file())
    except FileNotFoundError:
        return []
    except OSError as e:
        raise durable.refused(e, folder) from e


def _read(workspace: Path, path: str) -> bytes:
    return _bytes(files.resolve(workspace, {}, path))


def _bytes(path: Path) -> bytes:
    return plain_files.read_bytes(path) or b""
