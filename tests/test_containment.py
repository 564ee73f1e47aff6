"""Ways out of a workspace, tried through every face: each is refused, nothing outside is read or written, and the attempts are counted.

Outside lies a folder with a canary in every file: none of it may come back, and no byte of it may change.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import httpx
import pytest
from mcp import Client

from memory_tools import Memory, cli, config, mcp_server, seam, workspace
from memory_tools.config import Config
from memory_tools.errors import Forbidden, InvalidInput, MemoryToolsError
from memory_tools.http_app import create_app
from memory_tools.resident import Resident
from memory_tools.tool_memory import ToolMemoryStore

CANARY = "canary-7f3e91"
CALL = {"tool_name": "web_search", "input": "q", "output": "Found 3 results"}
posix = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of POSIX")
pytestmark = [posix, pytest.mark.usefixtures("alone")]


@dataclass(frozen=True)
class Place:
    """A workspace and what lies outside of it."""

    root: Path
    outside: Path

    def state(self) -> dict[str, tuple[object, ...]]:
        """Every name outside, with its bytes; a file that was made there shows too."""
        every = sorted(self.outside.rglob("*"))
        return {str(p): (p.is_dir() or p.read_bytes(), p.lstat().st_mode, p.lstat().st_mtime_ns) for p in every if p.name != "pipe"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root, outside = tmp_path / "ws", tmp_path / "outside"
    (root / "memory" / "tools").mkdir(parents=True)
    (outside / "memory" / "tools").mkdir(parents=True)
    (root / "MEMORY.md").write_text("# Memory\n\n## Harbour\n\n- The harbour code is 4711.\n", encoding="utf-8")
    for name in ("secret.md", "secret.txt", "secret.json", "memory/secret.md", "memory/2026-01-01.md", "index.db"):
        (outside / name).write_text(f'# Secret\n\n{{"{CANARY}": "{CANARY} harbour"}}\n', encoding="utf-8")
    return Place(root, outside)


@contextmanager
def untouched(place: Place) -> Iterator[None]:
    before = place.state()
    yield
    assert place.state() == before


# --- paths, through each face ----------------------------------------------------------------------


def paths(place: Place) -> list[str]:
    """Names that lead out, or to what is no note. Some are files that do not exist: these too may not be told apart by their error."""
    out, memory = place.outside, place.root / "memory"
    (memory / "link.md").symlink_to(out / "secret.md")
    (memory / "folder").symlink_to(out)
    (memory / "chain.md").symlink_to(memory / "link.md")
    (memory / "up").symlink_to("../..")
    (memory / "text.md").symlink_to(out / "secret.txt")
    (memory / "null.md").symlink_to("/dev/null")
    (memory / "zero.md").symlink_to("/dev/zero")
    (memory / "proc.md").symlink_to("/proc/self/environ")
    (memory / "loop.md").symlink_to("loop.md")
    (memory / "plain.txt").write_text(CANARY, encoding="utf-8")
    (memory / "renamed.md").symlink_to("plain.txt")
    os.mkfifo(memory / "pipe.md")
    (memory / "directory.md").mkdir()
    base = [
        "../outside/secret.md", "memory/../../outside/secret.md", "./../outside/secret.md", "memory/./../../outside/secret.md",
        "memory//..//..//outside/secret.md", "..", "../", ".", "/", "//", str(out / "secret.md"), f"/{out}/secret.md",
        f"//{out}/secret.md", f"file://{out}/secret.md", "~/secret.md", "~root/x.md", "$HOME/x.md",
        "%2e%2e/outside/secret.md", "%2e%2e%2foutside%2fsecret.md", "..%2foutside/secret.md", "..%c0%af/outside/secret.md",
        "%252e%252e/outside/secret.md", "..\\outside\\secret.md", "memory\\..\\..\\outside\\secret.md", "．．/outside/secret.md",
        "․․/outside/secret.md", "..∕outside∕secret.md", ".../outside/secret.md", "....//outside/secret.md", "..;/outside/secret.md",
        "../OUTSIDE/SECRET.MD", "../outside/secret.md\0.md", "MEMORY.md\0", "MEMORY.md/../../outside/secret.md", "MEMORY.md/x.md",
        "memory/link.md", "memory/folder/secret.md", "memory/folder/memory/secret.md", "memory/chain.md", "memory/up/outside/secret.md",
        "memory/text.md", "memory/null.md", "memory/zero.md", "memory/proc.md", "memory/loop.md", "memory/plain.txt", "memory/renamed.md",
        "memory/pipe.md", "memory/directory.md", "/dev/zero", "/dev/stdin", "/proc/self/environ", "/proc/self/root/etc/passwd.md",
        "C:\\secret.md", "C:secret.md", "\\\\server\\share\\x.md", "\\\\?\\C:\\x.md", "CON.md", "NUL", "aux.md", "COM1.md", "x.md::$DATA",
        "MEMORY.md:stream", "MEMORY.md.", "MEMORY.md ", "@outside/secret.md", "@/secret.md", "@../outside/secret.md", "@", ".memory-tools/current",
        ".memory-tools/recalls.jsonl", "memory/utility-scores.json", "memory-tools.yaml", ".git/config", "\ud800.md", "\u202egnp.md",
        "a" * 5000 + ".md", "../" * 500 + "etc/passwd.md", "memory/" * 300 + "x.md", "\n../outside/secret.md", "", " ", "#", "#L1", "#/../x",
    ]  # fmt: skip
    return base + [f"{path}#L1-L9" for path in base if path.strip()] + [f"{path}#secret" for path in base if path.strip()]


def command(root: Path, *words: str) -> tuple[int, str]:
    """Exit code and all that was said."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        return cli.run(["--workspace", str(root), *words]), said.getvalue()


