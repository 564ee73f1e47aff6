"""Three versions of utility-scores.json in, one with what each side added out. Pure but for merge_files; it never ends in a conflict.

A memory is the same by its id, so one that moved on one side and was used on the other keeps both; without ids it is the same by address.
Counts: base + what ours added + what theirs added. Times: the newest. Everything else: the side that changed it; where both did, a person's
yes wins over no, the newer text and the newer use over the older, and else ours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from memory_tools import durable
from memory_tools.entries import RECENT, Entry, Scores, formatted, parse, read_entry
from memory_tools.errors import Damaged
from memory_tools.history import counts

T = TypeVar("T")
_BASE, _OURS, _THEIRS = range(3)
_NOTHING = Entry()


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge of files did. `both`: addresses that either side had changed."""

    path: str
    entries: int
    orphans: int
    both: tuple[str, ...]


def merge(base: bytes | None, ours: bytes, theirs: bytes, names: tuple[str, str, str] = ("base", "ours", "theirs")) -> bytes:
    """The merged file. base None or empty: the two have no common ancestor. Raises Damaged with name, line and column."""
    return formatted(_merged(base, ours, theirs, names)[0])


def merge_files(base: Path, ours: Path, theirs: Path) -> Merged:
    """Merge into `ours`, as a git merge driver does (`%O %A %B`). Raises Damaged, NotFound, Forbidden; then nothing was written."""
    contents = []
    for path in (base, ours, theirs):
        try:
            contents.append(path.read_bytes())
        except OSError as e:
            raise durable.refused(e, path) from e
    scores, both = _merged(contents[0], contents[1], contents[2], (str(base), str(ours), str(theirs)))
    durable.replace(ours, formatted(scores))
    return Merged(str(ours), len(scores.entries), len(scores.orphans), both)


@dataclass(slots=True)
class _Memory:
    """One memory in up to three versions: (address, entry, whether its section was there)."""

    versions: dict[int, tuple[str, Entry, bool]] = field(default_factory=dict)

    def entry(self, side: int) -> Entry:
        return self.versions[side][1] if side in self.versions else _NOTHING

    def place(self) -> tuple[str, bool]:
        base, ours, theirs = (self.versions[s][::2] if s in self.versions else None for s in (_BASE, _OURS, _THEIRS))
        chosen = _pick(base, ours, theirs, lambda a, b: a if a is not None else b) or ours or theirs
        assert chosen is not None
        return chosen

    def changed(self, side: int) -> bool:
        return self.entry(side).raw != self.entry(_BASE).raw

    def gone(self) -> bool:
        """Taken out by hand on one side, and not used on the other since."""
        missing = [s for s in (_OURS, _THEIRS) if s not in self.versions]
        return bool(missing) and _BASE in self.versions and not any(self.changed(s) for s in (_OURS, _THEIRS) if s not in missing)


def _merged(base: bytes | None, ours: bytes, theirs: bytes, names: tuple[str, str, str]) -> tuple[Scores, tuple[str, ...]]:
    sides: list[Scores] = []
    for content, name in zip((base, ours, theirs), names, strict=True):
        # Git hands an empty file where there is no common ancestor.
        side = Scores() if content is None or (name == names[_BASE] and not content.strip()) else parse(content, name)
        if side.repeated is not None:
            raise Damaged(f"{name}: {side.repeated!r} is there more than once", "keep one of the two by hand")
        sides.append(side)
    entries: dict[str, Entry] = {}
    orphans: dict[str, Entry] = {}
    both: list[str] = []
    for memory in _memories(sides):
        if memory.gone():
            continue
        address, live = memory.place()
        entry = _together(memory)
        if live and address not in entries:
            entries[address] = replace(entry, orphaned=None)
        else:  # two memories at one address: the other's text tells later where it belongs
            key = address
            while key in orphans:
                key = f"{key} ({entry.id or len(orphans)})"
            orphans[key] = entry
        if all(s in memory.versions and memory.changed(s) for s in (_OURS, _THEIRS)):
            both.append(address)
    others = _fields(sides[_BASE].others, sides[_OURS].others, sides[_THEIRS].others)
    return Scores(entries, orphans, others), tuple(sorted(both))


def _memories(sides: Sequence[Scores]) -> list[_Memory]:
    """The entries of the three sides, those of one memory together; the ones that ours has at their address first."""
    known = {e.id for e in (*sides[_BASE].entries.values(), *sides[_BASE].orphans.values()) if e.id}
    at: dict[str, list[str]] = defaultdict(list)  # address -> ids that stand there on any side
    for side in sides:
        for address, entry in sorted(side.entries.items()):
            if entry.id and entry.id not in at[address]:
                at[address].append(entry.id)
    same: dict[str, str] = {}
    for ids in at.values():  # both sides met the same new section and gave it different ids
        fresh = sorted(id for id in ids if id not in known)
        same.update(dict.fromkeys(fresh, fresh[0]) if len(fresh) > 1 else {})
    memories: dict[tuple[str, str], _Memory] = {}
    for number, side in enumerate(sides):
        for live, found in ((True, side.entries), (False, side.orphans)):
            for address, entry in sorted(found.items()):
                id = entry.id or (at[address][0] if live and at.get(address) else "")
                key = ("id", same.get(id, id)) if id else ("address", address)
                memory = memories.setdefault(key, _Memory())
                if number in memory.versions:  # twice on one side: what is there and what is gone of it
                    key = (f"{number} {live}", address)
                    memory = memories.setdefault(key, _Memory())
                memory.versions[number] = (address, entry, live)
    return [memories[key] for key in sorted(memories, key=lambda k: (_OURS not in memories[k].versions, k))]


