"""Scored blocks in, passages for the reader out: best first, each a run of blocks of one section. Pure.

The first n passages are the same for every larger limit: each decision looks at the scores, never at how many are asked for.
Import this module inside the function that searches (numpy).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from memory_tools.likeness import Likeness
from memory_tools.search import Corpus, Scored
from memory_tools.snippets import shorten

__all__ = ["Passage", "TextOf", "pick", "shorten"]

TextOf = Callable[[int, int], str]
"""(first, last) -> the file's exact text from the start of block `first` to the end of block `last`, both of one section."""

LONGEST = 1200  # characters; what is longer is shown in part, around the match
MERGED = 600  # characters that blocks are joined up to
CLOSE = 0.08  # of the best block's evidence: a neighbour as near to the best as that is read better in one piece
NEAR_EQUAL = 0.33  # of the same: of blocks about the same thing the newer one goes first
HORIZON = 16  # the best candidates, whatever the limit: these are compared with each other for what corrects what
DEEP = 1000  # the best candidates, among which near-duplicates are looked for
MISSES = 3  # texts that turn out not to be duplicates before the search for more is given up


@dataclass(frozen=True, slots=True)
class Passage:
    """Blocks first..last of one section (positions in the Corpus). `cut`: the characters of text(first, last) to show; None: all of it."""

    first: int
    last: int
    score: float
    relevance: float
    terms: tuple[str, ...]  # the question's terms that are in it, the weightiest first
    cosine: float | None
    cut: tuple[int, int] | None = None
    similar: int = 0  # near-duplicates left out for this one
    differs: tuple[int, ...] = ()  # positions of older blocks that say otherwise


def pick(
    corpus: Corpus,
    scored: Scored,
    *,
    limit: int,
    min_score: float,
    text: TextOf,
    max_chars: int | None = None,
    likeness: Likeness | None = None,
) -> list[Passage]:
    """At most `limit` passages with relevance >= min_score, best first; together at most `max_chars` characters (the last one is cut).

    `likeness`: of these blocks by position, kept between questions, so that a block's words are not read for each of them.
    """
    passages: list[Passage] = []
    left = max_chars
    likeness = likeness or Likeness(lambda position: text(position, position))
    for passage in _passages(corpus, scored, min_score, text, likeness):
        if len(passages) >= limit or (left is not None and left <= 0):
            break
        whole = text(passage.first, passage.last)
        room = LONGEST if left is None else min(LONGEST, left)
        if len(whole) > room:
            passage = replace(passage, cut=shorten(whole, passage.terms, room))
        passages.append(passage)
        if left is not None:
            left -= min(len(whole), room)
    return passages


def _passages(corpus: Corpus, scored: Scored, min_score: float, text: TextOf, likeness: Likeness) -> Iterator[Passage]:
    usable = np.flatnonzero(np.isfinite(scored.score) & (scored.relevance >= min_score))
    if not usable.size:
        return
    best, rest = _split(scored, usable)
    best = _sorted(corpus, scored, best)
    sequence, differs = _newer_first(corpus, scored, best, likeness, NEAR_EQUAL * scored.evidence)
    open_ = np.zeros(len(corpus), dtype=np.bool_)
    open_[usable] = True
    twins_of = _Twins(corpus, scored, best, likeness)
    ceiling = 1.0
    for position in chain(sequence, _later(corpus, scored, rest)):
        if not open_[position]:
            continue
        open_[position] = False
        twins = twins_of.among(open_, position, differs.get(position, ()))
        open_[twins] = False
        first, last = _extent(corpus, scored, open_, position, text, CLOSE * scored.evidence)
        open_[first : last + 1] = False
        cosines = scored.cosine[first : last + 1]
        known = cosines[~np.isnan(cosines)]
        # A newer block that was put before an older one counts as relevant as that one.
        ceiling = min(ceiling, max([float(scored.relevance[position]), *(float(scored.relevance[p]) for p in differs.get(position, ()))]))
        yield Passage(
            first,
            last,
            float(scored.score[position]),
            ceiling,
            scored.terms_at(first, last),
            float(known.max()) if known.size else None,
            similar=len(twins),
            differs=differs.get(position, ()),
        )


