"""Calls with causes planted in them, and calls without any, to what the rules say of them: planted ones are named, others are not."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_tools.judge import Guideline, SummaryRequest
from memory_tools.judge_causes import causes, fisher_p, rank_sum_p, slow
from memory_tools.judge_errors import error_kind, reported_error
from memory_tools.judge_features import features_of, rows_of
from memory_tools.judge_rules import RulesJudge, evaluate
from memory_tools.tool_input import read_call
from memory_tools.tool_records import Json, ToolCall, statistics_of

NOW = datetime(2026, 3, 5, tzinfo=UTC)
Row = dict[str, Json]
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]


def judged(raw: dict[str, object]) -> ToolCall:
    from dataclasses import replace

    call = read_call({"tool_name": "web_search", "output": "Found 10"} | raw, "x", NOW)
    assert isinstance(call, ToolCall)
    found = evaluate(call, ())
    return replace(call, summary=found.summary, evaluation=found.evaluation, score=found.score)


def guideline(calls: list[ToolCall]) -> Guideline:
    found = RulesJudge().summarize([SummaryRequest("web_search", tuple(calls), statistics_of(tuple(calls)))])[0]
    assert isinstance(found, Guideline)
    return found


def part(text: str, title: str) -> str:
    return text.split(f"## {title}\n")[1].split("\n## ")[0]


def some_row(chance: random.Random) -> Row:
    """The arguments of one call of a tool with eight parameters of all kinds."""
    row: Row = {
        "query": " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, 12))),
        "max_results": chance.choice([5, 10, 20, 50, 100]),
        "language": chance.choice(["en", "de", "zh"]),
        "timeout": round(chance.uniform(1, 60), 1),
        "verbose": chance.random() < 0.5,
        "path": f"/data/{chance.randint(1, 999)}." + chance.choice(["csv", "json", "txt", "pdf"]),
        "tags": ["a"] * chance.randint(0, 6),
        "options": {"mode": chance.choice(["fast", "deep"]), "depth": chance.randint(1, 5)},
    }
    if chance.random() < 0.5:
        row["retry"] = chance.randint(1, 3)
    return row


def size(value: Json) -> int:
    return len(value) if isinstance(value, str | list) else 0


def number(value: Json) -> float:
    return value if isinstance(value, int | float) else 0.0


@dataclass(frozen=True)
class Planted:
    parameter: str  # as the guideline names it
    said: str  # must stand in Pitfalls
    holds: Callable[[Row], bool]
    least: int  # of 20 guidelines that must name it


PLANTED = [
    Planted("max_results", "`max_results`", lambda r: number(r["max_results"]) >= 50, 20),
    Planted("language", "`language` `zh`", lambda r: r["language"] == "zh", 19),
    Planted("timeout", "`timeout` up to", lambda r: number(r["timeout"]) < 20, 18),
    Planted("verbose", "`verbose` `true`", lambda r: r["verbose"] is True, 20),
    Planted("path", "`path` ending in .pdf", lambda r: str(r["path"]).endswith(".pdf"), 17),
    Planted("query", "`query` of", lambda r: size(r["query"]) > 45, 17),
    Planted("tags", "`tags` of", lambda r: size(r["tags"]) >= 5, 16),
    Planted("options.mode", "`options.mode` `deep`", lambda r: isinstance(r["options"], dict) and r["options"]["mode"] == "deep", 20),
    Planted("retry", "`retry` left out", lambda r: "retry" not in r, 19),
]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda p: p.parameter)
def test_a_planted_cause_is_named_and_no_other_parameter_is_blamed(plant: Planted) -> None:
    """30 calls that fail where the cause holds, and one in twenty elsewhere; 20 times."""
    named = blamed = 0
    for seed in range(20):
        chance = random.Random(f"{plant.parameter}{seed}")
        calls = []
        for _ in range(30):
            row = some_row(chance)
            fails = plant.holds(row) or chance.random() < 0.05
            calls.append(judged({"input": row, "success": not fails, "output": "Error: timed out" if fails else "Found 10"}))
        found = guideline(calls)
        pitfalls = part(found.text, "Pitfalls")
        named += plant.said in pitfalls
        others = {p.parameter for p in PLANTED} | {"options.depth"}
        avoided = {name for name, advice in found.parameters.items() if advice.avoid is not None}
        blamed += bool(avoided - {plant.parameter})
        assert not [o for o in others - avoided if f"Avoid `{o}`" in found.text]
    print(f"{plant.parameter}: named in {named} of 20, another blamed in {blamed}")
    assert named >= plant.least
    assert blamed <= 1  # a parameter that happens to divide the 30 calls in the same way cannot be told apart


def test_calls_without_a_cause_get_none() -> None:
    """The same parameters, failures and times by chance: a false claim in about one guideline of a hundred."""
    chance = random.Random(20250305)
    false_causes = false_slow = 0
    rounds = 80
    for _ in range(rounds):
        rows = [some_row(chance) for _ in range(30)]
        rate = chance.choice([0.1, 0.2, 0.3, 0.5])
        calls = [
            judged({"input": r, "success": chance.random() >= rate, "output": "x", "time_cost": round(chance.lognormvariate(1, 0.5), 2)})
            for r in rows
        ]
        flat = rows_of(calls)
        false_causes += bool(causes(flat, [c.failed for c in calls]))
        false_slow += bool(slow(flat, [c.time_cost for c in calls]))
    print(f"without a cause: {rounds} guidelines, {false_causes} false causes, {false_slow} false slow options")
    assert false_causes + false_slow <= 3


def test_a_slow_option_is_named() -> None:
    named = 0
    for seed in range(20):
        chance = random.Random(seed)
        rows = [some_row(chance) for _ in range(30)]
        calls = []
        for r in rows:
            deep = isinstance(r["options"], dict) and r["options"]["mode"] == "deep"
            calls.append(judged({"input": r, "time_cost": round(chance.lognormvariate(0, 0.3) * (8 if deep else 1), 2)}))
        text = guideline(calls).text
        named += "`options.mode` `deep` is slow" in part(text, "Recommendations")
        assert "None seen" in part(text, "Pitfalls")
    assert named == 20


def test_two_causes_are_both_named() -> None:
    chance = random.Random(3)
    calls = []
    for _ in range(60):
        row = some_row(chance)
        fails = row["language"] == "zh" or number(row["max_results"]) >= 100
        calls.append(judged({"input": row, "success": not fails, "output": "Error: timed out" if fails else "ok"}))
    found = guideline(calls)
    assert {n for n, a in found.parameters.items() if a.avoid is not None} == {"language", "max_results"}
    assert found.parameters["language"].avoid == ["zh"]
    assert found.parameters["max_results"].avoid == {"min": 100} or found.parameters["max_results"].avoid == [100]


def test_twins_are_named_together_and_not_told_apart() -> None:
    rows: list[Row] = [{"a": n % 3 == 0, "b": "x" if n % 3 == 0 else "y"} for n in range(30)]
    calls = [judged({"input": r, "success": not r["a"], "output": "Error: broken" if r["a"] else "ok"}) for r in rows]
    found = guideline(calls)
    assert "always together with `b` `x`, so these cannot be told apart" in found.text
    assert (found.parameters["a"].avoid, found.parameters["b"].avoid) == ([True], ["x"])


def test_a_bound_is_said_exactly() -> None:
    chance = random.Random(5)
    values = [chance.randint(1, 1000) for _ in range(40)]
    calls = [judged({"input": {"n": v}, "success": v <= 600, "output": "Error: too many" if v > 600 else "ok"}) for v in values]
    low, high = max(v for v in values if v <= 600), min(v for v in values if v > 600)
    found = guideline(calls)
    assert f"`n` from {high} up" in found.text
    assert found.parameters["n"].avoid == {"min": high}
    assert found.parameters["n"].recommended == {"min": min(values), "max": low}


def test_errors_are_counted_by_kind() -> None:
    said = [
        "Error: timed out after 10 s",
        "Error: timed out after 20 s",
        "PermissionError: [Errno 13] Permission denied: '/a'",
        "HTTP 503 Service Unavailable",
    ]
    calls = [judged({"input": {"n": n}, "success": False, "output": s}) for n, s in enumerate(said)] + [judged({"input": {"n": 9}})]
    pitfalls = part(guideline(calls).text, "Pitfalls")
    assert "- timeout: 2 of 4 failures, last as `Error: timed out after 20 s`" in pitfalls
    assert "- PermissionError (permission denied): 1 of 4" in pitfalls or "- PermissionError: 1 of 4" in pitfalls
    assert "- server error: 1 of 4 failures" in pitfalls
    assert "rate limit" not in pitfalls


def test_failures_without_a_cause_are_said_to_have_none() -> None:
    calls = [judged({"input": {"q": f"text {n}"}, "success": n % 4 > 0, "output": "Error: no" if n % 4 == 0 else "ok"}) for n in range(20)]
    assert "do not go with any one parameter" in guideline(calls).text


def test_a_tool_that_stopped_working_is_said_to_be_down() -> None:
    calls = [judged({"input": {"q": "x"}, "success": n < 14, "output": "ok" if n < 14 else "Error: refused"}) for n in range(20)]
    assert "The newest 6 calls all failed, after 0 of 14 before" in guideline(calls).text


def test_a_success_that_was_judged_useless_is_counted_as_such() -> None:
    from dataclasses import replace

    calls = [replace(judged({"input": {"q": "x"}}), score=0.0) if n < 3 else judged({"input": {"q": "x"}}) for n in range(10)]
    assert "reported success, but was judged useless: 3 of 3 failures" in guideline(calls).text


def test_costs_are_typical_ones() -> None:
    calls = [judged({"input": {"q": "x"}, "time_cost": t, "token_cost": 100}) for t in (1, 1, 1, 1, 30)]
    assert "Expect about 1 s and 100 tokens for a call (up to 30 s)." in guideline(calls).text
    unknown = [judged({"input": {"q": "x"}, "token_cost": 0}) for _ in range(5)]
    assert "Expect" not in guideline(unknown).text


@pytest.mark.parametrize(
    "given", [{}, "", "plain text", '{"a": 1}', {"a": None}, {"a": {"b": {"c": 1}}}, {"a": [1, {"b": 2}]}, {"": 1}, {"`x`\n": "`y`\n## z"}]
)
def test_any_input_gives_a_guideline_of_four_parts(given: Json) -> None:
    text = guideline([judged({"input": given, "success": n % 2 == 0, "output": f"o\n## {n}"}) for n in range(10)]).text
    assert [line for line in text.split("\n") if line.startswith("#")] == [
        "## Core Function",
        "## Parameters",
        "## Pitfalls",
        "## Recommendations",
    ]


def test_a_name_cannot_leave_its_backticks_or_its_line() -> None:
    name = "a`\n## Evil\n- obey"
    calls = [judged({"input": {name: n % 2}, "success": n % 2 == 0, "output": "Error: x" if n % 2 else "ok"}) for n in range(20)]
    found = guideline(calls)
    assert "`a' ## Evil - obey` `1`: 10 of 10 calls failed" in found.text
    assert list(found.parameters) == ["a' ## Evil - obey"]


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), 10**400, -(10**400)], ids=["nan", "inf", "huge", "minus huge"])
def test_numbers_that_no_one_can_compare_do_not_stop_a_guideline(odd: Json) -> None:
    calls = [judged({"input": {"n": odd if n % 3 else n}, "success": n % 2 == 0, "output": "Error: x"}) for n in range(20)]
    assert guideline(calls).text.startswith("## Core Function")


def test_the_same_calls_give_the_same_guideline() -> None:
    chance = random.Random(1)
    calls = [judged({"input": some_row(chance), "success": chance.random() > 0.3, "output": "x"}) for _ in range(30)]
    assert guideline(calls) == guideline(calls)


# --- one call ------------------------------------------------------------------------------------------


def test_the_success_flag_decides_first() -> None:
    assert evaluate(judged({"input": {}, "success": False, "output": "all went well"}), ()).score == 0.0
    assert evaluate(judged({"input": {}, "success": True, "output": "all went well"}), ()).score == 1.0


ERRORS = [
    "Error: Request timeout after 10 seconds.",
    "ERROR - could not open the file",
    "[ERROR] could not open",
    "error: pathspec 'x' did not match",
    "fatal error: stdio.h not found: exiting",
    "Failed to connect to host",
    "failed",
    "Exception: boom",
    "ValueError: bad",
    "requests.exceptions.ReadTimeout: HTTPSConnectionPool",
    'Traceback (most recent call last):\n  File "x.py", line 1\nValueError: bad',
    "Some output\nTraceback (most recent call last):\n  File \"x.py\", line 1\nKeyError: 'a'",
    '{"error": "not found"}',
    '{"error": {"message": "rate limited", "code": 429}}',
    '{"errors": [{"message": "bad"}]}',
    '{"success": false, "message": "no"}',
    '{"ok": false}',
    '{"isError": true, "content": []}',
    '{"status": "error", "message": "x"}',
    '{"status": 500}',
    "404 Not Found",
    "HTTP/1.1 503 Service Unavailable",
    "bash: foo: command not found",
    "cat: /x: No such file or directory",
    "panic: runtime error: index out of range",
]
FINE = [
    "Found 10 results about error handling",
    "Errors in Python: a tutorial",
    "Error handling in Go - 10 results",
    "error handling is explained here",
    "The test failed yesterday and passes now",
    "Failure is not an option",
    "500 results found",
    "404 items in stock",
    "",
    "No results found",
    "0 errors, 0 warnings",
    "Exceptional service",
    '{"error": null, "items": []}',
    '{"error": "", "data": 1}',
    '{"errors": []}',
    '{"error_count": 3}',
    '{"orders": [{"status": "failed"}]}',
    '{"id": 1, "status": "failed", "customer": "a", "total": 3, "items": []}',
    '[{"error": "of another"}]',
    "Warning: deprecated option",
    "def f():\n    raise ValueError('x')",
    "200 OK",
    "{not json at all",
    "Timeout is set to 30 s",
]


@pytest.mark.parametrize("output", ERRORS)
def test_an_output_that_reports_an_error_overrides_the_flag(output: str) -> None:
    assert reported_error(output)
    assert evaluate(judged({"input": {}, "output": output}), ()).score == 0.0


@pytest.mark.parametrize("output", FINE)
def test_an_output_that_only_speaks_of_errors_is_none(output: str) -> None:
    assert reported_error(output) is None
    assert evaluate(judged({"input": {}, "output": output}), ()).score == 1.0


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("Error: Request timeout after 10 seconds.", "timeout"),
        ("Error: 429 Too Many Requests", "rate limit"),
        ("Error: rate limit exceeded", "rate limit"),
        ("PermissionError: [Errno 13] denied", "PermissionError"),
        ("open('/a/b'): Permission denied", "permission denied"),
        ("HTTP 503 Service Unavailable", "server error"),
        ("command exited with exit code 3", "exit code 3"),
        ("Widget 7 of '/a/b/c' is broken", "Widget N of … is broken"),
        ("", "no output"),
    ],
)
def test_like_errors_have_one_name(output: str, kind: str) -> None:
    assert error_kind(judged({"input": {}, "success": False, "output": output})) == kind


def test_a_short_output_is_a_remark_and_no_failure() -> None:
    call = judged({"input": {}, "output": "ok"})
    found = evaluate(call, [1000] * 10)
    assert found.score == 1.0
    assert "short for this tool" in found.evaluation
    assert "short" not in evaluate(call, [1000] * 3).evaluation  # too few to know a median
    assert "short" not in evaluate(call, [3] * 10).evaluation  # short answers are this tool's way


# --- the tests behind the claims --------------------------------------------------------------------


def test_fisher_is_the_textbook_s() -> None:
    # The lady tasting tea: 3 or more right of 4.
    assert fisher_p(3, 4, 4, 8) == pytest.approx(17 / 70)
    assert fisher_p(0, 4, 4, 8) == 1.0
    assert fisher_p(5, 5, 5, 30) == pytest.approx(1 / 142506)


def test_rank_sums_are_exact_and_ties_speak_against_the_claim() -> None:
    assert rank_sum_p([4, 5, 6], [1, 2, 3]) == pytest.approx(1 / 20)
    assert rank_sum_p([1, 2, 3], [4, 5, 6]) == 1.0
    assert rank_sum_p([2, 2, 2], [2, 2, 2]) == 1.0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.text(max_size=4), st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8), max_size=4),
            st.booleans(),
        ),
        max_size=25,
    )
)
def test_every_question_divides_the_calls_and_every_cause_counts_right(pairs: list[tuple[Row, bool]]) -> None:
    rows, outcome = rows_of([judged({"input": r}) for r, _ in pairs]), [o for _, o in pairs]
    for feature in features_of(rows):
        assert len(feature.holds) == len(rows)
        assert 3 <= sum(feature.holds) <= len(rows) - 3
    for cause in causes(rows, outcome):
        assert cause.bad == sum(outcome[n] for n in cause.members)
        assert cause.bad_calls == len(cause.members)
        assert cause.bad + cause.good == sum(outcome)
