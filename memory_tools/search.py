"""Postings and cosines of a question in, a score and a calibrated relevance for every block out. Pure numpy, no loop over blocks.

Import this module inside the function that searches: it imports numpy, which `--help` and `status` must not pay for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from memory_tools import dates, lexical, questions, ranker, traits
from memory_tools.blocks import Corpus, Floats, Ints
from memory_tools.calibration import OTHER, OTHER_SPREAD, Calibration
from memory_tools.dates import DayRange
from memory_tools.lexical import Postings
from memory_tools.tokens import Term, query_terms

__all__ = ["Calibration", "Corpus", "Floats", "Ints", "Postings", "Query", "Scored", "read", "score"]


@dataclass(frozen=True, slots=True)
class Query:
    """One question: `phrasings` (at least one, each tokens.query_terms of one wording), a weaker `context`, and the days that it names.

    `wordings`: what to encode for each phrasing (see `read`). `asks_when`: it wants a time. `unknown`: for each phrasing, in [0, 1],
    whether it names somebody or something that no note holds. `only_days`: it names a day and says little else.
    `day_alone`: for each phrasing, whether it says nothing else.
    """

    phrasings: tuple[tuple[Term, ...], ...]
    context: tuple[Term, ...] = ()
    days: tuple[DayRange, ...] = ()
    wordings: tuple[str, ...] = ()
    asks_when: bool = False
    unknown: tuple[float, ...] = ()
    only_days: bool = False
    day_alone: tuple[bool, ...] = ()
    known: Mapping[str, tuple[Ints, Floats]] = field(default_factory=dict, compare=False, repr=False)  # postings read so far


def read(phrasings: Sequence[str], context: str | None, now: datetime, corpus: Corpus, postings: Postings) -> Query:
    """What a question asks of this corpus. Encode `wordings`, not the phrasings: a speaker's name, which half of the lines carry, would
    draw the question's vector to all that the speaker ever said (the cosine's recall within 1,000 characters: .22 with, .42 without).
    """
    named = [dates.mentions(p, now) for p in phrasings]
    days = tuple(dict.fromkeys(r for mentions in named for m in mentions for r in m.ranges))
    rest = [query_terms(questions.between(p, [(m.start, m.end) for m in mentions])) for p, mentions in zip(phrasings, named, strict=True)]
    terms = tuple(_without_dates(query_terms(p), left) for p, left in zip(phrasings, rest, strict=True))
    matcher = lexical.Matcher(corpus, postings)
    return Query(
        terms,
        query_terms(context) if context else (),
        days,
        tuple(questions.without(p, _speakers(corpus, matcher, t)) for p, t in zip(phrasings, terms, strict=True)),
        any(questions.asks_when(p) for p in phrasings),
        tuple(_unknown(p, t, corpus, matcher) for p, t in zip(phrasings, terms, strict=True)),
        bool(days) and min(sum(t.weight for t in left if t.kind != "stop") for left in rest) <= LITTLE,
        tuple(bool(mentions) and all(t.kind == "stop" for t in left) for mentions, left in zip(named, rest, strict=True)),
        matcher.known,
    )


def _without_dates(terms: Sequence[Term], rest: Sequence[Term]) -> tuple[Term, ...]:
    """The terms, those of a date at a small part of their weight: notes of July seldom say July."""
    kept = {term.text for term in rest}
    return tuple(term if term.text in kept else replace(term, weight=term.weight * DATE_WORDS) for term in terms)


@dataclass(frozen=True, slots=True)
class Scored:
    """Per block: `score` orders (-inf where not allowed), `relevance` in [0, 1] is shown. The rest is for passages and `why`."""

    score: Floats  # [n]
    relevance: Floats  # [n]
    lexical: Floats  # [n] share of the best score that the question could reach, of the block alone
    cosine: Floats  # [n] best cosine, NaN without a vector
    postings: Mapping[str, Ints]  # the question's terms and where they are
    weights: Mapping[str, float]  # their weights (idf times query weight)
    evidence: float = 0.0  # in score: what the best block holds of the question, 0 or more

    def terms_at(self, first: int, last: int) -> tuple[str, ...]:
        """The question's terms in the blocks first..last, the weightiest first."""
        found = []
        for term in self.weights:
            positions = self.postings[term]
            at = int(positions.searchsorted(first))
            if at < positions.size and positions[at] <= last:
                found.append(term)
        return tuple(sorted(found, key=lambda term: (-self.weights[term], term)))


