"""Which question about the inputs goes with an outcome more than chance allows: counts in, causes out. Pure, exact tests, no floating luck.

Each question is tested by Fisher's exact test (failures) or an exact rank-sum test (seconds), at a level divided by the number of
questions asked, so that calls without a cause get a false one in about one guideline of a hundred. A cause is dropped where a stronger
one already explains its calls.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import comb

from memory_tools.judge_features import SUPPORT, Feature, Row, all_bounds, features_of
from memory_tools.tool_records import Advice

LEVEL = 0.02  # for all questions about values together, and again for all about their properties
SLOW_LEVEL = 0.01
_REMAINING = 0.01  # level for a second cause among the calls that the first does not explain
_LEAST_GAP = 0.3  # between the two sides' rates; less is no use to a caller
_SLOW_RATIO, _SLOW_GAP_S = 1.5, 0.1
_TIMED = 8  # calls with a time before anything is said of speed
MAX_CAUSES = 5


@dataclass(frozen=True, slots=True)
class Cause:
    """One side of a question has the outcome `bad` of `bad_calls` times, the other `good` of `good_calls`."""

    parameter: str
    words: str  # of the bad side
    others: str
    bad: int
    bad_calls: int
    good: int
    good_calls: int
    members: tuple[int, ...]  # the calls of the bad side
    advice: Advice
    p: float
    twins: tuple[Cause, ...] = ()  # of other parameters, dividing the calls in the same way: which of them it is, the calls cannot tell


@dataclass(frozen=True, slots=True)
class Slow:
    parameter: str
    words: str
    others: str
    median_s: float
    calls: int
    other_median_s: float
    other_calls: int


def causes(rows: Sequence[Row], outcome: Sequence[bool]) -> list[Cause]:
    """What goes with `outcome` being true, the surest first."""
    n, bad = len(rows), sum(outcome)
    if bad < SUPPORT or n - bad < SUPPORT:
        return []
    features = features_of(rows)
    asked = {derived: _partitions([f for f in features if f.derived is derived]) for derived in (False, True)}
    found = [c for f in features if (c := _cause(f, outcome)).p * max(1, asked[f.derived]) <= LEVEL and _gap(c) >= _LEAST_GAP]
    # A value before a property of it; then the names, for one order whatever the input's.
    found.sort(key=lambda c: (c.p, c.words))
    kept: list[Cause] = []
    for cause in found:
        same = next((k for k in kept if k.members == cause.members), None)
        if same is not None:
            if cause.parameter not in (same.parameter, *(t.parameter for t in same.twins)):
                kept[kept.index(same)] = replace(same, twins=(*same.twins, cause))
        elif _remains(cause, kept, outcome) and len(kept) < MAX_CAUSES:
            kept.append(cause)
    return [_exact(c, rows, outcome) for c in kept]


def slow(rows: Sequence[Row], seconds: Sequence[float]) -> list[Slow]:
    """What goes with longer calls, the slowest first. `seconds`: of each call, 0 where unknown; at most three."""
    timed = [n for n, s in enumerate(seconds) if s > 0]
    if len(timed) < _TIMED:
        return []
    features = features_of([rows[n] for n in timed])
    times = [seconds[n] for n in timed]
    asked = max(1, _partitions(features))
    found: list[tuple[float, Slow, tuple[bool, ...]]] = []
    for f in features:
        for holds, words, others in ((f.holds, f.words, f.others), (tuple(not h for h in f.holds), f.others, f.words)):
            here = [t for t, h in zip(times, holds, strict=True) if h]
            there = [t for t, h in zip(times, holds, strict=True) if not h]
            median, other = statistics.median(here), statistics.median(there)
            if median < max(_SLOW_RATIO * other, other + _SLOW_GAP_S):
                continue
            p = rank_sum_p(here, there)
            if 2 * p * asked <= SLOW_LEVEL:
                found.append((p, Slow(f.parameter, words, others, median, len(here), other, len(there)), holds))
    found.sort(key=lambda item: (item[0], item[1].words))
    kept: list[tuple[float, Slow, tuple[bool, ...]]] = []
    for p, one, holds in found:
        if all(_overlap(holds, k[2]) < 0.5 for k in kept):
            kept.append((p, one, holds))
    return [k[1] for k in kept[:3]]


def fisher_p(bad: int, n: int, all_bad: int, total: int) -> float:
    """The chance that `n` calls drawn from `total`, of which `all_bad` are bad, hold `bad` or more bad ones."""
    ways = sum(comb(all_bad, k) * comb(total - all_bad, n - k) for k in range(bad, min(n, all_bad) + 1))
    return ways / comb(total, n)


def rank_sum_p(here: Sequence[float], there: Sequence[float]) -> float:
    """The chance that so many of all values have ranks that add up to this or more. Ties are taken against the claim."""
    order = sorted([(t, 0) for t in here] + [(t, 1) for t in there])
    total = sum(rank for rank, (_, side) in enumerate(order, 1) if side == 0)
    ways = _rank_sums(len(order))[len(here)]
    return sum(ways[total:]) / comb(len(order), len(here))


@lru_cache(maxsize=8)
def _rank_sums(n: int) -> list[list[int]]:
    """ways[k][s]: how many k-subsets of the ranks 1..n add up to s."""
    top = n * (n + 1) // 2
    ways = [[0] * (top + 1) for _ in range(n + 1)]
    ways[0][0] = 1
    reached = 0
    for rank in range(1, n + 1):
        for k in range(min(rank, n), 0, -1):
            source, target = ways[k - 1], ways[k]
            for s in range(reached + 1):
                if source[s]:
                    target[s + rank] += source[s]
        reached += rank
    return ways


def _partitions(features: Sequence[Feature]) -> int:
    """How many ways of dividing the calls are asked about; twins are one question."""
    return len({min(f.holds, tuple(not h for h in f.holds)) for f in features})


def _cause(feature: Feature, outcome: Sequence[bool]) -> Cause:
    """The worse side of a question, with a two-sided p."""
    n, total_bad = len(outcome), sum(outcome)
    inside = sum(feature.holds)
    bad = sum(o for o, h in zip(outcome, feature.holds, strict=True) if h)
    if bad * (n - inside) >= (total_bad - bad) * inside:
        holds, words, others, advice = feature.holds, feature.words, feature.others, feature.where_true
    else:
        holds, words, others, advice = tuple(not h for h in feature.holds), feature.others, feature.words, feature.where_false
        inside, bad = n - inside, total_bad - bad
    p = min(1.0, 2 * fisher_p(bad, inside, total_bad, n))
    members = tuple(i for i, h in enumerate(holds) if h)
    return Cause(feature.parameter, words, others, bad, inside, total_bad - bad, n - inside, members, advice, p)


def _gap(cause: Cause) -> float:
    return cause.bad / cause.bad_calls - cause.good / cause.good_calls


def _remains(cause: Cause, kept: Sequence[Cause], outcome: Sequence[bool]) -> bool:
    """Whether a cause still shows among the calls that none of the surer ones holds for."""
    explained = {n for k in kept for n in k.members}
    left = [n for n in range(len(outcome)) if n not in explained]
    inside = [n for n in left if n in set(cause.members)]
    if not kept:
        return True
    bad, all_bad = sum(outcome[n] for n in inside), sum(outcome[n] for n in left)
    if bad < 2 or len(inside) == len(left):
        return False
    return fisher_p(bad, len(inside), all_bad, len(left)) <= _REMAINING and bad / len(inside) - all_bad / len(left) >= _LEAST_GAP / 2


def _exact(cause: Cause, rows: Sequence[Row], outcome: Sequence[bool]) -> Cause:
    """The same cause with its bound where it divides best; the questions asked only a few bounds of each number."""
    if not isinstance(cause.advice.avoid, dict):
        return cause
    nearby = [c for f in all_bounds(cause.parameter, rows) if (c := _cause(f, outcome)).p <= cause.p and isinstance(c.advice.avoid, dict)]
    same_side = [c for c in nearby if set(c.advice.avoid or ()) == set(cause.advice.avoid)]  # type: ignore[arg-type]
    return replace(min(same_side, key=lambda c: (c.p, c.words)), twins=cause.twins) if same_side else cause


def _overlap(a: Sequence[bool], b: Sequence[bool]) -> float:
    both, either = sum(x and y for x, y in zip(a, b, strict=True)), sum(x or y for x, y in zip(a, b, strict=True))
    return both / either if either else 0.0
