"""Postings of a question's terms in, how well each block and its surroundings match out: BM25 over the best score in reach. Pure numpy.

Of the forms of BM25 this is Lucene's: idf = ln(1 + (n - df + .5) / (df + .5)), k1 = 1.2, b = .75. What the others do is in
benchmarks/README.md. Frequencies of a window are sums over its blocks, so no second index is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memory_tools.blocks import K1, NEAR, WIDE, B, Corpus, Floats, Ints
from memory_tools.tokens import Term

__all__ = ["K1", "LEAST_REACH", "NEAR", "WIDE", "B", "Floats", "Ints", "Match", "Matcher", "Postings", "between", "shifted", "spread"]

Postings = Callable[[str], tuple[Ints, Floats]]
"""term -> (positions int64, ascending and unique; term frequencies float32 of the same length). Unknown term: two empty arrays.
Positions index the Corpus arrays and cover every block, also those not allowed."""

# A question of stop words alone reaches little; the share of it that matches must not look like much.
LEAST_REACH = 3.0
# Below this share of the blocks a window's sums are made from the term's positions, above it from prefix sums over all blocks.
_SPARSE = 1 / 24
_SMALL = 10_000  # blocks; up to here a pass over all of them is cheaper than sorting those that a window reaches


@dataclass(frozen=True, slots=True)
class Match:
    """float32[n] each, in [0, 1): shares of the best score that the question could reach."""

    own: Floats  # the block alone
    near: Floats  # the block and one on each side, taken as one text
    wide: Floats  # the same with WIDE on each side


class Matcher:
    """One question over one corpus; reads each term's postings once."""

    def __init__(self, corpus: Corpus, postings: Postings, known: Mapping[str, tuple[Ints, Floats]] | None = None) -> None:
        self._corpus = corpus
        self._read = postings
        self.known: dict[str, tuple[Ints, Floats]] = dict(known or {})
        self.weights: dict[str, float] = {}  # of the terms that were matched: idf times the query's weight

    def postings(self, term: str) -> tuple[Ints, Floats]:
        if term not in self.known:
            self.known[term] = self._read(term)
        return self.known[term]

    def idf(self, term: str) -> float:
        n, holding = len(self._corpus), self.postings(term)[0].size
        return float(np.log1p((n - holding + 0.5) / (holding + 0.5)))

    def match(self, terms: Sequence[Term], names: frozenset[str] = frozenset()) -> Match:
        """`names`: terms that are speakers here. In a conversation a speaker's name says who, not what: it does not count there."""
        corpus = self._corpus
        n = len(corpus)
        own, near, wide = (np.zeros(n, dtype=np.float32) for _ in range(3))
        talks = bool(corpus.turn.any())
        reach = of_names = 0.0
        said = any(term.kind != "stop" for term in terms)
        for term in terms:
            weight = term.weight * self.idf(term.text)
            self.weights[term.text] = max(weight, self.weights.get(term.text, 0.0))
            where, frequency = self.postings(term.text)
            reach += weight
            if term.text in names:
                of_names += weight
                outside = ~corpus.turn[where]
                where, frequency = where[outside], frequency[outside]
            if where.size:
                own[where] += weight * frequency / (frequency + corpus.norms[0][where])
                if said and term.kind == "stop":
                    continue  # it is in every window
                self._add(near, NEAR, weight, where, frequency)
                if talks:
                    self._add(wide, WIDE, weight, where, frequency)
        total = np.where(corpus.turn, max(reach - of_names, LEAST_REACH), max(reach, LEAST_REACH)).astype(np.float32)
        return Match(own / total, near / total, wide / total)

    def _add(self, out: Floats, size: int, weight: float, where: Ints, frequency: Floats) -> None:
        """Add one term's score of every window that holds it."""
        corpus = self._corpus
        norm = corpus.norms[size]
        if where.size > out.size * _SPARSE:
            inside = between(corpus, spread(where, frequency, out.size), size)
            out += weight * inside / (inside + norm)
            return
        steps = np.arange(-size, size + 1)
        reached = where[:, None] + steps
        ok = (reached >= corpus.section_first[where][:, None]) & (reached < corpus.section_end[where][:, None])
        if out.size <= _SMALL:
            sums = np.bincount(reached[ok], np.broadcast_to(frequency[:, None], reached.shape)[ok], out.size).astype(np.float32)
            out += weight * sums / (sums + norm)
            return
        blocks, which = np.unique(reached[ok], return_inverse=True)
        inside = np.bincount(which, np.broadcast_to(frequency[:, None], reached.shape)[ok]).astype(np.float32)
        out[blocks] += weight * inside / (inside + norm[blocks])


def spread(where: Ints, frequency: Floats, n: int) -> Floats:
    """A term's frequencies as float32[n]."""
    dense = np.zeros(n, dtype=np.float32)
    dense[where] = frequency
    return dense


def between(corpus: Corpus, values: Floats, size: int) -> Floats:
    """For every block the sum of values over itself and `size` blocks on each side, within its section: float32[n]."""
    if size == 1:  # exact whatever the values are, and cheaper
        return values + shifted(corpus, values, 1) + shifted(corpus, values, -1)
    sums = np.zeros(values.size + 1, dtype=np.float32)  # of frequencies: whole numbers, exact up to 2^24
    np.cumsum(values, out=sums[1:])
    first, end = corpus.windows[size]
    inside: Floats = sums[end] - sums[first]
    return inside


def shifted(corpus: Corpus, values: Floats, step: int) -> Floats:
    """The values of the block before (step 1) or after (-1) in the same section, 0 where there is none."""
    out = np.zeros_like(values)
    if step > 0:
        out[1:] = values[:-1] * corpus.follows[1:]
    else:
        out[:-1] = values[1:] * corpus.follows[1:]
    return out