def from_library(place: Place) -> Iterator[Callable[[str], str]]:
    with Memory(place.root) as memory:

        def ask(path: str) -> str:
            try:
                return memory.get(path).text
            except MemoryToolsError as e:
                return f"refused: {e}"

        yield ask


def from_command(place: Place) -> Iterator[Callable[[str], str]]:
    def ask(path: str) -> str:
        code, said = command(place.root, "get", "--json", "--", path)
        assert '"internal"' not in said, said
        return f"refused: {said}" if code else str(json.loads(said)["text"])

    yield ask


def from_http(place: Place) -> Iterator[Callable[[str], str]]:
    resident = Resident(Config(workspace=place.root, encoder="none"))
    transport = httpx.ASGITransport(app=create_app(resident), raise_app_exceptions=True)

    async def posted(path: str) -> str:
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            said = await client.post("/memory_get", content=json.dumps({"path": path}))
            # The same as part of the address: no route takes files from there.
            raw = quote(path.encode("utf-8", "replace")[:2000], safe="/%.;:@~$").encode()
            for address in (b"/" + raw, b"/memory_get/" + raw, b"/docs/" + raw):
                got = await client.get(httpx.URL("http://localhost").copy_with(raw_path=address))
                assert CANARY not in got.text
        return str(said.json()["text"]) if said.status_code == 200 else f"refused: {said.text}"

    yield lambda path: anyio.run(posted, path)
    with resident:
        pass


def from_mcp(place: Place) -> Iterator[Callable[[str], str]]:
    resident = Resident(Config(workspace=place.root, encoder="none"))

    async def called(path: str) -> str:
        async with Client(mcp_server.make_server(resident)) as client:
            said: Any = await client.call_tool("memory_get", {"path": path})
            return f"refused: {said.structured_content}" if said.is_error else str(said.structured_content["text"])

    yield lambda path: anyio.run(called, path)
    with resident:
        pass


FACES = {"library": from_library, "command": from_command, "http": from_http, "mcp": from_mcp}


@pytest.mark.parametrize("face", FACES)
def test_no_path_leads_out_through_any_face(place: Place, face: str, record_property: Callable[[str, object], None]) -> None:
    every = paths(place)
    if face != "library":  # which takes all of them; the others differ in how a path reaches it
        every = [p for p in every if "\ud800" not in p or face == "http"][:: 1 if face == "http" else 3]
    tried = 0
    with untouched(place), contextmanager(FACES[face])(place) as ask:
        assert "4711" in ask("MEMORY.md")
        for path in every:
            answer = ask(path)
            assert CANARY not in answer, path
            assert "root:" not in answer, path
            # Some name the workspace's own file in another way: `MEMORY.md ` is MEMORY.md.
            assert answer.startswith("refused") or "4711" in answer or answer == "", (path, answer)
            tried += 1
    record_property("attempts", tried)
    print(f"\n{face}: {tried} paths tried, 0 led out")


