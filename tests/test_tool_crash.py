"""Writers that are killed or refused at every step, and many at once: no acknowledged call is lost or doubled, and every file loads."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_tools import seam
from memory_tools.errors import MemoryToolsError
from memory_tools.plain_yaml import parse
from memory_tools.tool_files import parse_page
from memory_tools.tool_memory import ToolMemoryStore
from memory_tools.tool_settings import ToolSettings

WRITER = """
import sys
from pathlib import Path
from memory_tools.tool_memory import ToolMemoryStore
from memory_tools.tool_settings import ToolSettings
workspace, who, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
tools = ToolMemoryStore(workspace, ToolSettings(max_history=int(sys.argv[4])))
for n in range(count):
    report = tools.record([{"tool_name": "web_search", "input": {"n": n}, "output": f"{who}-{n}", "success": n % 3 > 0}])
    assert report.added == 1, report
    if n % 12 == 11:
        tools.summarize("web_search")
    sys.stdout.write(f"{who}-{n}\\n")
    sys.stdout.flush()
"""


def start(workspace: Path, who: str, count: int, kept: int) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(workspace), who, str(count), str(kept)], stdout=subprocess.PIPE, text=True)


def outputs(workspace: Path) -> list[str]:
    return [c.output for c in ToolMemoryStore(workspace).retrieve("web_search").memories[0].calls]


def check_files(workspace: Path) -> None:
    """Both files parse whole, and the page counts no more than there is."""
    folder = workspace / "memory" / "tools"
    page = folder / "web_search.md"
    if page.exists():
        assert parse_page(page, page.read_text(encoding="utf-8")).text_of("when_to_use") == "web_search"
    memories = ToolMemoryStore(workspace).retrieve("web_search").memories
    assert all(m.warnings == () for m in memories)


def test_eight_processes_of_twenty_five_records_give_one_memory_with_the_newest_hundred(tmp_path: Path) -> None:
    writers = [start(tmp_path, f"w{n}", 25, 100) for n in range(8)]
    said = [w.communicate(timeout=100)[0].split() for w in writers]
    assert [(w.returncode, len(s)) for w, s in zip(writers, said, strict=True)] == [(0, 25)] * 8
    kept = outputs(tmp_path)
    assert (len(kept), len(set(kept))) == (100, 100)
    for n in range(8):  # of each writer the newest ones, in its order
        mine = [int(o.split("-")[1]) for o in kept if o.startswith(f"w{n}-")]
        assert mine == list(range(25 - len(mine), 25))
    page = (tmp_path / "memory/tools/web_search.md").read_text(encoding="utf-8")
    front = parse(page.split("---\n")[1])
    assert isinstance(front, dict)
    assert front["statistics"]["total_calls"] == 100


def killed_rounds(workspace: Path, rounds: int) -> tuple[int, int, int]:
    """Kill a writer at a random moment, `rounds` times: how many acknowledged calls are lost, doubled, and kept."""
    chance = random.Random(7)
    acknowledged: list[str] = []
    for n in range(rounds):
        writer = start(workspace, f"r{n}", 10_000, 100_000)
        assert writer.stdout is not None
        acknowledged.append(writer.stdout.readline().strip())  # it has begun
        time.sleep(chance.uniform(0, 0.3))
        writer.send_signal(signal.SIGKILL)
        acknowledged += [line.strip() for line in writer.stdout.read().split("\n") if line.strip()]
        writer.wait()
        writer.stdout.close()
        check_files(workspace)
    kept = Counter(outputs(workspace))
    lost = sum(1 for one in acknowledged if kept[one] == 0)
    return lost, sum(1 for one in kept if kept[one] > 1), len(acknowledged)


def test_a_killed_writer_loses_and_doubles_nothing(tmp_path: Path) -> None:
    lost, doubled, acknowledged = killed_rounds(tmp_path, 5)
    print(f"5 kills: {acknowledged} acknowledged, {lost} lost, {doubled} doubled")
    assert (lost, doubled) == (0, 0)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_hundred_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    lost, doubled, acknowledged = killed_rounds(tmp_path, 200)
    print(f"200 kills: {acknowledged} acknowledged, {lost} lost, {doubled} doubled")
    assert (lost, doubled) == (0, 0)


# --- every step refused ---------------------------------------------------------------------------------


@pytest.fixture
def steps() -> Iterator[Counter[str]]:
    yield Counter()
    seam.on_step = None


def calls(n: int, start: int = 0) -> list[dict[str, object]]:
    return [
        {"tool_name": "web_search", "input": {"n": i}, "output": f"o{i}", "create_time": f"2025-10-15 14:00:{i:02d}"}
        for i in range(start, start + n)
    ]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO], ids=["disk full", "permission", "broken disk"])
def test_a_write_that_is_refused_at_any_step_loses_nothing(tmp_path: Path, steps: Counter[str], number: int) -> None:
    """Record and summarise with the n-th effect failing, for rising n until none does."""
    n = 0
    failed_at = Counter[str]()
    while True:
        n += 1
        workspace = tmp_path / str(n)
        tools = ToolMemoryStore(workspace, ToolSettings(max_history=6))
        tools.record(calls(5))
        tools.summarize("web_search")
        before = tools.retrieve("web_search").memories[0]
        seen = 0

        def fail(kind: str, target: str, last: int = n) -> None:
            nonlocal seen
            seen += 1
            if seen == last:
                failed_at[kind] += 1
                raise OSError(number, os.strerror(number), target)

        seam.on_step = fail
        acknowledged = False
        try:
            tools.record(calls(3, 10))
            acknowledged = True
            tools.summarize("web_search")
        except MemoryToolsError:
            pass
        finally:
            seam.on_step = None
        after = tools.retrieve("web_search").memories[0]
        check_files(workspace)
        kept = [c.output for c in after.calls]
        assert kept in (["o0", "o1", "o2", "o3", "o4"], ["o2", "o3", "o4", "o10", "o11", "o12"])
        assert not acknowledged or kept[-1] == "o12"
        assert after.content
        assert after.content == before.content or "of the newest 6 calls" in after.content
        # A call that is marked is in the guideline.
        assert not any(c.is_summarized for c in after.calls if c.output in ("o10", "o11", "o12")) or after.content != before.content
        tools.record(calls(3, 10))
        assert tools.summarize("web_search").success
        assert [c.output for c in tools.retrieve("web_search").memories[0].calls][-1] == "o12"
        if seen < n:
            break
    print(f"{n - 1} steps refused: {dict(failed_at)}")
    assert {"open", "write", "fsync", "replace"} <= set(failed_at)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a child of the same state is forked")
def test_a_process_that_ends_at_any_step_leaves_files_that_load(tmp_path: Path) -> None:
    """As a power cut at the n-th effect, for rising n until none is reached: a child ends itself there."""
    call = {"tool_name": "web_search", "input": {"n": 1}, "output": "new", "create_time": "2025-10-15 15:00:00"}
    n, code = 0, 9
    while code == 9:
        n += 1
        workspace = tmp_path / str(n)
        tools = ToolMemoryStore(workspace)
        tools.record(calls(3))
        child = os.fork()
        if child == 0:
            left = n

            def end(kind: str, target: str) -> None:
                nonlocal left
                left -= 1
                if left == 0:
                    os._exit(9)

            seam.on_step = end
            try:
                tools.record([call])
                tools.summarize("web_search")
            except BaseException:
                os._exit(1)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, 9)
        check_files(workspace)
        assert outputs(workspace)[:3] == ["o0", "o1", "o2"]
        tools.record([call])
        assert outputs(workspace).count("new") == 1
        assert tools.summarize("web_search").success
    print(f"{n - 1} steps at which the process ended")
    assert n > 15


def test_threads_of_one_process_give_one_memory(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    threads = [
        threading.Thread(target=lambda n=n: [tools.record([{"tool_name": "t", "input": {}, "output": f"{n}-{i}"}]) for i in range(10)])
        for n in range(6)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({c.output for c in tools.retrieve("t").memories[0].calls}) == 60


def test_a_lock_of_a_dead_process_holds_no_one_up(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(1))
    assert (tmp_path / "memory/tools/.web_search.calls.jsonl.lock").exists()
    assert tools.record(calls(1, 1)).added == 1


def test_a_page_holds_what_its_calls_say_after_a_crash_between_the_two(tmp_path: Path) -> None:
    tools = ToolMemoryStore(tmp_path)
    tools.record(calls(2))
    path = tmp_path / "memory/tools/web_search.calls.jsonl"
    line = json.loads(path.read_text(encoding="utf-8").split("\n")[0]) | {
        "output": "o9",
        "create_time": "2025-10-15 16:00:00",
        "call_hash": "",
    }
    path.write_text(path.read_text(encoding="utf-8") + json.dumps(line) + "\n", encoding="utf-8")
    tools.record(calls(1, 3))
    assert tools.success_rate("memory/tools/web_search.md") == (1.0, 4)
