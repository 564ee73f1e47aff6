"""Scored blocks in, passages for the reader out: best first, each a run of blocks of one section. Pure.

The first n passages are the same for every larger limit: each decision looks at the scores, never at how many are asked for.
Import this module inside the function that searches (numpy).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .search import Corpus, Scored

TextOf = Callable[[int, int], str]
"""(first, last) -> the file's exact text from the start of block `first` to the end of block `last`, both of one section."""

LONGEST = 1200  # characters; a longer block is shown in part, around the match


@dataclass(frozen=True, slots=True)
class Passage:
    """Blocks first..last of one section (positions in the Corpus). `cut`: the part of text(first, last) to show, in characters; None: all of it."""

    first: int
    last: int
    score: float
    relevance: float
    terms: tuple[str, ...]  # the question's terms that are in it, the weightiest first
    cosine: float | None
    cut: tuple[int, int] | None = None
    similar: int = 0  # near-duplicates left out for this one
    differs: tuple[int, ...] = ()  # positions of older blocks that say otherwise


def pick(corpus: Corpus, scored: Scored, *, limit: int, min_score: float, text: TextOf, max_chars: int | None = None) -> list[Passage]:
    """At most `limit` passages with relevance >= min_score, best first; together at most `max_chars` characters (the last one is cut)."""
    alone = corpus.section_end - corpus.section_first == 1
    usable = corpus.allowed & (~corpus.heading | alone) & (scored.relevance >= min_score)
    candidates = np.flatnonzero(usable)
    order = candidates[np.lexsort((candidates, -scored.score[candidates]))]
    passages: list[Passage] = []
    left = max_chars
    for position in order[:limit].tolist():
        if left is not None and left <= 0:
            break
        size = len(text(position, position))
        room = LONGEST if left is None else min(LONGEST, left)
        cut = (0, room) if size > room else None
        cosine = float(scored.cosine[position])
        passages.append(
            Passage(
                position,
                position,
                float(scored.score[position]),
                float(scored.relevance[position]),
                scored.terms_at(position, position),
                None if np.isnan(cosine) else cosine,
                cut,
            )
        )
        if left is not None:
            left -= min(size, room)
    return passages
