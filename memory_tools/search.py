"""Postings and cosines of a question in, a score and a calibrated relevance for every block out. Pure numpy, no loop over blocks.

Import this module inside the function that searches: it imports numpy, which `--help` and `status` must not pay for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memory_tools import dates, lexical, questions, traits
from memory_tools.calibration import Calibration
from memory_tools.dates import DayRange
from memory_tools.lexical import Floats, Ints, Postings
from memory_tools.tokens import Term, query_terms

__all__ = ["Calibration", "Corpus", "Floats", "Ints", "Postings", "Query", "Scored", "read", "score"]


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
    section_first: Ints = field(init=False)  # [n] position of the first block of the same section
    section_end: Ints = field(init=False)  # [n] one past its last
    turn: NDArray[np.bool_] = field(init=False)  # [n] part of a conversation
    windows: Mapping[int, tuple[Ints, Ints]] = field(init=False)  # size -> bounds
    norms: Mapping[int, Floats] = field(init=False)  # size (0: the block alone) -> BM25 length norms

    def __post_init__(self) -> None:
        first, end = _spans(self.section)
        windows = {size: lexical.window(first, end, size) for size in (lexical.NEAR, lexical.WIDE)}
        length = self.length.astype(np.float32)
        sums = np.concatenate(([0.0], np.cumsum(length, dtype=np.float64)))
        norms = {size: lexical.norm((sums[b] - sums[a]).astype(np.float32)) for size, (a, b) in windows.items()}
        for name, value in {
            "section_first": first,
            "section_end": end,
            "turn": (self.flags & traits.TURN) > 0,
            "windows": windows,
            "norms": {0: lexical.norm(length), **norms},
        }.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return int(self.file.size)


@dataclass(frozen=True, slots=True)
class Query:
    """One question: `phrasings` (at least one, each tokens.query_terms of one wording), a weaker `context`, and the days that it names.

    `wordings`: what to encode for each phrasing (see `read`). `asks_when`: it wants a time.
    """

    phrasings: tuple[tuple[Term, ...], ...]
    context: tuple[Term, ...] = ()
    days: tuple[DayRange, ...] = ()
    wordings: tuple[str, ...] = ()
    asks_when: bool = False


def read(phrasings: Sequence[str], context: str | None, now: datetime, corpus: Corpus, postings: Postings) -> Query:
    """What a question asks of this corpus. Encode `wordings`, not the phrasings: a speaker's name, which half of the lines carry, would
    draw the question's vector to all that the speaker ever said (recall of the cosine alone within 1,000 characters: .22 with, .42 without).
    """
    terms = tuple(query_terms(p) for p in phrasings)
    matcher = lexical.Matcher(corpus, postings)
    return Query(
        terms,
        query_terms(context) if context else (),
        tuple(dict.fromkeys(day for p in phrasings for day in dates.query_days(p, now))),
        tuple(questions.without(p, _speakers(corpus, matcher, t)) for p, t in zip(phrasings, terms, strict=True)),
        any(questions.asks_when(p) for p in phrasings),
    )


@dataclass(frozen=True, slots=True)
class Scored:
    """Per block: `score` orders (-inf where not allowed), `relevance` in [0, 1] is shown. The rest is for passages and `why`."""

    score: Floats  # [n]
    relevance: Floats  # [n]
    lexical: Floats  # [n] share of the best score that the question could reach, of the block alone
    cosine: Floats  # [n] best cosine, NaN without a vector
    postings: Mapping[str, Ints]  # the question's terms and where they are
    weights: Mapping[str, float]  # their weights (idf times query weight)

    def terms_at(self, first: int, last: int) -> tuple[str, ...]:
        """The question's terms in the blocks first..last, the weightiest first."""
        found = []
        for term in self.weights:
            positions = self.postings[term]
            at = int(np.searchsorted(positions, first))
            if at < positions.size and positions[at] <= last:
                found.append(term)
        return tuple(sorted(found, key=lambda term: (-self.weights[term], term)))


@dataclass(frozen=True, slots=True)
class Weights:
    """A small linear ranker; one set for notes, one for conversations, where the turns around a turn say what it is about."""

    own: float
    near: float
    wide: float
    neighbours: float  # what the blocks before and after match on their own, where they would be the better answer
    answers: float  # the block before asks, and matches
    cosine: float
    near_cosine: float


