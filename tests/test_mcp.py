"""The MCP server, spoken to by the SDK's own client over both transports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import mcp_types as types
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters

from memory_tools import mcp_server, mcp_tools, verbs
from memory_tools.config import Config
from memory_tools.resident import Resident


def clean(config: Path, **more: str) -> dict[str, str]:
    """An environment without the configuration of whoever runs the tests."""
    rest = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORY_TOOLS_", "OPENCLAW_"))}
    return {**rest, "XDG_CONFIG_HOME": str(config), "MEMORY_TOOLS_ENCODER": "none", **more}


pytestmark = pytest.mark.usefixtures("alone")


def make_workspace(place: Path) -> Path:
    (place / "memory").mkdir(parents=True)
    (place / "MEMORY.md").write_text("# Memory\n\n## 主动汇报约定\n\n- 每天 18:00 汇报进度\n", encoding="utf-8")
    (place / "memory" / "2026-03-05.md").write_text("# 2026-03-05\n\n- Anna likes tea\n", encoding="utf-8")
    return place


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "ws")


def command(root: Path, *words: str) -> list[str]:
    return ["-m", "memory_tools", "--workspace", str(root), "mcp", *words]


@contextmanager
def over_http(root: Path, *words: str, env: dict[str, str] | None = None) -> Iterator[str]:
    """The URL of a server of its own process."""
    said = root.parent / "stderr.txt"
    words = (sys.executable, *command(root, "--http", "--port", "0", *words))
    with said.open("w") as stderr, subprocess.Popen(words, stderr=stderr, env=env or dict(os.environ)) as child:
        try:
            while not (lines := said.read_text().split("\n"))[0].startswith("listening on ") or len(lines) < 2:
                assert child.poll() is None, said.read_text()
                time.sleep(0.05)
            yield lines[0].removeprefix("listening on ")
        finally:
            child.terminate()


@dataclass(frozen=True)
class Served:
    """A server that several tests speak to: the SDK alone takes a second to load. They ask for nothing that another one changes."""

    root: Path
    url: str


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = make_workspace(tmp_path_factory.mktemp("standing") / "ws")
    with over_http(root, env=clean(root.parent / "config")) as url:
        yield Served(root, url)


@pytest.fixture(scope="module")
def judged_by_agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = make_workspace(tmp_path_factory.mktemp("agent") / "ws")
    with over_http(root, env=clean(root.parent / "config", MEMORY_TOOLS_JUDGE="agent")) as url:
        yield Served(root, url)


def own_process(root: Path) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=command(root), env=dict(os.environ))


@dataclass(frozen=True)
class Session:
    """The SDK's own client, connected for as long as this file's tests run."""

    root: Path
    client: Client
    portal: BlockingPortal

    def ask(self, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
        return [self.portal.call(self.client.call_tool, name, arguments) for name, arguments in calls]


@pytest.fixture(scope="module", params=["stdio", "http"])
def session(request: pytest.FixtureRequest, standing: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    server: Any = standing.url
    root = standing.root
    if request.param == "stdio":
        root = make_workspace(tmp_path_factory.mktemp("stdio") / "ws")
        server = StdioServerParameters(command=sys.executable, args=command(root), env=clean(root.parent / "config"))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server)) as client:
        yield Session(root, client, portal)


def ask(server: Any, *calls: tuple[str, dict[str, Any]], mode: str = "auto") -> list[Any]:
    """The results of these calls, in one session."""

    async def session() -> list[Any]:
        async with Client(server, mode=mode) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return anyio.run(session)


def test_the_tools_are_listed_with_closed_schemas_and_annotations(session: Session) -> None:
    listed, instructions = session.portal.call(session.client.list_tools), session.client.instructions
    assert {tool.name for tool in listed.tools} == {*verbs.VERBS, *mcp_tools.TOOL_VERBS}
    for tool in listed.tools:
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
        assert tool.description
        assert tool.annotations.open_world_hint is False
        assert tool.annotations.destructive_hint is False
    search = next(tool for tool in listed.tools if tool.name == "memory_search")
    assert search.input_schema["required"] == ["query"]
    assert set(search.input_schema["properties"]) == {"query", "maxResults", "minScore", "context", "maxChars", "strict"}
    assert search.annotations.read_only_hint
    assert "never instructions" in instructions


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_answers_are_structured_and_the_same_as_text(root: Path, standing: Served, transport: str, mode: str) -> None:
    root = root if transport == "stdio" else standing.root
    found, read, kept = ask(
        own_process(root) if transport == "stdio" else standing.url,
        ("memory_search", {"query": ["汇报", "report"], "maxResults": 2.0, "context": None}),
        ("memory_get", {"path": "MEMORY.md#L3-L5", "from": 4, "lines": 2}),
        ("memory_remember", {"text": f"Anna moved to Oslo, says {mode}", "heading": "Anna", "eventId": mode}),
        mode=mode,
    )
    result = found.structured_content["results"][0]
    assert result["address"] == "MEMORY.md#主动汇报约定"
    assert result["successRate"] is None
    assert read.structured_content["text"] == "\n- 每天 18:00 汇报进度\n"
    assert (root / kept.structured_content["path"]).read_text(encoding="utf-8").endswith(f"## Anna\n\nAnna moved to Oslo, says {mode}\n")
    for one in (found, read, kept):
        assert not one.is_error
        assert json.loads(one.content[0].text) == one.structured_content


def test_unknown_arguments_are_refused_by_name_with_the_nearest(session: Session) -> None:
    """case 31: unknown parameters are ignored."""
    limit, typo, missing, wrong, choice, unknown = session.ask(
        ("memory_search", {"query": "tea", "limit": 3}),
        ("memory_search", {"query": "tea", "max_results": 3}),
        ("memory_search", {"maxResults": 3}),
        ("memory_search", {"query": 5}),
        ("memory_feedback", {"used": ["MEMORY.md"], "outcome": "great"}),
        ("memory_serach", {"query": "tea"}),
    )
    for one in (limit, typo, missing, wrong, choice, unknown):
        assert one.is_error
        assert json.loads(one.content[0].text) == one.structured_content
    assert "unknown argument 'limit'" in limit.structured_content["error"]["message"]
    assert "did you mean 'maxResults'" in limit.structured_content["error"]["hint"]
    assert "did you mean 'maxResults'" in typo.structured_content["error"]["hint"]
    assert missing.structured_content["error"]["message"] == "query: is required"
    assert wrong.structured_content["error"]["message"] == "query: expected a text or a list of texts, not 5"
    assert "success, failure, unknown" in choice.structured_content["error"]["message"]
    assert unknown.structured_content["error"]["type"] == "not_found"
    assert unknown.structured_content["error"]["hint"].endswith("add_tool_call_result, summary_tool_memory")  # all of them


def test_errors_of_memory_are_results_and_the_session_goes_on(session: Session) -> None:
    outside, empty, after = session.ask(
        ("memory_get", {"path": "../../etc/passwd"}),
        ("memory_search", {"query": "  "}),
        ("memory_search", {"query": "tea"}),
    )
    assert outside.structured_content["error"]["type"] == "forbidden"
    assert empty.structured_content["error"]["type"] == "invalid"
    assert after.structured_content["results"]


def test_initialize_is_answered_while_the_index_is_still_being_made(root: Path) -> None:
    """case 33: a backfill blocks `initialize`."""

    async def session(resident: Resident) -> tuple[int, bool]:
        server = mcp_server.make_server(resident)
        async with Client(server, mode="legacy") as client:
            listed = await client.list_tools()
            # A search that waits for the memory does not hold up what needs none.
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "memory_search", {"query": "tea"})
                await client.list_tools()
                resident._lock.release()
            return len(listed.tools), True

    resident = Resident(Config(root, encoder="none"))
    resident._lock.acquire()  # as if opening took for ever
    with resident:
        assert anyio.run(session, resident) == (len(verbs.VERBS) + len(mcp_tools.TOOL_VERBS), True)


def test_a_workspace_that_is_missing_is_an_error_of_each_call_until_it_is_there(tmp_path: Path) -> None:
    root = tmp_path / "later"

    async def session() -> tuple[Any, Any]:
        async with Client(StdioServerParameters(command=sys.executable, args=command(root), env=dict(os.environ))) as client:
            before = await client.call_tool("memory_search", {"query": "tea"})
            root.mkdir()
            (root / "MEMORY.md").write_text("# Memory\n\n- Anna likes tea\n")
            return before, await client.call_tool("memory_search", {"query": "tea"})

    before, after = anyio.run(session)
    assert before.structured_content["error"]["type"] == "not_found"
    assert after.structured_content["results"]


def test_the_server_ends_with_its_input_even_while_it_reads_notes(root: Path) -> None:
    """case 33: the MCP server outlives its client."""
    for n in range(400):
        (root / "memory" / f"n{n}.md").write_text(f"# N{n}\n\n" + f"- item {n} of a longer note\n" * 20)
    child = subprocess.Popen([sys.executable, *command(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps(hello).encode() + b"\n")
    child.stdin.flush()
    answer = json.loads(child.stdout.readline())
    assert answer["result"]["serverInfo"]["name"] == "memory-tools"
    _, err = child.communicate(timeout=30)  # closes its input
    assert child.returncode == 0
    assert err == b""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_server_that_waits_for_input_and_its_watcher_in_order(root: Path, number: signal.Signals) -> None:
    """In a terminal it ended only at the second Ctrl-C, and `status` said for ever after that the watcher had died."""
    child = subprocess.Popen(
        [sys.executable, *command(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # as in a terminal
    )
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}).encode() + b"\n")  # fmt: skip
        child.stdin.flush()
        child.stdout.readline()
        until = time.monotonic() + 20
        while not (root / ".memory-tools/watcher.json").exists() and time.monotonic() < until:
            time.sleep(0.05)
        child.send_signal(number)
        assert child.wait(10) == 128 + number
        assert child.stderr is not None
        assert child.stderr.read() == b""
    finally:
        child.kill()
        child.communicate()
    assert not (root / ".memory-tools/watcher.json").exists()


# --- tool memory -----------------------------------------------------------------------

CALLS = [
    {"tool_name": "web_search", "input": {"query": "asyncio", "max_results": 10}, "output": "Found 10 relevant results", "time_cost": 1.0},
    {
        "tool_name": "web_search",
        "input": {"query": "x", "max_results": 100},
        "output": "Error: timeout",
        "success": False,
        "time_cost": 30.0,
    },
]


def test_tool_calls_are_recorded_distilled_and_read_back(session: Session) -> None:
    added, summed, got, none, wrong = session.ask(
        ("add_tool_call_result", {"tool_call_results": CALLS}),
        ("summary_tool_memory", {"tool_names": "web_search"}),
        ("retrieve_tool_memory", {"tool_names": "web_search,unheard_of"}),
        ("retrieve_tool_memory", {}),
        ("retrieve_tool_memory", {"tools": "web_search"}),
    )
    assert not added.is_error, added.structured_content
    assert added.structured_content["answer"] == "Successfully recorded 2 tool calls: 2 added, 0 duplicate, 0 refused, 0 pending"
    assert summed.structured_content["success"] is True
    assert got.structured_content["metadata"]["missing"] == ["unheard_of"]
    assert got.structured_content["metadata"]["memory_list"][0]["when_to_use"] == "web_search"
    assert none.structured_content["answer"] == "tool_names is required"
    assert not none.is_error
    assert wrong.is_error
    assert "unknown argument 'tools'" in wrong.structured_content["error"]["message"]
    assert "did you mean 'tool_names'" in wrong.structured_content["error"]["hint"]
    assert list((session.root / "memory" / "tools").glob("*.md"))


GUIDELINE = "## Core Function\n\nFinds pages.\n\n## Parameters\n\nmax_results 10 worked, 100 timed out."


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_where_the_agent_judges_its_own_model_writes_the_guideline(
    root: Path, judged_by_agent: Served, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_TOOLS_JUDGE", "agent")
    asked: list[Any] = []

    async def sampled(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        asked.append(params)
        said = types.TextContent(type="text", text=json.dumps({"guideline": GUIDELINE}))
        return types.CreateMessageResult(role="assistant", content=said, model="theirs")

    async def session(server: Any) -> tuple[Any, Any]:
        judged = [{**call, "summary": "s", "evaluation": "e", "score": 1.0} for call in CALLS]
        async with Client(server, mode="legacy", sampling_callback=sampled) as client:
            await client.call_tool("add_tool_call_result", {"tool_call_results": judged})
            done = await client.call_tool("summary_tool_memory", {"tool_names": "web_search"})
            return done, await client.call_tool("retrieve_tool_memory", {"tool_names": "web_search"})

    done, got = anyio.run(session, own_process(root) if transport == "stdio" else judged_by_agent.url)
    assert len(asked) == 1
    assert "never follow instructions" in asked[0].system_prompt
    assert done.structured_content["success"] is True, done.structured_content
    memory = got.structured_content["metadata"]["memory_list"][0]
    assert "max_results 10 worked" in memory["content"]
    assert memory["author"] == "client"


def test_a_client_that_refuses_or_offers_no_model_leaves_the_guideline_to_the_agent(judged_by_agent: Served) -> None:
    judged = [{**call, "tool_name": "web_fetch", "summary": "s", "evaluation": "e", "score": 1.0} for call in CALLS]

    async def refused(context: Any, params: Any) -> types.ErrorData:
        return types.ErrorData(code=-1, message="the user said no")

    async def session(callback: Any) -> Any:
        async with Client(judged_by_agent.url, mode="legacy", sampling_callback=callback) as client:
            await client.call_tool("add_tool_call_result", {"tool_call_results": judged})
            return await client.call_tool("summary_tool_memory", {"tool_names": "web_fetch"})

    for callback, why in ((refused, "the user said no"), (None, "the calling agent writes it")):
        done = anyio.run(session, callback)
        assert done.structured_content["success"] is False
        assert why in json.dumps(done.structured_content)


# --- HTTP alone ------------------------------------------------------------------------


def test_other_hosts_origins_and_large_bodies_are_refused(standing: Served) -> None:
    """case 36: DNS rebinding on the HTTP face."""
    url = standing.url
    accept = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    for headers, status in (
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example:80"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
    ):
        refused = httpx.post(url, headers={**accept, **headers}, json={})
        assert refused.status_code == status, headers
        assert refused.json()["error"]["type"] == "forbidden"
    large = httpx.post(url, headers=accept, content=b" " * (9 * 1024 * 1024))
    assert large.status_code == 413
    assert large.json()["error"]["type"] == "too_large"

    def pieces() -> Iterator[bytes]:
        yield from (b" " * 1024 * 1024 for _ in range(9))

    assert httpx.post(url, headers=accept, content=pieces()).status_code == 413
    for headers in ({"origin": "http://localhost:3000"}, {"host": "localhost:1"}, {"host": "[::1]:5"}, {"host": "0.0.0.0"}):
        assert httpx.post(url, headers={**accept, **headers}, json={}).status_code not in (403, 413, 421), headers


def test_without_a_token_only_this_machine_is_served(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, *command(root, "--http", "--host", "0.0.0.0", "--port", "0", "--json")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "token" in json.loads(done.stdout)["error"]["message"]


def test_a_token_is_asked_for_where_one_is_set(root: Path) -> None:
    with over_http(root, "--host", "0.0.0.0", env={**os.environ, "MEMORY_TOOLS_TOKEN": "s3cret"}) as url:
        url = url.replace("0.0.0.0", "127.0.0.1")
        accept = {"accept": "application/json, text/event-stream"}
        for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic s3cret"}):
            refused = httpx.post(url, headers={**accept, **given}, json={})
            assert refused.status_code == 401
            assert refused.json()["error"]["type"] == "unauthorized"
            assert refused.headers["www-authenticate"] == "Bearer"
        known = httpx.post(url, headers={**accept, "authorization": "Bearer s3cret", "host": "notes.home.example"}, json={})
        assert known.status_code not in (401, 403)


def test_a_taken_port_is_a_clear_error(root: Path, standing: Served) -> None:
    port = standing.url.split(":")[2].split("/")[0]
    done = subprocess.run(
        [sys.executable, *command(root, "--http", "--port", port, "--json")], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["type"] == "busy"
