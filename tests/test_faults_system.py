"""Real refusals of a real system: a full disk, missing permissions, locks of dead processes, odd file systems, a clock that jumps."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import faulty
import pytest

from memory_tools import seam, workspace
from memory_tools.errors import Forbidden, MemoryToolsError

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions and signals")
HERE = Path(__file__).parent

# Every verb once; what is refused is told, and only errors of ours are.
EVERY_VERB = """
import json, logging, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
logging.disable(logging.CRITICAL)
import faulty
from memory_tools.errors import MemoryToolsError
said = {}
for verb in faulty.VERBS:
    if verb.encoder != "none" or verb.name in ("restore", "first sync", "scores merge", "skill upgrade"):
        continue
    try:
        verb.act(Path(sys.argv[2]))
        said[verb.name] = "done"
    except MemoryToolsError as e:
        said[verb.name] = f"{type(e).__name__}: {e.message}"
print(json.dumps(said))
"""


def every_verb(root: Path, *before: str) -> dict[str, str]:
    """What each verb said, in a process started through `before`."""
    command = [*before, sys.executable, "-c", EVERY_VERB, str(HERE), str(root)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(HERE.parent)}, timeout=100)
    assert done.returncode == 0, done.stderr
    said: dict[str, str] = json.loads(done.stdout.strip().rsplit("\n", 1)[-1])
    return said


def without_rights() -> list[str]:
    """How to start a process without root's rights: root may write everywhere."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root, and no setpriv to give up its rights")
    # The same user without its capabilities, to whom the modes of files apply: another one might not be able to read our Python.
    return ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs a tmpfs in a namespace of its own, as Linux has them")
@pytest.mark.parametrize("spare_kb", [0, 8, 64])
def test_on_a_disk_that_is_really_full_everything_of_record_stays(tmp_path: Path, spare_kb: int) -> None:
    disk = tmp_path / "disk"
    kept = tmp_path / "kept"
    disk.mkdir()
    script = f"""
set -e
mount -t tmpfs -o size=2m tmpfs {disk} 2>/dev/null || exit 77
cp -a {tmp_path}/made/. {disk}
dd if=/dev/zero of={disk}/ballast bs=1k count=4096 2>/dev/null || true
truncate -s -{spare_kb}k {disk}/ballast
{sys.executable} {tmp_path}/verbs.py {HERE} {disk}
rm {disk}/ballast
cp -a {disk}/. {kept}
"""
    faulty.make(tmp_path / "made")
    (tmp_path / "verbs.py").write_text(EVERY_VERB, encoding="utf-8")
    kept.mkdir()
    before = faulty.look(tmp_path / "made")
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, env=environment, timeout=100)
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip("no file system can be mounted here")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    print(f"{spare_kb} KB spare: {said}")
    after = faulty.look(kept)
    assert spare_kb or "done" not in (said["feedback"], said["tool record"])
    # What was refused may be stored all the same, where only the last step failed; what was acknowledged is there.
    assert after.counts[faulty.DEPLOY] in ([(6, 5)] if said["feedback"] == "done" else [(5, 4), (6, 5)])
    assert after.calls[:3] == before.calls
    assert len(after.calls) in ([6] if said["tool record"] == "done" else [3, 6])
    assert b"jams on thick paper" in b"".join(after.notes.values())
    assert after.notes["memory/2026-03-05.md"] == before.notes["memory/2026-03-05.md"]
    with faulty.opened(kept) as memory:
        assert memory.search(faulty.ASKED)[0].address == faulty.ANSWER
        memory.check(fix=True)
        assert memory.check().ok