CONTEXT = 0.1
DATE_WORDS = 0.5
SUREST = 5.0  # a logit; relevance .993
SENTENCE = 5  # words: nobody types as many that are none
_COMMON_HAN = "的是一不在"  # one of them is in any Chinese or Japanese text of some length
# The vector of "E-4711" is near to whatever has numbers; what is meant is where it stands. Not k8s, sha256 or 500MB.
CODE = 1.5
_CODE = re.compile(r"(?:^|[-_])[^\W\d_]+(?:[-_]\d{3}|\d{4})")  # letters, then three digits behind a hyphen or four right away
FEW = 20  # blocks; below, the middle of their cosines says nothing
# A note of the day that was asked for is evidence by itself: nearly all there is where the question says little else.
ONLY_DAY, ALSO_DAY = 1.2, 0.35
FAINT = 0.25  # of the cosine where nothing else is said: the vector of "last Friday" is near to whatever speaks of Fridays, or is short
LITTLE = 1.2  # query weight of what is left without the date: about one word, as in "what happened on Monday"


def score(
    corpus: Corpus,
    postings: Postings,
    query: Query,
    cosines: Sequence[Floats | None],
    context_cosine: Floats | None,
    calibration: Calibration,
) -> Scored:
    """Score every block. `cosines`: for each phrasing float32[n] with NaN where a block has no vector, or None (no encoder).

    Blocks that are not allowed, headings of sections that have more, and blocks without any evidence get no score (-inf) and relevance 0.
    """
    n = len(corpus)
    matcher = lexical.Matcher(corpus, postings, query.known)
    on_day = ranker.on_day(corpus, query.days)
    shown = corpus.allowed & (~corpus.heading | (corpus.section_end - corpus.section_first == 1))
    firm = shown & ~corpus.heading if (shown & ~corpus.heading).any() else shown
    best = np.full(n, -np.inf, dtype=np.float32)
    own = np.zeros(n, dtype=np.float32)
    nearest = np.full(n, np.nan, dtype=np.float32)
    held = on_day > 0
    strength, held_best = -np.inf, 0.0
    for i, (terms, cosine) in enumerate(zip(query.phrasings, cosines, strict=True)):
        names = _speakers(corpus, matcher, terms)
        match = matcher.match(terms, names)
        held |= (match.own > 0) | (match.near > 0) | (match.wide > 0)
        if cosine is not None:
            held |= ~np.isnan(cosine)
            nearest = np.fmax(nearest, cosine)
        scaled = _on_scale(cosine, calibration)
        if scaled is not None and query.day_alone and query.day_alone[i]:
            scaled = scaled * np.float32(FAINT)
        total = ranker.evidence(corpus, match, scaled)
        if firm.any():
            unknown = query.unknown[i] if query.unknown else 0.0
            strongest = float((total + (ONLY_DAY if query.only_days else ALSO_DAY) * on_day)[firm].max())
            held_best = max(held_best, strongest - ranker.LEVEL)
            strength = max(strength, calibration.slope * strongest - calibration.unknown * unknown + calibration.middle)
        total -= CODE * _lacks_code(corpus, matcher, terms)
        for name in sorted(names):
            total[matcher.postings(traits.LABEL_MARK + name)[0]] += ranker.SPEAKER / len(names)
        best = np.maximum(best, total)
        own = np.maximum(own, match.own)
    best += ranker.standing(corpus) + on_day
    if query.asks_when:
        best += ranker.WHEN * ((corpus.flags & traits.TIMED) > 0)
    if query.context or context_cosine is not None:
        best += CONTEXT * ranker.evidence(corpus, matcher.match(query.context), _on_scale(context_cosine, calibration))
    best = np.where(shown & held, best, -np.inf).astype(np.float32)
    relevance = _relevance(best, strength, calibration)
    return Scored(best, relevance, own, nearest, {t: w for t, (w, _) in matcher.known.items()}, matcher.weights, held_best)


