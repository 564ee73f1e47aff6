"""Where old and new sections stand in, what it says that two share a name, a file or their neighbours out. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memory_tools.records import Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_REPEAT = re.compile(r"-\d+\Z")


def fragment(address: str) -> str:
    return address.partition("#")[2]


def names(trace: Trace) -> frozenset[str]:
    """What the section may be called: its slug, and its slug with a repeat's suffix."""
    full = fragment(trace.address)
    if trace.order >= 0:
        return frozenset((trace.slug, full))
    return frozenset((full, _REPEAT.sub("", full)))


def moves(old: Sequence[Trace], new: Sequence[Trace], settled: Mapping[int, int]) -> dict[str, str]:
    """Files that were renamed: path before -> path now, where the file is gone and most of what was found of it is in one other."""
    still = {t.path for t in new}
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for i, j in settled.items():
        if old[i].path not in still:
            votes[old[i].path][new[j].path] += 1
    out = {}
    for path, counter in votes.items():
        best, count = min(counter.items(), key=lambda item: (-item[1], item[0]))
        if 2 * count > sum(counter.values()):
            out[path] = best
    return out


def same_file(
    old: Sequence[Trace], new: Sequence[Trace], settled: Mapping[int, int], left: Sequence[int], free: Sequence[int]
) -> NDArray[np.float64]:
    """1 where two sections are in the same file (a renamed one counts as the same), 0.5 where it was probably renamed; (left, free)."""
    import numpy as np

    moved = moves(old, new, settled)
    before, now = {t.path for t in old}, {t.path for t in new}
    paths_old = sorted({old[i].path for i in left})
    paths_new = sorted({new[j].path for j in free})
    matrix = np.zeros((len(paths_old), len(paths_new)), dtype=np.float64)
    for a, was in enumerate(paths_old):
        for b, path in enumerate(paths_new):
            if was == path or moved.get(was) == path:
                matrix[a, b] = 1.0
            elif was not in now and path not in before and was not in moved:
                matrix[a, b] = 0.5 * _dice(was, path)
    rows = {path: a for a, path in enumerate(paths_old)}
    columns = {path: b for b, path in enumerate(paths_new)}
    return np.asarray(matrix[np.ix_([rows[old[i].path] for i in left], [columns[new[j].path] for j in free])])


class Names:
    """How much it says that an old and a new section have the same name."""

    def __init__(self, old: Sequence[Trace], new: Sequence[Trace], left: Sequence[int], free: Sequence[int]) -> None:
        import numpy as np

        self._old = [old[i] for i in left]
        here = Counter((t.path, name) for t in new for name in names(t))
        columns: dict[str, list[int]] = defaultdict(list)
        for column, j in enumerate(free):
            for name in sorted(names(new[j])):
                columns[name].append(column)
        self._columns = {name: np.array(js) for name, js in columns.items()}
        self._single = {name: np.array([here[new[free[j]].path, name] == 1 for j in js]) for name, js in columns.items()}
        self._at = {new[j].address: column for column, j in enumerate(free)}
        self._before = Counter((t.path, name) for t in old for name in names(t))
        files = Counter(name for _, name in {(t.path, name) for t in (*old, *new) for name in names(t)})
        # "Notes", in every file, says little outside its own.
        self._common = {name: 1.0 / (1.0 + np.log2(max(1, files[name] - 1))) for name in columns}

    def rows(self, start: int, stop: int, file: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """([0, 1.2], whether the name is the only one of its kind in its file both times), shape (stop - start, new)."""
        import numpy as np

        weight = np.zeros(file.shape)
        alone = np.zeros(file.shape, dtype=np.bool_)
        for row, t in enumerate(self._old[start:stop]):
            for name in sorted(names(t) & self._columns.keys()):
                columns = self._columns[name]
                here = file[row, columns] >= 1.0
                weight[row, columns] = np.maximum(weight[row, columns], np.where(here, 1.0, self._common[name]))
                if self._before[t.path, name] == 1:
                    alone[row, columns] |= here & self._single[name]
            if t.address in self._at:
                weight[row, self._at[t.address]] += 0.2
        return weight, alone


class Places:
    """Where the sections between two settled ones of a file can be."""

    def __init__(self, old: Sequence[Trace], new: Sequence[Trace], known: Mapping[int, int]) -> None:
        self._old, self._new = old, new
        settled: dict[str, list[tuple[int, str, int]]] = defaultdict(list)
        taken = set(known.values())
        for i, j in known.items():
            if old[i].order >= 0:
                settled[old[i].path].append((old[i].order, new[j].path, new[j].order))
        for rows in settled.values():
            rows.sort()
        self._settled = settled
        self._moved = moves(old, new, known)
        open_old: dict[str, list[int]] = defaultdict(list)
        for i, t in enumerate(old):
            if i not in known:
                open_old[t.path].append(t.order)
        open_new: dict[str, list[int]] = defaultdict(list)
        for j, t in enumerate(new):
            if j not in taken:
                open_new[t.path].append(t.order)
        self._open_old = {path: sorted(orders) for path, orders in open_old.items()}
        self._open_new = {path: sorted(orders) for path, orders in open_new.items()}

    def between(self, i: int, j: int) -> float:
        """1: between the same neighbours and alone there, .5: between them, 0: nothing known, down to -6: on the wrong side of both."""
        before, now = self._old[i], self._new[j]
        if before.order < 0:
            return 0.0
        rows = self._settled.get(before.path, [])
        at = bisect_left(rows, (before.order, "", 0))
        # The ends of a file are neighbours too, where it is the same file.
        same = now.path if self._moved.get(before.path, before.path) == now.path else ""
        previous = rows[at - 1] if at else (-1, same, -1)
        following = rows[at] if at < len(rows) else (1 << 30, same, 1 << 30)
        place = 0.0
        for side, neighbour in ((1, previous), (-1, following)):
            if neighbour[1] == now.path:
                place += 0.25 if side * (now.order - neighbour[2]) > 0 else -3.0
        if place == 0.5 and self._alone(self._open_old[before.path], previous[0], following[0]):
            place += 0.5 * self._alone(self._open_new[now.path], previous[2], following[2])
        return place

    @staticmethod
    def _alone(orders: Sequence[int], low: int, high: int) -> bool:
        return bisect_left(orders, high) - bisect_left(orders, low + 1) == 1


def _dice(a: str, b: str) -> float:
    """Share of letter pairs that two names have in common, [0, 1]."""
    if a == b:
        return 1.0
    pairs_a = {a[i : i + 2] for i in range(len(a) - 1)} or {a}
    pairs_b = {b[i : i + 2] for i in range(len(b) - 1)} or {b}
    return 2.0 * len(pairs_a & pairs_b) / (len(pairs_a) + len(pairs_b))


def resemblance(old: Trace, new: Trace) -> float:
    """How alike two different headings are, [0, 1); equal ones are counted as names."""
    return 0.0 if not names(old).isdisjoint(names(new)) else _dice(fragment(old.address), fragment(new.address))