def _together(memory: _Memory) -> Entry:
    base, ours, theirs = (memory.entry(s) for s in (_BASE, _OURS, _THEIRS))
    for one, other in ((_OURS, _THEIRS), (_THEIRS, _OURS)):
        if one in memory.versions and not memory.changed(other):  # nothing to add up: as it stands, odd numbers and all
            return memory.entry(one)
    entry = read_entry(_fields(base.raw, ours.raw, theirs.raw))
    now = [counts(e.usage()) for e in (base, ours, theirs)]
    uses, success, fail = (_added(b, o, t) for b, o, t in zip(*now, strict=True))
    explicit = any(e.fail_count is not None for e in (ours, theirs))
    newer, older = (ours, theirs) if _key(ours.last_used) >= _key(theirs.last_used) else (theirs, ours)
    latest = _newer_text(ours, theirs)
    text = _pick(base, ours, theirs, lambda _o, _t: latest, key=lambda e: (e.body, e.sketch, e.edited))
    merged: dict[str, object] = {
        "use_count": max(uses, _whole(success + fail)),
        "success_count": success,
        "fail_count": fail if explicit else None,
        "last_used": _newest(ours.last_used, theirs.last_used),
        "last_success": _newest(ours.last_success, theirs.last_success),
        "edited": text.edited,
        "body": text.body,
        "sketch": text.sketch,
        "id": min(ours.id or theirs.id, theirs.id or ours.id),
        "q": _q(base, ours, theirs),
        "utility": _pick(base.utility, ours.utility, theirs.utility, lambda _o, _t: newer.utility),
        "event": _pick(base.event, ours.event, theirs.event, lambda _o, _t: newer.event),
        "recent": _recent(base, older, newer),
    }
    for flag in ("positive_feedback", "pinned", "muted"):
        merged[flag] = _pick(getattr(base, flag), getattr(ours, flag), getattr(theirs, flag), lambda _o, _t: True)
    # What could not be read as a number or a time stays as the side that changed it has it.
    return replace(entry, **{name: value for name, value in merged.items() if name not in entry.unreadable})  # type: ignore[arg-type]


def _pick(base: T, ours: T, theirs: T, both: Callable[[T, T], T], key: Callable[[T], object] = lambda value: value) -> T:
    """The side that changed it; `both` decides where either did."""
    if key(ours) == key(theirs) or key(theirs) == key(base):
        return ours
    return theirs if key(ours) == key(base) else both(ours, theirs)


def _fields(base: Mapping[str, object], ours: Mapping[str, object], theirs: Mapping[str, object]) -> dict[str, object]:
    """Three-way by field, objects inside likewise; where both changed a value, ours."""
    out: dict[str, object] = {}
    for name in (*ours, *(n for n in theirs if n not in ours)):
        b, o, t = (side.get(name, _MISSING) for side in (base, ours, theirs))
        if isinstance(o, dict) and isinstance(t, dict):
            value: object = _fields(b if isinstance(b, dict) else {}, o, t)
        else:
            value = _pick(b, o, t, lambda mine, yours: yours if mine is _MISSING else mine)
        if value is not _MISSING:
            out[name] = value
    return out


_MISSING = object()


def _added(base: float, ours: float, theirs: float) -> float:
    return max(_whole(ours + theirs - base), 0)


def _whole(value: float) -> float:
    value = round(value, 9)
    return int(value) if float(value).is_integer() else value


def _q(base: Entry, ours: Entry, theirs: Entry) -> float | None:
    if ours.q is None and theirs.q is None:
        return None
    value = (ours.q or 0.0) + (theirs.q or 0.0) - (base.q or 0.0)
    return round(min(max(value, -1.0), 1.0), 4)


def _recent(base: Entry, older: Entry, newer: Entry) -> str:
    parts = [e.recent[len(base.recent) :] if e.recent.startswith(base.recent) else e.recent[-_count(e, base) :] for e in (older, newer)]
    return (base.recent + parts[0] + parts[1])[-RECENT:]


def _count(entry: Entry, base: Entry) -> int:
    """How many outcomes came since the base; the kept ones have moved on by so many."""
    return max(1, min(RECENT, round(entry.judged - base.judged)))


def _newer_text(ours: Entry, theirs: Entry) -> Entry:
    return max((ours, theirs), key=lambda e: (_key(e.edited), e.body))


def _newest(a: datetime | None, b: datetime | None) -> datetime | None:
    return max(a, b) if a is not None and b is not None else a or b


def _key(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else float("-inf")
