"""Utility: the documented formula, orders that learn from outcomes, and histories that add up."""

from __future__ import annotations

import gzip
import importlib.util
import json
import math
import random
import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from memory_tools.errors import InvalidInput
from memory_tools.utility import (
    POLICIES,
    Ranked,
    Settings,
    Usage,
    Weights,
    calculate_utility,
    counts,
    expected_success,
    rank,
    recency_of,
    record,
    resolve,
    stored_utility,
    success_rate_of,
)

NOW = datetime(2026, 3, 5, 11, 0, tzinfo=UTC)
quick = budget(max_examples=40, deadline=None)

unit = st.floats(0, 1, allow_nan=False)
moments = st.none() | st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))
outcomes = st.sampled_from([True, False, None])


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    uses = draw(st.integers(0, 30))
    success = draw(st.integers(0, uses))
    return Usage(
        use_count=uses,
        success_count=success,
        fail_count=draw(st.none() | st.integers(0, uses - success)),
        last_used=draw(moments),
        edited=draw(moments),
        positive_feedback=draw(st.booleans()),
        pinned=draw(st.integers(0, 9)) == 0,
        muted=draw(st.integers(0, 9)) == 0,
        prior=draw(st.none() | unit),
        q=draw(st.none() | st.floats(-1, 1)),
    )


@st.composite
def pools(draw: st.DrawFn, most: int = 30) -> list[tuple[str, float, Usage]]:
    levels = st.sampled_from([0.0, 0.5, 0.5, 0.8, 1.0]) | unit  # ties are common in real results
    found = draw(st.lists(st.tuples(levels, usages()), max_size=most))
    return [(f"MEMORY.md#{i}", relevance, usage) for i, (relevance, usage) in enumerate(found)]


def days(count: float) -> datetime:
    return NOW - timedelta(days=count)


def order(ranked: list[Ranked]) -> list[str]:
    return [r.address for r in ranked if r.kept]


# --- the formula ----------------------------------------------------------------


