"""Anything as a note, a sidecar, a record, a configuration, a request or a name: an answer or one of our own errors comes out, in time.

Each test's time limit is its bound: what would take quadratic time on these sizes takes hours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client

from memory_tools import Memory, mcp_server, plain_yaml, render, verbs
from memory_tools.config import Config
from memory_tools.errors import InvalidInput, MemoryToolsError
from memory_tools.http_app import create_app
from memory_tools.http_serving import Guard
from memory_tools.recall_log import parse as parse_receipts
from memory_tools.resident import Resident
from memory_tools.tool_memory import ToolMemoryStore

CORPUS = Path(__file__).parent / "corpus"
TRIED: Counter[str] = Counter()
FACTOR = int(os.environ.get("HOSTILE_FACTOR", "1"))  # so many times the inputs
HARBOUR = "# Memory\n\n## Harbour\n\n- The harbour code is 4711.\n"
some = settings(
    max_examples=25 * FACTOR,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# What parsers and renderers trip over, rather than letters.
ODD = st.sampled_from(
    [
        *"#[]`-*_>|<!\\&~=+:;'\"(){}$%@^/?,. \t\n\r\f\v\0\x1b\x7f\x85",
        "\u2028",
        "\ufeff",
        "\ufdfa",
        "\u0301",
        "\u202e",
        "\u200d",
        "\U0001f469",
    ]
    + [
        "```",
        "---\n",
        "# ",
        "- ",
        "  ",
        "1. ",
        "<!--",
        "-->",
        "](",
        "| - |\n",
        "===\n",
        "[a]: b\n",
        "<div>",
        "记忆",
        "ก",
        "e\u0301",
        "harbour",
    ]
)
ODD_TEXT = st.lists(ODD, max_size=60).map("".join)
ANY_TEXT = st.one_of(ODD_TEXT, st.text(max_size=80), st.text(st.characters(), max_size=20))
BROKEN_TEXT = st.text(st.characters(codec=None, categories=None) | st.characters(categories=["Cs"]), max_size=20)
NUMBERS = st.one_of(st.integers(), st.floats(), st.sampled_from([10**30, -(10**400), 1e308, 2**63, -(2**63) - 1]))
ANY_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | ANY_TEXT | BROKEN_TEXT, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4), max_leaves=8
)  # fmt: skip


pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    (place / "memory" / "tools").mkdir(parents=True)
    (place / "MEMORY.md").write_text(HARBOUR, encoding="utf-8")
    return place


@pytest.fixture(scope="module", autouse=True)
def figures() -> Iterator[None]:
    yield
    print("\ninputs tried: " + ", ".join(f"{name} {count:,}" for name, count in sorted(TRIED.items())) + f"; {TRIED.total():,} in all")


def answered(work: Callable[[], object], kind: str) -> object:
    """What came out, None for one of our errors. Anything else that is raised fails the test."""
    TRIED[kind] += 1
    try:
        return work()
    except MemoryToolsError as e:
        assert e.kind != "internal", e
        assert len(e.message) < 6_000
        return None


def still_found(memory: Memory) -> None:
    assert "4711" in memory.search("harbour code")[0].snippet


# --- notes --------------------------------------------------------------------------------------------

REPEATED = ("#", "[", "`", "-", "\ufdfa", "\u0301")
REPEATED_TOO = (
    "\ufdfa", "*", ">", "<", "|", "\n", " ", "\t", "\r", "\0", "a", "a.", "a-", "'", "1:", "1,111,", "aB", "\U0001f468\u200d", "\U0001f1e6", "\u1100", "<!--",
    "**a ", "_a_", "\\", "&amp;", "](", "![", "~", "=", "#L1-", "あ", "\u2028", "<a ", "<!-- archived {", " a", '"', "\u3099", "ก", "\u093f",
    "2026-03-05 ", "[a](b) ", "> ", ":", "---\n", "|-", "http://a",
)  # fmt: skip


def million(root: Path, piece: str, size: int) -> None:
    text = piece * (size // len(piece.encode()))
    (root / "memory" / "long.md").write_text(f"# Long\n\nlong {text}\n\n## After\n\nzebra crossing\n", encoding="utf-8", newline="")
    with Memory(root) as memory:
        memory.sync()
        still_found(memory)
        answered(lambda: memory.search(f"harbour code {text[:15_000]}"), "megabytes of one thing")
        answered(lambda: memory.get(f"memory/long.md#{text[:3_000]}"), "megabytes of one thing")
        answered(lambda: memory.remember(text[:100_000]), "megabytes of one thing")
        assert memory.get("memory/long.md", 1, 1).text == "# Long\n"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", REPEATED, ids=ascii)
def test_a_megabyte_of_one_thing_is_read_and_searched_in_bounded_time(root: Path, piece: str) -> None:
    million(root, piece, 100_000 if piece == "\ufdfa" else 1_000_000)  # each of those is 18 letters; the whole is below


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", REPEATED_TOO, ids=ascii)
def test_a_megabyte_of_any_other_thing_is_read_and_searched_in_bounded_time(root: Path, piece: str) -> None:
    million(root, piece, 1_000_000)


LINES = (
    "# a\n",
    "- a\n",
    "> ",
    "    a\n",
    "a\n=\n",
    "1. a\n   ",
    "[a]: b\n",
    "<div>\n",
    "```\n",
    "| a | b |\n",
    "\t- a\n",
    "  " * 40 + "- a\n",
)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("line", [*LINES[:5], *(pytest.param(line, marks=pytest.mark.slow) for line in LINES[5:])], ids=ascii)
def test_thousands_of_lines_of_one_kind_are_read_in_bounded_time(root: Path, line: str) -> None:
    million(root, line, 2_500 * len(line) if len(line) < 20 else 100_000)


@pytest.mark.timeout(60)
def test_a_note_of_fifty_megabytes_is_told_and_the_others_are_found(root: Path) -> None:
    with (root / "memory" / "giant.md").open("wb") as stream:
        for _ in range(50):
            stream.write(b"harbour code 9999\n" * 58_254)
    with Memory(root) as memory:
        report = memory.sync()
        assert [s.path for s in report.skipped] == ["memory/giant.md"]
        still_found(memory)
        with pytest.raises(MemoryToolsError, match="the limit is"):
            memory.get("memory/giant.md")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("megabytes", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_a_line_of_megabytes_is_found_and_shown_in_part(root: Path, megabytes: int) -> None:
    half = "word " * (100_000 * megabytes)
    (root / "memory" / "wide.md").write_text(f"# Wide\n\n{half}zebracrossing {half}\n", encoding="utf-8")
    with Memory(root) as memory:
        memory.sync()
        found = memory.search("zebracrossing")[0]
        assert "zebracrossing" in found.snippet
        assert len(found.snippet) <= 1_200
        assert len(memory.get("memory/wide.md").text) <= 20_000
        still_found(memory)


@pytest.mark.parametrize("file", sorted(CORPUS.glob("*.md")), ids=lambda file: file.stem)
def test_a_note_of_the_corpus_is_read_searched_and_shown(root: Path, file: Path) -> None:
    (root / "memory" / "odd.md").write_bytes(file.read_bytes())
    with Memory(root) as memory:
        memory.sync()
        still_found(memory)
        for result in memory.search(["odd", file.stem, "harbour"], min_score=0.0):
            json.dumps(verbs.call(memory, "memory_get", {"path": result.citation})).encode()
            answered(lambda r=result: memory.get(r.address), "notes")  # type: ignore[misc]
        memory.get("memory/odd.md")
        assert memory.check(fix=True).ok


@some
@given(raw=st.one_of(ODD_TEXT.map(str.encode), st.binary(max_size=200)))
def test_any_bytes_may_be_a_note(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    root = tmp_path_factory.mktemp("any")
    (root / "MEMORY.md").write_text(HARBOUR, encoding="utf-8")
    (root / "TOOLS.md").write_bytes(raw)
    with Memory(root) as memory:
        memory.sync()
        still_found(memory)
        excerpt = memory.get("TOOLS.md")
        verbs.call(memory, "memory_get", {"path": "TOOLS.md"})
        for result in memory.search([excerpt.text[:500].replace("\0", "") or "x", "harbour"], min_score=0.0):
            TRIED["notes"] += 1
            assert memory.get(result.address) is not None


# --- YAML ---------------------------------------------------------------------------------------------------

_KEYS = ", ".join(f"k{i}: 1" for i in range(1_500))
BOMBS = {
    "laughs": "a: &a [x, x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]\n" for i in range(20)),
    "merges": f"b0: &b0 {{{_KEYS}}}\n" + "".join(f"b{i}: &b{i} {{<<: [*b{i - 1}, *b{i - 1}]}}\n" for i in range(1, 11)),
    "deep list": "a: " + "[" * 20_000,
    "deep map": "a: " + "{a: " * 10_000,
    "deep blocks": "".join(" " * i + "a:\n" for i in range(1_000)),
    "itself": "a: &a [*a]",
    "hexadecimal": "importance: 0x" + "f" * 40_000,
    "sexagesimal": "importance: 1" + ":59" * 20_000,
    "decimal": "importance: " + "9" * 40_000,
    "object": "a: !!python/object/apply:os.system [echo]",
    "tag": "a: !x/y z",
    "keys": "? [a, b]\n: c",
    "twice": "a: 1\na: 2\n" * 4_000,
    "quotes": 'a: "' + "\\u0000" * 10_000,
    "half": 'a: "\\uD800"',
    "documents": "a: 1\n---\nb: 2\n",
    "directive": "%YAML 9.9\n---\na: 1",
    "dates": "date: 2026-02-31\ntime: 25:61:61\nx: 2026-01-01 00:00:00+99:99",
    "not numbers": "importance: .nan\nscore: .inf\nstatistics: {total_calls: .nan, success_rate: .inf}",
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", BOMBS)
def test_yaml_that_multiplies_or_nests_is_bounded_wherever_it_is_read(root: Path, name: str) -> None:
    text = BOMBS[name]
    answered(lambda: plain_yaml.parse(text), "YAML")
    (root / "memory" / "odd.md").write_text(f"---\n{text}\n---\n# Odd\n\nodd note\n", encoding="utf-8")
    page = f"---\nmemory_type: tool\nwhen_to_use: web_search\n{text}\n---\n# web_search\n\nodd page\n"
    (root / "memory" / "tools" / "web_search.md").write_text(page, encoding="utf-8")
    with Memory(root) as memory:
        memory.sync()
        still_found(memory)
        for query in ("odd note", "odd page"):
            answered(lambda q=query: verbs.call(memory, "memory_search", {"query": q, "minScore": 0.0}), "YAML")  # type: ignore[misc]
        report = memory.record_tool_calls([{"tool_name": "web_search", "input": "q", "output": "Found 3"}])
        assert "1 added" in report.answer
        json.dumps(dict(memory.tool_memories("web_search").document()))
        answered(lambda: memory.summarize_tools("web_search"), "YAML")
    (root / "memory-tools.yaml").write_text(text, encoding="utf-8")
    answered(lambda: Memory(root).close(), "YAML")


@some
@given(
    text=st.lists(
        st.sampled_from([*"&*!|>%@`#-?:,[]{}'\"\n \t~", "<<: ", "a: ", "- ", "!!int ", "!!set ", "&a ", "*a", "1e9", "0x1", "---\n"]),
        max_size=40,
    )
)
def test_any_yaml_is_a_value_or_a_refusal(text: list[str]) -> None:
    TRIED["YAML"] += 1
    with suppress(InvalidInput):
        plain_yaml.parse("".join(text))


# --- JSON -------------------------------------------------------------------------------------------------------

DEEP = [
    f"{open_ * depth}{close * depth if whole else ''}"
    for depth in (90, 900, 5_000, 200_000)
    for open_, close in (("[", "]"), ('{"a":', "}"))
    for whole in (1, 0)
]
JSON_FILES = (
    "memory/utility-scores.json", ".memory-tools/recalls.jsonl", ".memory-tools/tool-usage.jsonl", ".memory-tools/watcher.json",
    "memory/tools/web_search.calls.jsonl", "memory/.remembered.jsonl",
)  # fmt: skip


def use(root: Path) -> None:
    """Each verb that reads or writes one of the files."""
    with Memory(root) as memory:
        still_found(memory)
        for work in (
            lambda: memory.feedback("MEMORY.md#harbour", event_id="e"),
            lambda: memory.feedback(1, recall="last"),
            lambda: memory.remember("The lighthouse blinks."),
            memory.scores,
            memory.recalculate,
            memory.archive,
            lambda: memory.record_tool_calls([{"tool_name": "web_search", "input": "q", "output": "Found 3"}]),
            lambda: memory.summarize_tools("web_search"),
            lambda: json.dumps(dict(memory.tool_memories("web_search").document())),
            memory.tool_stats,
            memory.status,
            memory.check,
        ):
            answered(work, "JSON files")


@pytest.mark.timeout(100)
@pytest.mark.parametrize("name", JSON_FILES)
def test_json_files_that_nest_without_end_are_bounded(root: Path, name: str) -> None:
    path = root / name
    path.parent.mkdir(exist_ok=True)
    for deep in (*DEEP[4::3], f'{{"MEMORY.md#harbour": {{"use_count": 1, "x": {DEEP[4]}}}}}'):
        path.write_text(deep + "\n", encoding="utf-8")
        use(root)
        if name == "memory/utility-scores.json" and path.read_text(encoding="utf-8") != deep + "\n":
            json.loads(path.read_text(encoding="utf-8"))  # it was one that could be read, and so may be written


@pytest.mark.timeout(100)
@pytest.mark.parametrize("name", JSON_FILES)
@settings(
    max_examples=4 * FACTOR,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(value=ANY_JSON, noise=st.binary(max_size=30))
def test_json_files_may_hold_anything(tmp_path_factory: pytest.TempPathFactory, name: str, value: object, noise: bytes) -> None:
    root = tmp_path_factory.mktemp("json")
    (root / "memory" / "tools").mkdir(parents=True)
    (root / "MEMORY.md").write_text(HARBOUR, encoding="utf-8")
    path = root / name
    path.parent.mkdir(exist_ok=True)
    fields = (
        "recall",
        "time",
        "query",
        "shown",
        "try",
        "parts",
        "done",
        "tool_name",
        "input",
        "output",
        "create_time",
        "score",
        "at",
        "in",
        "found",
        "hash",
        "size",
    )
    entry = dict.fromkeys(
        ("use_count", "success_count", "fail_count", "last_used", "id", "body", "sketch", "q", "edited", "pinned", "recent", "event"), value
    )
    rows = [value, {"MEMORY.md#harbour": value}, {"MEMORY.md#harbour": entry, "~orphans": {"a.md#b": entry}}, dict.fromkeys(fields, value)]
    every = [json.dumps(row).encode() for row in rows]
    for content in (*every[1:3], b"\n".join([*every, noise, every[-1]]) + b"\n"):
        path.write_bytes(content)
        use(root)


@given(raw=st.binary(max_size=300))
def test_receipts_may_be_any_bytes(raw: bytes) -> None:
    TRIED["JSON files"] += 1
    parse_receipts(raw)


# --- HTTP ------------------------------------------------------------------------------------------------------------

ROUTES = (
    "/memory_search",
    "/memory_get",
    "/memory_feedback",
    "/memory_remember",
    "/retrieve_tool_memory",
    "/add_tool_call_result",
    "/summary_tool_memory",
)


@contextmanager
def guarded(root: Path) -> Iterator[Callable[..., tuple[int, dict[str, str], bytes]]]:
    """The application behind its guard, spoken to in raw ASGI: no client tidies what is sent."""
    with Resident(Config(workspace=root, encoder="none")) as resident:
        app = Guard(create_app(resident), host="127.0.0.1", token=None, body_within_s=1.0)

        def send(
            path: str, body: bytes, headers: list[tuple[bytes, bytes]] | None = None, method: str = "POST"
        ) -> tuple[int, dict[str, str], bytes]:
            sent = [{"type": "http.request", "body": body, "more_body": False}]
            said: list[dict[str, Any]] = []

            async def receive() -> dict[str, Any]:
                return sent.pop() if sent else {"type": "http.disconnect"}

            async def reply(message: Any) -> None:
                said.append(dict(message))

            raw = path.encode("utf-8", "replace")
            head = headers if headers is not None else [(b"host", b"127.0.0.1")]
            scope = {
                "type": "http",
                "asgi": {"version": "3.0"},
                "http_version": "1.1",
                "method": method,
                "scheme": "http",
                "path": path,
                "raw_path": raw,
            }
            anyio.run(
                app,
                {**scope, "query_string": b"", "root_path": "", "headers": head, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8002)},
                receive,
                reply,
            )
            TRIED["HTTP"] += 1
            content = b"".join(m.get("body", b"") for m in said[1:])
            return said[0]["status"], {k.decode().lower(): v.decode() for k, v in said[0]["headers"]}, content

        yield send


def proper(reply: tuple[int, dict[str, str], bytes]) -> None:
    """An answer or an error document, never a trace, and no invitation to other sites."""
    status, headers, body = reply
    assert b"Traceback" not in body
    assert b'File "' not in body
    assert not [name for name in headers if name.startswith("access-control")]
    document = json.loads(body)
    assert status < 500, (status, body[:500])
    assert status == 200 or document["error"]["type"] != "internal", body[:500]


@pytest.mark.timeout(60)
def test_odd_bodies_get_an_answer_or_an_error_document(root: Path) -> None:
    bodies = [deep.encode() for deep in DEEP] + [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"1",
        b"{",
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b'{"query": "\\ud800"}',
        b"NaN",
        b"\0" * 1000,
    ]
    bodies += [
        b'{"query": 1' + b"0" * 5_000 + b"}",
        b'{"query": "' + b"a" * 1_000_000 + b'"}',
        b'{"query": ["a"' + b', "a"' * 20_000 + b"]}",
        b'{"a":1,' * 5000,
    ]
    with guarded(root) as send:
        for route in ROUTES:
            for body in bodies:
                proper(send(route, body))


HEADERS = [
    (b"host", value)
    for value in (
        b"evil.example",
        b"[",
        b"[::1",
        b"]",
        b"127.0.0.1.evil.example",
        b"localhost.evil.example",
        b"evil.example:8002",
        b"user@evil.example",
        b"127.0.0.1@evil.example",
    )
    + (
        b"",
        b"\xff\xfe",
        b"a" * 60_000,
        b"localhost:99999999",
        b"127.0.0.1:x",
        b"evil.example#127.0.0.1",
        b"evil.example\\@127.0.0.1",
        b"2130706433.evil.example",
        b"[v1.x]",
        b"[::ffff:8.8.8.8]",
    )
] + [
    (b"origin", value)
    for value in (
        b"null",
        b"http://evil.example",
        b"http://[",
        b"http://127.0.0.1.evil.example",
        b"file://",
        b"https://localhost@evil.example",
        b"\xff",
        b"http://]:80",
    )
]


def test_odd_host_and_origin_headers_are_refused_without_a_trace(root: Path) -> None:
    """A Host that holds `[` without its end was an exception of the server's own, with a trace in its log."""
    with guarded(root) as send:
        for name, value in HEADERS:
            head = [(name, value)] if name == b"host" else [(b"host", b"localhost"), (name, value)]
            for method, path in (("POST", "/memory_search"), ("GET", "/health"), ("GET", "/docs"), ("OPTIONS", "/memory_search")):
                status, headers, body = send(path, b'{"query": "harbour"}', head, method)
                if value.startswith(b"localhost:"):  # this machine by another port is this machine
                    continue
                assert status == 403, (name, value, method, body)
                assert json.loads(body)["error"]["type"] == "forbidden"
                assert not [name for name in headers if name.startswith("access-control")]
        for length in (b"9" * 5_000, b"9" * 18, b"8388609", b"-1", b"x", b"1e9", b"\xb2"):
            status, _, body = send("/memory_search", b'{"query": "harbour"}', [(b"host", b"localhost"), (b"content-length", length)])
            assert status == (413 if length[:1] in b"89" else 200), (length, body)
        assert send("/memory_search", b"{}", [], "POST")[0] == 403  # none at all
        asked = [(b"host", b"localhost"), (b"origin", b"http://localhost:3000"), (b"access-control-request-method", b"POST")]
        assert not [h for h in send("/memory_search", b"", asked, "OPTIONS")[1] if h.startswith("access-control")]


