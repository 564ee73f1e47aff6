"""Writes that survive: real files, real processes, and a failure at every step."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_tools import durable, seam
from memory_tools.errors import Busy, Forbidden, InvalidInput, MemoryToolsError

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")


@pytest.fixture
def steps() -> Iterator[list[tuple[str, str]]]:
    seen: list[tuple[str, str]] = []
    seam.on_step = lambda kind, target: seen.append((kind, target))
    yield seen
    seam.on_step = None


def fail_at(number: int, code: int) -> list[str]:
    """The `number`-th step (from 0) fails with that errno; the kinds of the steps so far are collected."""
    seen: list[str] = []

    def step(kind: str, target: str) -> None:
        seen.append(kind)
        if len(seen) == number + 1:
            raise OSError(code, os.strerror(code), target)

    seam.on_step = step
    return seen


@pytest.fixture(autouse=True)
def _no_step_left() -> Iterator[None]:
    yield
    seam.on_step = None


def test_a_file_is_replaced_as_a_whole(tmp_path: Path, steps: list[tuple[str, str]]) -> None:
    target = tmp_path / "deep" / "scores.json"
    durable.replace(target, b"one")
    durable.replace(target, "zwei ü".encode())
    assert target.read_bytes() == "zwei ü".encode()
    assert [p.name for p in target.parent.iterdir()] == ["scores.json"]
    kinds = [kind for kind, _ in steps]
    assert kinds[0] == "mkdir"
    assert kinds[1:6] == ["open", "write", "fsync", "replace", "fsync"]
    assert all(kind != "open" or name.endswith(".tmp") for kind, name in steps), "the target itself is never opened"


@posix
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_the_mode_of_a_file_is_kept(tmp_path: Path, mode: int) -> None:
    target = tmp_path / "a.json"
    target.write_bytes(b"x")
    target.chmod(mode)
    durable.replace(target, b"y")
    assert stat.S_IMODE(target.stat().st_mode) == mode


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("existing", [True, False])
def test_whatever_step_of_a_replacement_fails_the_old_content_or_the_new_is_there(tmp_path: Path, code: int, existing: bool) -> None:
    target = tmp_path / "a.json"
    for number in range(10):
        if existing:
            target.write_bytes(b"old")
        else:
            target.unlink(missing_ok=True)
        seen = fail_at(number, code)
        error: MemoryToolsError | None = None
        try:
            durable.replace(target, b"new")
        except MemoryToolsError as e:
            error = e
        finally:
            seam.on_step = None
        assert not list(tmp_path.glob(".*.tmp"))
        replaced = seen.count("replace") == 1 and seen[-1] != "replace"
        assert target.exists() == (existing or replaced)
        if target.exists():
            assert target.read_bytes() == (b"new" if replaced else b"old")
        if error is None:
            assert number >= 4
            break
        assert isinstance(error, Busy if code in (errno.ENOSPC, errno.EIO) else Forbidden)
        assert os.strerror(code) in error.message
        assert "a.json" in error.message


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EBUSY])
def test_a_file_that_is_a_mount_of_its_own_is_written_in_place(tmp_path: Path, code: int) -> None:
    target = tmp_path / "a.json"
    target.write_bytes(b"old and longer")
    fail_at(3, code)
    durable.replace(target, b"new")
    assert target.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


@posix
def test_a_link_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_bytes(b"kept")
    (tmp_path / "link.json").symlink_to("real.json")
    for write in (durable.replace, durable.append):
        with pytest.raises(Forbidden, match="symbolic link"):
            write(tmp_path / "link.json", b"new")
    assert (tmp_path / "real.json").read_bytes() == b"kept"


def test_a_folder_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(MemoryToolsError, match=r"a\.json"):
        durable.replace(tmp_path / "a.json", b"x")
    with pytest.raises(MemoryToolsError, match="file"):
        durable.append(tmp_path / "file" / "below.jsonl", b"x")
    with pytest.raises(InvalidInput):
        durable.make_folder(tmp_path / "file")


def test_an_append_adds_whole_lines(tmp_path: Path) -> None:
    target = tmp_path / "new" / "calls.jsonl"
    durable.append(target, b"1\n")
    durable.append(target, b"2\n")
    assert target.read_bytes() == b"1\n2\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"x\n"),
        (b"a\n", b"a\nx\n"),
        (b'a\n{"half', b'a\n{"half\nx\n'),
        (b"a\r\nb", b"a\r\nb\r\nx\n"),
        (b"a\r", b"a\rx\n"),
        (b"z" * 9000, b"z" * 9000 + b"\nx\n"),
    ],
)
def test_a_last_line_without_its_end_is_ended_before_an_append(tmp_path: Path, before: bytes, after: bytes) -> None:
    target = tmp_path / "note.md"
    target.write_bytes(before)
    durable.append(target, b"x\n")
    assert target.read_bytes() == after


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_whatever_step_of_an_append_fails_nothing_or_all_is_added(tmp_path: Path, code: int) -> None:
    """case 23"""
    target = tmp_path / "a.jsonl"
    for number in range(8):
        target.write_bytes(b"old\n")
        fail_at(number, code)
        try:
            durable.append(target, b"new\n")
        except Busy:
            assert target.read_bytes() == b"old\n"
        else:
            assert number >= 4
            break
        finally:
            seam.on_step = None


def test_a_full_disk_is_reported_as_such() -> None:
    error = durable.refused(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), Path("memory/x.md"))
    assert isinstance(error, Busy)
    assert "No space left" in error.message
    assert "space" in error.hint


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_says_so(tmp_path: Path) -> None:
    """case 30"""
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o500)
    for write in (durable.replace, durable.append):
        with pytest.raises(Forbidden, match="Permission denied"):
            write(folder / "a.json", b"x")


def test_removing_what_is_gone_is_fine(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    durable.remove(tmp_path / "a")
    durable.remove(tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_a_held_lock_makes_the_next_one_busy(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    with durable.lock(target), pytest.raises(Busy, match=r"a\.json.*in use"), durable.lock(target, timeout_s=0.05):
        pass
    with durable.lock(target, timeout_s=0.05):
        pass
    assert (tmp_path / ".a.json.lock").exists()


def test_a_lock_is_freed_by_an_error_inside_it(tmp_path: Path) -> None:
    with pytest.raises(KeyError), durable.lock(tmp_path / "a"):
        raise KeyError
    with durable.lock(tmp_path / "a", timeout_s=0.05):
        pass


def test_threads_take_turns(tmp_path: Path) -> None:
    target = tmp_path / "count"
    target.write_bytes(b"0")

    def add() -> None:
        for _ in range(20):
            with durable.lock(target):
                durable.replace(target, str(int(target.read_bytes()) + 1).encode())

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_bytes() == b"80"


ADD_FIFTY = """
import sys
from pathlib import Path
from memory_tools import durable
target = Path(sys.argv[1])
for i in range(50):
    with durable.lock(target, timeout_s=60):
        durable.replace(target, str(int(target.read_bytes()) + 1).encode())
    durable.append(target.with_name("log"), f"{sys.argv[2]} {i}\\n".encode(), timeout_s=60)
