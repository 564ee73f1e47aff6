"""One table of requests, good and bad, through the command, MCP (both transports) and HTTP: equal documents but for recall ids."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client, StdioServerParameters

from memory_tools import cli

EDITED = 1_772_700_000  # when the notes were written; fixed, so that recency is the same in every run


@dataclass(frozen=True)
class Asked:
    """One request of the table. `status` is what HTTP answers with; `words` are the command's, made from the arguments where None."""

    verb: str
    arguments: Mapping[str, Any]
    status: int = 200
    same_text: bool = True  # False: the faces spell their arguments differently, so only the type of the error is compared


CALLS = [
    {
        "tool_name": "web_search",
        "input": {"query": "asyncio", "max_results": 10},
        "output": "Found 10",
        "create_time": "2026-03-05 10:00:00",
    },
    {"tool_name": "web_search", "input": {"query": "x"}, "output": "timeout", "success": False, "create_time": "2026-03-05 10:01:00"},
]
TOOL_WORDS = {"add_tool_call_result": "record", "summary_tool_memory": "summarize", "retrieve_tool_memory": "retrieve"}

# In this order, in one workspace: later ones see what earlier ones did.
TABLE = (
    Asked("memory_search", {"query": "汇报"}),
    Asked("memory_search", {"query": ["deploy", "ship a release"], "maxResults": 2, "context": "the web shop", "maxChars": 300}),
    Asked("memory_search", {"query": "deploy", "strict": True, "minScore": 0.9}),
    Asked("memory_search", {"query": "zebra quantum", "strict": True}),
    Asked("memory_get", {"path": "MEMORY.md"}),
    Asked("memory_get", {"path": "MEMORY.md#deploy"}),
    Asked("memory_get", {"path": "MEMORY.md#L3-L5"}),
    Asked("memory_get", {"path": "memory/2026-03-05.md", "from": 2, "lines": 1}),
    Asked("memory_get", {"path": "MEMORY.md", "from": 500}),
    Asked("memory_search", {"query": "how do we deploy"}),
    Asked("memory_feedback", {"used": [1], "outcome": "success", "eventId": "e1"}),
    Asked("memory_feedback", {"used": [1], "outcome": "success", "eventId": "e1"}),
    Asked("memory_feedback", {"used": ["MEMORY.md#主动汇报约定"], "outcome": "failure", "weight": 0.3}),
    Asked("memory_feedback", {"used": ["memory/2026-03-05.md#L3"], "outcome": "unknown", "positive": True}),
    Asked("memory_remember", {"text": "Anna moved to Oslo\n\n- new phone", "heading": "Anna", "eventId": "r1"}),
    Asked("memory_remember", {"text": "Anna moved to Oslo\n\n- new phone", "heading": "Anna", "eventId": "r1"}),
    Asked("memory_search", {"query": "where does Anna live"}),
    Asked("add_tool_call_result", {"tool_call_results": CALLS}),
    Asked("add_tool_call_result", {"tool_call_results": CALLS}),
    Asked("summary_tool_memory", {"tool_names": "web_search"}),
    Asked("summary_tool_memory", {"tool_names": "web_search,unheard_of"}),
    Asked("retrieve_tool_memory", {"tool_names": "unheard_of, web_search"}),
    Asked("retrieve_tool_memory", {"tool_names": "unheard_of"}),
    Asked("retrieve_tool_memory", {"tool_names": ","}),
    Asked("retrieve_tool_memory", {"tool_names": "web_search", "workspace_id": "other"}),
    # bad ones
    Asked("add_tool_call_result", {"tool_call_results": [{"tool_name": "web_search", "input": {}}]}, 422),
    Asked("add_tool_call_result", {"tool_call_results": [{**CALLS[0], "success": "yes"}]}, 422),
    Asked("retrieve_tool_memory", {"tool_names": "web_search", "workspace_id": "../out"}, 422),
    Asked("memory_search", {"query": ""}, 422),
    Asked("memory_search", {"query": " \n"}, 422),
    Asked("memory_search", {"query": "x", "maxResults": 0}, 422),
    Asked("memory_search", {"query": "x", "minScore": 2}, 422),
    Asked("memory_get", {"path": "../outside.md"}, 403),
    Asked("memory_get", {"path": "/etc/passwd"}, 403),
    Asked("memory_get", {"path": "memory/none.md"}, 404),
    Asked("memory_get", {"path": "MEMORY.md#deplay"}, 404),
    Asked("memory_get", {"path": "MEMORY.md", "lines": 0}, 422),
    Asked("memory_feedback", {"used": ["MEMORY.md#nothing"], "outcome": "success"}, 404),
    Asked("memory_feedback", {"used": [99], "outcome": "success"}, 422),
    Asked("memory_feedback", {"used": ["MEMORY.md#deploy"], "outcome": "success", "weight": 0}, 422),
    Asked("memory_feedback", {"used": [1], "outcome": "success", "recall": "rnone"}, 404),
    Asked("memory_remember", {"text": "  "}, 422),
    Asked("memory_remember", {"text": "x", "heading": "two\nlines"}, 422),
    Asked("memory_search", {"query": "x", "limit": 3}, 422, same_text=False),
    Asked("memory_search", {"query": "x", "maxResults": "many"}, 422, same_text=False),
    Asked("memory_feedback", {"used": ["MEMORY.md"], "outcome": "great"}, 422, same_text=False),
)

