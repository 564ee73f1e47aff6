"""Relevance and a section's history in, utility and an order out; an outcome in, the new history out. Pure: the clock is passed in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory_tools.errors import InvalidInput
from memory_tools.history import Usage, aware, counts, forgotten, record, resolve, running_q, success_rate_of
from memory_tools.records import POLICIES
from memory_tools.settings import Settings, Weights, nearest

__all__ = [
    "POLICIES",
    "Ranked",
    "Settings",
    "Usage",
    "Weights",
    "calculate_utility",
    "counts",
    "expected_success",
    "rank",
    "recency_of",
    "record",
    "resolve",
    "stored_utility",
    "success_rate_of",
]

_MATCH = 1.9  # what the pool's weakest match costs, as e^-1.9; 1.8 to 2.0 tie
_TREND = 0.25
_LEAST_RANGE = 0.15  # a pool of near-equals is not stretched further
_LEAST_SUCCESS = 0.01  # more failures than a hundred in a row say no more
_UNDATED = 0.5  # recency of what was never used and whose edit is unknown: neither new nor old


@dataclass(frozen=True, slots=True)
class Ranked:
    """One passage in its place. `utility` is the formula of the three numbers shown; `score` orders, and never rises along the list."""

    address: str
    utility: float
    score: float
    kept: bool
    recency: float
    success_rate: float | None
    relevance: float


def calculate_utility(
    recency: float,
    success_rate: float | None,
    relevance: float,
    positive_feedback: bool = False,
    settings: Settings | None = None,
) -> float:
    """0.3 recency + 0.4 success_rate + 0.3 relevance, + 0.1 for positive feedback, at most 1.0, with the configured weights.

    success_rate None (never judged): recency and relevance alone, (0.3 recency + 0.3 relevance) / 0.6.
    Inputs beyond [0, 1] are taken as the nearer end, NaN as 0.
    """
    settings = settings or _DEFAULT
    w, recency, relevance = settings.weights, _unit(recency), _unit(relevance)
    if success_rate is not None:
        utility = w.recency * recency + w.success_rate * _unit(success_rate) + w.relevance * relevance
    elif w.recency + w.relevance > 0.0:
        utility = (w.recency * recency + w.relevance * relevance) / (w.recency + w.relevance)
    else:  # success alone counts and there is none yet: what is expected of an untried section
        utility = settings.success_prior
    return min(utility + (settings.feedback_bonus if positive_feedback else 0.0), 1.0)


def stored_utility(usage: Usage, now: datetime, settings: Settings | None = None) -> float:
    """The utility that knows no query, as the sidecar holds it: (0.3 recency + 0.4 success) / 0.7, + 0.1, at most 1.0."""
    settings = settings or _DEFAULT
    w, success = settings.weights, success_rate_of(usage)
    weighed = [(w.recency, recency_of(usage, now, settings))] + ([] if success is None else [(w.success_rate, success)])
    total = sum(weight for weight, _ in weighed)
    utility = sum(weight * value for weight, value in weighed) / total if total > 0.0 else settings.success_prior
    return min(utility + (settings.feedback_bonus if usage.positive_feedback else 0.0), 1.0)


def recency_of(usage: Usage, now: datetime, settings: Settings | None = None) -> float:
    """2^(-days / 14) since the last use, since the last edit where never used, 0.5 where neither is known. A time to come counts as now."""
    return _fade(usage.last_used or usage.edited, now, (settings or _DEFAULT).use_half_life_days)


def rank(
    items: Iterable[tuple[str, float, Usage]],
    now: datetime,
    policy: str = "balanced",
    settings: Settings | None = None,
) -> list[Ranked]:
    """Passages (key, relevance, history of their section) in a policy's order, best first, those kept before those dropped.

    The `pool` most relevant ones are re-ordered; the others keep the order of their relevance behind them. Pinned ones come
    first and are never dropped, muted ones are never kept. Ties fall to relevance, then to the key: a total order that does
    not depend on the order given.
    """
    settings = settings or _DEFAULT
    if policy not in POLICIES:
        raise InvalidInput(f"policy {policy!r} is not known", nearest(policy, POLICIES))
    passages = sorted(((str(key), _unit(relevance), usage) for key, relevance, usage in items), key=lambda p: (-p[1], p[0]))
    heard = [p for p in passages if not p[2].muted]
    pool = heard[: settings.pool]
    scores = _ORDER[policy](pool, now, settings)
    placed: list[tuple[tuple[bool, bool, bool, float, float, str], Ranked, bool]] = []
    for place, (key, relevance, usage) in enumerate(heard + [p for p in passages if p[2].muted]):
        recency, success = recency_of(usage, now, settings), success_rate_of(usage)
        utility = calculate_utility(recency, success, relevance, usage.positive_feedback, settings)
        score = scores[place] if place < len(pool) else relevance
        kept = not usage.muted and (usage.pinned or not _drops(policy, usage, utility, settings))
        first = usage.pinned and not usage.muted
        ranked = Ranked(key, utility, min(score, 1.0), kept, recency, success, relevance)
        placed.append(((not kept, not first, place >= len(pool), -score, -relevance, key), ranked, first))
    placed.sort(key=lambda p: p[0])
    return _level([p[1] for p in placed], sum(p[2] for p in placed))


def _level(ranked: list[Ranked], pinned: int) -> list[Ranked]:
    """The score as it is shown never rises: pinned ones are lifted to the best of the others, later ones lowered to the one before."""
    best = max((r.score for r in ranked[pinned:]), default=0.0)
    shown, ceiling = [], 1.0
    for place, one in enumerate(ranked):
        ceiling = min(ceiling, max(one.score, best) if place < pinned else one.score)
        shown.append(one if one.score == ceiling else replace(one, score=ceiling))
    return shown


def _drops(policy: str, usage: Usage, utility: float, settings: Settings) -> bool:
    if policy == "seed":
        return utility < settings.utility_threshold
    if policy == "balanced":
        _, success, fail = counts(usage)
        judged = success + fail
        # A proven memory that nobody needed for a month keeps no recency and would fall below the threshold; it is not dropped for that.
        proven = judged <= 0 or success / judged >= settings.utility_threshold
        return judged >= settings.min_judged and utility < settings.utility_threshold and not proven
    return False


_Pool = Sequence[tuple[str, float, Usage]]


def _by_seed(pool: _Pool, now: datetime, settings: Settings) -> list[float]:
    return [
        calculate_utility(recency_of(u, now, settings), success_rate_of(u), relevance, u.positive_feedback, settings)
        for _, relevance, u in pool
    ]


def _by_relevance(pool: _Pool, now: datetime, settings: Settings) -> list[float]:
    return [relevance for _, relevance, _ in pool]


def _by_balance(pool: _Pool, now: datetime, settings: Settings) -> list[float]:
    """The weighted geometric mean of three factors in (0, 1] with the utility's weights; 1 is a perfect memory.

    match: e^(-1.9 d), d the distance to the pool's best relevance over the pool's range (at least 0.15); success: what to expect;
    age: e^(recency - 1), recency of the last edit.
    """
    # A product, because a memory helps when it is about the task and right about it; outcomes then count as odds do. Points gained over
    # stage 1 by the weighted sum of the same inputs -> by this, on 2 Banking77 streams / 8 generated (benchmarks/learning.py) / 16 of
    # Debian's package texts: clean 1.9 -> 1.9 / 1.5 -> 1.5 / 3.4 -> 3.7; 30 % mislead 15.3 -> 15.5 / 17.3 -> 18.1 / 14.9 -> 15.3;
    # 20 % flipped 11.6 -> 12.2 / 14.2 -> 14.8 / 11.5 -> 11.8; 30 % reported 10.3 -> 10.4 / 12.9 -> 13.4 / 11.0 -> 11.3; drifting
    # 7.1 -> 7.7 / 11.2 -> 12.5 / 8.7 -> 9.8. Boosted trees over every count of the pool gain no more on either real text.
    if not pool:
        return []
    w, best = settings.weights, max(p[1] for p in pool)
    span = max(best - min(p[1] for p in pool), _LEAST_RANGE)
    scores = []
    for _, relevance, usage in pool:
        value = -w.relevance * _MATCH * (best - relevance) / span
        value += w.success_rate * math.log(max(expected_success(usage, settings), _LEAST_SUCCESS))
        value += w.recency * (_fade(usage.edited or usage.last_used, now, settings.edit_half_life_days) - 1.0)
        scores.append(math.exp(value / w.total) + (settings.feedback_bonus if usage.positive_feedback else 0.0))
    return scores


def expected_success(usage: Usage, settings: Settings | None = None) -> float:
    """Success to expect of the next use: (successes + 1) / (judged + 2) with the default prior .5 of strength 2, a quarter of it the trend.

    The trend is Q moved into [0, 1] as if it had begun at the prior; it follows the last few outcomes, so that a memory that was
    right for long and is so no more is left within a few uses (drifting worlds: 0.5 to 1.2 points more, the others the same).
    """
    settings = settings or _DEFAULT
    prior = settings.success_prior if usage.prior is None else _unit(usage.prior)
    _, success, fail = counts(usage)
    if success + fail <= 0:
        return prior
    shrunk = (success + prior * settings.prior_strength) / (success + fail + settings.prior_strength)
    q = running_q(usage, settings) + forgotten(success + fail, settings) * (2.0 * prior - 1.0)
    return (1.0 - _TREND) * shrunk + _TREND * min(max((q + 1.0) / 2.0, 0.0), 1.0)


def _by_memrl(pool: _Pool, now: datetime, settings: Settings) -> list[float]:
    """x = (1 - λ) z(relevance) + λ z(Q) over the pool, score 1 / (1 + e^-x); arXiv:2601.03192."""
    relevance, q = _z([p[1] for p in pool]), _z([running_q(p[2], settings) for p in pool])
    share = settings.memrl_lambda
    return [1.0 / (1.0 + math.exp(-((1.0 - share) * r + share * v))) for r, v in zip(relevance, q, strict=True)]


_ORDER = {"balanced": _by_balance, "seed": _by_seed, "memrl": _by_memrl, "relevance": _by_relevance}


def _z(values: Sequence[float]) -> list[float]:
    if not values:
        return []
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))
    # Equal values leave a deviation of about 1e-17 in floats, and z would be noise.
    return [0.0 if deviation < 1e-12 else (v - mean) / deviation for v in values]


def _fade(since: datetime | None, now: datetime, half_life_days: float) -> float:
    if since is None:
        return _UNDATED
    days = (aware(now) - aware(since)).total_seconds() / 86400.0
    return float(2.0 ** (-max(days, 0.0) / half_life_days))


def _unit(value: float) -> float:
    return 0.0 if math.isnan(value) else min(max(float(value), 0.0), 1.0)


_DEFAULT = Settings()
