"""memory/utility-scores.json: read with its problems, attached to the sections that are there, and rewritten under its lock.

It is data of record: what does not parse is left untouched and reported, and nothing leaves it but orphans of more than 90 days.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from memory_tools import durable, plain_files
from memory_tools.attach import Attached, Sections, adopt, attach, returning
from memory_tools.entries import Entry, Scores, formatted, parse
from memory_tools.errors import Damaged, MemoryToolsError
from memory_tools.history import Usage
from memory_tools.records import Stat, Trace
from memory_tools.reports import Finding
from memory_tools.settings import Settings
from memory_tools.utility import stored_utility

__all__ = ["ORPHAN_DAYS", "Attached", "Entry", "Scores", "Sections", "Sidecar", "Snapshot", "Updated", "adopt", "attach", "update"]

ORPHAN_DAYS = 90
_RACY_NS = 50_000_000  # written again within the same tick of a coarse clock, a file may keep its time and size
_ATTEMPTS = 5
_NAME = "memory/utility-scores.json"
_LINE = re.compile(r":(\d+):\d+: ")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of the file. `damaged`: why it cannot be read; then it counts as empty and is never written."""

    scores: Scores
    content: bytes | None  # None: there is no file
    damaged: MemoryToolsError | None = None

    @property
    def entries(self) -> Mapping[str, Entry]:
        return self.scores.entries

    @property
    def orphans(self) -> Mapping[str, Entry]:
        return self.scores.orphans

    @property
    def problems(self) -> tuple[Finding, ...]:
        if self.damaged is not None:
            line = _LINE.search(self.damaged.message)
            return (Finding("error", "scores_damaged", self.damaged.message, _NAME, int(line[1]) if line else None),)
        return self.scores.problems


@dataclass(slots=True)
class Sidecar:
    """The file at `path`, read again only when its stat changed. `inside`: the folder that no link may lead out of."""

    path: Path
    inside: Path | None = None
    _stat: Stat | None = None
    _snapshot: Snapshot | None = None

    def load(self) -> Snapshot:
        """Never raises: what is wrong is in the snapshot."""
        try:
            state = self.path.stat()
        except FileNotFoundError:
            return Snapshot(Scores(), None)
        except OSError as e:
            return Snapshot(Scores(), None, durable.refused(e, self.path))
        now = Stat.of(state)
        if self._snapshot is None or self._stat != now:
            read_ns = time.time_ns()
            self._snapshot = self.read()
            self._stat = now if read_ns - max(now.mtime_ns, now.ctime_ns) > _RACY_NS else None
        return self._snapshot

    def read(self) -> Snapshot:
        try:
            self.check_place()
            content = plain_files.read_bytes(self.path)
        except MemoryToolsError as e:
            return Snapshot(Scores(), None, e)
        if content is None:
            return Snapshot(Scores(), None)
        try:
            return Snapshot(parse(content, str(self.path)), content)
        except Damaged as e:
            return Snapshot(Scores(), content, e)

    def adopt(self, traces: Sequence[Trace]) -> Mapping[int, str]:
        """Ids under which the file knows sections that are new to the index (their traces have none): index of the trace -> id."""
        snapshot = self.load()
        return adopt(snapshot.scores, traces) if snapshot.entries else {}

    def check_place(self) -> None:
        """Raises Forbidden where memory/ is a link that leads out of the workspace."""
        if self.inside is not None:
            plain_files.check_inside(self.inside, self.path.parent)

    def usages(self, sections: Sections) -> dict[str, Usage]:
        """Section id -> history, of the sections that have one."""
        snapshot = self.load()
        return {section: entry.usage() for section, entry in attach(snapshot.scores, sections).entries.items()}


@dataclass(frozen=True, slots=True)
class Updated:
    """What a rewrite did. `entries`: section id -> as it stands now; the others are addresses."""

    entries: Mapping[str, Entry] = field(default_factory=dict)
    written: bool = False
    orphaned: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()
    problems: tuple[Finding, ...] = ()


def update(sidecar: Sidecar, sections: Sections, change: Callable[[Book], None], now: datetime, timeout_s: float = 10.0) -> Updated:
    """Read, attach to the sections, let `change` have its way with the entries, write; all under the file's lock.

    `change` is called again, with what is there then, where the file was saved by hand meanwhile.
    Raises Damaged where the file does not parse or holds a key twice, Busy, Forbidden; then nothing was written.
    """
    sidecar.check_place()
    with durable.lock(sidecar.path, timeout_s):
        for attempt in range(_ATTEMPTS):
            snapshot = sidecar.read()
            book = _opened(sidecar, snapshot, sections, now)
            change(book)
            made = book.made()
            content = formatted(made, snapshot.scores)
            # A workspace without history gets its file with the first entry.
            needed = content != snapshot.content and (snapshot.content is not None or bool(made.entries) or bool(made.orphans))
            # A person's editor asks for no lock: what was saved meanwhile is read, not overwritten.
            if needed and attempt + 1 < _ATTEMPTS and sidecar.read().content != snapshot.content:
                continue
            if needed:
                durable.replace(sidecar.path, content)
            break
        return Updated(
            {id: e for id, e in book.entries.items() if id in book.place}, needed, tuple(book.orphaned), tuple(book.returned),
            tuple(book.expired), snapshot.problems,
        )  # fmt: skip