"""


def test_four_processes_that_add_fifty_each_keep_two_hundred(tmp_path: Path) -> None:
    target = tmp_path / "count"
    target.write_bytes(b"0")
    processes = [subprocess.Popen([sys.executable, "-c", ADD_FIFTY, str(target), str(n)]) for n in range(4)]
    assert [p.wait(120) for p in processes] == [0] * 4
    assert target.read_bytes() == b"200"
    lines = (tmp_path / "log").read_text().split("\n")
    assert sorted(lines[:-1]) == sorted(f"{n} {i}" for n in range(4) for i in range(50))


KILLED_AT = """
import os, signal, sys
from pathlib import Path
from memory_tools import durable, seam
left = int(sys.argv[2])
def step(kind, target):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
seam.on_step = step
target = Path(sys.argv[1])
with durable.lock(target):
    durable.replace(target, b"new" * 100_000)
    durable.append_unlocked(target.with_name("log"), b"new\\n")
"""


@posix
def test_a_writer_killed_at_any_step_leaves_the_old_content_or_the_new_and_no_lock(tmp_path: Path) -> None:
    target, log = tmp_path / "a.json", tmp_path / "log"
    for number in range(12):
        target.write_bytes(b"old")
        log.write_bytes(b"old\n")
        code = subprocess.run([sys.executable, "-c", KILLED_AT, str(target), str(number)], check=False).returncode
        assert target.read_bytes() in (b"old", b"new" * 100_000)
        assert log.read_bytes() in (b"old\n", b"old\nnew\n")
        with durable.lock(target, timeout_s=5):
            durable.replace(target, b"next")
        if code == 0:
            assert number >= 9
            break
        assert code == -signal.SIGKILL


@posix
def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    with durable.lock(tmp_path / "a"):
        child = os.fork()
        if child == 0:
            time.sleep(5)
            os._exit(0)
    try:
        with durable.lock(tmp_path / "a", timeout_s=1):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@posix
def test_a_lock_file_that_was_removed_meanwhile_locks_all_the_same(tmp_path: Path) -> None:
    target = tmp_path / "a"
    with durable.lock(target):
        (tmp_path / ".a.lock").unlink()
    with durable.lock(target), pytest.raises(Busy), durable.lock(target, timeout_s=0.05):
        pass


@posix
def test_the_lock_is_the_one_that_filelock_takes(tmp_path: Path) -> None:
    from filelock import FileLock, Timeout

    with durable.lock(tmp_path / "a"), pytest.raises(Timeout):
        FileLock(str(tmp_path / ".a.lock"), timeout=0.05).acquire()
    with FileLock(str(tmp_path / ".a.lock")), pytest.raises(Busy), durable.lock(tmp_path / "a", timeout_s=0.05):
        pass
