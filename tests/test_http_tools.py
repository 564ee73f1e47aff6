"""Requests of existing clients, good, bad and hostile, to a real server in a process of its own on a loopback port."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from chat_server import chat_server

from memory_tools import cli
from memory_tools.http_serving import Guard
from memory_tools.tool_memory import ToolMemoryStore

CLIENTS = Path(__file__).parent / "fixtures" / "tool_clients.md"
WS = "demo_workspace"


@dataclass
class Served:
    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def post(self, route: str, body: object = None, **kwargs: Any) -> httpx.Response:
        kwargs = {"timeout": 60, "verify": False, **kwargs}  # the certificates that are not needed here take 25 ms to read
        if body is not None:
            kwargs["json"] = body
        return httpx.post(f"{self.url}{route}", **kwargs)


@contextmanager
def serving(workspace: Path, **environment: str) -> Iterator[Served]:
    """`memory-tools serve` on a free port. Variables of the configuration are given without their prefix."""
    workspace.mkdir(exist_ok=True)
    log = workspace.parent / f"{workspace.name}.log"
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("MEMORY_TOOLS_", "OPENAI_"))}
    variables |= {"MEMORY_TOOLS_ENCODER": "none", "HOME": str(workspace.parent), "XDG_CONFIG_HOME": str(workspace.parent)}
    variables |= {f"MEMORY_TOOLS_{k}": v for k, v in environment.items()}
    command = [sys.executable, "-m", "memory_tools", "--workspace", str(workspace), "--log-level", "debug", "serve", "--port", "0"]
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stderr=stream, stdout=stream, env=variables)
    try:
        while not (found := re.search(rb"listening on (http://\S+)\n", log.read_bytes())):
            assert process.poll() is None, log.read_text(encoding="utf-8")
            time.sleep(0.05)
        yield Served(found[1].decode() + "/", process, log)
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served") / "w") as server:
        yield server


def calls(n: int, name: str = "web_search", **changed: object) -> list[dict[str, object]]:
    return [
        {
            "tool_name": name,
            "input": {"query": f"q{i}", "max_results": 10},
            "output": f"Found {i} results",
            "create_time": f"2025-10-15 14:{i // 60:02d}:{i % 60:02d}",
            "success": True,
            "time_cost": 2.0,
            "token_cost": 150,
        }
        | changed
        for i in range(n)
    ]


# --- existing clients ----------------------------------------------------------------------------


def test_existing_clients_work_with_only_the_address_changed(served: Served) -> None:
    failing = calls(10, success=False, output="Error: timed out", input={"query": "x", "max_results": 100})
    late = [c | {"create_time": f"2025-10-15 16:00:{n:02d}"} for n, c in enumerate(failing)]
    everything = [*calls(25), *late, *calls(3, "file_reader", time_cost=0.5), *calls(2, "doc_search", time_cost=9.0)]
    added = served.post("add_tool_call_result", {"workspace_id": WS, "tool_call_results": everything}).json()
    assert added["answer"] == "Successfully recorded 40 tool calls: 40 added, 0 duplicate, 0 refused, 0 pending"
    summary = served.post("summary_tool_memory", {"workspace_id": WS, "tool_names": "web_search,file_reader"}).json()
    assert summary["answer"] == "Successfully processed 2 tool memories: 2 summarized, 0 skipped (already up-to-date)"

    blocks = re.findall(r"^```python\n(.*?)^```$", CLIENTS.read_text(encoding="utf-8"), re.S | re.M)
    assert len(blocks) == 11
    said = []
    space: dict[str, Any] = {
        "adjust_parameters": lambda params, guidelines: params | {"max_results": 10 if "use `10`; avoid `100`" in guidelines else 0},
        "execute_tool": lambda name, params: f"Found {params['max_results']} results",
        "record_tool_call": lambda name, params, result: served.post(
            "add_tool_call_result",
            {"workspace_id": WS, "tool_call_results": [{"tool_name": name, "input": params, "output": result}]},
        ),
    }
    for block in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(block.replace("http://0.0.0.0:8002/", served.url), space)
        said.append(out.getvalue())
    basic, several, statistics, _, agent_start, not_found, empty, partial, guidance, degradation, selection = said
    assert "Tool: web_search\nGuidelines:\n## Core Function" in basic
    assert "Total Calls: 35" in basic
    assert "Retrieved 2 tool memories" in several
    assert "Total Calls: 35\nSuccess Rate: 71.4%\nAvg Score: 0.71\nAvg Time: 2.00s\nAvg Tokens: 150" in statistics
    assert agent_start.startswith("## Core Function")
    assert set(space["tool_cache"]) == {"web_search", "file_reader"}
    assert not_found == "Error: No matching tool memories found\n"
    assert empty == "Error: tool_names is required\n"
    assert partial == "Found 2 out of 3 requested tools\n"
    assert guidance == ""
    assert degradation.startswith("Warning: web_search performance degraded!\nRecent: 50.0%, Historical: 100.0%")
    assert space["status"] == "degraded"
    assert selection == "Selected doc_search with score 0.82\n"
    assert space["execute_tool_with_guidelines"]("web_search", {"query": "y"}) == "Found 10 results"
    assert space["get_tool_statistics"]("web_search")["total_calls"] == 36
    best = served.post("retrieve_tool_memory", {"workspace_id": WS, "tool_names": "web_search,doc_search"}).json()
    assert [m["when_to_use"] for m in best["metadata"]["memory_list"]] == ["web_search", "doc_search"]


def test_the_address_of_all_interfaces_works_on_the_same_machine(served: Served) -> None:
    reply = httpx.post(f"{served.url.replace('127.0.0.1', '0.0.0.0')}retrieve_tool_memory", json={"tool_names": "nope"}, timeout=30)
    assert (reply.status_code, reply.json()["answer"]) == (200, "No matching tool memories found")


def test_documents_have_the_shapes_that_clients_read(served: Served) -> None:
    body = {"workspace_id": "shapes", "tool_call_results": [*calls(1), {"tool_name": " ", "input": "", "output": ""}], "tool_name": "extra"}
    added = served.post("add_tool_call_result", body).json()
    assert set(added) == {"answer", "success", "metadata"}
    assert added["metadata"]["refused"] == [{"index": 1, "reason": "tool_name is blank"}]
    (memory,) = added["metadata"]["memory_list"]
    assert set(memory) == {
        "workspace_id", "memory_id", "memory_type", "when_to_use", "content", "score", "time_created", "time_modified", "author",
        "tool_call_results", "metadata",
    }  # fmt: skip
    assert (memory["workspace_id"], memory["memory_type"], memory["metadata"]["pending_calls"]) == ("shapes", "tool", [])
    assert set(memory["tool_call_results"][0]) == {
        "create_time", "tool_name", "input", "output", "summary", "evaluation", "score", "success", "time_cost", "token_cost",
        "is_summarized", "call_hash", "metadata",
    }  # fmt: skip
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", memory[k]) for k in ("time_created", "time_modified"))
    again = served.post("retrieve_tool_memory", {"workspace_id": "shapes", "tool_names": "c,web_search"}).json()
    assert (again["answer"], again["metadata"]["missing"]) == ("Successfully retrieved 1 tool memories", ["c"])
    assert again["metadata"]["memory_list"] == [memory]


@pytest.mark.parametrize("names", [None, "", "absent"])
@pytest.mark.parametrize("route", ["retrieve_tool_memory", "summary_tool_memory"])
def test_names_are_required(served: Served, route: str, names: str | None) -> None:
    body = {"workspace_id": WS} | ({} if names == "absent" else {"tool_names": names})
    reply = served.post(route, body)
    assert (reply.status_code, reply.json()["answer"], reply.json()["success"]) == (200, "tool_names is required", False)


@pytest.mark.parametrize("route", ["retrieve_tool_memory", "summary_tool_memory"])
def test_only_commas_match_nothing(served: Served, route: str) -> None:
    reply = served.post(route, {"workspace_id": WS, "tool_names": " , ,"})
    assert (reply.status_code, reply.json()["answer"], reply.json()["success"]) == (200, "No matching tool memories found", False)


CALL = {"tool_name": "a", "input": {}, "output": "x"}
BAD: list[tuple[str, object]] = [
    ("retrieve_tool_memory", {"tool_names": ["a"]}),
    ("retrieve_tool_memory", {"tool_names": 3}),
    ("summary_tool_memory", {"tool_names": {"a": 1}}),
    ("retrieve_tool_memory", {"tool_names": "a", "workspace_id": 3}),
    ("retrieve_tool_memory", {"tool_names": "a", "workspace_id": "../x"}),
    ("retrieve_tool_memory", {"tool_names": "a", "workspace_id": "memory"}),
    ("retrieve_tool_memory", {"tool_names": "a", "workspace_id": ""}),
    ("summary_tool_memory", {"tool_names": "a", "workspace_id": "a/b"}),
    ("add_tool_call_result", {"workspace_id": "%2e%2e", "tool_call_results": []}),
    ("add_tool_call_result", {"workspace_id": WS}),
    ("add_tool_call_result", {"tool_call_results": "x"}),
    ("add_tool_call_result", {"tool_call_results": {"tool_name": "a"}}),
    ("add_tool_call_result", {"tool_call_results": ["x"]}),
    ("add_tool_call_result", {"tool_call_results": [{"tool_name": "a", "input": {}}]}),
    ("add_tool_call_result", {"tool_call_results": [CALL, CALL | {"output": 3}]}),
    ("add_tool_call_result", {"tool_call_results": [CALL | {"success": "yes"}]}),
    ("add_tool_call_result", {"tool_call_results": [CALL | {"time_cost": "2"}]}),
    ("retrieve_tool_memory", []),
    ("retrieve_tool_memory", "x"),
]


@pytest.mark.parametrize(("route", "body"), BAD, ids=lambda v: json.dumps(v)[:60])
def test_a_wrong_request_is_422_with_the_cause(served: Served, route: str, body: object) -> None:
    reply = served.post(route, body)
    document = reply.json()
    assert (reply.status_code, document["success"], document["error"]["type"]) == (422, False, "invalid")
    assert document["answer"].startswith(document["error"]["message"])


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"nul", b"[" * 200_000, b'{"a":' * 100_000, b'{"n": ' + b"9" * 5_000 + b"}"])
def test_a_body_that_is_no_json_object_is_422(served: Served, content: bytes) -> None:
    for route in ("add_tool_call_result", "memory_search"):
        reply = served.post(route, content=content)
        assert (reply.status_code, reply.json()["error"]["type"]) == (422, "invalid")


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_service_that_is_stopped_has_no_watcher_that_died(tmp_path: Path) -> None:
    """`the watcher has died`, said by `status` for ever after `systemctl stop`."""
    with serving(tmp_path / "w") as served:
        state, until = tmp_path / "w" / ".memory-tools" / "watcher.json", time.monotonic() + 20
        while not state.exists() and time.monotonic() < until:
            time.sleep(0.05)
        served.process.terminate()
        assert served.process.wait(20) == 128 + signal.SIGTERM
        assert not state.exists()


def test_unknown_routes_and_methods_are_told_in_the_same_form(served: Served) -> None:
    r = served.post("nope", {})
    assert r.status_code == 404
    listed = r.json()["error"]["hint"].removeprefix("the routes are listed at ")  # it named a page that is not served
    assert "/memory_search" in httpx.get(f"{served.url}{listed.removeprefix('/')}").json()["paths"]
    assert r.json()["error"]["type"] == "not_found"
    assert httpx.get(f"{served.url}add_tool_call_result").status_code == 405


def test_health_and_the_routes_and_no_page_that_loads_scripts_from_elsewhere(served: Served) -> None:
    assert httpx.get(f"{served.url}health").json()["status"] == "ok"
    paths = httpx.get(f"{served.url}openapi.json").json()["paths"]
    assert {"/retrieve_tool_memory", "/add_tool_call_result", "/summary_tool_memory", "/memory_search", "/health"} <= set(paths)
    schema = paths["/add_tool_call_result"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert schema["properties"]["tool_call_results"]["items"]["required"] == ["tool_name", "input", "output"]
    assert httpx.get(f"{served.url}docs").status_code == 404


def test_parallel_requests_for_one_tool_give_one_memory_with_all_calls(served: Served) -> None:
    def one(n: int) -> bool:
        body = {"workspace_id": "parallel", "tool_call_results": [CALL | {"output": f"{n}-{i}"} for i in range(3)]}
        return bool(served.post("add_tool_call_result", body).json()["success"])

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(32)))
    (memory,) = served.post("retrieve_tool_memory", {"workspace_id": "parallel", "tool_names": "a"}).json()["metadata"]["memory_list"]
    assert len({c["output"] for c in memory["tool_call_results"]}) == 96


# --- hostile ones ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Host": "127.0.0.1.evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}],
    ids=str,
)
def test_another_name_or_page_is_refused(served: Served, headers: dict[str, str]) -> None:
    reply = served.post("retrieve_tool_memory", {"tool_names": "a"}, headers=headers)
    assert (reply.status_code, reply.json()["success"], reply.json()["error"]["type"]) == (403, False, "forbidden")


def test_pages_of_this_machine_are_answered_and_no_other_origin_is_invited(served: Served) -> None:
    reply = served.post("retrieve_tool_memory", {"tool_names": "a"}, headers={"Origin": "http://localhost:3000"})
    assert reply.status_code == 200
    assert not [h for h in reply.headers if h.startswith("access-control")]


def test_a_body_that_is_too_large_is_refused_declared_or_not(served: Served) -> None:
    declared = served.post("add_tool_call_result", content=b"x" * 9_000_000)
    assert (declared.status_code, declared.json()["error"]["type"]) == (413, "too_large")
    assert declared.json()["success"] is False

    def pieces() -> Iterator[bytes]:
        for _ in range(140):
            yield b"x" * 65_536

    try:
        chunked = served.post("add_tool_call_result", content=pieces())
        assert chunked.status_code == 413
    except httpx.WriteError:  # the server has closed the connection while the rest was being sent
        pass
    assert httpx.get(f"{served.url}health").status_code == 200


def test_a_body_that_comes_too_slowly_is_given_up() -> None:
    sent: list[dict[str, Any]] = []

    async def never() -> dict[str, Any]:
        await asyncio.sleep(60)
        return {}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("must not be reached")

    guard = Guard(app, host="127.0.0.1", token=None, body_within_s=0.05)
    scope = {"type": "http", "method": "POST", "path": "/x", "headers": [(b"host", b"127.0.0.1")]}
    asyncio.run(guard(scope, never, send))
    assert (sent[0]["status"], json.loads(sent[1]["body"])["error"]["type"]) == (503, "busy")


def test_a_server_with_a_token_answers_only_to_it(tmp_path: Path) -> None:
    with serving(tmp_path / "w", TOKEN="the-token-of-this-server") as server:
        assert server.post("retrieve_tool_memory", {"tool_names": "a"}).status_code == 401
        for wrong in (
            "Bearer x",
            "Bearer",
            "Basic the-token-of-this-server",
            "the-token-of-this-server",
            "Bearer the-token-of-this-serveR",
        ):
            refused = server.post("retrieve_tool_memory", {"tool_names": "a"}, headers={"Authorization": wrong})
            assert (refused.status_code, refused.json()["success"]) == (401, False)
        right = server.post("retrieve_tool_memory", {"tool_names": "a"}, headers={"Authorization": "Bearer the-token-of-this-server"})
        assert right.status_code == 200
        assert "the-token-of-this-server" not in server.log.read_text(encoding="utf-8")


def test_an_open_address_without_a_token_is_not_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--workspace", str(tmp_path), "serve", "--host", "0.0.0.0", "--port", "0"]) == 1
    assert "token" in capsys.readouterr().err


def test_a_workspace_that_is_not_there_yet_is_told_and_found_later(tmp_path: Path) -> None:
    with serving(tmp_path / "w") as server:
        (tmp_path / "w").rename(tmp_path / "gone")
        assert server.post("memory_search", {"query": "x"}).status_code in (404, 503)
        (tmp_path / "gone").rename(tmp_path / "w")
        assert server.post("add_tool_call_result", {"tool_call_results": [CALL]}).json()["success"]


def test_an_internal_error_shows_no_trace() -> None:
    from fastapi.testclient import TestClient

    from memory_tools.http_app import create_app

    class Broken:
        """Stands in for a resident whose memory fails in a way that nobody thought of."""

        def call(self, verb: str, arguments: object) -> object:
            raise RuntimeError("boom")

        def memory(self) -> object:
            raise RuntimeError("boom")

    client = TestClient(create_app(Broken()), raise_server_exceptions=False)  # type: ignore[arg-type]
    reply = client.post("/memory_search", json={"query": "x"})
    assert (reply.status_code, reply.json()["error"]["type"]) == (500, "internal")
    assert "Traceback" not in reply.text
    reply = client.post("/add_tool_call_result", json={"tool_call_results": []})
    assert (reply.status_code, reply.json()["success"], reply.json()["error"]["type"]) == (500, False, "internal")
    assert "Traceback" not in reply.text


def test_secrets_reach_neither_the_log_nor_the_disk_nor_the_reply(served: Served) -> None:
    secret = "ghp_" + "z9Y8" * 9
    body = {
        "workspace_id": "secrets",
        "tool_call_results": [CALL | {"input": {"cmd": f"curl -u bob:{secret} x"}, "output": f"token={secret}"}],
    }
    reply = served.post("add_tool_call_result", body)
    assert reply.json()["metadata"]["masked_secrets"] == 2
    assert secret not in reply.text
    assert secret not in served.log.read_text(encoding="utf-8")


# --- judges and crashes ----------------------------------------------------------------------------


def test_a_judge_that_fails_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    settings = {"JUDGE": "openai", "LLM_MODEL": "m", "EVALUATION_SLEEP_INTERVAL": "0", "SUMMARY_SLEEP_INTERVAL": "0"}
    with chat_server() as chat, serving(tmp_path / "w", LLM_BASE_URL=chat.url, **settings) as server:
        chat.mode = "401"
        added = server.post("add_tool_call_result", {"tool_call_results": [CALL]})
        assert added.json()["answer"] == "Successfully recorded 1 tool calls: 1 added, 0 duplicate, 0 refused, 1 pending"
        assert "401" in added.json()["metadata"]["pending"]["reasons"][0]
        failed = server.post("summary_tool_memory", {"tool_names": "a"})
        assert failed.status_code >= 500
        assert failed.json()["success"] is False
        assert "401" in failed.json()["error"]["message"]
        assert failed.json()["answer"] == "Successfully processed 1 tool memories: 0 summarized, 0 skipped, 1 failed (already up-to-date)"
        (memory,) = failed.json()["metadata"]["memory_list"]
        assert (memory["tool_call_results"], len(memory["metadata"]["pending_calls"])) == ([], 1)
        chat.mode = "good"
        done = server.post("summary_tool_memory", {"tool_names": "a"})
        assert (done.status_code, done.json()["metadata"]["memory_list"][0]["author"]) == (200, "m")
        asked = len(chat.asked)
        assert server.post("summary_tool_memory", {"tool_names": "a"}).json()["success"]
        assert len(chat.asked) == asked


def test_a_kept_connection_waits_for_no_acknowledgement(served: Served) -> None:
    """Every request but the first took 44 ms: an answer's body was held back until its head was acknowledged."""
    with httpx.Client(base_url=served.url) as client:
        took_s = []
        for _ in range(30):
            started = time.perf_counter()
            assert client.get("health").status_code == 200
            took_s.append(time.perf_counter() - started)
    assert min(took_s[1:]) < 0.03  # the quickest: the others may wait for a busy machine, and all waited for an acknowledgement