@some
@given(
    route=st.sampled_from(ROUTES),
    body=st.dictionaries(
        st.sampled_from(
            [
                "query",
                "path",
                "used",
                "outcome",
                "text",
                "from",
                "lines",
                "recall",
                "workspace_id",
                "tool_names",
                "tool_call_results",
                "maxResults",
                "minScore",
                "x",
            ]
        ),
        ANY_JSON,
        max_size=5,
    ),
)
def test_any_json_object_gets_an_answer_or_an_error_document(
    tmp_path_factory: pytest.TempPathFactory, route: str, body: dict[str, object]
) -> None:
    root = tmp_path_factory.mktemp("http")
    (root / "MEMORY.md").write_text(HARBOUR, encoding="utf-8")
    with guarded(root) as send:
        proper(send(route, json.dumps(body).encode()))


# --- MCP ---------------------------------------------------------------------------------------------------------------


def test_odd_arguments_of_mcp_tools_are_results_and_the_session_goes_on(root: Path) -> None:
    values: list[Any] = [
        None,
        True,
        -1,
        0,
        10**30,
        1.5,
        "",
        " ",
        "\0",
        "x" * 50_000,
        [],
        [[]],
        {},
        {"a": {}},
        ["a", 1],
        "../x.md",
        "MEMORY.md#L" + "9" * 5_000,
        "9" * 5_000,
    ]
    names = [param.name for verb in verbs.VERBS.values() for param in verb.params]
    tools = [*verbs.VERBS, "retrieve_tool_memory", "add_tool_call_result", "summary_tool_memory", "no_such_tool"]

    async def session() -> None:
        async with Client(mcp_server.make_server(resident)) as client:
            for tool in tools:
                for value in values:
                    for argument in {"query", "path", "used", "tool_names", names[TRIED["MCP"] % len(names)]}:
                        said: Any = await client.call_tool(tool, {argument: value})
                        TRIED["MCP"] += 1
                        assert "Traceback" not in str(said.content)
                        if said.is_error:
                            assert said.structured_content["error"]["type"] != "internal", (tool, argument, value, said.structured_content)
            said = await client.call_tool("memory_search", {"query": "harbour code"})
            assert "4711" in said.structured_content["results"][0]["snippet"]

    with Resident(Config(workspace=root, encoder="none")) as resident:
        anyio.run(session)


