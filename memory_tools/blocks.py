"""Columns over all blocks in, one Corpus out: the arrays that ranking works on, and what every question asks of them. Pure numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memory_tools import traits

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

K1, B = 1.2, 0.75  # of BM25
# Times the average: beyond it length counts no more. A name that stands once in a paragraph of 1,300 letters, among lines of 60, weighed
# less than what the vector of any short line has in common with any short question.
LONGEST = 3.0
NEAR, WIDE = 1, 4  # blocks on each side of a window, within the section


@dataclass(frozen=True, slots=True)
class Corpus:
    """Arrays over all n blocks of all files. A file's blocks are contiguous and in reading order; a section's too, its heading block first.

    A heading block's postings and length are those of its whole heading path.
    """

    file: NDArray[np.int32]  # [n] file ordinal, ascending
    section: NDArray[np.int32]  # [n] section ordinal, ascending; a new file starts a new section
    length: NDArray[np.int32]  # [n] tokens
    chars: NDArray[np.int32]  # [n] characters
    day: NDArray[np.int32]  # [n] date.toordinal() of a dated note (dates.note_day), 0 without
    heading: NDArray[np.bool_]  # [n] kind == "heading"
    vector: NDArray[np.int32]  # [n] row of the matrix, -1 without
    allowed: NDArray[np.bool_]  # [n] False: filtered out before anything is ranked
    flags: NDArray[np.uint8]  # [n] traits.Traits.flags, from traits.of_section
    # derived
    searched: NDArray[np.bool_] = field(init=False)  # [n] its file has blocks that are allowed: it is no archive that is left out
    section_first: Ints = field(init=False)  # [n] position of the first block of the same section
    section_end: Ints = field(init=False)  # [n] one past its last
    turn: NDArray[np.bool_] = field(init=False)  # [n] part of a conversation
    headed: NDArray[np.bool_] = field(init=False)  # [n] text of a note under a heading
    follows: Floats = field(init=False)  # [n] 1 where the block before is of the same section
    content: Floats = field(init=False)  # [n] 1 where it is no heading
    contents_near: Floats = field(init=False)  # [n] how many such are in its window, 1 at least
    log_chars: Floats = field(init=False)  # [n] natural logarithm of chars
    windows: Mapping[int, tuple[Ints, Ints]] = field(init=False)  # size -> bounds
    norms: Mapping[int, Floats] = field(init=False)  # size (0: the block alone) -> BM25 length norms

    def __post_init__(self) -> None:
        first, end = _spans(self.section)
        length = self.length.astype(np.float32)
        sums = np.concatenate(([0.0], np.cumsum(length, dtype=np.float64)))
        windows = {size: _window(first, end, size) for size in (NEAR, WIDE)}
        turn = (self.flags & traits.TURN) > 0
        content = ~self.heading
        count = np.concatenate(([0], np.cumsum(content)))
        a, b = windows[NEAR]
        files = np.zeros(int(self.file.max()) + 1 if self.file.size else 0, dtype=np.bool_)
        files[self.file[self.allowed]] = True
        for name, value in {
            "searched": files[self.file],
            "section_first": first,
            "section_end": end,
            "turn": turn,
            "headed": self.heading[first] & content & ~turn,
            "follows": (np.arange(len(self)) > first).astype(np.float32),
            "content": content.astype(np.float32),
            "contents_near": np.maximum(count[b] - count[a], 1).astype(np.float32),
            "log_chars": np.log(np.maximum(self.chars, 1)).astype(np.float32),
            "windows": windows,
            "norms": {0: _norm(length)} | {size: _norm((sums[d] - sums[c]).astype(np.float32)) for size, (c, d) in windows.items()},
        }.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return int(self.file.size)


def _spans(group: NDArray[np.int32]) -> tuple[Ints, Ints]:
    """For every element, where its run of equal values starts and (one past) where it ends."""
    n = group.size
    if n == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    ends = np.concatenate((starts[1:], [n]))
    return np.repeat(starts, ends - starts), np.repeat(ends, ends - starts)


def _window(section_first: Ints, section_end: Ints, size: int) -> tuple[Ints, Ints]:
    """First block, and one past the last, of every block's window."""
    at = np.arange(section_first.size)
    return np.maximum(at - size, section_first), np.minimum(at + size + 1, section_end)


def _norm(length: Floats) -> Floats:
    """BM25's length norm: what a frequency is set against."""
    average = float(length.mean()) if length.size else 1.0
    norm: Floats = (K1 * (1 - B + B * np.minimum(length / max(average, 1e-9), LONGEST))).astype(np.float32)
    return norm