# Fitted (softmax over the blocks of a question, one conversation held out in turn) on conversations and on notes in eight languages,
# then rounded; figures and what did not help are in benchmarks/README.md.
NOTE = Weights(own=3.5, near=1.0, wide=0.0, neighbours=0.0, answers=0.0, cosine=6.0, near_cosine=0.0)
TURN = Weights(own=-0.5, near=2.5, wide=2.2, neighbours=-2.1, answers=1.9, cosine=1.1, near_cosine=2.3)
HEADING, HEADING_COSINE = 1.5, 0.7  # a note's heading says what it is about; a conversation's is a time or a place
ASKING = -0.25  # a question is rarely the answer
SPEAKER = 0.73  # said by the one who is asked about
WHEN = 0.43  # the question asks when, and the block says a time
LENGTH = 0.08  # for each factor e of length
ON_DAY, IN_MONTH, IN_YEAR = 1.5, 1.1, 0.3  # the note is of the day, the month (up to a season), the year that the question names
CONTEXT = 0.15


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
    matcher = lexical.Matcher(corpus, postings)
    best = np.full(n, -np.inf, dtype=np.float32)
    own = np.zeros(n, dtype=np.float32)
    nearest = np.full(n, np.nan, dtype=np.float32)
    for terms, cosine in zip(query.phrasings, cosines, strict=True):
        names = _speakers(corpus, matcher, terms)
        match = matcher.match(terms, names)
        total = _evidence(corpus, match, cosine)
        for name in sorted(names):
            said = matcher.postings(traits.LABEL_MARK + name)[0]
            total[said] += SPEAKER / len(names)
        best = np.maximum(best, total)
        own = np.maximum(own, match.own)
        if cosine is not None:
            nearest = np.fmax(nearest, cosine)
    best += _place(corpus, query)
    if query.context or context_cosine is not None:
        best += CONTEXT * _evidence(corpus, matcher.match(query.context), context_cosine)
    relevance = 1.0 / (1.0 + np.exp(-calibration.slope * (best - calibration.middle)))
    best = np.where(corpus.allowed, best, -np.inf).astype(np.float32)
    relevance = np.where(corpus.allowed, relevance, 0.0).astype(np.float32)
    return Scored(best, relevance, own, nearest, {t: w for t, (w, _) in matcher.known.items()}, matcher.weights)


def _evidence(corpus: Corpus, match: lexical.Match, cosine: Floats | None) -> Floats:
    """What a block and its surroundings hold of the question: float32[n]."""
    turn = corpus.turn
    before, after = _shifted(corpus, match.own, 1), _shifted(corpus, match.own, -1)
    asked = _shifted(corpus, match.own * ((corpus.flags & traits.QUESTION) > 0), 1)
    head = corpus.section_first
    headed = corpus.heading[head] & ~corpus.heading & ~turn
    note = NOTE.own * match.own + NOTE.near * match.near + HEADING * match.own[head] * headed
    talk = TURN.own * match.own + TURN.near * match.near + TURN.wide * match.wide + TURN.neighbours * (before + after) + TURN.answers * asked
    if cosine is not None:
        known = np.nan_to_num(cosine, nan=0.0)
        note += NOTE.cosine * known + HEADING_COSINE * known[head] * headed
        talk += TURN.cosine * known + TURN.near_cosine * _near_mean(corpus, known)
    return np.where(turn, talk, note).astype(np.float32)


def _near_mean(corpus: Corpus, cosine: Floats) -> Floats:
    content = ~corpus.heading
    return lexical.between(corpus, cosine * content, lexical.NEAR) / np.maximum(
        lexical.between(corpus, content.astype(np.float32), lexical.NEAR), 1.0
    )


def _place(corpus: Corpus, query: Query) -> Floats:
    """What speaks for a block whatever it says: its kind, its length, its day."""
    out = (LENGTH * np.log(np.maximum(corpus.chars, 1))).astype(np.float32)
    out += ASKING * ((corpus.flags & traits.QUESTION) > 0)
    if query.asks_when:
        out += WHEN * ((corpus.flags & traits.TIMED) > 0)
    if query.days:
        near = np.zeros_like(out)
        day = corpus.day.astype(np.float32)
        for r in query.days:
            # What happened is told on the day or soon after, rarely before.
            late, early = np.maximum(day - r.last, 0), np.maximum(r.first - day, 0)
            span = r.last - r.first
            gain = (ON_DAY if span <= 7 else IN_MONTH if span <= 100 else IN_YEAR) * r.weight
            near = np.maximum(near, gain * np.exp(-late / 3 - early / 1.5))
        out += np.where(corpus.day > 0, near, 0)
    return out


def _speakers(corpus: Corpus, matcher: lexical.Matcher, terms: Sequence[Term]) -> frozenset[str]:
    """The terms that name somebody who speaks in this corpus, twice at least."""
    if not corpus.turn.any():
        return frozenset()
    return frozenset(t.text for t in terms if t.kind != "stop" and len(t.text) > 1 and matcher.postings(traits.LABEL_MARK + t.text)[0].size >= 2)


def _shifted(corpus: Corpus, values: Floats, step: int) -> Floats:
    """The values of the block before (step 1) or after (-1) in the same section, 0 where there is none or it is the heading."""
    out = np.zeros_like(values)
    to, of = (slice(1, None), slice(None, -1)) if step > 0 else (slice(None, -1), slice(1, None))
    out[to] = values[of] * ((corpus.section[to] == corpus.section[of]) & ~corpus.heading[of])
    return out


def _spans(group: NDArray[np.int32]) -> tuple[Ints, Ints]:
    """For every element, where its run of equal values starts and (one past) where it ends."""
    n = group.size
    if n == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    ends = np.concatenate((starts[1:], [n]))
    return np.repeat(starts, ends - starts), np.repeat(ends, ends - starts)
