"""Sections that no exact rule has matched in, the likely pairs and merges out. Pure.

Body, name, file and place each add to one score. A Chinese body of one line has few 3-grams in common with itself after a third of its
characters changed, so a body alone does not decide; nor does a name like "Notes" that every file has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_tools.records import Trace
from memory_tools.sketches import Likeness, Sketch, unpack
from memory_tools.whereabouts import Names, Places, resemblance, same_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# What each kind of evidence adds, and what a pair needs. Set on generated English and Chinese notes under edits of every kind, one and
# several at once, with and without the places known (benchmarks/identity.py).
_BODY = 5.0
_BEND = 0.8  # half a body in common is more than half as good as all of it
_NAME = 1.6
_FILE = 1.2
_PLACE = 0.8
_HEADING = 0.8
_NEEDED = 2.79
SURE = (4.5, 3.5)  # the surest first: each settled pair tells the place of its neighbours
LAST = (_NEEDED,)
_GROWN = 0.75  # old text all inside the new one, which grew: worth this much of being the same
_SHRUNK = 0.6  # the new text was all in the old one
_TELLING = 12  # characters below which a body says proportionally less
_CELLS = 2_000_000  # pairs compared at a time, about 100 MB
_BEST = 10  # candidates kept of a section when there are too many to keep all
_SAMPLE = 400  # sections that tell how common a 3-gram is
_SIBLINGS = 16  # sections of a file that tell what its sections have in common anyway
_FEW = 4  # fewer do not tell
_MERGED = 0.6  # share of a section's text that must be in another one


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pairs that may belong together, as indices of old and new sections."""

    old: NDArray[np.int64]
    new: NDArray[np.int64]
    score: NDArray[np.float64]  # body, name, file and heading together; the place comes in each round
    named: NDArray[np.bool_]  # the name alone tells which section of the file it is


def settle(
    old: Sequence[Trace], new: Sequence[Trace], known: Mapping[int, int], candidates: Candidates, rounds: Sequence[float]
) -> dict[int, int]:
    """Pairs (old index -> new index) that belong together by all that is known. `known`: what is settled already."""
    now = dict(known)
    taken = set(now.values())
    rows = list(zip(candidates.old.tolist(), candidates.new.tolist(), candidates.score.tolist(), candidates.named.tolist(), strict=True))
    for needed in rounds:
        places = Places(old, new, now)
        ranked = []
        for i, j, score, named in rows:
            if i not in now and j not in taken and score + _PLACE >= needed:
                place = places.between(i, j)
                total = score + _PLACE * (max(place, 0.0) if named else place)
                if total >= needed:
                    ranked.append((total, i, j))
        for _, i, j in sorted(ranked, key=lambda r: (-r[0], r[1], r[2])):
            if i not in now and j not in taken:
                now[i] = j
                taken.add(j)
    return {i: j for i, j in now.items() if i not in known}


