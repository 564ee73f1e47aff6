"""Sections before and after an edit in, which is which out. Pure: traces in, a matching out; the order of certainty decides.

1. the same address with the same body, then the same file and slug with the same body;
2. the same body anywhere, where it is long enough to say something;
3. body, name, file and place among already matched neighbours weighed together, the surest pairs first, because each pair that is settled
   tells the place of the next;
4. a section that is left over and whose text is now inside another one was merged into it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory_tools import likely
from memory_tools.records import Section, Trace
from memory_tools.sketches import normalised, trace_parts
from memory_tools.whereabouts import moves, names

__all__ = ["VERSION", "Matching", "body_of", "match", "new_id", "normalised", "trace_of", "trace_parts"]

VERSION = 1
_TELLING = 12  # characters: a shorter body ("- ok", nothing at all) is not proof that two sections are one
_Take = Callable[[int, int, str], bool]  # settles a pair, unless either is settled already
_ZIP = 2500  # pairs of equal bodies that are weighed one by one; above that they are taken in order


@dataclass(frozen=True, slots=True)
class Matching:
    """`pairs`: index of the old section -> index of the new one, one to one. `kinds`: how sure (address, slug, body, likely).

    `merges`: a further old section -> the new one that took its text in. `unmatched`: old ones that are gone.
    """

    pairs: Mapping[int, int]
    kinds: Mapping[int, str]
    merges: Mapping[int, int]
    unmatched: tuple[int, ...]


def body_of(section: Section, text: str) -> str:
    """The text under the heading; of a lead section all of it. `text`: the whole document."""
    heading = section.blocks[0] if section.blocks and section.blocks[0].kind == "heading" else None
    return text[heading.end if heading else section.start : section.end]


def trace_of(section: Section, text: str, order: int) -> Trace:
    """The trace of a parsed section, still without an id. `text`: the whole document; `order`: place in the file, from 0."""
    body, sketch, size = trace_parts(body_of(section, text))
    return Trace("", section.address, section.path, section.slug, section.heading, order, body, sketch, size)


def new_id(trace: Trace | None = None, taken: Collection[str] = ()) -> str:
    """A stable id, 10 letters or digits. Made of address and body, so that two clones that meet a section with the same text agree.

    Without a trace it is random.
    """
    import base64
    import hashlib
    import secrets

    if trace is None:
        return base64.b32encode(secrets.token_bytes(10)).decode().lower()[:10]

    number = 0
    while True:
        seed = f"{trace.address}\0{trace.body}\0{number}".encode("utf-8", "surrogatepass")
        made = base64.b32encode(hashlib.blake2b(seed, digest_size=10).digest()).decode().lower()[:10]
        if made not in taken:
            return made
        number += 1  # the section that had this address and text before has moved on and kept its id


def match(old: Sequence[Trace], new: Sequence[Trace], settled: Mapping[int, int] | None = None) -> Matching:
    """Which new section each old one has become. `settled`: pairs that are certain (by id); they tell the place of others.

    An old trace with order -1 was read from the sidecar: its address may have a repeat's suffix, its place is unknown.
    """
    # In reading order, so that ties fall the same way however the sections are given.
    a, b = (sorted(range(len(side)), key=lambda n, side=side: _place(side[n])) for side in (old, new))  # type: ignore[misc]
    at_old, at_new = ({n: at for at, n in enumerate(order)} for order in (a, b))
    found = _matched([old[i] for i in a], [new[j] for j in b], {at_old[i]: at_new[j] for i, j in (settled or {}).items()})
    return Matching(
        {a[i]: b[j] for i, j in found.pairs.items()},
        {a[i]: kind for i, kind in found.kinds.items()},
        {a[i]: b[j] for i, j in found.merges.items()},
        tuple(sorted(a[i] for i in found.unmatched)),
    )


def _matched(old: Sequence[Trace], new: Sequence[Trace], settled: Mapping[int, int]) -> Matching:
    pairs: dict[int, int] = dict(settled)
    kinds = dict.fromkeys(pairs, "id")
    taken = set(pairs.values())

    def take(i: int, j: int, kind: str) -> bool:
        if i in pairs or j in taken:
            return False
        pairs[i] = j
        kinds[i] = kind
        taken.add(j)
        return True

    _same_place(old, new, taken, take)
    left = [i for i in range(len(old)) if i not in pairs]
    free = [j for j in range(len(new)) if j not in taken]
    _same_body(old, new, left, free, pairs, take)
    left = [i for i in left if i not in pairs]
    free = [j for j in free if j not in taken]
    merges: dict[int, int] = {}
    if left:
        candidates = likely.candidates(old, new, pairs, left, free) if free else None
        for rounds in (likely.SURE, likely.LAST):
            # Before the last round: what went into another section is not the new section that has its name now.
            for i, j in (likely.settle(old, new, pairs, candidates, rounds) if candidates else {}).items():
                if i not in merges:
                    take(i, j, "likely")
            merges |= likely.merges(old, new, pairs, [i for i in left if i not in pairs and i not in merges])
    return Matching(pairs, kinds, merges, tuple(i for i in left if i not in pairs and i not in merges))


def _same_place(old: Sequence[Trace], new: Sequence[Trace], taken: Collection[int], take: _Take) -> None:
    by_address = {(t.address, t.body): j for j, t in enumerate(new)}
    for i, t in enumerate(old):
        j = by_address.get((t.address, t.body))
        if j is not None:
            take(i, j, "address")
    by_slug: dict[tuple[str, str, str], deque[int]] = defaultdict(deque)
    for j, t in enumerate(new):
        by_slug[t.path, t.slug, t.body].append(j)
    for i, t in enumerate(old):
        for name in sorted(names(t)):
            waiting = by_slug.get((t.path, name, t.body))
            while waiting and not take(i, waiting[0], "slug") and waiting[0] in taken:
                waiting.popleft()


def _same_body(
    old: Sequence[Trace], new: Sequence[Trace], left: Iterable[int], free: Iterable[int], pairs: Mapping[int, int], take: _Take
) -> None:
    gone: dict[str, list[int]] = defaultdict(list)
    come: dict[str, list[int]] = defaultdict(list)
    for i in left:
        if old[i].size >= _TELLING:
            gone[old[i].body].append(i)
    for j in free:
        if new[j].body in gone:
            come[new[j].body].append(j)
    moved = moves(old, new, pairs)
    for body in sorted(come):
        ours, theirs = gone[body], come[body]
        if len(ours) * len(theirs) > _ZIP:
            ours, theirs = sorted(ours, key=lambda i: _place(old[i])), sorted(theirs, key=lambda j: _place(new[j]))
            for i, j in zip(ours, theirs, strict=False):
                take(i, j, "body")
            continue
        ranked = [(_closeness(old[i], new[j], moved), i, j) for i in ours for j in theirs]
        for _, i, j in sorted(ranked, key=lambda r: (-r[0], _place(old[r[1]]), _place(new[r[2]]))):
            take(i, j, "body")
    _same_name(old, new, [i for i in left if i not in pairs], free, take)


def _same_name(old: Sequence[Trace], new: Sequence[Trace], left: Iterable[int], free: Iterable[int], take: _Take) -> None:
    """A short body in another place, where one section alone went and one alone came with that body and name."""
    gone: dict[tuple[str, str], list[int]] = defaultdict(list)
    come: dict[tuple[str, str], list[int]] = defaultdict(list)
    for side, traces, numbers in ((gone, old, left), (come, new, free)):
        for n in numbers:
            for name in names(traces[n]):
                side[traces[n].body, name].append(n)
    for key, ours in sorted(gone.items()):
        if len(ours) == len(come.get(key, ())) == 1 and key[1]:
            take(ours[0], come[key][0], "body")


def _closeness(old: Trace, new: Trace, moved: Mapping[str, str]) -> int:
    same_file = new.path == moved.get(old.path, old.path)
    return 2 * same_file + (not names(old).isdisjoint(names(new)))


def _place(trace: Trace) -> tuple[str, int, str]:
    return trace.path, trace.order, trace.address