def _split(scored: Scored, usable: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The DEEP best, and what ties with the last of them, apart from the rest, which is hardly ever looked at."""
    if usable.size <= DEEP:
        return usable, usable[:0]
    scores = scored.score[usable]
    least = np.partition(scores, usable.size - DEEP)[usable.size - DEEP]
    return usable[scores >= least], usable[scores < least]


def _sorted(corpus: Corpus, scored: Scored, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """By falling score; of equals the newer one, then the one that comes first."""
    return positions[np.lexsort((positions, -corpus.day[positions], -scored.score[positions]))]


def _later(corpus: Corpus, scored: Scored, rest: NDArray[np.int64]) -> Iterator[int]:
    yield from _sorted(corpus, scored, rest).tolist()  # sorted when the first of them is asked for


def _newer_first(
    corpus: Corpus, scored: Scored, order: NDArray[np.int64], likeness: Likeness, near: float
) -> tuple[list[int], dict[int, tuple[int, ...]]]:
    """The order, but of near-equals about the same thing the newest first; and which older ones each of them may correct."""
    head = order[:HORIZON].tolist()
    day = dict(zip(head, corpus.day[head].tolist(), strict=True))
    score = dict(zip(head, scored.score[head].tolist(), strict=True))
    older: dict[int, tuple[int, ...]] = {}
    sequence: list[int] = []
    waiting = list(head)
    while waiting:
        best = waiting.pop(0)
        least, its_day = score[best] - near, day[best]
        near_days = [p for p in waiting if day[p] not in (0, its_day) and score[p] >= least] if its_day else []
        rivals = likeness.others(best, near_days) if near_days else []
        newest = max([best, *rivals], key=lambda p: (day[p], -head.index(p)))
        if newest != best:
            waiting.remove(newest)
            waiting.insert(0, best)
        corrected = tuple(p for p in (best, *rivals) if day[p] < day[newest])
        if corrected:
            older[newest] = corrected
        sequence.append(newest)
    return sequence + order[HORIZON:].tolist(), older


class _Twins:
    """The blocks that say the same as another one, among those at the positions `best`."""

    def __init__(self, corpus: Corpus, scored: Scored, best: NDArray[np.int64], likeness: Likeness) -> None:
        self._best, self._likeness = best, likeness
        self._chars, self._lexical, self._cosine = corpus.chars[best], scored.lexical[best], scored.cosine[best]
        self._of = (corpus.chars, scored.lexical, scored.cosine)

    def among(self, open_: NDArray[np.bool_], position: int, older: tuple[int, ...]) -> list[int]:
        """Read are those that are open, as long and as near to the question, the likeliest first, until a few do not."""
        chars, lexical, cosine = (float(values[position]) for values in self._of)
        length, match = np.abs(self._chars - chars), np.abs(self._lexical - lexical)
        close = (length <= 2 + 0.1 * chars) & (match <= 0.06) & open_[self._best]
        if cosine == cosine:
            close &= ~(np.abs(self._cosine - cosine) > 0.04)
        likely = np.flatnonzero(close)
        if not likely.size:
            return []
        likely = likely[np.lexsort((self._best[likely], length[likely], match[likely]))]
        found: list[int] = []
        misses = 0
        for other in self._best[likely].tolist():
            if other in older:
                continue
            if self._likeness.same(position, other):
                found.append(other)
            else:
                misses += 1
                if misses == MISSES:
                    break
        return found


def _extent(corpus: Corpus, scored: Scored, open_: NDArray[np.bool_], position: int, text: TextOf, close: float) -> tuple[int, int]:
    """The run of blocks around one that is read better in one piece: neighbours nearly as good, and what a colon announces."""
    first = last = position
    size = int(corpus.chars[position])
    begin, end = int(corpus.section_first[position]), int(corpus.section_end[position])
    least = scored.score[position] - close
    while True:
        sides = [p for p in (first - 1, last + 1) if begin <= p < end and open_[p] and scored.score[p] >= least]
        if not sides:
            break
        best = max(sides, key=lambda p: (float(scored.score[p]), -p))
        size += int(corpus.chars[best]) + 1
        if size > MERGED:
            return first, last
        first, last = min(first, best), max(last, best)
    after = last + 1
    if after < end and open_[after] and size + corpus.chars[after] < MERGED and text(last, last).rstrip().endswith((":", "：")):
        last = after
    return first, last
