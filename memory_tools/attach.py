"""Entries of the sidecar and the sections that are there now in, which history belongs to which section out. Pure.

By id where the index knows it; else by address and body; else as identity.match finds it, from the fields of the sidecar alone.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from memory_tools.entries import RECENT, Entry, Scores
from memory_tools.history import counts
from memory_tools.records import Trace

_TELLING = 12  # characters that a text must have to be known again in another place


@dataclass(frozen=True, slots=True)
class Sections:
    """The sections that are there: address -> id (former addresses may be among them), and their traces, read only when needed.

    `complete`: False while files still wait to be read; then no section is taken to be gone.
    """

    ids: Mapping[str, str]
    traces: Callable[[], Sequence[Trace]]
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Attached:
    """`entries`: section id -> its history, with merged ones added. `keys`: section id -> the addresses it stands under in the file.

    `loose`: addresses of entries whose section is gone; `returned`: orphans whose section is there again.
    """

    entries: Mapping[str, Entry]
    keys: Mapping[str, tuple[str, ...]]
    loose: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()


@dataclass(slots=True)
class _Claims:
    scores: Scores
    of: dict[str, list[str]] = field(default_factory=dict)  # section id -> keys of entries, the one that continues it first
    returned: list[str] = field(default_factory=list)

    def take(self, section: str, key: str) -> None:
        self.of.setdefault(section, []).append(key)


def attach(scores: Scores, sections: Sections) -> Attached:
    """Which entry is the history of which section."""
    claims = _Claims(scores)
    known = set(sections.ids.values())
    rest = _by_id(claims, sections, known)
    rest = [key for key in rest if scores.entries[key].body or not _by_address(claims, key, sections.ids)]
    if rest:
        rest = _by_match(claims, rest, sections.traces())
    _orphans(claims, sections, known)
    entries = {section: _together([_entry(scores, key) for key in keys]) for section, keys in claims.of.items()}
    return Attached(entries, {section: tuple(keys) for section, keys in claims.of.items()}, tuple(sorted(rest)), tuple(claims.returned))


def _entry(scores: Scores, key: str) -> Entry:
    return scores.entries[key] if key in scores.entries else scores.orphans[key]


def _by_id(claims: _Claims, sections: Sections, known: set[str]) -> list[str]:
    """Keys that are left over. An id may stand twice after a careless copy: the entry under the section's own address has it."""
    rest: list[str] = []
    for key, entry in sorted(claims.scores.entries.items()):
        if entry.id not in known:
            rest.append(key)
        elif entry.id not in claims.of:
            claims.take(entry.id, key)
        elif sections.ids.get(key) == entry.id:
            rest.append(claims.of[entry.id][0])
            claims.of[entry.id] = [key]
        else:
            rest.append(key)
    return rest


def _by_address(claims: _Claims, key: str, ids: Mapping[str, str]) -> bool:
    """An entry that says nothing but its address, as a person writes it, belongs to what is there."""
    section = ids.get(key)
    if section is None:
        return False
    claims.take(section, key)
    return True


def _by_match(claims: _Claims, rest: Sequence[str], traces: Sequence[Trace]) -> list[str]:
    from memory_tools import identity  # an ordinary search knows every id and is answered sooner without

    place = {t.id: j for j, t in enumerate(traces)}
    keys = sorted(claims.scores.entries)
    old = [as_trace(key, claims.scores.entries[key]) for key in keys]
    number = {key: i for i, key in enumerate(keys)}
    settled = {number[held[0]]: place[section] for section, held in claims.of.items() if section in place}
    waiting = set(rest)
    keep = [i for i in range(len(keys)) if i in settled or keys[i] in waiting]
    matching = identity.match([old[i] for i in keep], traces, {n: settled[i] for n, i in enumerate(keep) if i in settled})
    for n, j in sorted({**matching.pairs, **matching.merges}.items(), key=lambda pair: (pair[0] in matching.merges, keys[keep[pair[0]]])):
        key = keys[keep[n]]
        if key in waiting:
            claims.take(traces[j].id, key)
            waiting.discard(key)
    return sorted(waiting)