@pytest.mark.parametrize("recency", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("success_rate", [0.0, 0.8, 1.0])
@pytest.mark.parametrize("relevance", [0.0, 0.92, 1.0])
@pytest.mark.parametrize("thumb", [False, True])
def test_the_utility_is_the_documented_formula(recency: float, success_rate: float, relevance: float, thumb: bool) -> None:
    expected = min((recency * 0.3) + (success_rate * 0.4) + (relevance * 0.3) + (0.1 if thumb else 0.0), 1.0)
    assert calculate_utility(recency, success_rate, relevance, thumb) == pytest.approx(expected, abs=1e-12)


def test_without_judged_uses_the_utility_is_recency_and_relevance_alone() -> None:
    assert calculate_utility(0.5, None, 0.9) == pytest.approx((0.3 * 0.5 + 0.3 * 0.9) / 0.6)
    assert calculate_utility(0.5, None, 0.9, positive_feedback=True) == pytest.approx(0.8)


def test_the_utility_is_capped_at_one() -> None:
    assert calculate_utility(1.0, 1.0, 1.0, positive_feedback=True) == 1.0
    assert calculate_utility(1.0, 1.0, 1.0, settings=Settings(weights=Weights(3, 4, 3))) == 1.0


def test_where_success_alone_counts_an_untried_memory_is_expected_to_do_as_the_prior_says() -> None:
    assert calculate_utility(1.0, None, 1.0, settings=Settings(weights=Weights(0, 1, 0), success_prior=0.3)) == 0.3


@quick
@given(unit, st.none() | unit, unit, st.booleans(), unit, unit, unit)
def test_the_utility_stays_in_range_and_rises_with_each_input(
    recency: float, success: float | None, relevance: float, thumb: bool, more_recent: float, more_success: float, more_relevant: float
) -> None:
    value = calculate_utility(recency, success, relevance, thumb)
    assert 0.0 <= value <= 1.0
    assert calculate_utility(max(recency, more_recent), success, relevance, thumb) >= value
    assert calculate_utility(recency, success, max(relevance, more_relevant), thumb) >= value
    assert calculate_utility(recency, success, relevance, True) >= value
    if success is not None:
        assert calculate_utility(recency, max(success, more_success), relevance, thumb) >= value


@given(st.floats(), st.none() | st.floats(), st.floats())
def test_inputs_beyond_their_range_or_not_numbers_never_leave_the_range(recency: float, success: float | None, relevance: float) -> None:
    assert 0.0 <= calculate_utility(recency, success, relevance) <= 1.0


def test_recency_halves_every_fortnight_since_the_last_use_and_since_the_edit_where_never_used() -> None:
    assert recency_of(Usage(last_used=days(14), edited=days(400)), NOW) == pytest.approx(0.5)
    assert recency_of(Usage(edited=days(28)), NOW) == pytest.approx(0.25)
    assert recency_of(Usage(last_used=days(30)), NOW, Settings(use_half_life_days=30)) == pytest.approx(0.5)


def test_a_clock_that_jumped_back_a_time_without_zone_and_no_time_at_all_have_a_recency() -> None:
    assert recency_of(Usage(last_used=NOW + timedelta(days=900)), NOW) == 1.0
    assert recency_of(Usage(last_used=days(14).replace(tzinfo=None)), NOW.replace(tzinfo=None)) == pytest.approx(0.5)
    assert recency_of(Usage(last_used=days(14).astimezone(timezone(timedelta(hours=8)))), NOW) == pytest.approx(0.5)
    assert recency_of(Usage(last_used=datetime(1, 1, 1, tzinfo=UTC)), NOW) == 0.0
    assert recency_of(Usage(), NOW) == 0.5


def test_the_success_rate_counts_judged_uses_only() -> None:
    assert success_rate_of(Usage(use_count=10, success_count=3, fail_count=1)) == 0.75
    assert success_rate_of(Usage(use_count=10, success_count=0, fail_count=0)) is None
    assert success_rate_of(Usage(use_count=5, success_count=4)) == 0.8  # a file without fail_count: every use was judged


def test_the_stored_utility_knows_no_query() -> None:
    usage = Usage(use_count=5, success_count=4, last_used=days(14))
    assert stored_utility(usage, NOW) == pytest.approx((0.3 * 0.5 + 0.4 * 0.8) / 0.7)
    assert stored_utility(replace(usage, positive_feedback=True), NOW) == pytest.approx((0.3 * 0.5 + 0.4 * 0.8) / 0.7 + 0.1)
    assert stored_utility(Usage(edited=days(14)), NOW) == pytest.approx(0.5)
    assert stored_utility(Usage(use_count=1, success_count=1, last_used=NOW, positive_feedback=True), NOW) == 1.0


# --- settings -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"utility_threshold": 1.2}, "utility_threshold must be between 0 and 1"),
        ({"feedback_bonus": -0.1}, "feedback_bonus"),
        ({"use_half_life_days": 0}, "use_half_life_days must be above 0"),
        ({"edit_half_life_days": math.inf}, "edit_half_life_days must be a finite number"),
        ({"success_prior": math.nan}, "success_prior must be a finite number"),
        ({"memrl_lambda": "half"}, "memrl_lambda"),
        ({"min_judged": True}, "min_judged"),
        ({"pool": 0}, "pool must be a whole number of at least 1"),
        ({"pool": 2.5}, "pool"),
        ({"weights": {"recency": 0, "success_rate": 0, "relevance": 0}}, "all zero"),
        ({"weights": {"recency": -1}}, "weights.recency must be at least 0"),
    ],
)
def test_a_setting_out_of_range_is_an_error_that_names_it(values: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        Settings(**values)  # type: ignore[arg-type]


def test_an_unknown_weight_or_policy_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(InvalidInput) as weight:
        Weights.of({"sucess_rate": 0.5})
    assert "success_rate" in weight.value.hint
    with pytest.raises(InvalidInput) as policy:
        rank([], NOW, policy="balance")
    assert "balanced" in policy.value.hint


# --- orders ---------------------------------------------------------------------


@quick
@given(pools(), st.sampled_from(POLICIES), st.integers(0, 10**6))
def test_the_order_is_total_and_does_not_depend_on_the_order_given(found: list[tuple[str, float, Usage]], policy: str, seed: int) -> None:
    ranked = rank(found, NOW, policy)
    shuffled = list(found)
    random.Random(seed).shuffle(shuffled)
    assert rank(shuffled, NOW, policy) == ranked
    assert sorted(r.address for r in ranked) == sorted(key for key, _, _ in found)


@quick
@given(pools(), st.sampled_from(POLICIES))
def test_scores_and_utilities_stay_in_range_scores_never_rise_and_the_kept_come_first(
    found: list[tuple[str, float, Usage]], policy: str
) -> None:
    ranked = rank(found, NOW, policy)
    assert all(0.0 <= r.score <= 1.0 and 0.0 <= r.utility <= 1.0 for r in ranked)
    assert [r.score for r in ranked] == sorted((r.score for r in ranked), reverse=True)
    assert [r.kept for r in ranked] == sorted((r.kept for r in ranked), reverse=True)
    for r in ranked:
        usage = next(u for key, _, u in found if key == r.address)
        assert r.utility == calculate_utility(r.recency, r.success_rate, r.relevance, usage.positive_feedback)


@quick
@given(pools(most=12), pools(most=12), st.sampled_from(POLICIES), st.integers(1, 12))
def test_the_first_results_are_the_same_however_many_more_are_asked_for(
    found: list[tuple[str, float, Usage]], more: list[tuple[str, float, Usage]], policy: str, pool: int
) -> None:
    settings = Settings(pool=pool)
    by_relevance = sorted(found + [(f"later-{key}", r, u) for key, r, u in more], key=lambda f: (-f[1], f[0]))
    heard = [(key, r, replace(u, pinned=False, muted=False)) for key, r, u in by_relevance]
    shorter, longer = heard[: max(pool, len(found))], heard
    few, many = order(rank(shorter, NOW, policy, settings)), order(rank(longer, NOW, policy, settings))
    assert many[: len(few)] == few


def test_beyond_the_pool_stage_1_keeps_its_order() -> None:
    proven = Usage(use_count=9, success_count=9, last_used=NOW, edited=NOW)
    found = [(f"{i:02}", 0.9 - i / 1000, Usage(edited=NOW)) for i in range(24)] + [("99", 0.87, proven)]
    assert order(rank(found, NOW))[20:] == ["20", "21", "22", "23", "99"]
    assert order(rank(found, NOW, settings=Settings(pool=25)))[0] == "99"


@pytest.mark.parametrize("policy", ["balanced", "seed", "memrl"])
def test_of_two_near_twins_the_one_that_helped_comes_first_and_it_turns_when_the_other_helps(policy: str) -> None:
    a, b = Usage(edited=days(1)), Usage(edited=days(1))

    def first() -> str:
        return rank([("a", 0.81, a), ("b", 0.80, b), ("c", 0.4, Usage(edited=days(1)))], NOW, policy)[0].address

    assert first() == "a"
    b = record(b, True, NOW)
    assert first() == "b"
    a, b = record(a, True, NOW), record(b, False, NOW)
    assert first() == "a"


def test_the_seed_policy_orders_by_the_utility_shown_and_drops_what_is_below_the_threshold() -> None:
    found = [
        ("stock-analysis", 0.8, Usage(use_count=10, success_count=9, last_used=NOW)),
        ("akshare", 0.9, Usage(use_count=4, success_count=3, last_used=days(1))),
        ("old notes", 0.7, Usage(use_count=2, success_count=1, last_used=days(60))),
    ]
    ranked = rank(found, NOW, "seed")
    assert [(r.address, r.kept) for r in ranked] == [("stock-analysis", True), ("akshare", True), ("old notes", False)]
    assert ranked[0].utility == ranked[0].score == pytest.approx(0.3 + 0.4 * 0.9 + 0.3 * 0.8)
    assert order(rank(found, NOW, "seed", Settings(utility_threshold=0.4))) == ["stock-analysis", "akshare", "old notes"]


def test_without_history_the_default_order_is_that_of_relevance() -> None:
    found = [(f"{i}", 0.9 - i / 50, Usage(edited=days(3 * i % 7))) for i in range(9)]
    assert order(rank(found, NOW)) == order(rank(found, NOW, "relevance")) == [key for key, _, _ in found]


def test_three_failures_drop_a_memory_and_two_do_not() -> None:
    def kept(usage: Usage, **values: float) -> bool:
        return rank([("a", 0.6, usage)], NOW, settings=Settings(**values))[0].kept  # type: ignore[arg-type]

    twice = Usage(use_count=2, success_count=0, last_used=days(30))
    thrice = Usage(use_count=3, success_count=0, last_used=days(30))
    unknown = Usage(use_count=9, success_count=0, fail_count=2, last_used=days(30))
    assert kept(twice)
    assert not kept(thrice)
    assert kept(unknown)
    assert kept(thrice, min_judged=4)
    assert kept(thrice, utility_threshold=0.1)
    assert rank([("a", 0.6, thrice)], NOW, "relevance")[0].kept
    assert rank([("a", 0.6, thrice)], NOW, "memrl")[0].kept


def test_a_proven_memory_that_nobody_needed_for_months_is_not_dropped() -> None:
    proven = Usage(use_count=5, success_count=4, last_used=days(240))
    (ranked,) = rank([("a", 0.55, proven)], NOW)
    assert ranked.utility < 0.5
    assert ranked.kept
    assert not rank([("a", 0.55, proven)], NOW, settings=Settings(utility_threshold=0.9))[0].kept


def test_changing_a_weight_changes_the_order() -> None:
    relevant = ("relevant", 0.9, Usage(use_count=6, success_count=2, last_used=days(40), edited=days(900)))
    proven = ("proven", 0.8, Usage(use_count=6, success_count=6, last_used=days(40), edited=days(900)))
    fresh = ("fresh", 0.8, Usage(use_count=6, success_count=3, last_used=NOW, edited=NOW))
    for policy in ("balanced", "seed"):
        firsts = [
            rank([relevant, proven, fresh], NOW, policy, Settings(weights=weights, utility_threshold=0.0))[0].address
            for weights in (Weights(0.05, 0.05, 0.9), Weights(0.05, 0.9, 0.05), Weights(0.9, 0.05, 0.05))
        ]
        assert firsts == ["relevant", "proven", "fresh"]


@pytest.mark.parametrize("policy", POLICIES)
def test_pinned_comes_first_and_is_never_dropped_and_muted_is_never_kept(policy: str) -> None:
    failing = Usage(use_count=9, success_count=0, last_used=days(99))
    found = [(f"{i:02}", 0.9, Usage(edited=NOW)) for i in range(22)]
    found += [("pinned", 0.51, replace(failing, pinned=True)), ("muted", 1.0, replace(failing, muted=True, pinned=True))]
    ranked = rank(found, NOW, policy)
    assert ranked[0].address == "pinned"
    assert ranked[0].kept
    assert ranked[0].score >= ranked[1].score
    assert ranked[-1].address == "muted"
    assert not ranked[-1].kept


def test_a_muted_memory_takes_no_place_in_the_pool() -> None:
    proven = Usage(use_count=9, success_count=9, last_used=NOW, edited=NOW)
    found = [("muted", 1.0, Usage(muted=True)), ("a", 0.80, Usage(edited=NOW)), ("b", 0.79, proven)]
    assert order(rank(found, NOW, settings=Settings(pool=2))) == ["b", "a"]


def test_memrl_is_the_published_formula() -> None:
    found = [("a", 0.9, Usage(q=-0.3)), ("b", 0.7, Usage(q=0.3)), ("c", 0.5, Usage())]
    # relevance: mean .7, deviation sqrt(.08 / 3) = .163299; z = 1.224745, 0, -1.224745. Q: mean 0, deviation sqrt(.18 / 3) = .244949
    expected = {"a": 1.224745 / 2 - 1.224745 / 2, "b": 1.224745 / 2, "c": -1.224745 / 2}
    ranked = rank(found, NOW, "memrl")
    assert order(ranked) == ["b", "a", "c"]
    for r in ranked:
        assert r.score == pytest.approx(1 / (1 + math.exp(-expected[r.address])), abs=1e-5)
    same = rank([("a", 0.5, Usage()), ("b", 0.5, Usage())], NOW, "memrl")
    assert [r.score for r in same] == [0.5, 0.5]


def test_q_follows_the_outcomes_and_starts_from_the_counts_where_a_file_has_no_q() -> None:
    usage = record(Usage(), True, NOW)
    assert usage.q == pytest.approx(0.3)
    assert record(usage, False, NOW).q == pytest.approx(0.3 + 0.3 * (-1 - 0.3))
    assert record(usage, None, NOW).q == usage.q
    replayed = Usage()
    for _ in range(5):
        replayed = record(replayed, True, NOW)
    assert replayed.q == pytest.approx(record(Usage(use_count=4, success_count=4), True, NOW).q)
    assert record(Usage(), True, NOW, settings=Settings(memrl_alpha=0.5)).q == pytest.approx(0.5)


@quick
@given(usages(), unit)
def test_a_success_never_lowers_what_is_expected_and_a_failure_never_raises_it(usage: Usage, prior: float) -> None:
    usage = replace(usage, prior=prior, q=None)
    before = expected_success(usage)
    assert 0.0 <= before <= 1.0
    assert expected_success(record(usage, True, NOW)) >= before - 1e-9
    assert expected_success(record(usage, False, NOW)) <= before + 1e-9


def test_a_memory_that_was_right_for_long_and_fails_now_is_left_for_an_untried_one() -> None:
    usage = Usage()
    for outcome in [True] * 12 + [False] * 4:
        usage = record(usage, outcome, NOW)
    steady = Usage(use_count=16, success_count=12, last_used=NOW)
    assert expected_success(usage) < expected_success(steady) - 0.1


# --- histories ------------------------------------------------------------------


def test_an_outcome_adds_up_also_where_the_file_had_no_fail_count() -> None:
    old = Usage(use_count=5, success_count=4, last_used=days(3))
    assert counts(record(old, True, NOW)) == (6, 5, 1)
    assert counts(record(old, False, NOW)) == (6, 4, 2)
    assert counts(record(old, None, NOW)) == (6, 4, 1)
    helped, failed = record(old, True, NOW), record(old, False, NOW)
    assert (helped.last_used, helped.last_success) == (NOW, NOW)
    assert (failed.last_used, failed.last_success) == (NOW, None)


def test_an_unknown_outcome_is_a_use_that_is_not_judged() -> None:
    usage = record(Usage(), None, NOW)
    assert counts(usage) == (1, 0, 0)
    assert success_rate_of(usage) is None


@quick
@given(usages(), st.booleans(), st.sampled_from([0.25, 0.5, 1.0]))
def test_a_use_resolved_later_is_the_same_as_one_recorded_with_its_outcome(usage: Usage, outcome: bool, weight: float) -> None:
    later = NOW + timedelta(minutes=5)
    assert resolve(record(usage, None, NOW, weight), outcome, later, weight) == record(usage, outcome, later, weight)


def test_resolving_where_no_use_was_open_counts_the_use_too() -> None:
    assert counts(resolve(Usage(use_count=2, success_count=2), False, NOW)) == (3, 2, 1)


@quick
@given(usages(), st.lists(st.tuples(outcomes, st.sampled_from([0.1, 0.3, 1.0]), st.integers(-400, 400)), max_size=8), st.randoms())
def test_counts_and_times_do_not_depend_on_the_order_in_which_outcomes_arrive(
    usage: Usage, events: list[tuple[bool | None, float, int]], dice: random.Random
) -> None:
    def after(sequence: list[tuple[bool | None, float, int]]) -> tuple[object, ...]:
        known = usage
        for outcome, weight, hours in sequence:
            known = record(known, outcome, NOW + timedelta(hours=hours), weight)
        return (*counts(known), known.last_used, known.last_success)

    shuffled = list(events)
    dice.shuffle(shuffled)
    assert after(shuffled) == after(events)
    assert math.isclose(sum(counts(usage)[1:]) + sum(w for o, w, _ in events if o is not None), sum(after(events)[1:3]), abs_tol=1e-6)  # type: ignore[arg-type]


def test_counts_are_whole_numbers_unless_a_weight_makes_them_fractional() -> None:
    usage = record(Usage(), True, NOW)
    assert repr(usage.use_count) == repr(usage.success_count) == "1"
    assert repr(usage.fail_count) == "0"
    for _ in range(3):
        usage = record(usage, False, NOW, weight=0.1)
    assert usage.fail_count == 0.3
    for _ in range(7):
        usage = record(usage, False, NOW, weight=0.1)
    assert repr(usage.fail_count) == "1"


@pytest.mark.parametrize("weight", [0, -1, 1.5, math.nan, math.inf, True, "1"])
def test_a_weight_outside_its_range_is_refused(weight: float) -> None:
    with pytest.raises(InvalidInput, match="weight"):
        record(Usage(), True, NOW, weight=weight)


@pytest.mark.parametrize(
    ("use_count", "success_count", "fail_count", "expected"),
    [
        (3, 5, None, (3, 3, 0)),  # more successes than uses, written by hand
        (3, 2, 9, (3, 2, 1)),
        (-4, 2, None, (0, 0, 0)),
        (math.nan, 1, 1, (0, 0, 0)),
        (math.inf, 1, 1, (10**15, 1, 1)),
        (10**30, 10**29, None, (10**15, 10**15, 0)),
    ],
)
def test_counts_that_cannot_be_true_are_read_as_the_nearest_that_can(
    use_count: float, success_count: float, fail_count: float | None, expected: tuple[float, float, float]
) -> None:
    usage = Usage(use_count, success_count, fail_count)
    assert counts(usage) == expected
    for policy in POLICIES:
        (ranked,) = rank([("a", 0.5, record(usage, True, NOW))], NOW, policy)
        assert 0.0 <= ranked.score <= 1.0


def test_an_outcome_that_arrives_late_does_not_make_a_memory_older() -> None:
    usage = record(record(Usage(), True, NOW), True, days(5))
    assert usage.last_used == usage.last_success == NOW
    assert record(Usage(last_used=NOW.replace(tzinfo=None)), None, days(1)).last_used == NOW


# --- the benchmark --------------------------------------------------------------


@pytest.fixture(scope="module")
def learning() -> ModuleType:
    path = Path(__file__).resolve().parent.parent / "benchmarks" / "learning.py"
    spec = importlib.util.spec_from_file_location("learning", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["learning"] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def test_where_a_third_of_the_memories_mislead_learning_beats_matching_alone(learning: ModuleType) -> None:
    stream = learning.generate(learning.Recipe(20, 6, 1.2), seed=3, steps=700, held_out=200)
    gains = {policy: learning.run(stream, "bad30", policy, seed=0)["gain"] for policy in (*POLICIES, "sum")}
    assert abs(gains["relevance"]) < 0.01  # equal relevance may fall the other way
    assert gains["balanced"] > 0.05
    assert gains["balanced"] > gains["seed"]


def test_streams_of_ones_own_are_read_as_they_were_made(learning: ModuleType, tmp_path: Path) -> None:
    made = learning.generate(learning.Recipe(6, 2, 1.0), seed=1, steps=20, held_out=5)
    document = {"steps": made.steps, "tasks_per_day": made.tasks_per_day, "worlds": {name: asdict(w) for name, w in made.worlds.items()}}
    (tmp_path / f"{made.name}.json.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
    assert learning.given(tmp_path) == [made]
