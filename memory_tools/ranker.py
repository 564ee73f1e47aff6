"""How blocks and their surroundings match a question in, one number for each block out: a small linear ranker. Pure numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory_tools import lexical, traits
from memory_tools.blocks import Corpus, Floats
from memory_tools.dates import DayRange


@dataclass(frozen=True, slots=True)
class Weights:
    """One set for notes, one for conversations, where the turns around a turn say what it is about."""

    own: float
    near: float
    wide: float
    neighbours: float  # what the blocks beside match on their own, for then they are the better answer
    answers: float  # the block before asks, and matches
    cosine: float
    near_cosine: float


# Fitted (softmax over the blocks of a question, one conversation held out in turn) on conversations and on notes in eight languages,
# then rounded; figures and what did not help are in benchmarks/README.md.
NOTE = Weights(own=3.5, near=1.0, wide=0.0, neighbours=0.0, answers=0.0, cosine=5.0, near_cosine=0.0)
TURN = Weights(own=0.5, near=2.5, wide=2.2, neighbours=-1.2, answers=1.9, cosine=1.1, near_cosine=2.3)
LEVEL = 0.3  # of notes above conversations, so that neither crowds out the other in a workspace that has both
HEADING, HEADING_COSINE = 1.5, 0.7  # a note's heading says what it is about; a conversation's is a time or a place
ASKING = -0.25  # a question is rarely the answer
SPEAKER = 0.73  # said by the one who is asked about
WHEN = 0.43  # the question asks when, and the block says a time
BARE = -1.0  # a heading without text under it: mostly the title of what follows
LENGTH = 0.04  # for each factor e of length
ON_DAY, IN_MONTH, IN_YEAR = 1.5, 1.1, 0.3  # the note is of the day, the month (up to a season), the year that the question names


def evidence(corpus: Corpus, match: lexical.Match, cosine: Floats | None) -> Floats:
    """What a block and its surroundings hold of the question: float32[n]. `cosine`: on the default encoder's scale, 0 where unknown."""
    turn = corpus.turn
    own = match.own * corpus.content  # what a heading matches is counted once, below
    beside = lexical.between(corpus, own, 1) - own
    asked = lexical.shifted(corpus, own * ((corpus.flags & traits.QUESTION) > 0), 1)
    head, headed = corpus.section_first, corpus.headed
    note: Floats = LEVEL + NOTE.own * match.own + NOTE.near * match.near + HEADING * match.own[head] * headed
    talk = TURN.own * match.own + TURN.near * match.near + TURN.wide * match.wide + TURN.neighbours * beside + TURN.answers * asked
    if cosine is not None:
        # A bare heading is a date or a title more often than a statement, and its vector is near to anything as short.
        note += NOTE.cosine * cosine * corpus.content + HEADING_COSINE * cosine[head] * headed
        talk += TURN.cosine * cosine + TURN.near_cosine * _near_mean(corpus, cosine)
    both: Floats = np.where(turn, talk, note).astype(np.float32)
    return both


def standing(corpus: Corpus) -> Floats:
    """What speaks for a block whatever is asked: its length and its kind. float32[n]."""
    out: Floats = LENGTH * corpus.log_chars + ASKING * ((corpus.flags & traits.QUESTION) > 0).astype(np.float32)
    out += BARE * corpus.heading
    return out


def on_day(corpus: Corpus, days: Sequence[DayRange]) -> Floats:
    """What the day of its note adds to a block. What happened is told on the day or soon after, rarely before."""
    best: Floats = np.zeros(len(corpus), dtype=np.float32)
    if not days or not corpus.day.any():
        return best
    day = corpus.day.astype(np.float32)
    for r in days:
        span = r.last - r.first
        gain = (ON_DAY if span <= 7 else IN_MONTH if span <= 100 else IN_YEAR) * r.weight
        near: Floats = (gain * np.exp(-np.maximum(day - r.last, 0) / 3 - np.maximum(r.first - day, 0) / 1.5)).astype(np.float32)
        best = np.maximum(best, near)
    dated: Floats = np.where(corpus.day > 0, best, 0).astype(np.float32)
    return dated


def _near_mean(corpus: Corpus, cosine: Floats) -> Floats:
    mean: Floats = lexical.between(corpus, cosine * corpus.content, lexical.NEAR) / corpus.contents_near
    return mean
