"""Calls through the official client to a chat server that answers well, slowly and badly: nothing is lost, and tries are bounded."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_server import GOOD_GUIDELINE, ChatServer, chat_server

from memory_tools.errors import InvalidInput, Unavailable
from memory_tools.judge import AgentJudge, open_judge
from memory_tools.judge_answers import objects, read_evaluation, read_guideline
from memory_tools.judge_openai import Pace
from memory_tools.judge_rules import RulesJudge
from memory_tools.tool_memory import ToolMemoryStore
from memory_tools.tool_settings import ToolSettings

CALL = {"tool_name": "web_search", "input": {"query": "x", "max_results": 10}, "output": "Found 10", "time_cost": 1.0}
BAD = ["500", "401", "404", "429", "html", "half", "half_content", "prose", "empty", "list"]


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    with chat_server() as server:
        yield server


def store(workspace: Path, chat: ChatServer, **settings: object) -> ToolMemoryStore:
    values: dict[str, object] = {
        "judge": "openai",
        "llm_base_url": chat.url,
        "llm_model": "test-model",
        "evaluation_interval_s": 0.0,
        "summary_interval_s": 0.0,
        "judge_timeout_s": 5.0,
        "judge_attempts": 2,
    }
    return ToolMemoryStore(workspace, ToolSettings(**(values | settings)))  # type: ignore[arg-type]


def calls(n: int, name: str = "web_search") -> list[dict[str, object]]:
    return [CALL | {"tool_name": name, "output": f"Found {i}", "create_time": f"2025-10-15 14:{i:02d}:00"} for i in range(n)]


@pytest.mark.parametrize("mode", ["good", "fenced", "slips"])
def test_a_good_answer_is_stored_however_it_is_wrapped(tmp_path: Path, chat: ChatServer, mode: str) -> None:
    chat.mode = mode
    report = store(tmp_path, chat).record(calls(3))
    assert report.answer == "Successfully recorded 3 tool calls: 3 added, 0 duplicate, 0 refused, 0 pending"
    assert [(c.score, c.summary) for c in report.memories[0].calls] == [(1.0, "Ten results came back.")] * 3
    assert chat.evaluations == 3


@pytest.mark.parametrize("mode", BAD)
def test_a_bad_answer_loses_no_call_and_the_next_run_retries(tmp_path: Path, chat: ChatServer, mode: str) -> None:
    tools = store(tmp_path, chat, judge_attempts=1)
    chat.mode = mode
    report = tools.record(calls(2))
    memory = tools.retrieve("web_search").memories[0]
    assert (report.added, report.pending, report.success) == (2, 2, True)
    assert report.pending_reasons
    assert all("test-model" in r and "sk-a1a1" not in r for r in report.pending_reasons)
    assert (len(memory.calls), len(memory.pending), memory.score) == (0, 2, 0.0)
    assert all(d["reason"] for d in memory.document()["metadata"]["pending_calls"])  # type: ignore[index, call-overload, union-attr]
    chat.mode = "good"
    assert tools.summarize("web_search").answer == "Successfully processed 1 tool memories: 1 summarized, 0 skipped (already up-to-date)"
    memory = tools.retrieve("web_search").memories[0]
    assert ([c.score for c in memory.calls], memory.pending) == ([1.0, 1.0], ())


@pytest.mark.parametrize("mode", BAD)
def test_a_bad_answer_leaves_the_guideline_and_marks_nothing(tmp_path: Path, chat: ChatServer, mode: str) -> None:
    tools = store(tmp_path, chat, judge_attempts=1)
    tools.record(calls(2))
    tools.summarize("web_search")
    tools.record([CALL | {"output": "Found more", "create_time": "2025-10-15 15:00:00"}])
    before = (tmp_path / "memory/tools/web_search.md").read_text(encoding="utf-8")
    chat.mode = mode
    report = tools.summarize("web_search")
    assert report.answer == "Successfully processed 1 tool memories: 0 summarized, 0 skipped, 1 failed (already up-to-date)"
    assert (report.success, bool(report.failed[0].reason)) == (False, True)
    assert (tmp_path / "memory/tools/web_search.md").read_text(encoding="utf-8") == before
    assert [c.is_summarized for c in report.memories[0].calls] == [True, True, False]
    chat.mode = "good"
    assert tools.summarize("web_search").summarized == ("web_search",)


def test_a_slow_judge_is_given_up_and_loses_nothing(tmp_path: Path, chat: ChatServer) -> None:
    tools = store(tmp_path, chat, judge_timeout_s=0.3, judge_attempts=1)
    chat.mode = "slow"
    report = tools.record(calls(1))
    assert (report.added, report.pending) == (1, 1)
    assert "no answer within 0.3 s" in report.pending_reasons[0]


def test_a_server_that_is_not_there_loses_nothing(tmp_path: Path, chat: ChatServer) -> None:
    tools = store(tmp_path, chat, llm_base_url="http://127.0.0.1:9/v1", judge_attempts=1)
    report = tools.record(calls(1))
    assert (report.added, report.pending) == (1, 1)
    assert "cannot be reached" in report.pending_reasons[0]


def test_a_passing_failure_is_tried_again_in_the_same_run(tmp_path: Path, chat: ChatServer) -> None:
    chat.mode = "once_500"
    report = store(tmp_path, chat).record(calls(1))
    assert (report.pending, len(chat.asked)) == (0, 2)


def test_attempts_are_bounded(tmp_path: Path, chat: ChatServer) -> None:
    chat.mode = "prose"
    store(tmp_path, chat, judge_attempts=2).record(calls(1))
    assert len(chat.asked) == 2


@pytest.mark.parametrize(("mode", "most"), [("401", 8), ("500", 8 + 3)])
def test_a_server_that_refuses_everyone_is_not_asked_about_each_call(tmp_path: Path, chat: ChatServer, mode: str, most: int) -> None:
    chat.mode = mode
    report = store(tmp_path, chat, judge_attempts=1).record(calls(40))
    assert report.pending == 40
    assert len(chat.asked) <= most  # those under way when the first answer came


def test_a_judgement_that_cannot_be_made_does_not_stop_the_others(tmp_path: Path, chat: ChatServer) -> None:
    chat.mode = "400"
    tools = store(tmp_path, chat, judge_attempts=3)
    assert tools.record(calls(5)).pending == 5
    assert len(chat.asked) == 5  # each once: the same question would be refused again


def test_starts_lie_an_interval_apart() -> None:
    now, slept = [100.0], list[float]()
    pace = Pace(1.0, lambda: now[0], slept.append)
    pace.wait()
    pace.wait()
    pace.wait()
    now[0] += 10
    pace.wait()
    assert slept == [0.0, 1.0, 2.0, 0.0]


def test_calls_overlap(tmp_path: Path, chat: ChatServer) -> None:
    chat.mode, chat.slow_s = "slow", 60.0
    recording = threading.Thread(target=store(tmp_path, chat, judge_timeout_s=60.0).record, args=(calls(3),))
    recording.start()
    while len(chat.asked) < 3:  # the next ones start while the first is still being answered
        time.sleep(0.01)
    chat.released.set()
    recording.join()


def test_smart_skip_saves_requests(tmp_path: Path, chat: ChatServer) -> None:
    tools = store(tmp_path, chat)
    tools.record([c for name in ("a", "b", "c", "d", "e") for c in calls(2, name)])
    tools.summarize("a,b,c")
    assert chat.summaries == 3
    asked = len(chat.asked)
    report = tools.summarize("a,b,c,d,e")
    assert report.answer == "Successfully processed 5 tool memories: 2 summarized, 3 skipped (already up-to-date)"
    assert len(chat.asked) == asked + 2
    tools.summarize("a,b,c,d,e")
    assert len(chat.asked) == asked + 2


def test_requests_at_the_same_time_summarise_once(tmp_path: Path, chat: ChatServer) -> None:
    tools = store(tmp_path, chat)
    tools.record(calls(2))
    chat.mode, chat.slow_s = "slow", 0.3
    threads = [threading.Thread(target=tools.summarize, args=("web_search",)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert chat.summaries == 1


def test_duplicates_are_found_before_anything_is_judged(tmp_path: Path, chat: ChatServer) -> None:
    tools = store(tmp_path, chat)
    tools.record(calls(2))
    report = tools.record([*calls(2), calls(3)[2], calls(3)[2]])
    assert (report.added, report.duplicates, chat.evaluations) == (1, 3, 3)


def test_a_secret_reaches_neither_the_judge_nor_the_disk(tmp_path: Path, chat: ChatServer) -> None:
    secret = "ghp_" + "a1B2" * 9
    report = store(tmp_path, chat).record(
        [CALL | {"input": {"token": secret, "q": f"use {secret}"}, "output": f"password=hunter2 {secret}"}]
    )
    stored = "".join(p.read_text(encoding="utf-8") for p in (tmp_path / "memory/tools").iterdir())
    assert report.masked == 4
    for text in (stored, "".join(chat.asked), json.dumps(report.document())):
        assert secret not in text
        assert "hunter2" not in text


def test_a_model_s_guideline_and_parameters_are_kept_with_its_name(tmp_path: Path, chat: ChatServer) -> None:
    tools = store(tmp_path, chat)
    tools.record(calls(2))
    memory = tools.summarize("web_search").memories[0]
    assert memory.author == "test-model"
    assert memory.content.startswith(str(GOOD_GUIDELINE["guideline"]))
    assert memory.document()["metadata"]["parameters"] == {"max_results": {"recommended": [10, 20], "avoid": [100]}}  # type: ignore[index, call-overload]


def test_the_environment_s_key_is_not_sent_to_another_endpoint(tmp_path: Path, chat: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-real-one")
    store(tmp_path, chat).record(calls(1))
    assert chat.keys == ["Bearer none"]


def test_a_file_is_not_locked_while_a_judge_thinks(tmp_path: Path, chat: ChatServer) -> None:
    chat.mode, chat.slow_s = "slow", 2.0
    tools = store(tmp_path, chat)
    slow = threading.Thread(target=tools.record, args=(calls(1),))
    slow.start()
    while not chat.asked:
        time.sleep(0.01)
    report = tools.record([CALL | {"output": "in between"}], judge="rules")
    assert (report.added, report.pending) == (1, 0)
    assert slow.is_alive()
    chat.released.set()
    slow.join()
    assert len(tools.retrieve("web_search").memories[0].calls) == 2


def test_choosing_a_judge(tmp_path: Path) -> None:
    assert isinstance(open_judge(None, ToolSettings()), RulesJudge)
    assert isinstance(open_judge("agent", ToolSettings()), AgentJudge)
    with pytest.raises(InvalidInput, match="no judge 'gpt'"):
        open_judge("gpt", ToolSettings())
    with pytest.raises(Unavailable, match="no model"):
        open_judge("openai", ToolSettings())


def test_a_judge_that_is_not_set_up_loses_no_call(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path, ToolSettings(judge="openai"))
    report = tools.record([CALL])
    assert (report.added, report.pending) == (1, 1)
    assert "no model is configured (set MEMORY_TOOLS_LLM_MODEL" in report.pending_reasons[0]
    assert "no model" in tools.summarize("web_search").failed[0].reason
    assert tools.summarize("web_search", judge="rules").summarized == ("web_search",)


@pytest.mark.parametrize(
    "answer",
    [
        '{"summary": "s", "evaluation": "e", "score": 1.0}',
        'Sure!\n```json\n{"summary": "s", "evaluation": "e", "score": 1}\n```\nBye {x}',
        '```\n{"summary": "s", "evaluation": "e", "score": "1.0"}\n```',
        "{'summary': 's', 'evaluation': 'e', 'score': 1.0,}",
        '{"summary": "s", "evaluation": "e", "score": 0.8} // good',
        'I first thought {"score"} but: {"summary": "s", "evaluation": "e", "score": 1.0}',
        '<think>{"summary": "no", "evaluation": "no", "score": 0.0}</think>{"summary": "s", "evaluation": "e", "score": 1.0}',
        '{\n  # comment\n  "summary": "s",\n  "evaluation": "e",\n  "score": 1.0\n}',
        '{\u201csummary\u201d: \u201cs\u201d, "evaluation": "e", "score": 1.0}',
    ],
)
def test_usual_slips_are_repaired(answer: str) -> None:
    found = read_evaluation(answer)
    assert (found.summary, found.evaluation, found.score) == ("s", "e", 1.0)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "fine",
        '{"summary": "s", "evaluation": "e"}',
        '{"summary": "", "evaluation": "e", "score": 1.0}',
        '{"summary": "s", "evaluation": "e", "score": 85}',
        '{"summary": "s", "evaluation": "e", "score": true}',
        '{"summary": "s", "evaluation": "e", "score": "high"}',
        '{"summary": "s", "evaluation": "e", "score": NaN}',
        '{"summary": "s", "evaluation": "e", "score": 1.0',
        '[{"summary": "s"}]',
        '{"summary": ["s"], "evaluation": "e", "score": 1.0}',
    ],
)
def test_an_answer_that_is_no_evaluation_is_refused(answer: str) -> None:
    with pytest.raises(InvalidInput):
        read_evaluation(answer)


@pytest.mark.parametrize(
    "answer", ['{"guideline": ""}', '{"guideline": "short"}', '{"guideline": ["a"]}', "## Core Function", '{"guideline": "## Core']
)
def test_an_answer_that_is_no_guideline_is_refused(answer: str) -> None:
    with pytest.raises(InvalidInput):
        read_guideline(answer)


def test_a_guideline_with_raw_line_breaks_is_read() -> None:
    found = read_guideline('{"guideline": "## Core Function\nSearches the web for text.", "parameters": {"n": {"avoid": [1]}, "x": 3}}')
    assert found.text.endswith("web for text.")
    assert list(found.parameters) == ["n"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["{", "}", '"', "'", "```", "<think>", "/*", ",", "{'", "\\", "[", "```json\n{"])
def test_a_long_answer_of_one_thing_is_read_in_bounded_time(piece: str) -> None:
    text = (piece * 300_000)[:300_000]
    assert len(list(objects(text))) <= 40
