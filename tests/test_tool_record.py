"""Tool calls in as callers send them, what is stored and answered out, on real files."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_tools.errors import InvalidInput, TooLarge
from memory_tools.tool_input import read_call, read_time
from memory_tools.tool_memory import ToolMemoryStore
from memory_tools.tool_names import file_stem, split_names, workspace_folder
from memory_tools.tool_records import call_hash, from_line, to_line
from memory_tools.tool_settings import ToolSettings

NOW = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)
CALL = {"tool_name": "web_search", "input": {"query": "Python asyncio", "max_results": 10}, "output": "Found 10 relevant results"}


def at(n: int, **changed: object) -> dict[str, object]:
    return CALL | {"create_time": f"2025-10-15 {14 + n // 3600:02d}:{n // 60 % 60:02d}:{n % 60:02d}"} | changed


def test_the_hashes_are_those_that_clients_compute() -> None:
    assert call_hash({"query": "Python asyncio", "max_results": 10}, "Found 10 relevant results") == "ef8c12466bf90e88e692bd39fb92c7d4"
    assert call_hash({"max_results": 10, "query": "Python asyncio"}, "Found 10 relevant results") == "ef8c12466bf90e88e692bd39fb92c7d4"
    assert call_hash("1+1", "2") == "ee391fd210cbd11d26cf9ceedfc5849f"


def test_a_call_is_stored_with_every_field(tmp_path: Path) -> None:
    report = ToolMemoryStore(tmp_path).record([at(0, success=True, time_cost=2.3, token_cost=150)])
    stored = json.loads((tmp_path / "memory/tools/web_search.calls.jsonl").read_text(encoding="utf-8"))
    assert stored == {
        "create_time": "2025-10-15 14:00:00",
        "tool_name": "web_search",
        "input": {"query": "Python asyncio", "max_results": 10},
        "output": "Found 10 relevant results",
        "summary": "Found 10 relevant results",
        "evaluation": "Succeeded after 2.3 s.",
        "score": 1.0,
        "success": True,
        "time_cost": 2.3,
        "token_cost": 150,
        "is_summarized": False,
        "call_hash": "ef8c12466bf90e88e692bd39fb92c7d4",
        "metadata": {},
    }
    assert report.memories[0].document()["tool_call_results"] == [stored]
    assert report.answer == "Successfully recorded 1 tool calls: 1 added, 0 duplicate, 0 refused, 0 pending"


def test_what_is_left_out_is_filled_in(tmp_path: Path) -> None:
    call = ToolMemoryStore(tmp_path).record([CALL]).memories[0].calls[0]
    assert (call.success, call.time_cost) == (True, 0.0)
    assert call.token_cost == (len(str(CALL["input"])) + len(str(CALL["output"]))) // 4
    assert datetime.strptime(call.create_time, "%Y-%m-%d %H:%M:%S")


@pytest.mark.parametrize(("name", "reason"), [("", "blank"), ("  \t", "blank"), ("a,b", "comma"), (",", "comma")])
def test_only_names_that_cannot_be_asked_for_are_refused(tmp_path: Path, name: str, reason: str) -> None:
    report = ToolMemoryStore(tmp_path).record([at(0), at(1, tool_name=name), at(2)])
    assert report.answer == "Successfully recorded 3 tool calls: 2 added, 0 duplicate, 1 refused, 0 pending"
    assert [r.index for r in report.refused] == [1]
    assert reason in report.refused[0].reason


def test_a_request_of_refused_calls_alone_is_no_success(tmp_path: Path) -> None:
    report = ToolMemoryStore(tmp_path).record([at(0, tool_name=" ")])
    assert (report.success, report.answer) == (False, "Recorded 0 tool calls: 0 added, 0 duplicate, 1 refused, 0 pending")
    assert not (tmp_path / "memory").exists()
    assert ToolMemoryStore(tmp_path).record([]).success is False


def test_tools_without_arguments_and_silent_successes_are_normal(tmp_path: Path) -> None:
    report = ToolMemoryStore(tmp_path).record([at(0, input={}, output=""), at(1, input="", output="")])
    assert (report.added, [c.score for c in report.memories[0].calls]) == (2, [1.0, 1.0])


def test_outer_spaces_of_a_name_are_trimmed(tmp_path: Path) -> None:
    report = ToolMemoryStore(tmp_path).record([at(0, tool_name=" web_search\n")])
    assert report.memories[0].when_to_use == "web_search"


@pytest.mark.parametrize(
    "wrong",
    [
        {"tool_name": None},
        {"tool_name": 3},
        {"input": None},
        {"input": [1]},
        {"input": 3},
        {"output": None},
        {"output": {"a": 1}},
        {"success": "yes"},
        {"success": 1},
        {"time_cost": "fast"},
        {"time_cost": -1},
        {"time_cost": float("nan")},
        {"time_cost": True},
        {"token_cost": 1.5},
        {"token_cost": "1"},
        {"token_cost": 1e300},
        {"create_time": 5},
        {"score": 2},
        {"score": "good"},
        {"score": True},
        {"summary": 1},
        {"metadata": [1]},
    ],
    ids=str,
)
def test_a_wrong_type_refuses_the_request_before_anything_is_stored(tmp_path: Path, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        ToolMemoryStore(tmp_path).record([at(0), CALL | wrong])
    assert not (tmp_path / "memory").exists()


@pytest.mark.parametrize("missing", ["tool_name", "input", "output"])
def test_a_missing_field_is_named(tmp_path: Path, missing: str) -> None:
    with pytest.raises(InvalidInput, match=rf"tool_call_results\[0\].{missing}: is required"):
        ToolMemoryStore(tmp_path).record([{k: v for k, v in CALL.items() if k != missing}])


def test_null_means_not_given(tmp_path: Path) -> None:
    given = dict.fromkeys(("create_time", "success", "time_cost", "token_cost", "summary", "evaluation", "score", "metadata"))
    assert ToolMemoryStore(tmp_path).record([CALL | given]).memories[0].calls[0].score == 1.0


def test_duplicates_in_the_batch_and_against_the_stored_are_counted(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    assert tools.record([at(0), at(1), at(0)]).answer == "Successfully recorded 3 tool calls: 2 added, 1 duplicate, 0 refused, 0 pending"
    report = tools.record([at(0), at(1), at(2)])
    assert report.answer == "Successfully recorded 3 tool calls: 1 added, 2 duplicate, 0 refused, 0 pending"
    assert len(report.memories[0].calls) == 3


def test_the_same_call_at_another_time_or_of_another_tool_is_no_duplicate(tmp_path: Path) -> None:
    assert ToolMemoryStore(tmp_path).record([at(0), at(1), at(0, tool_name="other"), at(0, output="x")]).added == 4


def test_a_duplicate_is_found_although_its_secret_is_masked(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    call = at(0, output="password=hunter2")
    assert (tools.record([call]).added, tools.record([call]).duplicates) == (1, 1)


def test_the_stored_hash_is_of_what_is_stored_and_helps_no_one_to_guess(tmp_path: Path) -> None:
    call = ToolMemoryStore(tmp_path).record([at(0, output="password=hunter2")]).memories[0].calls[0]
    assert call.call_hash == call_hash(call.input, call.output) != call_hash(call.input, "password=hunter2")


def test_first_in_first_out_at_the_limit(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path, ToolSettings(max_history=5))
    tools.record([at(n, output=f"o{n}") for n in range(4)])
    memory = tools.record([at(n, output=f"o{n}") for n in range(4, 8)]).memories[0]
    assert [c.output for c in memory.calls] == ["o3", "o4", "o5", "o6", "o7"]
    assert len((tmp_path / "memory/tools/web_search.calls.jsonl").read_text(encoding="utf-8").split("\n")) == 6
    assert [c.output for c in tools.record([at(n, output=f"o{n}") for n in range(8, 20)]).memories[0].calls] == [
        f"o{n}" for n in range(15, 20)
    ]


def test_arrival_and_not_the_call_s_time_decides_who_goes_first(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path, ToolSettings(max_history=2))
    memory = tools.record([at(9, output="a"), at(5, output="b"), at(1, output="c")]).memories[0]
    assert [c.output for c in memory.calls] == ["b", "c"]


def test_several_tools_in_one_request(tmp_path: Path) -> None:
    report = ToolMemoryStore(tmp_path).record([at(0, tool_name="b"), at(1, tool_name="a"), at(2, tool_name="b")])
    assert [(m.when_to_use, len(m.calls)) for m in report.memories] == [("b", 2), ("a", 1)]


def test_the_caller_s_own_judgement_is_kept(tmp_path: Path) -> None:
    report = ToolMemoryStore(tmp_path).record(
        [at(0, summary="S", evaluation="E", score=0.0), at(1, score=0.9), at(2, summary="only words")]
    )
    assert [(c.summary, c.evaluation, c.score) for c in report.memories[0].calls] == [
        ("S", "E", 0.0),
        ("Found 10 relevant results", "Succeeded.", 1.0),
        ("only words", "Succeeded.", 1.0),
    ]


def test_an_empty_record_s_score_of_zero_is_no_judgement(tmp_path: Path) -> None:
    # A client that dumps its own record sends every field, also those that nobody filled in.
    dumped = at(0, summary="", evaluation="", score=0.0, token_cost=-1, is_summarized=False, call_hash="", metadata={})
    call = ToolMemoryStore(tmp_path).record([dumped]).memories[0].calls[0]
    assert (call.score, call.token_cost > 0) == (1.0, True)
    assert ToolMemoryStore(tmp_path).record([at(1, score=0.0)]).memories[0].calls[1].score == 0.0


def test_the_agent_as_judge_leaves_calls_pending_until_it_scores_them(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path, ToolSettings(judge="agent"))
    report = tools.record([at(0), at(1, score=1.0)])
    assert (report.added, report.pending, report.memories[0].score) == (2, 1, 1.0)
    again = tools.record([at(0, score=0.0, summary="nothing useful")])
    assert (again.duplicates, again.pending) == (1, 0)
    assert [c.score for c in again.memories[0].calls] == [0.0, 1.0]


def test_another_judge_takes_over_what_waits(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record([at(0)], judge="agent")
    assert [c.score for c in tools.record([at(1)]).memories[0].calls] == [1.0, 1.0]


def test_times_are_stored_in_the_local_form() -> None:
    assert read_time("2025-10-15 14:30:00", NOW) == "2025-10-15 14:30:00"
    assert read_time("2025-10-15T14:30:00+02:00", NOW) == "2025-10-15 12:30:00"
    assert read_time("", NOW) == "2026-03-05 12:00:00"
    assert read_time("  last\nTuesday ", NOW) == "last Tuesday"


def test_a_very_long_output_is_stored_with_its_ends(tmp_path: Path) -> None:
    call = ToolMemoryStore(tmp_path).record([at(0, output="head " + "x" * 500_000 + " tail")]).memories[0].calls[0]
    assert call.output.startswith("head ")
    assert call.output.endswith(" tail")
    assert "characters left out" in call.output
    assert len(call.output) < 100_000
    assert ToolMemoryStore(tmp_path).record([at(0, output="head " + "x" * 500_000 + " tail")]).duplicates == 1


def test_lone_surrogates_and_what_json_has_no_number_for_are_stored_all_the_same(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record([at(0, tool_name="a\ud800b", input={"x\udfff": float("inf"), "n": float("nan")}, output="\ud800")])
    assert tools.retrieve("a\ufffdb").memories[0].calls[0].output == "\ufffd"


def nested(depth: int) -> object:
    value: object = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("given", [{"n": 10**5000}, {"a": nested(80)}, {"a": nested(5_000)}], ids=["digits", "deep", "deeper"])
def test_an_input_that_cannot_be_written_is_refused(tmp_path: Path, given: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        ToolMemoryStore(tmp_path).record([CALL | {"input": given}])


@settings(max_examples=150, deadline=None)
@given(
    name=st.text(min_size=1, max_size=30).filter(lambda s: bool(s.strip()) and "," not in s),
    given=st.dictionaries(st.text(max_size=5), st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10), max_size=4),
    output=st.text(max_size=50),
)
def test_a_stored_line_is_read_back_as_it_was(name: str, given: dict[str, object], output: str) -> None:
    read = read_call({"tool_name": name, "input": given, "output": output}, "x", NOW)
    assert not isinstance(read, str)
    call = replace(read, call_hash=call_hash(read.input, read.output))
    line = to_line(call)
    assert "\n" not in line
    assert repr(from_line(line)) == repr(call)  # as text, since not-a-number is not equal to itself


@pytest.mark.parametrize(
    "line", ["", "{", "[]", "3", "null", '{"input": 1}', '{"tool_name": "a"}', "<<<<<<< HEAD", "[" * 100_000, '{"a":' * 50_000]
)
def test_a_line_that_holds_no_call_is_none(line: str) -> None:
    assert from_line(line) is None


# --- names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "/etc/passwd", "..", ".", "网络搜索", "a" * 300, "网" * 300, "CON", "con", "com1.txt", "nul", "a\0b", "a\nb",
     "a/b\\c",     "a.", "a ", "-rf", "~", ".hidden", "x.calls.jsonl", "e\u0301", "\u00e9", "🦊", "a:b", "a*b?", "%2e%2e", "LPT1", "..\\x"],
)  # fmt: skip
def test_any_name_becomes_one_safe_file_of_its_own(tmp_path: Path, name: str) -> None:
    stem = file_stem(name)
    assert len(f".{stem}.calls.jsonl.lock".encode()) < 200
    assert stem == stem.lower()
    assert not set(stem) & set('/\\:*?"<>|\0\n')
    assert not stem.startswith((".", "-"))
    report = ToolMemoryStore(tmp_path).record([at(0, tool_name=name)])
    assert report.memories[0].when_to_use == name.strip()
    assert {p.parent for p in tmp_path.rglob("*") if p.is_file()} == {tmp_path / "memory" / "tools"}
    assert [m.when_to_use for m in ToolMemoryStore(tmp_path).retrieve([name])] == [name.strip()]


def test_names_that_differ_only_in_case_or_form_are_distinct() -> None:
    names = ["search", "Search", "SEARCH", "e\u0301", "\u00e9", "a-b", "a b", "a/b", "a\\b", "search~", "a.b", "a..b"]
    assert len({file_stem(n).lower() for n in names}) == len(names)


def test_plain_names_stay_readable() -> None:
    assert file_stem("web_search") == "web_search"
    assert file_stem("mcp__github__create-issue") == "mcp__github__create-issue"
    assert file_stem("网络搜索").startswith("网络搜索~")


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=80), min_size=2, max_size=2, unique=True))
def test_two_names_never_share_a_file(names: list[str]) -> None:
    assert file_stem(names[0]).casefold() != file_stem(names[1]).casefold()


def test_names_are_split_trimmed_and_asked_once() -> None:
    assert split_names(" a, b,,a ,c,") == ("a", "b", "c")
    assert split_names(None) == split_names(" , ,") == ()


@pytest.mark.parametrize(
    "bad", ["", "..", "../x", "a/b", "memory", "Memory", "skills", "con", "NUL.txt", "-a", ".a", "a" * 65, "a b", "ä", "a\n", "a\0"]
)
def test_an_id_that_could_leave_its_folder_is_refused(tmp_path: Path, bad: str) -> None:
    with pytest.raises(InvalidInput, match="workspace_id"):
        ToolMemoryStore(tmp_path).of_workspace(bad)


def test_requests_are_bounded(tmp_path: Path) -> None:
    with pytest.raises(TooLarge):
        ToolMemoryStore(tmp_path).retrieve(",".join(f"t{n}" for n in range(1_001)))
    with pytest.raises(TooLarge):
        ToolMemoryStore(tmp_path).record([CALL] * 10_001)
    assert list(tmp_path.iterdir()) == []


def test_workspaces_are_apart(tmp_path: Path) -> None:
    assert workspace_folder(tmp_path, None)[0] == workspace_folder(tmp_path, "default")[0] == tmp_path
    tools = ToolMemoryStore(tmp_path)
    tools.of_workspace("demo_workspace").record([at(0)])
    assert (tmp_path / "workspaces/demo_workspace/memory/tools/web_search.md").is_file()
    assert tools.retrieve("web_search").missing == ("web_search",)
    assert tools.of_workspace("demo_workspace").retrieve("web_search").memories[0].workspace_id == "demo_workspace"
