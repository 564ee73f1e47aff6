"""What a user sees of learning, through the command line on real files: the twin that helped comes first, whatever happens to the files."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memory_tools import cli

TWINS = (
    "# Memory\n\n## Restart the queue\n\n- when the queue hangs, restart the worker with `systemctl restart queue-worker`\n\n"
    "## Restart the queue (old)\n\n- when the queue hangs, restart the worker with `service queue-worker restart`\n"
)
ZWILLINGE = (
    "# 记忆\n\n## 队列卡住怎么办\n\n- 队列卡住时,用 systemctl restart queue-worker 重启\n\n"
    "## 队列卡住怎么办(旧)\n\n- 队列卡住时,用 service queue-worker restart 重启\n"
)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No configuration of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith(("MEMORY_TOOLS_", "OPENCLAW_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path.parent / "config"))
    monkeypatch.setenv("MEMORY_TOOLS_ENCODER", "none")


def _run(root: Path, *arguments: str) -> dict[str, object]:
    """A whole command, which opens and closes everything; a process for each of a hundred would start a hundred times."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = cli.run(["--workspace", str(root), *arguments, "--json"])
    assert code == 0, said.getvalue()
    document: dict[str, object] = json.loads(said.getvalue())
    return document


def _process(root: Path, *arguments: str) -> dict[str, object]:
    """The same as a user does it: nothing is known from one command to the next but what is in the files."""
    command = [sys.executable, "-m", "memory_tools", "--workspace", str(root), *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    document: dict[str, object] = json.loads(done.stdout)
    return document


def _order(root: Path, query: str) -> list[str]:
    found = _run(root, "search", query, "--max-results", "2", "--min-score", "0.2")["results"]
    assert isinstance(found, list)
    return [r["snippet"] for r in found]


@pytest.mark.parametrize(
    ("text", "query", "one", "other"),
    [
        (TWINS, "the queue hangs, restart the worker", "systemctl restart", "service queue-worker"),
        (ZWILLINGE, "队列卡住 重启", "systemctl restart", "service queue-worker"),
    ],
)
def test_of_two_near_twins_the_one_that_helped_comes_first_and_flips_when_the_other_helps(
    tmp_path: Path, text: str, query: str, one: str, other: str
) -> None:
    note = tmp_path / "MEMORY.md"
    note.write_text(text, encoding="utf-8")

    def judge(held: str, outcome: str, times: int) -> None:
        for _ in range(times):
            position = next(i for i, s in enumerate(_order(tmp_path, query), 1) if held in s)
            _run(tmp_path, "feedback", "last", str(position), "--outcome", outcome)

    judge(other, "success", 2)
    assert other in _order(tmp_path, query)[0]
    judge(one, "success", 3)
    judge(other, "failure", 3)
    assert one in _order(tmp_path, query)[0]

    # The history is the file's: it survives a lost index, another place of the section, and a renamed file.
    shutil.rmtree(tmp_path / ".memory-tools")
    assert one in _order(tmp_path, query)[0]
    (tmp_path / "memory").mkdir(exist_ok=True)
    note.rename(tmp_path / "memory/2026-03-05-queue.md")
    assert one in _order(tmp_path, query)[0]
    scores = json.loads((tmp_path / "memory/utility-scores.json").read_text(encoding="utf-8"))
    assert {"use_count", "success_count", "last_used", "utility"} <= set(next(iter(scores.values())))


def test_outcomes_find_their_section_after_a_twin_heading_was_put_above_it(tmp_path: Path) -> None:
    note = tmp_path / "MEMORY.md"
    note.write_text("# Memory\n\n## Backup\n\n- the nightly dump goes to the cold bucket\n", encoding="utf-8")
    shown = _run(tmp_path, "search", "nightly dump cold bucket", "--min-score", "0.2")
    assert shown["results"][0]["address"] == "MEMORY.md#backup"  # type: ignore[index]
    note.write_text(
        "# Memory\n\n## Backup\n\n- laptops are mirrored each Friday\n\n## Backup\n\n- the nightly dump goes to the cold bucket\n",
        encoding="utf-8",
    )
    said = _run(tmp_path, "feedback", "MEMORY.md#backup", "--outcome", "success")
    assert [r["address"] for r in said["recorded"]] == ["MEMORY.md#backup-1"]  # type: ignore[attr-defined]


def test_reading_what_was_shown_is_a_use_and_feedback_resolves_it_instead_of_adding_one(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("# Memory\n\n## Backup\n\n- the nightly dump goes to the cold bucket\n", encoding="utf-8")
    _process(tmp_path, "search", "nightly dump cold bucket", "--min-score", "0.2")
    assert not (tmp_path / "memory/utility-scores.json").exists()  # case 26: showing counts nothing
    _process(tmp_path, "get", "MEMORY.md#backup")
    scores = json.loads((tmp_path / "memory/utility-scores.json").read_text(encoding="utf-8"))
    assert (scores["MEMORY.md#backup"]["use_count"], scores["MEMORY.md#backup"]["success_count"]) == (1, 0)
    for _ in range(3):  # case 24: a retry changes nothing
        said = _process(tmp_path, "feedback", "last", "1", "--outcome", "success")
    row = said["recorded"][0]  # type: ignore[index]
    assert (row["useCount"], row["successCount"], row["failCount"], row["counted"]) == (1, 1, 0, False)
    assert "bucket" in (tmp_path / "MEMORY.md").read_text(encoding="utf-8")
    assert "use_count" not in (tmp_path / "MEMORY.md").read_text(encoding="utf-8")  # case 25


def test_one_unknown_name_records_nothing(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("# Memory\n\n## Backup\n\n- the nightly dump goes to the cold bucket\n", encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "memory_tools",
            "--workspace",
            str(tmp_path),
            "feedback",
            "MEMORY.md#backup",
            "MEMORY.md#bakup",
            "--outcome",
            "success",
            "--json",
        ],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env=os.environ | {"MEMORY_TOOLS_ENCODER": "none"},
    )
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert error["type"] == "not_found"
    assert "MEMORY.md#backup" in error["hint"]
    assert not (tmp_path / "memory/utility-scores.json").exists()


def test_a_persons_word_takes_the_place_of_a_hosts_guess(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("# Memory\n\n## Backup\n\n- the nightly dump goes to the cold bucket\n", encoding="utf-8")

    def counted() -> tuple[float, float, float]:
        entry = json.loads((tmp_path / "memory/utility-scores.json").read_text(encoding="utf-8"))["MEMORY.md#backup"]
        return entry["use_count"], entry["success_count"], entry["fail_count"]

    for read in (False, True):  # also where reading had counted a use already
        _run(tmp_path, "search", "nightly dump cold bucket", "--min-score", "0.2")
        before = counted() if read else (0, 0, 0)
        if read:
            _run(tmp_path, "get", "MEMORY.md#backup")
        _run(tmp_path, "feedback", "last", "1", "--outcome", "success", "--weight", "0.3")
        assert counted() == (before[0] + (1 if read else 0.3), before[1] + 0.3, before[2])
        for _ in range(2):
            _run(tmp_path, "feedback", "last", "1", "--outcome", "failure")
        assert counted() == (before[0] + 1, before[1], before[2] + 1)
        _run(tmp_path, "feedback", "last", "1", "--outcome", "success", "--weight", "0.3")  # a late guess changes nothing
        assert counted() == (before[0] + 1, before[1], before[2] + 1)


def test_scores_lists_a_memory_under_the_address_that_it_has_now(tmp_path: Path) -> None:
    note = tmp_path / "MEMORY.md"
    note.write_text(TWINS, encoding="utf-8")
    _run(tmp_path, "feedback", "MEMORY.md#restart-the-queue", "--outcome", "success")
    other = tmp_path / "memory" / "queue.md"
    other.parent.mkdir(exist_ok=True)
    note.rename(other)
    _run(tmp_path, "sync")
    other.rename(note)  # as git checkout brings it back: its address is a former one too
    listed = _run(tmp_path, "scores")["memories"]
    assert isinstance(listed, list)
    assert [m["address"] for m in listed] == ["MEMORY.md#restart-the-queue"]
    note.write_text(TWINS.replace("## Restart the queue\n", "## Restart it\n"), encoding="utf-8")
    listed = _run(tmp_path, "scores")["memories"]  # the first to see the change
    assert isinstance(listed, list)
    assert [m["address"] for m in listed] == ["MEMORY.md#restart-it"]