@posix
def test_a_read_only_workspace_is_searched_and_nothing_in_it_changes(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    faulty.make(root)
    before = {p: p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
    folders = [p for p in (root, *root.rglob("*")) if p.is_dir()]
    for path in [*before, *folders]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        said = every_verb(root, *without_rights())
    finally:
        for path in folders:
            path.chmod(0o755)
    print(said)
    assert said["search"] == "done"
    for name in ("feedback", "remember", "tool record", "skill install", "init"):
        assert said[name].startswith("Forbidden"), said
        assert "ermission" in said[name] or "ead-only" in said[name]
    assert {p: p.read_bytes() for p in before} == before


@posix
def test_a_note_that_may_not_be_read_is_told_and_keeps_its_history(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    faulty.make(root)
    with faulty.opened(root) as memory:
        memory.feedback(faulty.ANSWER)
    (root / "knowledge" / "ports.md").chmod(0)
    code = (
        "import sys; from memory_tools import Memory; from pathlib import Path\n"
        "m = Memory(Path(sys.argv[1]), encoder='none'); r = m.search('where is the deploy script'); print(r.warnings)\n"
        "m.feedback('MEMORY.md#backup'); print([row.address for row in m.scores().memories]); print(m.check().findings)\n"
    )
    command = [*without_rights(), sys.executable, "-c", code, str(root)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(HERE.parent)}, timeout=60)
    (root / "knowledge" / "ports.md").chmod(0o644)
    assert done.returncode == 0, done.stderr
    assert "knowledge/ports.md" in done.stdout.split("\n")[0]
    assert faulty.look(root).counts[faulty.ANSWER] == (1, 1)
    assert "~orphans" not in json.loads((root / "memory" / "utility-scores.json").read_text(encoding="utf-8"))


HOLDER = """
import os, signal, sys
from pathlib import Path
from memory_tools import durable
with durable.lock(Path(sys.argv[1])):
    print("held", flush=True)
    signal.pause()
"""


@posix
@pytest.mark.parametrize("target", ["memory/utility-scores.json", "memory/tools/web_search.calls.jsonl", ".memory-tools/current"])
def test_a_lock_held_by_a_process_that_died_is_free(tmp_path: Path, target: str) -> None:
    faulty.make(tmp_path)
    command = [sys.executable, "-c", HOLDER, str(tmp_path / target)]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(HERE.parent)})
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    started = time.monotonic()
    with faulty.opened(tmp_path) as memory:
        memory.feedback(faulty.DEPLOY)
        memory.record_tool_calls([faulty.call(9)])
        memory.rebuild()
    assert time.monotonic() - started < 9, "the lock was waited for"  # a held one is waited for 10 s
    assert faulty.look(tmp_path).counts[faulty.DEPLOY] == (6, 5)


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EBUSY])
def test_a_file_system_where_nothing_can_be_replaced_is_written_in_place_or_told(tmp_path: Path, code: int) -> None:
    """EXDEV and EBUSY: a single file mounted into a container. EPERM: a right that is missing, which is told; nothing changes then."""
    faulty.make(tmp_path)
    before = faulty.look(tmp_path)

    def refuse(kind: str, target: str) -> None:
        if kind == "replace":
            raise OSError(code, os.strerror(code), target)

    seam.on_step = refuse
    try:
        with faulty.opened(tmp_path) as memory:
            if code == errno.EPERM:
                with pytest.raises(Forbidden, match="not permitted"):
                    memory.feedback(faulty.DEPLOY, event_id="e1")
            else:
                memory.feedback(faulty.DEPLOY, event_id="e1")
                memory.record_tool_calls([faulty.call(9)])
                memory.summarize_tools("web_search")
                memory.rebuild()
            assert memory.search(faulty.ASKED)[0].address == faulty.ANSWER
    finally:
        seam.on_step = None
    after = faulty.look(tmp_path)
    assert after.counts[faulty.DEPLOY] == ((5, 4) if code == errno.EPERM else (6, 5))
    assert after.notes == before.notes
    assert not list(tmp_path.rglob("*.tmp"))
    with faulty.opened(tmp_path) as memory:
        memory.feedback(faulty.DEPLOY, event_id="e1")
        assert memory.check().ok
    assert faulty.look(tmp_path).counts[faulty.DEPLOY] == (6, 5)


def test_a_clock_that_jumps_back_loses_no_memory_and_no_credit(tmp_path: Path) -> None:
    """An hour, then ten years: notes of later days, receipts and tool calls from the future stay as they are."""
    faulty.make(tmp_path)
    now = datetime.now(UTC)
    first = workspace.remember(tmp_path, "the first", "First", "e1", now)
    for back in (timedelta(hours=1), timedelta(days=3650)):
        again = workspace.remember(tmp_path, "the first", "First", "e1", now - back)
        assert (again.stored, again.address) == (False, first.address)
        other = workspace.remember(tmp_path, f"before {back}", "Before", None, now - back)
        assert other.stored
    with faulty.opened(tmp_path) as memory:
        recall = memory.search("where is the deploy script").recall
        memory.feedback(faulty.DEPLOY, recall=recall, event_id="e2")
        for stamp in ("2031-01-01 00:00:00", "2021-01-01 00:00:00"):
            memory.record_tool_calls([{**faulty.call(20), "create_time": stamp}])
        assert memory.search("where is the deploy script", now=now - timedelta(days=3650))[0].address == faulty.DEPLOY
        memory.feedback(faulty.DEPLOY, recall=recall, event_id="e2")
        assert memory.check().ok
    after = faulty.look(tmp_path)
    assert after.counts[faulty.DEPLOY] == (6, 5)
    assert len(after.calls) == 5


def test_a_damaged_sidecar_is_left_as_it_is_and_all_else_works(tmp_path: Path) -> None:
    faulty.make(tmp_path)
    sidecar = tmp_path / "memory" / "utility-scores.json"
    for damage in (b"", b"{", sidecar.read_bytes()[:50], b"\xff\xfe{}", b"[]", b"null", b"[" * 100_000):
        sidecar.write_bytes(damage)
        with faulty.opened(tmp_path) as memory:
            assert memory.search(faulty.ASKED)[0].address == faulty.ANSWER
            with pytest.raises(MemoryToolsError):
                memory.feedback(faulty.DEPLOY)
            assert not memory.check(fix=True).ok
            memory.status()
        assert sidecar.read_bytes() == damage