TIMES = {"lastUsed", "time_created", "time_modified"}  # of this very run
OPTIONS = {"maxResults": "--max-results", "minScore": "--min-score", "maxChars": "--max-chars", "eventId": "--event-id"}


pytestmark = pytest.mark.usefixtures("alone")


def make_workspace(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    (root / "memory").mkdir(parents=True)
    memory = (
        "# Memory\n\n## 主动汇报约定\n\n- 每天 18:00 汇报进度\n\n## Deploy\n\n- deploy the web shop with make ship\n- never on Fridays\n"
    )
    (root / "MEMORY.md").write_text(memory, encoding="utf-8")
    (root / "memory" / "2026-03-05.md").write_text("# 2026-03-05\n\n- Anna likes tea\n- the release took an hour\n", encoding="utf-8")
    for note in root.rglob("*.md"):
        os.utime(note, (EDITED, EDITED))


def words_of(asked: Asked) -> list[str]:
    """The same request as a command line."""
    given = dict(asked.arguments)
    words: list[str] = []
    if asked.verb in TOOL_WORDS:
        workspace = ["--workspace-id", given["workspace_id"]] if "workspace_id" in given else []
        return ["tool", TOOL_WORDS[asked.verb], "--json", *workspace, *([given["tool_names"]] if "tool_names" in given else [])]
    if asked.verb == "memory_search":
        query = given.pop("query")
        first, *variants = [query] if isinstance(query, str) else query
        words = [first, *(word for variant in variants for word in ("--variant", variant))]
    elif asked.verb == "memory_feedback":
        words = [str(one) for one in given.pop("used")]
    else:
        words = [given.pop("path", None) or given.pop("text")]
    for name, value in given.items():
        option = OPTIONS.get(name, f"--{name}")
        words += [option] if value is True else [option, str(value)]
    return [asked.verb.removeprefix("memory_"), "--json", *words]


Face = Callable[[Asked], tuple[Any, int | None]]  # the document, and the status of HTTP


def by_command(root: Path) -> Iterator[Face]:
    """In this process: argv of another one could not carry half a surrogate pair."""

    def ask(asked: Asked) -> tuple[Any, int | None]:
        stdout, sys.stdout = sys.stdout, io.StringIO()
        stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(json.dumps(asked.arguments.get("tool_call_results")).encode()))
        try:
            code = cli.run(["--workspace", str(root), *words_of(asked)])
            document = json.loads(sys.stdout.getvalue())
        finally:
            sys.stdout, sys.stdin = stdout, stdin
        assert code == (0 if asked.status == 200 else 1 if asked.same_text else 2)
        return document, None

    yield ask


