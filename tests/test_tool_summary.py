"""Recorded calls in; guidelines, marks, figures and what a person keeps in the page out, on real files."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from memory_tools import tool_agent
from memory_tools.errors import InvalidInput
from memory_tools.judge import Evaluation, Failure, Guideline, SummaryRequest
from memory_tools.judge_prompts import agent_prompt
from memory_tools.plain_yaml import parse
from memory_tools.tool_answers import read_answers
from memory_tools.tool_memory import ToolMemoryStore
from memory_tools.tool_records import ToolCall
from memory_tools.tool_settings import ToolSettings
from memory_tools.tool_usage import ToolUsage

CALL = {"tool_name": "web_search", "input": {"query": "x", "max_results": 10}, "output": "Found 10", "time_cost": 1.5, "token_cost": 100}


def calls(n: int, start: int = 0, **changed: object) -> list[dict[str, object]]:
    return [
        CALL | {"output": f"Found {i}", "create_time": f"2025-10-15 14:{i // 60:02d}:{i % 60:02d}"} | changed
        for i in range(start, start + n)
    ]


def page(workspace: Path, name: str = "web_search") -> Path:
    return workspace / "memory" / "tools" / f"{name}.md"


def front(workspace: Path, name: str = "web_search") -> dict[str, object]:
    found = parse(page(workspace, name).read_text(encoding="utf-8").split("---\n")[1])
    assert isinstance(found, dict)
    return found


def test_the_three_runs_of_the_documentation(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(30))
    first = tools.summarize("web_search")
    assert first.answer == "Successfully processed 1 tool memories: 1 summarized, 0 skipped (already up-to-date)"
    assert all(c.is_summarized for c in first.memories[0].calls)
    second = tools.summarize("web_search")
    assert second.answer == "Successfully processed 1 tool memories: 0 summarized, 1 skipped (already up-to-date)"
    assert second.memories[0].time_modified == first.memories[0].time_modified
    tools.record(calls(1, 30))
    third = tools.summarize("web_search")
    assert third.summarized == ("web_search",)
    assert [c.is_summarized for c in third.memories[0].calls] == [True] * 31
    assert "of the newest 30 calls" in third.memories[0].content


def test_only_the_window_is_looked_at_and_marked(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path, ToolSettings(recent=3))
    tools.record(calls(5))
    memory = tools.summarize("web_search").memories[0]
    assert [c.is_summarized for c in memory.calls] == [False, False, True, True, True]
    assert "of the newest 3 calls" in memory.content
    assert tools.summarize("web_search").skipped == ("web_search",)


def test_a_guideline_has_its_parts_and_its_figures(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record([*calls(8), *calls(2, 8, success=False, output="Error: no such page", time_cost=0)])
    memory = tools.summarize("web_search").memories[0]
    headings = [line for line in memory.content.split("\n") if line.startswith("## ")]
    assert headings == ["## Core Function", "## Parameters", "## Pitfalls", "## Recommendations", "## Statistics"]
    assert "- Success rate: 80.0% of 10 calls" in memory.content
    assert "- Average time: 1.50 s" in memory.content  # over the calls that have one
    assert memory.score == 0.8


def test_the_front_matter_says_what_a_program_needs(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    bad = calls(10, 20, input={"query": "x", "max_results": 100}, success=False, output="Error: timeout")
    memory = tools.record([*calls(20), *bad]).memories[0]
    assert front(tmp_path)["statistics"] == {
        "total_calls": 30,
        "success_rate": 0.6667,
        "average_score": 0.6667,
        "average_time_cost": 1.5,
        "average_token_cost": 100.0,
        "pending_calls": 0,
    }
    tools.summarize("web_search")
    found = front(tmp_path)
    assert found["parameters"] == {"max_results": {"recommended": [10], "avoid": [100]}, "query": {"recommended": ["x"], "avoid": None}}
    assert {k: found[k] for k in ("memory_id", "memory_type", "when_to_use", "score", "author")} == {
        "memory_id": memory.memory_id,
        "memory_type": "tool",
        "when_to_use": "web_search",
        "score": 0.6667,
        "author": "rules",
    }


def test_names_are_required_and_unknown_ones_are_told(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(1))
    for none in (None, "", []):
        assert (tools.summarize(none).answer, tools.retrieve(none).answer) == ("tool_names is required",) * 2
    for nothing in (",", " , ", "nope"):
        report = tools.summarize(nothing)
        assert (report.answer, report.success) == ("No matching tool memories found", False)
        assert (tools.retrieve(nothing).answer, tools.retrieve(nothing).success) == ("No matching tool memories found", False)
    assert tools.summarize("nope,web_search").missing == ("nope",)


def test_memories_come_once_in_the_order_asked(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record([c for name in ("a", "b", "c") for c in calls(1, tool_name=name)])
    report = tools.retrieve(" c,a,,nope, c ,Web_search")
    assert [m.when_to_use for m in report] == ["c", "a"]
    assert report.missing == ("nope", "Web_search")
    assert report.answer == "Successfully retrieved 2 tool memories"


def test_nothing_is_made_by_asking(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path).of_workspace("nobody")
    assert not tools.retrieve("a").success
    assert not tools.summarize("a").success
    assert not tools.stats().tools
    assert not (tmp_path / "workspaces").exists()


# --- what a person writes -----------------------------------------------------------------------------


def test_a_person_s_text_around_the_guideline_is_kept(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(3))
    tools.summarize("web_search")
    path = page(tmp_path)
    text = path.read_text(encoding="utf-8")
    text = (
        text.replace("# web_search\n", "# web_search\n\nAsk Anna before big searches.\n") + "\n## Notes\n\n- the proxy is slow on Mondays\n"
    )
    path.write_text(text, encoding="utf-8")
    tools.record(calls(1, 10))
    memory = tools.summarize("web_search").memories[0]
    kept = path.read_text(encoding="utf-8")
    assert (
        kept.count("Ask Anna before big searches.") == kept.count("- the proxy is slow on Mondays") == kept.count("## Core Function") == 1
    )
    assert "of the newest 4 calls" in kept
    assert memory.content.startswith("Ask Anna")
    assert memory.content.endswith("- the proxy is slow on Mondays")
    assert "<!--" not in memory.content


def test_a_person_s_front_matter_and_its_comments_are_kept(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(3))
    path = page(tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("author:", "# who pays: team A\nowner: anna  # since May\nlinks:\n  - https://x\nauthor:"), encoding="utf-8"
    )
    tools.summarize("web_search")
    kept = path.read_text(encoding="utf-8")
    assert "# who pays: team A\nowner: anna  # since May\nlinks:\n  - https://x\n" in kept
    assert front(tmp_path)["owner"] == "anna"


def test_a_guideline_edited_by_hand_is_kept_below_the_new_one(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(3))
    tools.summarize("web_search")
    path = page(tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace("## Pitfalls\n", "## Pitfalls\n\n- never on Fridays\n"), encoding="utf-8")
    for n in (10, 11):
        tools.record(calls(1, n))
        tools.summarize("web_search")
        assert path.read_text(encoding="utf-8").count("never on Fridays") == 1
    assert path.read_text(encoding="utf-8").count("Edited by hand before") == 1


def test_a_page_that_a_person_began_becomes_the_tool_s(tmp_path: Path) -> None:
    page(tmp_path).parent.mkdir(parents=True)
    page(tmp_path).write_text("# Searching\n\nUse quotes.\n", encoding="utf-8")
    tools = ToolMemoryStore(tmp_path)
    assert tools.retrieve("web_search").memories[0].content == "# Searching\n\nUse quotes."
    tools.record(calls(2))
    content = tools.summarize("web_search").memories[0].content
    assert content.startswith("# Searching\n\nUse quotes.\n\n## Core Function")


def test_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(2))
    tools.summarize("web_search")
    path = page(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    memory = tools.retrieve("web_search").memories[0]
    assert (memory.content.startswith("## Core Function"), memory.author, memory.warnings) == (True, "rules", ())
    tools.record(calls(1, 10))
    assert tools.summarize("web_search").memories[0].content.count("## Core Function") == 1


@pytest.mark.parametrize(
    "broken",
    ["---\nwhen_to_use: [\n---\n\n# x\n", "---\n- a\n---\nx\n", "---\na: &x [1]\nb: " + "[*x," * 30 + "]" * 30 + "\n---\nx\n"],
    ids=["not YAML", "a list", "too many aliases"],
)
def test_a_damaged_page_is_left_alone_and_no_call_is_lost(tmp_path: Path, broken: str) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(2))
    page(tmp_path).write_text(broken, encoding="utf-8")
    report = tools.record(calls(2, 10))
    assert (report.added, len(report.memories[0].calls), bool(report.warnings)) == (2, 4, True)
    assert str(page(tmp_path)) in report.warnings[0]
    summary = tools.summarize("web_search")
    assert (summary.success, [f.tool_name for f in summary.failed]) == (False, ["web_search"])
    assert page(tmp_path).read_text(encoding="utf-8") == broken
    assert len(tools.retrieve("web_search").memories[0].calls) == 4
    assert tools.stats().tools[0].calls == 4


def test_a_page_that_is_not_utf_8_is_left_alone(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(2))
    page(tmp_path).write_bytes(b"# caf\xe9\n")
    assert "not UTF-8" in tools.record(calls(1, 10)).warnings[0]
    assert page(tmp_path).read_bytes() == b"# caf\xe9\n"


@pytest.mark.parametrize(("key", "value", "said"), [("memory_type", "task", "wrong type"), ("when_to_use", "other", "name mismatch")])
def test_a_page_of_another_type_or_tool_is_no_match(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, key: str, value: str, said: str
) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(2))
    old = "tool" if key == "memory_type" else "web_search"
    page(tmp_path).write_text(page(tmp_path).read_text(encoding="utf-8").replace(f"{key}: {old}", f"{key}: {value}"), encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        report = tools.retrieve("web_search")
    assert (report.missing, report.success) == (("web_search",), False)
    assert said in caplog.text
    assert said in report.warnings[0]


def test_lines_that_hold_no_call_are_told_and_kept(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(2))
    path = tmp_path / "memory/tools/web_search.calls.jsonl"
    path.write_text("<<<<<<< ours\n" + path.read_text(encoding="utf-8") + "not json\n", encoding="utf-8")
    memory = tools.record(calls(1, 10)).memories[0]
    assert (len(memory.calls), "2 lines hold no call" in memory.warnings[0]) == (3, True)
    tools.summarize("web_search")
    assert "<<<<<<< ours\n" in path.read_text(encoding="utf-8")


def test_half_a_last_line_of_a_crash_is_repaired(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(2))
    path = tmp_path / "memory/tools/web_search.calls.jsonl"
    path.write_bytes(path.read_bytes() + path.read_bytes().split(b"\n")[0][:57])
    assert len(tools.retrieve("web_search").memories[0].calls) == 2
    report = tools.record(calls(1, 10))
    assert (len(report.memories[0].calls), report.memories[0].warnings) == (3, ())
    assert all(json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1])


def test_a_page_that_was_lost_comes_back_with_its_id(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    before = tools.record(calls(2)).memories[0].memory_id
    page(tmp_path).unlink()
    assert tools.retrieve("web_search").memories[0].memory_id == before
    assert tools.record(calls(1)).duplicates == 1
    assert front(tmp_path)["memory_id"] == before


def test_a_link_is_neither_read_nor_written(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("secret", encoding="utf-8")
    workspace = tmp_path / "w"
    page(workspace).parent.mkdir(parents=True)
    page(workspace).symlink_to(outside)
    tools = ToolMemoryStore(workspace)
    assert tools.retrieve("web_search").missing == ("web_search",)
    with pytest.raises(Exception, match="symbolic link"):
        tools.record(calls(1))
    assert outside.read_text(encoding="utf-8") == "secret"


def test_a_folder_that_leads_out_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "w" / "memory").mkdir(parents=True)
    (tmp_path / "w" / "memory" / "tools").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="leads out"):
        ToolMemoryStore(tmp_path / "w").record(calls(1))
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_guideline_cannot_end_its_own_part(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(2))
    text = "## Core Function\n\n<!-- /memory-tools:guideline -->\n---\nnot mine"
    tools.summarize("web_search", judge=Says(text))
    tools.record(calls(1, 10))
    tools.summarize("web_search", judge=Says("## Core Function\n\nSomething else entirely."))
    assert "not mine" not in page(tmp_path).read_text(encoding="utf-8")


class Says:
    """A judge of its own with one fixed guideline."""

    name = "fixed"
    instant = True

    def __init__(self, text: str) -> None:
        self.text = text

    def evaluate(self, calls: object, earlier: object) -> list[Evaluation | Failure]:
        return []

    def summarize(self, requests: object) -> list[Guideline | Failure]:
        assert isinstance(requests, list)
        return [Guideline(self.text) for _ in requests]


@pytest.mark.parametrize("text", ["", "  \n", "too short", "x" * 20_001])
def test_an_empty_or_overlong_guideline_replaces_nothing(tmp_path: Path, text: str) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(2))
    tools.summarize("web_search")
    tools.record(calls(1, 10))
    before = page(tmp_path).read_text(encoding="utf-8")
    report = tools.summarize("web_search", judge=Says(text))
    assert (len(report.failed), report.memories[0].calls[-1].is_summarized) == (1, False)
    assert page(tmp_path).read_text(encoding="utf-8") == before


def test_a_new_guideline_has_a_later_time_even_within_one_second(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    seen = [tools.record(calls(2)).memories[0].time_modified]
    for n in range(3):
        tools.record(calls(1, 10 + n))
        seen.append(tools.summarize("web_search").memories[0].time_modified)
    assert seen == sorted(set(seen))


# --- the calling agent as judge ----------------------------------------------------------------------


def test_the_agent_is_asked_and_its_answer_is_stored(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path, ToolSettings(judge="agent"))
    tools.record([*calls(2, score=1.0), *calls(1, 2)])
    failed = tools.summarize("web_search")
    assert "--apply" in failed.failed[0].reason
    requests, pending = tool_agent.due(tools, "web_search")
    prompt = agent_prompt(requests, pending)
    shape = json.loads(prompt.split("```json\n")[1].split("```")[0])
    shape["evaluations"][0] |= {"summary": "s", "evaluation": "e", "score": 0.0}
    shape["guidelines"][0] |= {"guideline": "## Core Function\n\nIt searches the web.", "parameters": {"q": {"recommended": "short"}}}
    report = tool_agent.apply(tools, read_answers(json.dumps(shape), ()))
    memory = report.memories[0]
    assert (report.summarized, memory.author) == (("web_search",), "agent")
    assert [c.score for c in memory.calls] == [1.0, 1.0, 0.0]
    assert [c.is_summarized for c in memory.calls] == [True, True, False]  # the third was not among those shown
    assert memory.parameters["q"].recommended == "short"


def test_a_call_that_came_after_the_question_is_not_marked(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(2))
    requests, pending = tool_agent.due(tools, None)
    shape = json.loads(agent_prompt(requests, pending).split("```json\n")[1].split("```")[0])
    tools.record(calls(1, 10))
    shape["guidelines"][0]["guideline"] = "## Core Function\n\nIt searches the web."
    memory = tool_agent.apply(tools, read_answers(json.dumps(shape), ())).memories[0]
    assert [c.is_summarized for c in memory.calls] == [True, True, False]


def test_a_guideline_in_plain_markdown_belongs_to_one_tool(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(2))
    answers = read_answers("# How to search\n\nUse quotes, always.\n", ("web_search",))
    assert "Use quotes" in tool_agent.apply(tools, answers).memories[0].content
    for names in ((), ("a", "b")):
        with pytest.raises(InvalidInput):
            read_answers("# How to search\n\nUse quotes, always.\n", names)


@pytest.mark.parametrize(
    "text",
    ['{"guidelines": [', '{"guidelines": [3]}', '{"guidelines": [{"guideline": "long enough to be one, really"}]}', '{"evaluations": {}}',
     '{"guidelines": [], "evaluations": []}', '{"evaluations": [{"tool_name": "a", "call_hash": "x", "score": 1}]}', "[]", "{}"],
)  # fmt: skip
def test_an_answer_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_answers(text, ())


def test_an_evaluation_of_a_call_that_does_not_wait_is_refused(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(1))
    said = {"tool_name": "web_search", "call_hash": "x", "create_time": "t", "summary": "s", "evaluation": "e", "score": 1}
    text = json.dumps({"evaluations": [said]})
    with pytest.raises(InvalidInput, match="waits"):
        tool_agent.apply(tools, read_answers(text, ()))


def test_a_secret_in_an_agent_s_guideline_is_masked(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(1))
    tool_agent.apply(tools, read_answers("Always send api_key=9f8e7d6c5b4a39281706 with it.", ("web_search",)))
    assert "9f8e7d6c" not in page(tmp_path).read_text(encoding="utf-8")


# --- figures -----------------------------------------------------------------------------------------


def test_figures_compare_tools(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    good, bad = calls(30, tool_name="good", time_cost=1.0), calls(10, tool_name="bad", success=False, output="Error: x", time_cost=3.0)
    tools.record([*good, *bad])
    for _ in range(3):
        tools.retrieve("good,nope")
    tools.retrieve("other")
    report = tools.stats()
    assert [t.tool_name for t in report] == ["good", "bad"]
    assert report.best == "good"
    assert report.tools[0].composite == pytest.approx(0.4 + 0.4 + 0.1)
    assert report.tools[1].composite == pytest.approx(0.2 / 4)
    assert [t.retrieved for t in report] == [3, 0]
    assert dict(report.wanted) == {"nope": 3, "other": 1}
    tools.record(calls(1, tool_name="nope"))
    assert dict(tools.stats().wanted) == {"other": 1}
    assert [t.tool_name for t in tools.stats("bad,none")] == ["bad"]
    assert tools.stats("bad,none").missing == ("none",)


@pytest.mark.parametrize(("recent_failures", "trend"), [(0, "healthy"), (2, "healthy"), (3, "degraded"), (20, "degraded")])
def test_a_fall_of_more_than_ten_points_is_degraded(tmp_path: Path, recent_failures: int, trend: str) -> None:
    tools = ToolMemoryStore(tmp_path)
    fails = calls(recent_failures, 40, success=False, output="Error: x")
    tools.record([*calls(20), *calls(20 - recent_failures, 20), *fails])
    assert tools.stats().tools[0].trend == trend


def test_a_tool_without_earlier_calls_is_new(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(20))
    assert (tools.stats().tools[0].trend, tools.stats().tools[0].earlier_success_rate) == ("new", None)


def test_the_success_rate_of_a_page_is_there_for_a_search(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record([*calls(3), *calls(1, 10, success=False, output="Error: x")])
    assert tools.success_rate("memory/tools/web_search.md") == (0.75, 4)
    for other in ("memory/tools/none.md", "MEMORY.md", "memory/tools/web_search.calls.jsonl", "memory/tools/../../x.md"):
        assert tools.success_rate(other) is None


def test_counts_are_folded_and_survive_broken_lines(tmp_path: Path) -> None:
    usage = ToolUsage(tmp_path / "usage.jsonl")
    usage.count("default", ["a"], ["missing0"], "2026-03-05 12:00:00")
    line = (tmp_path / "usage.jsonl").read_text(encoding="utf-8")
    lines = [line.replace("missing0", f"missing{n % 7}") for n in range(2_998)]
    (tmp_path / "usage.jsonl").write_text("".join([*lines, '[1]\nnot json\n{"found": 3}\n{"counts": ["x", 1]}\n{"in"\n']), encoding="utf-8")
    usage.count("default", ["a"], ["missing0"], "2026-03-05 12:00:01")
    usage.count("default", ["a"], ["missing0"], "2026-03-05 12:00:02")
    found = usage.read("default")
    assert (found["a"].found, sum(found[f"missing{n}"].missing for n in range(7))) == (3_000, 3_000)
    assert (tmp_path / "usage.jsonl").stat().st_size < 2_000
    assert usage.read("other") == {}


def test_a_read_only_place_costs_the_count_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".memory-tools").write_text("a file where a folder is needed", encoding="utf-8")
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(1))
    assert tools.retrieve("web_search").success


def test_what_is_asked_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(2))
    with caplog.at_level(logging.INFO, "memory_tools.tools"):
        tools.retrieve("web_search,nope")
        tools.summarize("web_search")
    text = caplog.text
    assert "workspace=default" in text
    assert "total_calls=2" in text
    assert "tool nope: not found" in text
    assert " ms" in text
    assert "1 summarized, 0 skipped" in text


def test_the_window_of_a_request_is_the_newest(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path, ToolSettings(recent=2))
    tools.record(calls(5))
    request = tools.request(tools.folder.load("web_search"))
    assert isinstance(request, SummaryRequest)
    assert [c.output for c in request.calls] == ["Found 3", "Found 4"]
    assert all(isinstance(c, ToolCall) for c in request.calls)