def test_no_link_in_a_workspace_is_searched_out(place: Place) -> None:
    paths(place)
    (place.root / "knowledge").symlink_to(place.outside)
    (place.root / "USER.md").symlink_to(place.outside / "secret.md")
    with untouched(place), Memory(place.root) as memory:
        report = memory.sync()
        assert report.files == 1
        assert CANARY not in str(memory.search([CANARY, "harbour", "Secret"], min_score=0.0).results)
        assert len([s for s in report.skipped if "leads out" in s.reason]) >= 6


def test_a_folder_swapped_for_a_link_between_check_and_use_is_not_read(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = place.root / "memory"
    (notes / "secret.md").write_text("# Mine\n\n- harbour\n", encoding="utf-8")

    def swap(kind: str, target: str) -> None:
        if kind == "open" and target.endswith("memory/secret.md"):
            notes.rename(place.root / "aside")
            notes.symlink_to(place.outside / "memory")
            monkeypatch.setattr(seam, "on_step", None)

    for read in (lambda m: m.get("memory/secret.md").text, lambda m: str(m.search(CANARY, min_score=0.0).results)):
        with untouched(place), Memory(place.root) as memory:
            monkeypatch.setattr(seam, "on_step", swap)
            with contextlib.suppress(Forbidden):
                assert CANARY not in read(memory)
        monkeypatch.setattr(seam, "on_step", None)
        if notes.is_symlink():
            notes.unlink()
            (place.root / "aside").rename(notes)


def test_a_note_swapped_to_and_fro_by_another_thread_never_shows_what_is_outside(place: Place) -> None:
    note, real, link = place.root / "memory" / "note.md", place.root / "real.md", place.root / "link.md"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            real.write_text("# Note\n\n- mine\n", encoding="utf-8")
            real.replace(note)
            if not link.is_symlink():
                link.symlink_to(place.outside / "secret.md")
            link.replace(note)

    thread = threading.Thread(target=swap)
    thread.start()
    refused = read = 0
    try:
        with untouched(place), Memory(place.root) as memory:
            for _ in range(150):
                try:
                    assert CANARY not in memory.get("memory/note.md").text
                    read += 1
                except MemoryToolsError:
                    refused += 1
            assert CANARY not in str(memory.search(CANARY, min_score=0.0).results)
    finally:
        stop.set()
        thread.join()
    print(f"\n{read + refused} reads during swaps, {refused} refused, 0 led out")


# --- what a cloned workspace brings --------------------------------------------------------------------


def use_everything(root: Path) -> list[str]:
    """Every verb that reads or writes; what was refused comes out. Nothing but our own errors may be raised."""
    refused = []

    def one(work: Callable[[], object]) -> None:
        try:
            work()
        except MemoryToolsError as e:
            refused.append(e.message)

    one(lambda: workspace.init(root))
    try:
        memory = Memory(root)
    except MemoryToolsError as e:
        return [e.message]
    with memory:
        one(lambda: memory.search("harbour code"))
        one(lambda: memory.get("MEMORY.md#harbour"))
        one(lambda: memory.feedback("MEMORY.md#harbour"))
        one(lambda: memory.remember("The lighthouse blinks twice."))
        one(memory.recalculate)
        one(memory.scores)
        one(memory.archive)
        one(lambda: memory.record_tool_calls([CALL]))
        one(lambda: memory.summarize_tools("web_search"))
        one(lambda: memory.tool_memories("web_search"))
        one(memory.sync)
        one(lambda: memory.check(fix=True))
        one(memory.rebuild)
        one(memory.status)
        one(lambda: ToolMemoryStore(root).of_workspace("w").record([CALL]))
    refused.append(command(root, "skill", "install")[1])
    return refused


def planted(place: Place, name: str, kind: str) -> None:
    """`name` of the workspace becomes a link or a pipe."""
    path = place.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        for below in sorted(path.rglob("*"), reverse=True):
            below.rmdir() if below.is_dir() else below.unlink()
        path.rmdir()
    if kind == "folder":
        path.symlink_to(place.outside)
    elif kind == "file":
        path.symlink_to(place.outside / "secret.json")
    elif kind == "missing":
        path.symlink_to(place.outside / "made-by-us")
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(path)


FOLDERS = (
    "memory",
    "memory/tools",
    "memory/archive",
    ".memory-tools",
    "workspaces",
    "workspaces/w",
    "workspaces/w/memory",
    "skills/memory-retrieval",
)
FILES = (
    "MEMORY.md", "TOOLS.md", "memory-tools.yaml", ".gitignore", "memory/utility-scores.json", "memory/.utility-scores.json.lock",
    "memory/.remembered.jsonl", "memory/tools/web_search.md", "memory/tools/web_search.calls.jsonl", ".memory-tools/current",
    ".memory-tools/recalls.jsonl", ".memory-tools/tool-usage.jsonl", ".memory-tools/watcher.json", ".memory-tools/.gitignore",
    ".memory-tools/.current.lock", ".memory-tools/index-1.db", ".memory-tools/index-1.db-wal", ".memory-tools/index-1.db-journal",
    ".memory-tools/index-2.db", ".memory-tools/vectors-1-0.i8", ".memory-tools/vectors-2-0.i8", "skills/memory-retrieval/SKILL.md",
    "skills/memory-retrieval/.installed.json",
)  # fmt: skip
NOTE = f"memory/{datetime.now().astimezone():%Y-%m-%d}.md"
PLANTED = [*((name, "folder") for name in FOLDERS), *((name, kind) for name in (*FILES, NOTE) for kind in ("file", "pipe"))]
PLANTED_TOO = [(name, kind) for name in (*FILES, NOTE) for kind in ("missing", "endless")]


@pytest.mark.parametrize("every", [PLANTED, pytest.param(PLANTED_TOO, marks=pytest.mark.slow)], ids=["links-and-pipes", "odder-links"])
def test_nothing_that_a_cloned_workspace_plants_is_followed_out(place: Place, tmp_path: Path, every: list[tuple[str, str]]) -> None:
    tried = 0
    for number, (name, kind) in enumerate(every):
        one = Place(tmp_path / f"clone{number}", place.outside)
        (one.root / "memory").mkdir(parents=True)
        (one.root / "MEMORY.md").write_text("# Memory\n\n## Harbour\n\n- The harbour code is 4711.\n", encoding="utf-8")
        if name == "MEMORY.md":
            (one.root / "MEMORY.md").unlink()
        planted(one, name, kind)
        try:
            with untouched(one):
                refused = use_everything(one.root)
            assert CANARY not in str(refused)
            inside = [p for p in one.root.rglob("*") if p.is_file() and not p.is_symlink()]
            assert not [p for p in inside if CANARY.encode() in p.read_bytes()]
        except BaseException as e:
            e.add_note(f"{name} as {kind}")
            raise
        tried += 1
    print(f"\n{tried} planted links and pipes, 0 followed")


@pytest.mark.parametrize("verb", ["skill install", "init"])
def test_a_verb_whose_folder_in_the_workspace_leads_out_is_refused(place: Place, verb: str) -> None:
    planted(place, "skills" if verb == "skill install" else "memory", "folder")
    with untouched(place):
        code, said = command(place.root, *verb.split())
    assert code == 1
    assert "leads out of the workspace" in said


def test_a_file_with_a_second_name_outside_is_replaced_and_not_written_through(place: Place) -> None:
    """What cannot be told apart is a file that is also named elsewhere. Where a file is rewritten, only its name here changes."""
    for name in ("memory/utility-scores.json", "memory/tools/web_search.md"):
        os.link(place.outside / "secret.json", place.root / name)
    with untouched(place):
        use_everything(place.root)


# --- a planted index --------------------------------------------------------------------------------------


def views_without_end(path: Path) -> None:
    connection = sqlite3.connect(path)
    names = {"files": "path", "meta": "key, value", "sections": "id, address", "blocks": "id", "postings": "term"}
    for name, columns in names.items():
        shape = ", ".join(["x"] * len(columns.split(",")))
        connection.execute(
            f"CREATE VIEW {name} ({columns}) AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT {shape} FROM n"
        )
    connection.close()


def triggers(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE postings (term TEXT, block INTEGER)")
    connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value)")
    connection.execute("CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM meta; END")
    connection.close()


def noise(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + bytes(n * 37 % 256 for n in range(40_000)))


def giant(path: Path) -> None:
    with path.open("wb") as stream:
        stream.write(b"SQLite format 3\0")
        stream.truncate(1 << 40)  # holes: takes no room


def journal(path: Path) -> None:
    """A hot journal that names another file as its super-journal, which SQLite would delete after playing it back."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE postings (term TEXT, block INTEGER)")
    connection.close()
    victim = str(path.parents[2] / "outside" / "secret.md").encode()
    head = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + (0).to_bytes(4, "big") + (7).to_bytes(4, "big") + (2).to_bytes(4, "big")
    head += (512).to_bytes(4, "big") + (4096).to_bytes(4, "big")
    check = sum(b if b < 128 else b - 256 for b in victim) & 0xFFFFFFFF
    tail = (0x40000000 // 4096 + 1).to_bytes(4, "big") + victim + len(victim).to_bytes(4, "big") + check.to_bytes(4, "big") + head[:8]
    path.with_name(path.name + "-journal").write_bytes(head.ljust(512, b"\0") + tail)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("plant", [views_without_end, triggers, noise, giant, journal], ids=lambda plant: plant.__name__)
@pytest.mark.parametrize("pointer", ["1\n", "1 1\n", pytest.param(None, marks=pytest.mark.slow)])
def test_an_index_that_came_with_the_workspace_is_never_opened(place: Place, plant: Callable[[Path], None], pointer: str | None) -> None:
    for one in (pointer,) if pointer else ("-1\n", "9" * 900, "1 " + "9" * 20, "²\n", "\0\n", "../../outside/index\n"):
        came_with_the_workspace(place, plant, one)


def came_with_the_workspace(place: Place, plant: Callable[[Path], None], pointer: str) -> None:
    folder = place.root / ".memory-tools"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "current").write_text(pointer, encoding="utf-8")
    for name in ("index-².db", "index-.db", "index-1-2.db", "vectors-x.i8", "index-99999999999999999999.db"):
        (folder / name).write_bytes(b"x")
    plant(folder / "index-1.db")
    with untouched(place), Memory(place.root) as memory:
        assert "4711" in memory.search("harbour code")[0].snippet
        assert not memory.search("harbour code").degraded
        assert not (folder / "index-1.db").exists()
        assert memory.check().ok


def test_an_index_is_kept_between_processes_and_made_anew_in_a_copy(place: Place) -> None:
    def generation() -> str:
        with Memory(place.root) as memory:
            memory.search("harbour")
        return (place.root / ".memory-tools" / "current").read_text(encoding="ascii")

    first = generation()
    assert generation() == first
    subprocess.run(["cp", "-R", place.root, place.root.with_name("clone")], check=True)
    place = Place(place.root.with_name("clone"), place.outside)
    assert generation() != first


# --- configuration ------------------------------------------------------------------------------------------

REACHING = {
    "encoder": ["openai:http://evil.example/v1#m", "sentence-transformers:/tmp/model"], "encoder_api_key": ["x"],
    "judge": ["openai", "agent", "rules"], "llm": ["{base_url: http://evil.example, model: m, api_key: k}"], "token": ["x"],
    "host": ["0.0.0.0"], "port": ["1"], "index_dir": ["/tmp", "../outside", "memory"], "workspace": ["/"],
    "extra_roots": ["{o: ../outside}", "{o: /}"],
    "include": ["['../outside/**/*.md']", "['/**/*.md']", "['~/*.md']", "['memory/../../outside/*.md']", "['C:/x.md']", "['\\\\x.md']"],
    "exclude": ["['../x']"], "time_zone": ["/etc/localtime", "../../../etc/passwd"],
    "evaluation_sleep_interval": ["0"], "summary_sleep_interval": ["0"],
}  # fmt: skip


def test_a_cloned_configuration_can_neither_send_text_nor_reach_outside(place: Place) -> None:
    tried = 0
    lines = [f"{key}: {value}\n" for key, values in REACHING.items() for value in values]
    lines += [line.replace(":", " :", 1) for line in lines] + [f'"{k}": {v[0]}\n' for k, v in REACHING.items()]
    lines += [f"base: &b {{{k}: {v[0]}}}\n<<: *b\n" for k, v in REACHING.items()]
    lines += [f"op: {{{k}: {v[0]}}}\n" for k, v in REACHING.items()] + [f"ENCODER: {v}\n" for v in REACHING["encoder"]]
    for line in lines:
        (place.root / "memory-tools.yaml").write_text(line, encoding="utf-8")
        with untouched(place), pytest.raises(InvalidInput):
            Memory(place.root).close()
        tried += 1
    print(f"\n{tried} configurations of a stranger, 0 accepted")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["file", "endless", "pipe", "missing"])
def test_a_cloned_configuration_that_is_no_plain_file_is_refused_and_does_not_hang(place: Place, kind: str) -> None:
    planted(place, "memory-tools.yaml", kind)
    with pytest.raises(InvalidInput) as refused:
        config.load(place.root)
    assert CANARY not in str(refused.value)