def candidates(
    old: Sequence[Trace], new: Sequence[Trace], settled: Mapping[int, int], left: Sequence[int], free: Sequence[int]
) -> Candidates:
    import numpy as np

    sample = range(0, len(new), 1 + len(new) // _SAMPLE)
    sketches_old = {i: unpack(old[i].sketch) for i in left}
    sketches_new = {j: unpack(new[j].sketch) for j in {*free, *sample}}
    likeness = Likeness([sketches_old[i] for i in left], [sketches_new[j] for j in free], [sketches_new[j] for j in sample])
    telling_old = np.array([min(1.0, old[i].size / _TELLING) for i in left])
    telling_new = np.array([min(1.0, new[j].size / _TELLING) for j in free])
    files = same_file(old, new, settled, left, free)
    same_name = Names(old, new, left, free)
    usual = _usual(old, left, [sketches_new[j] for j in sample])
    step = max(1, _CELLS // len(free))
    found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]] = []
    for start in range(0, len(left), step):
        stop = min(start + step, len(left))
        body = _alike(likeness, start, stop)
        common = usual[start:stop, None]
        body = ((body - common) / (1.0 - common)).clip(0.0, 1.0)
        body *= np.minimum(telling_old[start:stop, None], telling_new[None, :])
        file = files[start:stop]
        name, alone = same_name.rows(start, stop, file)
        score = _BODY * body**_BEND + _FILE * file + _NAME * name
        keep = score + _HEADING + _PLACE >= _NEEDED
        if len(free) > _BEST and (stop - start) * len(free) > 40_000:
            nth = np.partition(score, -_BEST, axis=1)[:, -_BEST, None]
            keep &= score >= nth
        rows, columns = np.nonzero(keep)
        found.append((rows + start, columns, score[rows, columns], alone[rows, columns]))
    rows, columns, scores, named = (np.concatenate(parts) for parts in zip(*found, strict=True))
    which_old, which_new = np.array(left)[rows], np.array(free)[columns]
    headings = [resemblance(old[i], new[j]) for i, j in zip(which_old.tolist(), which_new.tolist(), strict=True)]
    return Candidates(which_old, which_new, scores + _HEADING * np.array(headings), named)


def _alike(likeness: Likeness, start: int, stop: int) -> NDArray[np.float64]:
    import numpy as np

    both, in_old, in_new = likeness.rows(start, stop)
    return np.asarray(np.maximum(both, np.maximum(_GROWN * in_old, _SHRUNK * in_new)))


def _usual(old: Sequence[Trace], left: Sequence[int], background: Sequence[Sketch]) -> NDArray[np.float64]:
    """How alike the sections of its file are to each one of `left` anyway, [0, 1): entries of a log are written from one template."""
    import numpy as np

    by_file: dict[str, list[int]] = defaultdict(list)
    wanted = {old[i].path for i in left}
    for i, t in enumerate(old):
        if t.path in wanted:
            by_file[t.path].append(i)
    members = {path: ours[:: 1 + len(ours) // _SIBLINGS] for path, ours in by_file.items()}
    out = np.zeros(len(left))
    for path, siblings in members.items():
        rows = [n for n, i in enumerate(left) if old[i].path == path]
        if len(siblings) <= _FEW:
            continue
        alike = Likeness([unpack(old[left[n]].sketch) for n in rows], [unpack(old[i].sketch) for i in siblings], background)
        both = _alike(alike, 0, len(rows))
        for row, n in enumerate(rows):
            others = [float(both[row, column]) for column, i in enumerate(siblings) if i != left[n]]
            out[n] = min(float(np.median(others)), 0.9)
    return out


def merges(old: Sequence[Trace], new: Sequence[Trace], settled: Mapping[int, int], left: Sequence[int]) -> dict[int, int]:
    """Old sections whose text is now inside a section that continues another one: old -> new."""
    left = [i for i in left if old[i].size >= _TELLING]
    partner = {j: i for i, j in settled.items()}
    # A section whose body is as it was took nothing in.
    grown = [j for j in sorted(partner) if new[j].body != old[partner[j]].body and new[j].size > old[partner[j]].size]
    if not left or not grown:
        return {}
    now = [unpack(new[j].sketch) for j in grown]
    before = [unpack(old[partner[j]].sketch) for j in grown]
    gone = [unpack(old[i].sketch) for i in left]
    _, inside, _ = Likeness(gone, now, now).rows(0, len(left))
    _, already, _ = Likeness(gone, before, now).rows(0, len(left))
    out = {}
    for row, i in enumerate(left):
        gains = [(float(inside[row, column]), j) for column, j in enumerate(grown)
                 if inside[row, column] - already[row, column] >= _MERGED / 2 and new[j].size >= 0.8 * old[i].size]  # fmt: skip
        if gains:
            share, j = min(gains, key=lambda g: (-g[0], g[1]))
            near = old[i].path == old[partner[j]].path
            if share >= (_MERGED if near else (1.0 + _MERGED) / 2):
                out[i] = j
    return out