@pytest.mark.timeout(60)
def test_noise_on_the_input_of_the_mcp_server_does_not_end_it(root: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        b"\xff\xfe",
        b"{",
        b"null",
        b"[]",
        b'"x"',
        DEEP[4].encode(),
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"1.0","id":{},"method":1}',
        b"x" * 100_000,
    ]
    lines += [
        json.dumps({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": hello}).encode(),
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    ]
    lines += [
        b'{"jsonrpc":"2.0","id":8,"method":"no/such"}',
        b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"memory_search","arguments":[]}}',
    ]
    call = {"name": "memory_search", "arguments": {"query": "harbour code"}}
    lines += [json.dumps({"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": call}).encode()]
    TRIED["MCP"] += len(lines)
    with subprocess.Popen(
        [sys.executable, "-m", "memory_tools", "--workspace", str(root), "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"\n".join(lines) + b"\n")
        child.stdin.flush()
        for line in child.stdout:
            if json.loads(line).get("id") == 10:
                assert b"4711" in line
                break
        else:
            raise AssertionError("the server ended without an answer")
        child.stdin.close()
        assert child.wait(20) == 0


# --- names, addresses, queries ---------------------------------------------------------------------------------------------------

NAMES = [
    "",
    " ",
    ".",
    "..",
    "../../x",
    "a/b",
    "a\\b",
    "CON",
    "nul.md",
    "a\0b",
    "a\nb",
    "x" * 10_000,
    "🔧" * 300,
    "\ud800",
    "~",
    "~x",
    ".hidden",
    "a:b",
    "Search",
    "search",
    "ſearch",
    "--",
    "-rf",
    "$(id)",
    "a,b",
    "\u202e",
    "é",
    "e\u0301",
    "a.calls",
    "web_search.md",
]


@some
@given(name=st.one_of(st.sampled_from(NAMES), ANY_TEXT, BROKEN_TEXT))
def test_any_tool_name_is_kept_under_a_safe_file_name_or_refused(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    root = tmp_path_factory.mktemp("tools")
    store = ToolMemoryStore(root)
    TRIED["tool names"] += 1
    report = store.record([{"tool_name": name, "input": "q", "output": "Found 3"}])
    files = [p for p in root.rglob("*") if p.is_file() and ".memory-tools" not in p.parts]
    assert all(p.parent == root / "memory" / "tools" and len(p.name.encode()) < 255 for p in files)
    assert not [p for p in root.parent.iterdir() if p.name.startswith("x")]
    json.dumps(dict(report.document())).encode()
    if not report.refused:
        answered(lambda: store.retrieve([name]), "tool names")


@some
@given(
    name=st.one_of(
        st.sampled_from(
            ["a" * 65, "..", ".", "a/b", "w\0", "CON", "memory", "MEMORY", "skills", "com1.x", "-a", "ａ", "a\n", "%2e%2e", "~"]
        ),
        ANY_TEXT,
        BROKEN_TEXT,
    )
)
def test_any_workspace_id_stays_inside(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    root = tmp_path_factory.mktemp("ids") / "ws"
    root.mkdir()
    TRIED["workspace ids"] += 1
    try:
        ToolMemoryStore(root).of_workspace(name).record([{"tool_name": "t", "input": "q", "output": "o"}])
    except MemoryToolsError:
        assert not list((root / "workspaces").rglob("*"))
    assert [p.name for p in root.parent.iterdir()] == ["ws"]


PLACES = st.one_of(
    ANY_TEXT, BROKEN_TEXT, ANY_TEXT.map(lambda t: f"MEMORY.md#{t}"),
    st.sampled_from(["MEMORY.md#L" + "9" * 40, "MEMORY.md#L1-L" + "9" * 18, "MEMORY.md#L9223372036854775808", "MEMORY.md#L999999999", "a" * 5_000 + ".md", "#" * 3_000, "@" * 100]),
)  # fmt: skip
STARTS = st.one_of(
    st.none(), NUMBERS, ANY_TEXT, st.sampled_from(["9" * 5_000, "1:" + "9" * 5_000, "9" * 18, "1:99999999999", "٣", "²", "1:1:1", True])
)


@some
@given(
    place=PLACES,
    start=STARTS,
    lines=st.one_of(st.none(), NUMBERS),
    recall=st.one_of(st.none(), ANY_TEXT, BROKEN_TEXT),
    positions=st.lists(st.one_of(NUMBERS, ANY_TEXT), max_size=3),
)
def test_any_address_start_and_recall_is_answered_or_refused(
    tmp_path_factory: pytest.TempPathFactory, place: str, start: Any, lines: Any, recall: str | None, positions: list[Any]
) -> None:
    """A start of thousands of digits, and half a character in an address, were errors of Python's own."""
    root = tmp_path_factory.mktemp("places")
    (root / "MEMORY.md").write_text(HARBOUR, encoding="utf-8")
    with Memory(root) as memory:
        answered(lambda: memory.get(place, start, lines, recall), "addresses")
        answered(lambda: memory.get("MEMORY.md", start, lines, recall), "addresses")
        answered(lambda: memory.feedback(place, recall=recall, event_id=recall), "addresses")
        answered(lambda: memory.feedback(positions, recall="last"), "addresses")
        answered(lambda: memory.restore(place), "addresses")


@some
@given(query=st.one_of(ANY_TEXT, BROKEN_TEXT), other=st.one_of(st.none(), ANY_TEXT, BROKEN_TEXT), number=st.one_of(st.none(), NUMBERS))
def test_any_query_and_any_bound_is_answered_or_refused(
    tmp_path_factory: pytest.TempPathFactory, query: str, other: str | None, number: Any
) -> None:
    root = tmp_path_factory.mktemp("queries")
    (root / "MEMORY.md").write_text(HARBOUR, encoding="utf-8")
    with Memory(root) as memory:
        for work in (
            lambda: memory.search(query, other),
            lambda: memory.search(
                [query, other or "x", "harbour"], max_results=number, min_score=number, max_chars=number, threshold=number
            ),
            lambda: memory.search("harbour", policy=other or None, strict=True, explain=True),
            lambda: memory.remember(query, heading=other, event_id=other),
        ):
            report = answered(work, "queries")
            if hasattr(report, "results"):
                render.dumps(render.document(report)).encode()
        still_found(memory)
