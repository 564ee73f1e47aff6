"""An outcome and a section's history in, the new history out. Pure: the clock is passed in."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memory_tools.errors import InvalidInput
from memory_tools.settings import Settings, check_number

_DEFAULT = Settings()
_MOST = 1e15  # counts beyond this are somebody's typing error; floats still count by one below it


@dataclass(frozen=True, slots=True)
class Usage:
    """A section's history. Times are aware datetimes (a naive one is taken as UTC).

    `fail_count` None: the file has none, so every use was judged. `prior`: success expected while untried, None: the settings'.
    Counts are whole numbers unless a weight made them fractional.
    """

    use_count: float = 0
    success_count: float = 0
    fail_count: float | None = None
    last_used: datetime | None = None
    last_success: datetime | None = None
    edited: datetime | None = None
    positive_feedback: bool = False
    pinned: bool = False
    muted: bool = False
    # Nothing fills it in from the file or folder: where files are topics that cost 0.3 to 1.6 points; where whole files mislead, it
    # gained 0.6.
    prior: float | None = None
    q: float | None = None  # MemRL's running value in [-1, 1]; None: not kept so far


def success_rate_of(usage: Usage) -> float | None:
    """Successes / judged uses; None without any. Uses with unknown outcome are not judged."""
    _, success, fail = counts(usage)
    return success / (success + fail) if success + fail > 0 else None


def counts(usage: Usage) -> tuple[float, float, float]:
    """(uses, successes, failures) as they can be true: not negative, successes at most the uses, failures at most the rest."""
    uses, success = _count(usage.use_count), _count(usage.success_count)
    success = min(success, uses)
    fail = uses - success if usage.fail_count is None else min(_count(usage.fail_count), uses - success)
    return uses, success, _whole(fail)


def record(usage: Usage, outcome: bool | None, now: datetime, weight: float = 1.0, settings: Settings | None = None) -> Usage:
    """One more use and its outcome (True, False, None: unknown). weight in (0, 1] is what it counts."""
    weight = _weight(weight)
    uses, success, fail = counts(usage)
    used = _later(usage.last_used, now)
    counted = replace(usage, use_count=_whole(uses + weight), success_count=success, fail_count=fail, last_used=used)
    return counted if outcome is None else resolve(counted, outcome, now, weight, settings)


def resolve(usage: Usage, outcome: bool | None, now: datetime, weight: float = 1.0, settings: Settings | None = None) -> Usage:
    """The outcome of a use that was counted as unknown: judged, but no use more. Where no use was open, the uses grow to hold it.

    record(unknown) and then resolve(outcome) equals record(outcome) at the later time.
    """
    weight = _weight(weight)
    if outcome is None:
        return usage
    uses, success, fail = counts(usage)
    success, fail = (_whole(success + weight), fail) if outcome else (success, _whole(fail + weight))
    q = running_q(usage, settings)
    q += (settings or _DEFAULT).memrl_alpha * weight * ((1.0 if outcome else -1.0) - q)
    return replace(
        usage,
        use_count=_whole(max(uses, success + fail)),
        success_count=success,
        fail_count=fail,
        last_used=_later(usage.last_used, now),
        last_success=_later(usage.last_success, now) if outcome else usage.last_success,
        q=q,
    )


def running_q(usage: Usage, settings: Settings | None = None) -> float:
    """MemRL's Q in [-1, 1]: 0 where never judged; for counts of a file without q, where as many steps at their rate would have led."""
    if usage.q is not None and not math.isnan(usage.q):
        return min(max(usage.q, -1.0), 1.0)
    _, success, fail = counts(usage)
    if success + fail <= 0:
        return 0.0
    return (success - fail) / (success + fail) * (1.0 - forgotten(success + fail, settings))


def retract(usage: Usage, outcome: bool, weight: float, settings: Settings | None = None) -> Usage:
    """An outcome taken back, because a weightier one takes its place: the reverse of `resolve`. Times stay, the use stays."""
    uses, success, fail = counts(usage)
    success, fail = (max(success - weight, 0), fail) if outcome else (success, max(fail - weight, 0))
    rate = (settings or _DEFAULT).memrl_alpha * weight
    q = usage.q
    if q is not None and rate < 1.0:
        q = min(max((q - rate * (1.0 if outcome else -1.0)) / (1.0 - rate), -1.0), 1.0)
    return replace(usage, use_count=uses, success_count=_whole(success), fail_count=_whole(fail), q=q)


def forgotten(judged: float, settings: Settings | None = None) -> float:
    """What is left in Q of its start after so many judged uses."""
    return float((1.0 - (settings or _DEFAULT).memrl_alpha) ** judged)


def aware(moment: datetime) -> datetime:
    """A naive time is taken as UTC."""
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _later(known: datetime | None, now: datetime) -> datetime:
    # A clock that jumped back, or events that arrive late, must not make a memory older.
    now = aware(now)
    return now if known is None else max(aware(known), now)


def _count(value: float) -> float:
    return 0 if math.isnan(value) else _whole(min(max(value, 0), _MOST))


def _whole(value: float) -> float:
    value = round(value, 9)  # 0.1 + 0.2 as a person would write it
    return int(value) if float(value).is_integer() else value


def _weight(weight: float) -> float:
    check_number("weight", weight, 0.0, 1.0)
    if weight == 0.0:
        raise InvalidInput("weight must be above 0 and at most 1, not 0")
    return weight
