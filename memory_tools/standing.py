"""Histories in, what they say out: the table of `scores`, and what another threshold would have done. Pure; it only proposes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from memory_tools.entries import Entry
from memory_tools.history import counts
from memory_tools.settings import Settings
from memory_tools.utility import stored_utility, success_rate_of

_LATEST = 5  # outcomes that a trend compares with the earlier ones
_LEAST = 3  # outcomes that either side of a trend needs
_TURN = 0.2  # difference of the success rates that is called a trend
_ENOUGH = 20  # outcomes below which no threshold is proposed
_STEPS = tuple(round(0.05 * n, 2) for n in range(21))


@dataclass(frozen=True, slots=True)
class Row:
    """One memory. `trend`: up, down or steady, the last outcomes against those before; None where there are too few."""

    address: str
    utility: float
    use_count: float
    success_count: float
    fail_count: float
    success_rate: float | None
    last_used: datetime | None
    recent: str  # the last outcomes, newest last: + success, - failure
    trend: str | None
    positive_feedback: bool
    pinned: bool
    muted: bool


def table(entries: Mapping[str, Entry], now: datetime, settings: Settings | None = None) -> tuple[Row, ...]:
    """Memories by the stored utility, the most useful first. `entries` by address."""
    rows = []
    for address, entry in entries.items():
        usage = entry.usage()
        uses, success, fail = counts(usage)
        utility = round(stored_utility(usage, now, settings), 4)
        rows.append(
            Row(
                address, utility, uses, success, fail, success_rate_of(usage), entry.last_used, entry.recent, trend(entry),
                entry.positive_feedback, entry.pinned, entry.muted,
            )
        )  # fmt: skip
    return tuple(sorted(rows, key=lambda r: (-r.utility, r.address)))


def trend(entry: Entry) -> str | None:
    """Whether a memory helps more or less than it used to. Outcomes before `recent` was kept count as earlier ones."""
    latest = [c == "+" for c in entry.recent if c in "+-"][-_LATEST:]
    _, success, fail = counts(entry.usage())
    earlier, helped = success + fail - len(latest), success - sum(latest)
    if len(latest) < _LEAST or earlier < _LEAST or not 0 <= helped <= earlier:
        return None
    turn = sum(latest) / len(latest) - helped / earlier
    return "up" if turn > _TURN else "down" if turn < -_TURN else "steady"


@dataclass(frozen=True, slots=True)
class Threshold:
    """What a threshold would have done: outcomes of memories that it had kept and dropped, and how many memories it drops now."""

    threshold: float
    kept_success: float
    kept_failure: float
    dropped_success: float
    dropped_failure: float
    memories_dropped: int


@dataclass(frozen=True, slots=True)
class Tuning:
    """`proposal` None: too few outcomes, or none does clearly better than the one in use; `note` says which."""

    current: float
    outcomes: float
    memories: int
    rows: tuple[Threshold, ...]
    proposal: float | None
    note: str


def tune(entries: Iterable[Entry], now: datetime, settings: Settings | None = None) -> Tuning:
    """What other thresholds would have kept and dropped of the outcomes so far.

    Each outcome is judged by the other outcomes of its memory, never by itself: a memory that helped 3 times of 4 had 2 of 3 before each
    success. A memory with fewer than `min_judged` others is kept, as the policy `balanced` keeps it. The utility is the stored one, which
    knows no query and takes the recency of today.
    """
    settings = settings or Settings()
    known = [e for e in entries if e.judged > 0]
    rows = tuple(_at(threshold, known, now, settings) for threshold in sorted({*_STEPS, settings.utility_threshold}))
    outcomes = sum(e.judged for e in known)
    now_used = next(r for r in rows if r.threshold == settings.utility_threshold)
    if outcomes < _ENOUGH:
        return Tuning(
            settings.utility_threshold, outcomes, len(known), rows, None, f"{outcomes:g} outcomes, {_ENOUGH} are needed to say more"
        )
    best = min(rows, key=lambda r: (-_gain(r), abs(r.threshold - settings.utility_threshold), r.threshold))
    # A gain of one or two outcomes is chance.
    if _gain(best) - _gain(now_used) < max(3.0, 0.02 * outcomes):
        return Tuning(settings.utility_threshold, outcomes, len(known), rows, None, "no threshold does clearly better than the one in use")
    note = (
        f"{best.threshold:g} would have dropped {best.dropped_failure:g} failures and {best.dropped_success:g} successes, "
        f"{settings.utility_threshold:g} drops {now_used.dropped_failure:g} and {now_used.dropped_success:g}"
    )
    return Tuning(settings.utility_threshold, outcomes, len(known), rows, best.threshold, note)


def _gain(row: Threshold) -> float:
    return row.dropped_failure - row.dropped_success


def _at(threshold: float, entries: Iterable[Entry], now: datetime, settings: Settings) -> Threshold:
    kept = {True: 0.0, False: 0.0}
    dropped = {True: 0.0, False: 0.0}
    memories = 0
    for entry in entries:
        usage = entry.usage()
        uses, success, fail = counts(usage)
        for outcome, count in ((True, success), (False, fail)):
            one = min(1.0, count)
            without = replace(usage, use_count=uses, success_count=success - one * outcome, fail_count=fail - one * (not outcome))
            drops = success + fail - one >= settings.min_judged and stored_utility(without, now, settings) < threshold
            (dropped if drops else kept)[outcome] += count
        memories += success + fail >= settings.min_judged and stored_utility(usage, now, settings) < threshold
    kept_success, kept_failure, dropped_success, dropped_failure = (round(d[o], 6) for d in (kept, dropped) for o in (True, False))
    return Threshold(threshold, kept_success, kept_failure, dropped_success, dropped_failure, memories)