def test_a_server_killed_while_it_writes_leaves_files_that_load(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    for n in range(3):
        with serving(tmp_path / "w", MAX_HISTORY_TOOL_CALL_CNT="10000") as server:

            def write(who: str, server: Served = server) -> None:
                for i in range(10_000):
                    try:
                        reply = server.post("add_tool_call_result", {"tool_call_results": [CALL | {"output": f"{who}-{i}"}]}, timeout=5)
                    except httpx.HTTPError:
                        return
                    if reply.status_code == 200:
                        acknowledged.append(f"{who}-{i}")

            threads = [threading.Thread(target=write, args=(f"{n}{t}",)) for t in range(3)]
            for t in threads:
                t.start()
            begun = len(acknowledged)
            while len(acknowledged) < begun + 10:
                time.sleep(0.01)
            server.process.send_signal(signal.SIGKILL)
            for t in threads:
                t.join()
        (memory,) = ToolMemoryStore(tmp_path / "w").retrieve("a").memories
        kept = [c.output for c in memory.calls]
        assert set(acknowledged) <= set(kept)
        assert len(kept) == len(set(kept))
        assert memory.warnings == ()
    print(f"3 kills of a server: {len(acknowledged)} acknowledged, 0 lost, 0 doubled")


# --- the same through the command --------------------------------------------------------------------


def command(capsys: pytest.CaptureFixture[str], workspace: Path, *words: str) -> dict[str, Any]:
    code = cli.run(["--workspace", str(workspace), "tool", *words, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found | {"code": code}


def test_the_command_and_http_give_the_same_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bodies = [*calls(20), *calls(10, input={"query": "x", "max_results": 100}, success=False, output="Error: timed out")]
    bodies = [b | {"create_time": f"2025-10-15 14:00:{n:02d}"} for n, b in enumerate(bodies)]
    file = tmp_path / "calls.json"
    file.write_text(json.dumps(bodies), encoding="utf-8")
    workspace = tmp_path / "by_command"
    workspace.mkdir()
    steps = [
        ("record", str(file)),
        ("retrieve", "web_search,nope"),
        ("summarize", "web_search"),
        ("summarize", "web_search,nope"),
        ("retrieve", "web_search"),
    ]
    said = [command(capsys, workspace, *words) for words in steps]
    with serving(tmp_path / "by_http") as server:
        replies = [
            server.post("add_tool_call_result", {"tool_call_results": bodies}),
            server.post("retrieve_tool_memory", {"tool_names": "web_search,nope"}),
            server.post("summary_tool_memory", {"tool_names": "web_search"}),
            server.post("summary_tool_memory", {"tool_names": "web_search,nope"}),
            server.post("retrieve_tool_memory", {"tool_names": "web_search"}),
        ]
        answers = [r.json() | {"code": 0} for r in replies]
    times = re.compile(r'"time_(?:created|modified)": "[^"]*"')
    assert [times.sub("", json.dumps(d)) for d in said] == [times.sub("", json.dumps(d)) for d in answers]
    assert said[0]["metadata"]["memory_list"][0]["tool_call_results"]


def test_a_port_that_is_taken_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert cli.run(["--workspace", str(tmp_path), "serve", "--port", str(port)]) == 1
    assert "--port" in capsys.readouterr().err