@contextmanager
def listening(root: Path, *words: str) -> Iterator[str]:
    """The address that a server of its own process says it listens on."""
    said = root.parent / f"{words[0]}.txt"
    command = (sys.executable, "-m", "memory_tools", "--workspace", str(root), *words, "--port", "0")
    with said.open("w") as stderr, subprocess.Popen(command, stderr=stderr) as child:
        try:
            while not (found := re.search(r"^listening on (http://\S+)\n", said.read_text(), re.M)):
                assert child.poll() is None, said.read_text()
                time.sleep(0.05)
            yield found[1]
        finally:
            child.terminate()


def by_mcp(root: Path, over_http: bool) -> Iterator[Face]:
    with ExitStack() as stack:
        command = ["-m", "memory_tools", "--workspace", str(root), "mcp"]
        server: Any = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
        if over_http:
            server = stack.enter_context(listening(root, "mcp", "--http"))
        portal = stack.enter_context(anyio.from_thread.start_blocking_portal())
        client = stack.enter_context(portal.wrap_async_context_manager(Client(server)))

        def ask(asked: Asked) -> tuple[Any, int | None]:
            result = portal.call(client.call_tool, asked.verb, dict(asked.arguments))
            assert result.is_error == (asked.status != 200), (asked, result.structured_content)
            assert json.loads(result.content[0].text) == result.structured_content
            return result.structured_content, None

        yield ask


def by_http(root: Path) -> Iterator[Face]:
    with listening(root, "serve") as url, httpx.Client(base_url=url) as client:

        def ask(asked: Asked) -> tuple[Any, int | None]:
            body = json.dumps(asked.arguments).encode()  # as ASCII: JSON may name half a surrogate pair
            answer = client.post(f"/{asked.verb}", content=body, headers={"content-type": "application/json"})
            document = answer.json()
            # On the tool routes an error stands beside the keys that their older clients read.
            return {"error": document["error"]} if "error" in document else document, answer.status_code

        yield ask


FACES: Mapping[str, Callable[[Path], Iterator[Face]]] = {
    "command": by_command,
    "mcp over stdio": lambda root: by_mcp(root, over_http=False),
    "mcp over http": lambda root: by_mcp(root, over_http=True),
    "http": by_http,
}


def comparable(value: Any, recalls: dict[str, str]) -> Any:
    """The document with recall ids numbered in order of appearance, in messages too, and times of use left out."""
    if isinstance(value, dict):
        if isinstance(value.get("recall"), str):
            recalls.setdefault(value["recall"], f"recall {len(recalls)}")
        return {key: comparable(item, recalls) for key, item in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [comparable(item, recalls) for item in value]
    if isinstance(value, str):
        for known, number in recalls.items():
            value = value.replace(known, number)
    return value


def same(one: Any, other: Any) -> bool:
    """Equal, but for what the seconds between two faces change in a recency."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) < 1e-3
    return bool(one == other)


def answers(face: Callable[[Path], Iterator[Face]], root: Path) -> list[Any]:
    make_workspace(root)
    recalls: dict[str, str] = {}
    out = []
    with contextmanager(face)(root) as ask:
        for asked in TABLE:
            document, status = ask(asked)
            assert status in (None, asked.status), (asked, document)
            shown = comparable(document, recalls)
            out.append(shown if asked.same_text else {"type": shown["error"]["type"]})
    return out


def test_every_face_gives_the_same_documents(tmp_path: Path) -> None:
    """case 31 and the errors of every face."""
    root = tmp_path / "ws"
    every = {name: answers(face, root) for name, face in FACES.items()}
    for name, given in every.items():
        for asked, one, expected in zip(TABLE, given, every["command"], strict=True):
            assert same(one, expected), f"{name} answers {asked.verb} {dict(asked.arguments)} with {one}, the command with {expected}"
