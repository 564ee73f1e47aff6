"""Histories in, what they say out: the order of the table, trends, and thresholds that are proposed only where outcomes speak."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shelf import NOW

from memory_tools import standing
from memory_tools.entries import Entry
from memory_tools.settings import Settings

GOOD = Entry(use_count=10, success_count=9, fail_count=1, last_used=NOW - timedelta(days=1))
BAD = Entry(use_count=10, success_count=1, fail_count=9, last_used=NOW - timedelta(days=20))


def test_the_table_lists_the_most_useful_first() -> None:
    rows = standing.table({"b.md#x": BAD, "a.md#tie": GOOD, "a.md#good": GOOD, "c.md#new": Entry()}, NOW)
    assert [r.address for r in rows] == ["a.md#good", "a.md#tie", "c.md#new", "b.md#x"]
    assert (rows[0].use_count, rows[0].success_count, rows[0].fail_count, rows[0].success_rate) == (10, 9, 1, 0.9)
    assert rows[2].success_rate is None


@pytest.mark.parametrize(
    ("success", "fail", "recent", "trend"),
    [
        (9, 3, "+++++++--+", "down"),
        (6, 9, "----+++++", "up"),
        (5, 5, "+-+-+-", "steady"),
        (2, 0, "++", None),
        (5, 0, "+++++", None),
        (8, 0, "", None),
        (0, 0, "+++++", None),
    ],
)
def test_a_trend_compares_the_last_outcomes_with_those_before(success: int, fail: int, recent: str, trend: str | None) -> None:
    assert standing.trend(Entry(use_count=success + fail, success_count=success, fail_count=fail, recent=recent)) == trend


def test_few_outcomes_propose_nothing() -> None:
    tuning = standing.tune([replace(BAD, use_count=4, success_count=0, fail_count=4)], NOW)
    assert tuning.proposal is None
    assert "20 are needed" in tuning.note


def test_a_threshold_that_drops_what_failed_and_keeps_what_helped_is_proposed() -> None:
    bad = replace(BAD, last_used=NOW)  # recency holds it above a threshold of 0.4
    tuning = standing.tune([GOOD] * 4 + [bad] * 4, NOW, Settings(utility_threshold=0.3))
    assert tuning.proposal is not None
    chosen = next(r for r in tuning.rows if r.threshold == tuning.proposal)
    assert (chosen.dropped_failure, chosen.dropped_success, chosen.kept_success, chosen.memories_dropped) == (36, 4, 36, 4)
    assert tuning.proposal > 0.3


def test_what_a_threshold_in_use_does_as_well_is_not_replaced() -> None:
    tuning = standing.tune([GOOD] * 4 + [replace(BAD, last_used=NOW)] * 4, NOW, Settings(utility_threshold=0.55))
    assert (tuning.proposal, tuning.note) == (None, "no threshold does clearly better than the one in use")


def test_an_outcome_is_not_judged_by_itself() -> None:
    once = Entry(use_count=4, success_count=0, fail_count=4, last_used=NOW - timedelta(days=60))
    kept = Entry(use_count=3, success_count=0, fail_count=3, last_used=NOW - timedelta(days=60))
    row = next(r for r in standing.tune([once, kept], NOW).rows if r.threshold == 0.5)
    assert (row.dropped_failure, row.kept_failure) == (4, 3), "with three outcomes each had two before it, and two drop nothing"


counts = st.integers(0, 12)


@given(st.lists(st.tuples(counts, counts, st.integers(0, 400)), max_size=8))
def test_every_outcome_is_kept_or_dropped_and_a_higher_threshold_drops_more(histories: list[tuple[int, int, int]]) -> None:
    entries = [Entry(use_count=s + f, success_count=s, fail_count=f, last_used=NOW - timedelta(days=days)) for s, f, days in histories]
    tuning = standing.tune(entries, NOW)
    total = sum(s + f for s, f, _ in histories)
    dropped = [r.dropped_success + r.dropped_failure for r in tuning.rows]
    assert all(r.kept_success + r.kept_failure + d == total for r, d in zip(tuning.rows, dropped, strict=True))
    assert dropped == sorted(dropped)
    assert [r.threshold for r in tuning.rows] == sorted({r.threshold for r in tuning.rows})