def _on_scale(cosine: Floats | None, calibration: Calibration) -> Floats | None:
    """Cosines on the default encoder's scale, 0 where there are none.

    Most blocks have nothing to do with a question, so the middle of its cosines is that of unrelated texts, whatever the encoder.
    """
    if cosine is None:
        return None
    if calibration.scale is not None:
        scaled = calibration.shift + calibration.scale * cosine
    else:
        scaled = cosine
        known = cosine[~np.isnan(cosine)]
        if known.size >= FEW:
            low, middle, high = np.quantile(known, (0.25, 0.5, 0.75))
            scaled = OTHER + OTHER_SPREAD / max(0.741 * (high - low), 0.01) * (cosine - middle)
    filled: Floats = np.nan_to_num(scaled, nan=0.0).astype(np.float32)
    return filled


def _relevance(best: Floats, strength: float, calibration: Calibration) -> Floats:
    """Logistic in the strength of the question's best evidence; it fades with the distance from that, to .5 at `calibration.reach`."""
    out = np.zeros_like(best)
    scored = np.isfinite(best)
    if scored.any():
        behind = (best[scored].max() - best[scored]) / calibration.reach
        logit = min(strength, SUREST) * (1.0 - behind) if strength > 0 else strength - behind
        out[scored] = 1.0 / (1.0 + np.exp(-np.where(logit < 0, calibration.doubt * logit, logit)))
    return out


def _unknown(text: str, terms: Sequence[Term], corpus: Corpus, matcher: lexical.Matcher) -> float:
    """1 where the question names something that no note holds; half where the notes may be in another language than the question."""

    def held(term: str) -> bool:
        # What only the archive holds is not known: "router" found everything else once the one note about it was archived.
        return bool(corpus.searched[matcher.postings(term)[0]].any())

    known = {term.text: held(term.text) for term in terms}
    stops = [term.text for term in terms if term.kind == "stop"]
    if any(not any(known.get(token, True) for token in name) for name in questions.names(text)):
        return 0.5 + 0.5 * (sum(known[stop] for stop in stops) / len(stops) if stops else 0.0)
    if any(known.values()):
        return 0.0
    # Not a word that is known here: another language, or no words at all.
    if any(term.kind in ("cjk", "bigram") for term in terms):
        return 0.5 if any(held(char) for char in _COMMON_HAN) else 0.0
    return 0.0 if stops or len(terms) >= SENTENCE else 0.5


def _lacks_code(corpus: Corpus, matcher: lexical.Matcher, terms: Sequence[Term]) -> Floats | float:
    """1 where neither a block, nor what is beside it, nor its heading holds a code that the question gives and some note holds.

    Not the archive that is left out: a code that it alone holds would speak against everything that another phrasing does not find.
    """
    codes = [t.text for t in terms if t.kind == "identifier" and t.weight == 1.0 and _CODE.search(t.text)]
    holds = np.zeros(len(corpus), dtype=np.float32)
    for code in codes:
        holds[matcher.postings(code)[0]] = 1
    holds *= corpus.searched
    if not holds.any():
        return 0.0
    headed = (holds * corpus.heading)[corpus.section_first]  # text above the first heading begins with a block like any other
    lacking: Floats = (lexical.between(corpus, holds, lexical.NEAR) + headed == 0).astype(np.float32)
    return lacking


def _speakers(corpus: Corpus, matcher: lexical.Matcher, terms: Sequence[Term]) -> frozenset[str]:
    """The terms that name somebody who speaks in this corpus, twice at least."""
    if not corpus.turn.any():
        return frozenset()
    return frozenset(
        t.text for t in terms if t.kind != "stop" and len(t.text) > 1 and matcher.postings(traits.LABEL_MARK + t.text)[0].size >= 2
    )
