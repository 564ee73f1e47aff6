"""Postings and cosines of a question in, a score and a calibrated relevance for every block out. Pure numpy, no loop over blocks.

Import this module inside the function that searches: it imports numpy, which `--help` and `status` must not pay for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .calibration import Calibration
from .dates import DayRange
from .tokens import Term

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

Postings = Callable[[str], tuple[Ints, Floats]]
"""term -> (positions int64, ascending and unique; term frequencies float32 of the same length). Unknown term: two empty arrays.
Positions index the Corpus arrays and cover every block, also those not allowed."""

K1, B = 1.2, 0.75
WINDOW = 4  # blocks on each side, within the file


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
    flags: NDArray[np.uint8]  # [n] traits.Traits.flags
    # derived
    file_first: NDArray[np.int64] = field(init=False)  # [n] position of the first block of the same file
    file_end: NDArray[np.int64] = field(init=False)  # [n] one past its last
    section_first: NDArray[np.int64] = field(init=False)
    section_end: NDArray[np.int64] = field(init=False)
    average_length: float = field(init=False)

    def __post_init__(self) -> None:
        first, end = _spans(self.file)
        object.__setattr__(self, "file_first", first)
        object.__setattr__(self, "file_end", end)
        first, end = _spans(self.section)
        object.__setattr__(self, "section_first", first)
        object.__setattr__(self, "section_end", end)
        object.__setattr__(self, "average_length", float(self.length.mean()) if self.length.size else 1.0)

    def __len__(self) -> int:
        return int(self.file.size)


@dataclass(frozen=True, slots=True)
class Query:
    """One question: `phrasings` (at least one, each tokens.query_terms of one wording), a weaker `context`, and the days that it names."""

    phrasings: tuple[tuple[Term, ...], ...]
    context: tuple[Term, ...] = ()
    days: tuple[DayRange, ...] = ()


@dataclass(frozen=True, slots=True)
class Scored:
    """Per block: `score` orders (−inf where not allowed), `relevance` in [0, 1] is shown. The rest is for passages and `why`."""

    score: Floats  # [n]
    relevance: Floats  # [n]
    lexical: Floats  # [n] share of the best score that the question could reach, of the block alone
    cosine: Floats  # [n] best cosine, NaN without a vector
    postings: Mapping[str, Ints]  # the question's terms and where they are
    weights: Mapping[str, float]  # their weights (idf times query weight)

    def terms_at(self, first: int, last: int) -> tuple[str, ...]:
        """The question's terms in the blocks first..last, the weightiest first."""
        found = []
        for term, positions in self.postings.items():
            at = int(np.searchsorted(positions, first))
            if at < positions.size and positions[at] <= last:
                found.append(term)
        return tuple(sorted(found, key=lambda term: (-self.weights[term], term)))


def score(
    corpus: Corpus,
    postings: Postings,
    query: Query,
    cosines: Sequence[Floats | None],
    context_cosine: Floats | None,
    calibration: Calibration,
) -> Scored:
    """Score every block. `cosines`: for each phrasing float32[n] with NaN where a block has no vector, or None (no encoder)."""
    n = len(corpus)
    known: dict[str, tuple[Ints, Floats]] = {}
    weights: dict[str, float] = {}
    best = np.full(n, -np.inf, dtype=np.float32)
    own = np.zeros(n, dtype=np.float32)
    nearest = np.full(n, np.nan, dtype=np.float32)
    for terms, cosine in zip(query.phrasings, cosines, strict=True):
        alone, around = _lexical(corpus, postings, terms, known, weights)
        total = around
        if cosine is not None:
            total = around + calibration.cosine_weight * np.nan_to_num(cosine, nan=0.0)
            nearest = np.fmax(nearest, cosine)
        best = np.maximum(best, total)
        own = np.maximum(own, alone)
    if query.context or context_cosine is not None:
        _, vote = _lexical(corpus, postings, query.context, known, weights)
        if context_cosine is not None:
            vote = vote + calibration.cosine_weight * np.nan_to_num(context_cosine, nan=0.0)
        best = best + np.float32(0.15) * vote
    relevance = 1.0 / (1.0 + np.exp(-calibration.slope * (best - calibration.middle)))
    best = np.where(corpus.allowed, best, -np.inf).astype(np.float32)
    relevance = np.where(corpus.allowed, relevance, 0.0).astype(np.float32)
    return Scored(best, relevance, own, nearest, {term: where for term, (where, _) in known.items()}, weights)


def _lexical(
    corpus: Corpus, postings: Postings, terms: Sequence[Term], known: dict[str, tuple[Ints, Floats]], weights: dict[str, float]
) -> tuple[Floats, Floats]:
    """BM25 of the block alone, and with its window and best neighbour, both over the best score that the terms could reach: float32[n] each."""
    n = len(corpus)
    block = np.zeros(n, dtype=np.float32)
    window = np.zeros(n, dtype=np.float32)
    reachable = 0.0
    first = np.maximum(np.arange(n) - WINDOW, corpus.file_first)
    end = np.minimum(np.arange(n) + WINDOW + 1, corpus.file_end)
    block_norm = _norm(corpus.length.astype(np.float32))
    window_norm = _norm(_between(corpus.length.astype(np.float32), first, end))
    for term in terms:
        if term.text not in known:
            known[term.text] = postings(term.text)
        where, frequency = known[term.text]
        weight = term.weight * _idf(n, where.size)
        weights[term.text] = max(weight, weights.get(term.text, 0.0))
        reachable += weight * (K1 + 1)
        if not where.size:
            continue
        dense = np.zeros(n, dtype=np.float32)
        dense[where] = frequency
        block += weight * (K1 + 1) * dense / (dense + block_norm)
        near = _between(dense, first, end)
        window += weight * (K1 + 1) * near / (near + window_norm)
    if reachable <= 0.0:
        return block, window
    block /= reachable
    window /= reachable
    return block, block + np.float32(0.7) * window + np.float32(0.5) * _best_neighbour(corpus, block)


def _idf(n: int, holding: int) -> float:
    return float(np.log1p((n - holding + 0.5) / (holding + 0.5)))


def _norm(length: Floats) -> Floats:
    average = float(length.mean()) if length.size else 1.0
    return np.asarray(K1 * (1 - B + B * length / max(average, 1e-9)), dtype=np.float32)


def _best_neighbour(corpus: Corpus, block: Floats) -> Floats:
    before = np.zeros_like(block)
    after = np.zeros_like(block)
    before[1:] = np.where(corpus.section[1:] == corpus.section[:-1], block[:-1], 0.0)
    after[:-1] = np.where(corpus.section[1:] == corpus.section[:-1], block[1:], 0.0)
    return np.maximum(before, after)


def _between(values: Floats, first: Ints, end: Ints) -> Floats:
    """Sums of values[first:end] for every block, from prefix sums."""
    sums = np.zeros(values.size + 1, dtype=np.float64)
    np.cumsum(values, out=sums[1:])
    return (sums[end] - sums[first]).astype(np.float32)


def _spans(group: NDArray[np.int32]) -> tuple[Ints, Ints]:
    """For every element, where its run of equal values starts and (one past) where it ends."""
    n = group.size
    if n == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    ends = np.concatenate((starts[1:], [n]))
    return np.repeat(starts, ends - starts), np.repeat(ends, ends - starts)