def _orphans(claims: _Claims, sections: Sections, known: set[str]) -> None:
    """An orphan returns by its id, or by its address where that is all it has; by its text in a sync (`adopt`) or a write."""
    for key, orphan in sorted(claims.scores.orphans.items()):
        section = orphan.id if orphan.id in known else None if orphan.body else sections.ids.get(key)
        if section is not None and (section == orphan.id or section not in claims.of):
            claims.take(section, key)
            claims.returned.append(key)


def as_trace(key: str, entry: Entry) -> Trace:
    """What the sidecar alone tells of a section; its place is not known (order -1)."""
    from memory_tools.sketches import size_of

    path, _, slug = key.partition("#")
    try:
        sketch = base64.b64decode(entry.sketch, validate=True)
    except ValueError:  # edited by hand: the body's hash may still tell
        sketch = b""
    return Trace(entry.id, key, path, slug, slug, -1, entry.body, sketch, size_of(sketch), entry.edited)


def adopt(scores: Scores, traces: Sequence[Trace]) -> dict[int, str]:
    """Ids that the sidecar has for sections which the index does not know: index in `traces` -> id.

    `traces`: all sections that are there now, those without an id ("") are in question. Entries first, then orphans whose text is back.
    """
    from memory_tools import identity

    taken = {t.id for t in traces if t.id}
    entries = {key: e for key, e in scores.entries.items() if e.id and e.body}
    keys = sorted(entries)
    place = {t.id: j for j, t in enumerate(traces) if t.id}
    settled = {i: place[entries[key].id] for i, key in enumerate(keys) if entries[key].id in place}
    if len(set(settled.values())) < len(settled):  # an id that stands twice settles nothing
        settled = {}
    matching = identity.match([as_trace(key, entries[key]) for key in keys], traces, settled)
    out: dict[int, str] = {}
    for i, j in sorted(matching.pairs.items()):
        id = entries[keys[i]].id
        if not traces[j].id and id not in taken:
            out[j] = id
            taken.add(id)
    for key, j in returning(scores.orphans, traces, {j for j, t in enumerate(traces) if t.id} | out.keys()).items():
        id = scores.orphans[key].id
        if id and id not in taken:
            out[j] = id
            taken.add(id)
    return out


def returning(orphans: Mapping[str, Entry], traces: Sequence[Trace], taken: set[int]) -> dict[str, int]:
    """Orphans whose very text is there again, and not in a section that has a history: key -> index in `traces`."""
    at: dict[tuple[str, str], int] = {}
    anywhere: dict[str, int] = {}
    for j, t in enumerate(traces):
        if j not in taken and t.body:
            at.setdefault((t.address, t.body), j)
            if t.size >= _TELLING:
                anywhere.setdefault(t.body, j)
    out: dict[str, int] = {}
    used: set[int] = set()
    for key, orphan in sorted(orphans.items()):
        there = at.get((key, orphan.body), anywhere.get(orphan.body))
        if orphan.body and there is not None and there not in used:
            out[key] = there
            used.add(there)
    return out


def _together(parts: Sequence[Entry]) -> Entry:
    """The history of several entries in one: counts add, the newest times, the first one's identity."""
    first = parts[0]
    for other in parts[1:]:
        uses, success, fail = counts(first.usage())
        more_uses, more_success, more_fail = counts(other.usage())
        first = replace(
            first,
            use_count=uses + more_uses,
            success_count=success + more_success,
            fail_count=None if first.fail_count is None and other.fail_count is None else fail + more_fail,
            last_used=_newest(first.last_used, other.last_used),
            last_success=_newest(first.last_success, other.last_success),
            positive_feedback=first.positive_feedback or other.positive_feedback,
            pinned=first.pinned or other.pinned,
            muted=first.muted and other.muted,
            q=first.q if other.q is None else other.q if first.q is None else (first.q + other.q) / 2,
            recent=(other.recent + first.recent)[-RECENT:],
            raw=dict(other.raw) | dict(first.raw),
        )
    return first


def _newest(a: datetime | None, b: datetime | None) -> datetime | None:
    return max(a, b) if a is not None and b is not None else a or b