def _opened(sidecar: Sidecar, snapshot: Snapshot, sections: Sections, now: datetime) -> Book:
    if snapshot.damaged is not None:
        raise snapshot.damaged
    if snapshot.scores.repeated is not None:
        raise Damaged(
            f"{sidecar.path}: {snapshot.scores.repeated!r} is there more than once", "keep one of the two by hand; it was left untouched"
        )
    traces = sections.traces()
    attached = attach(snapshot.scores, replace(sections, traces=lambda: traces))
    return Book(snapshot.scores, attached, traces, now, sections.complete)


class Book:
    """The file while it is changed.

    `entries`: by section id; those of sections that are gone (orphans) by their own id, else their address. `place`: the sections that
    are there, by id; an entry may be added for each of them. `before`: the file as it was read.
    """

    def __init__(self, scores: Scores, attached: Attached, traces: Sequence[Trace], now: datetime, complete: bool = True) -> None:
        self._complete = complete
        self.place = {t.id: t for t in traces}
        self.before, self._now = scores, now
        self.entries: dict[str, Entry] = {id: e for id, e in attached.entries.items() if id in self.place}
        self.returned = list(attached.returned)
        back = returning(scores.orphans, traces, {j for j, t in enumerate(traces) if t.id in self.entries})
        for key, j in back.items():
            self.entries[traces[j].id] = scores.orphans[key]
            self.returned.append(key)
        self._gone: dict[str, str] = {}  # name in `entries` -> address
        self.orphaned: list[str] = []
        self.expired: list[str] = []
        for key, entry in self._lost(scores, attached):
            name = entry.id if entry.id and entry.id not in self.place and entry.id not in self.entries else key
            self.entries[name] = entry
            self._gone[name] = key

    def _lost(self, scores: Scores, attached: Attached) -> list[tuple[str, Entry]]:
        out = []
        for key, orphan in sorted(scores.orphans.items()):
            if key in self.returned:
                continue
            since = orphan.orphaned or self._now  # written by hand without a time: from now on
            if self._now - since > timedelta(days=ORPHAN_DAYS):
                self.expired.append(key)
            else:
                out.append((key, replace(orphan, orphaned=since)))
        unplaced = [key for id, keys in attached.keys.items() if id not in self.place for key in keys if key in scores.entries]
        for key in sorted({*attached.loose, *unplaced}):
            if self._complete:
                self.orphaned.append(key)
            out.append((key, replace(scores.entries[key], orphaned=self._now) if self._complete else scores.entries[key]))
        return out

    def made(self) -> Scores:
        entries: dict[str, Entry] = {}
        orphans: dict[str, Entry] = {}
        waiting: dict[str, Entry] = {}
        for name, entry in self.entries.items():
            trace = self.place.get(name)
            if trace is not None:
                entries[trace.address] = _current(entry, trace)
            elif name in self._gone and entry.orphaned is None:  # not gone for all we know
                waiting[self._gone[name]] = entry
            elif name in self._gone:
                orphans[_free(self._gone[name], entry, orphans)] = entry
            else:
                raise KeyError(f"no section has the id {name!r}")
        for key, entry in waiting.items():
            if key in entries:  # another section has the address by now
                orphans[_free(key, entry, orphans)] = replace(entry, orphaned=self._now)
            else:
                entries[key] = entry
        return Scores(entries, orphans, self.before.others)


def _free(key: str, entry: Entry, orphans: Mapping[str, Entry]) -> str:
    """The orphan's key: its address; with its id where another one, gone before, has that already."""
    made, number = key, 1
    while made in orphans:
        made = f"{key} ({entry.id or number})"
        number += 1
    return made


def _current(entry: Entry, trace: Trace) -> Entry:
    """The entry with its section's id and text as they are now. White space is no edit, so the same body keeps its time."""
    same = entry.body in ("", trace.body)
    edited = (entry.edited if same else None) or trace.edited or entry.edited
    sketch = base64.b64encode(trace.sketch).decode()
    if (entry.id, entry.body, entry.sketch, entry.edited, entry.orphaned) == (trace.id, trace.body, sketch, edited, None):
        return entry
    return replace(entry, id=trace.id, body=trace.body, sketch=sketch, edited=edited, orphaned=None)


def recalculate(sidecar: Sidecar, sections: Sections, now: datetime, settings: Settings | None = None) -> Updated:
    """Stored utilities, addresses, ids and sketches brought up to date."""

    def change(book: Book) -> None:
        for id, entry in book.entries.items():
            if entry.orphaned is None:
                utility = round(stored_utility(entry.usage(), now, settings), 4)
                if utility != entry.utility:
                    book.entries[id] = replace(entry, utility=utility)

    return update(sidecar, sections, change, now)
