"""The watcher keeps the index fresh on a real file system, and says so when it cannot."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from memory_tools import seam, watch_folders, watch_state
from memory_tools.config import Config
from memory_tools.engine import index_folder
from memory_tools.errors import Busy
from memory_tools.files import DEFAULT_INCLUDE
from memory_tools.memory import Memory
from memory_tools.resident import Resident
from memory_tools.watch import Change, Watcher

LONG_S = 20.0  # how long a test waits for what must come


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    (place / "memory" / "2026").mkdir(parents=True)
    (place / "MEMORY.md").write_text("# Memory\n\n- Anna likes tea\n")
    (place / "memory" / "2026" / "deep.md").write_text("# Deep\n\n- nested\n")
    return place


class Seen:
    """What the watcher told, for a test to wait on."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._woken = threading.Condition()

    def __call__(self, change: Change) -> None:
        with self._woken:
            self.changes.append(change)
            self._woken.notify_all()

    def read(self) -> set[str]:
        return {path for change in self.changes for path in change.report.changed}

    def gone(self) -> set[str]:
        return {path for change in self.changes for path in change.report.removed}

    def wait(self, holds: Callable[[Seen], bool]) -> None:
        with self._woken:
            assert self._woken.wait_for(lambda: holds(self), LONG_S), [change.line for change in self.changes]


@contextmanager
def watching(root: Path, **options: object) -> Iterator[tuple[Watcher, Seen]]:
    seen = Seen()
    with Memory(config=Config(root, encoder="none")) as memory:
        watcher = Watcher(memory, seen, debounce_s=0.1, **options).start()  # type: ignore[arg-type]
        try:
            assert watcher.wait_until_looked(LONG_S)
            yield watcher, seen
        finally:
            watcher.stop()


class Refused:
    """A named fake for limits that a test cannot reach: events that the system refuses after `allowed` sets of folders."""

    def __init__(self, hint: Callable[[], None], allowed: int = 0) -> None:
        self.left = allowed
        self.stopped = False

    def watch(self, folders: Mapping[str, bool]) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, "inotify watch limit reached")

    def alive(self) -> bool:
        return True

    def stop(self) -> None:
        self.stopped = True


# --- what is seen ------------------------------------------------------------------


def test_the_first_look_takes_in_what_is_there(root: Path) -> None:
    with watching(root) as (_, seen):
        assert seen.read() == {"MEMORY.md", "memory/2026/deep.md"}


def test_an_edit_a_new_file_and_a_removed_one_are_seen(root: Path) -> None:
    """case 13 and 14."""
    with watching(root) as (_, seen):
        (root / "memory" / "new.md").write_text("# New\n\n- fresh\n")
        seen.wait(lambda s: "memory/new.md" in s.read())
        (root / "memory" / "2026" / "deep.md").unlink()
        seen.wait(lambda s: "memory/2026/deep.md" in s.gone())


def test_editors_that_save_by_renaming_are_seen(root: Path) -> None:
    """case 14: temp-file-and-rename saves, vim's backup and swap."""
    note = root / "MEMORY.md"
    with watching(root) as (_, seen):
        seen.changes.clear()
        temporary = root / ".MEMORY.md.tmp123"
        temporary.write_text("# Memory\n\n- by an atomic save\n")
        temporary.replace(note)
        seen.wait(lambda s: "MEMORY.md" in s.read())
        seen.changes.clear()
        note.rename(root / "MEMORY.md~")
        (root / "4913").write_text("")
        note.write_text("# Memory\n\n- by vim\n")
        (root / "4913").unlink()
        (root / "MEMORY.md~").unlink()
        seen.wait(lambda s: "MEMORY.md" in s.read())
        seen.changes.clear()
        note.rename(root / "memory" / "moved.md")
        seen.wait(lambda s: "memory/moved.md" in s.read() and "MEMORY.md" in s.gone())


def test_folders_made_later_and_nested_ones_are_watched(root: Path) -> None:
    with watching(root) as (_, seen):
        deep = root / "knowledge" / "a" / "b" / "c"
        deep.mkdir(parents=True)
        time.sleep(0.5)  # past the debounce: the folders alone change nothing
        (deep / "note.md").write_text("# Note\n\n- deep down\n")
        seen.wait(lambda s: "knowledge/a/b/c/note.md" in s.read())
        (root / "memory" / "2026").rename(root / "memory" / "old")
        seen.wait(lambda s: "memory/old/deep.md" in s.read())
        (root / "memory" / "old" / "more.md").write_text("# More\n\n- x\n")
        seen.wait(lambda s: "memory/old/more.md" in s.read())


def test_a_folder_missing_at_start_or_made_again_is_watched(root: Path) -> None:
    shutil.rmtree(root / "memory")
    with watching(root) as (watcher, seen):
        for n in range(3):
            (root / "memory").mkdir()
            (root / "memory" / f"{n}.md").write_text(f"# N{n}\n\n- x\n")
            seen.wait(lambda s, n=n: f"memory/{n}.md" in s.read())  # type: ignore[misc]
            shutil.rmtree(root / "memory")
            seen.wait(lambda s, n=n: f"memory/{n}.md" in s.gone())  # type: ignore[misc]
        assert not watcher.polling


def test_the_whole_workspace_removed_and_made_again_is_watched(root: Path) -> None:
    with watching(root, poll_s=0.2) as (watcher, seen):
        shutil.rmtree(root, ignore_errors=True)  # the watcher may write beside it meanwhile
        shutil.rmtree(root, ignore_errors=True)
        time.sleep(1.0)
        seen.changes.clear()
        (root / "memory").mkdir(parents=True)
        (root / "memory" / "again.md").write_text("# Again\n\n- back\n")
        seen.wait(lambda s: "memory/again.md" in s.read())
        assert not watcher.died


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_git_checkout_of_the_whole_folder_is_one_change(root: Path) -> None:
    """case 14: git checkout of the whole folder."""

    def git(*words: str) -> None:
        quiet = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main", "-c", "advice.detachedHead=false"]
        subprocess.run(["git", *quiet, "-C", str(root), *words], check=True, capture_output=True)

    git("init")
    (root / ".gitignore").write_text(".memory-tools/\n.*.lock\n")
    git("add", ".")
    git("commit", "-m", "one")
    for n in range(40):
        (root / "memory" / f"n{n}.md").write_text(f"# N{n}\n\n- x\n")
    (root / "MEMORY.md").write_text("# Memory\n\n- two\n")
    git("add", ".")
    git("commit", "-m", "two")
    with watching(root) as (watcher, seen):
        watcher._debounce_s = 1.0  # longer than a busy machine holds git up between two files
        seen.changes.clear()
        git("checkout", "HEAD~1")
        seen.wait(lambda s: len(s.gone()) == 40 and "MEMORY.md" in s.read())
        seen.changes.clear()
        git("checkout", "main")
        seen.wait(lambda s: len(s.read()) == 41)
        assert len(seen.changes) <= 2


def test_reading_and_our_own_files_are_no_hint(root: Path) -> None:
    with watching(root) as (watcher, _):
        hints: list[float] = []
        watcher.hint = lambda: hints.append(1)  # type: ignore[method-assign]
        assert watcher._events is not None
        watcher._events._handler._hint = watcher.hint  # type: ignore[attr-defined]
        for _ in range(3):
            (root / "MEMORY.md").read_text()
            (root / "memory" / "utility-scores.json").write_text("{}")
            (root / "memory" / ".x.md.lock").write_text("")
            (root / "memory" / ".git").mkdir(exist_ok=True)
        time.sleep(0.5)
        assert not hints
        (root / "memory" / "a.md").write_text("x")
        deadline = time.monotonic() + LONG_S
        while not hints and time.monotonic() < deadline:
            time.sleep(0.02)
        assert hints


# --- what is watched -----------------------------------------------------------------


def test_ignored_folders_are_not_watched(root: Path) -> None:
    """case 16: .venv, node_modules, .git are not walked."""
    for name in (".git/objects/aa", "node_modules/x", "memory/.git/objects", "memory/node_modules/y", "knowledge/plain/deep"):
        (root / name).mkdir(parents=True)
    assert watch_folders.to_watch(root, DEFAULT_INCLUDE) == {
        str(root): False,
        str(root / "memory"): False,
        str(root / "memory" / "2026"): True,
        str(root / "knowledge"): True,
    }


def test_what_is_watched_follows_links_that_stay_inside(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "shelf").mkdir()
    (root / "memory" / "inside").symlink_to(root / "shelf")
    (root / "memory" / "out").symlink_to(outside)
    (root / "memory" / "round").symlink_to(root / "memory")
    folders = watch_folders.to_watch(root, DEFAULT_INCLUDE)
    assert folders == {str(root): False, str(root / "memory"): True, str(root / "shelf"): True}
    assert watch_folders.to_watch(tmp_path / "missing", DEFAULT_INCLUDE) == {}
    assert watch_folders.to_watch(root, ("a/b/*.md",)) == {str(root): False}


# --- limits and ends -------------------------------------------------------------------


@pytest.mark.parametrize("allowed", [0, 2])
def test_without_watches_left_it_warns_once_and_polls(root: Path, caplog: pytest.LogCaptureFixture, allowed: int) -> None:
    """case 16: inotify exhausted gives one warning and polling."""
    with watching(root, poll_s=0.1, events=lambda hint: Refused(hint, allowed)) as (watcher, seen):
        for n in range(4):
            (root / "memory" / f"p{n}.md").write_text(f"# P{n}\n\n- x\n")
            watcher.hint()
            seen.wait(lambda s, n=n: f"memory/p{n}.md" in s.read())  # type: ignore[misc]
        assert watcher.polling
        assert "every 0.1 s" in watcher.problem
        assert watcher.degraded == ()
        assert watch_state.told(index_folder(watcher.memory.config)) == ((), (watcher.problem,))
        assert watcher.problem in watcher.memory.status().warnings
    assert len([record for record in caplog.records if "file events cannot be had" in record.message]) == 1


def test_what_fails_for_a_moment_is_tried_again_and_told_once(
    root: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """case 22: a writer that holds the index for long."""
    left = 3

    def busy(kind: str, target: str) -> None:
        nonlocal left
        if kind == "sqlite" and left > 0:
            left -= 1
            raise Busy("the index is in use")

    with watching(root, poll_s=0.1) as (watcher, seen):
        monkeypatch.setattr(seam, "on_step", busy)
        (root / "memory" / "new.md").write_text("# New\n\n- x\n")
        seen.wait(lambda s: "memory/new.md" in s.read())
        assert left == 0
        assert not watcher.died
    assert [record.message for record in caplog.records] == ["the index is in use"]


def test_a_watcher_that_dies_is_said_in_replies_and_in_status(root: Path) -> None:
    """case 16: a watcher dies silently."""

    def broken(change: Change) -> None:
        raise RuntimeError("a fault")

    with Resident(Config(root, encoder="none"), broken) as resident:
        deadline = time.monotonic() + LONG_S
        while not (resident.watcher and resident.watcher.died) and time.monotonic() < deadline:
            time.sleep(0.02)
        answer = resident.call("memory_search", {"query": "tea"})
        assert answer["degraded"] == ["watcher_died"]
        assert isinstance(answer["results"], list)
        assert answer["results"]
        assert "a fault" in resident.watcher.problem  # type: ignore[union-attr]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX only")
def test_a_watcher_whose_process_was_killed_is_known_as_dead(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with watch_state.claimed(tmp_path) as path:
            watch_state.write(path)
            os._exit(0)  # as a kill: nothing is cleaned up
    os.waitpid(child, 0)
    words, said = watch_state.told(tmp_path)
    assert words == ("watcher_died",)
    assert "died" in said[0]
    with watch_state.claimed(tmp_path) as path:
        watch_state.write(path)
        assert watch_state.told(tmp_path) == ((), ())
        with watch_state.claimed(tmp_path) as second:
            assert second is None
    assert watch_state.told(tmp_path) == ((), ())
    assert not (tmp_path / watch_state.FILE).exists()


def test_a_workspace_that_comes_later_is_taken_up(tmp_path: Path) -> None:
    root = tmp_path / "later"
    with Resident(Config(root, encoder="none")) as resident:
        time.sleep(0.2)
        root.mkdir()
        (root / "MEMORY.md").write_text("# Memory\n\n- Anna likes tea\n")
        deadline = time.monotonic() + LONG_S
        while resident.watcher is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert resident.watcher is not None
        assert resident.call("memory_search", {"query": "tea"})["results"]


def test_a_change_is_one_line_however_much_changed(root: Path) -> None:
    for n in range(30):
        (root / "memory" / f"{n:02}.md").write_text(f"# {n}\n\n- x\n")
    with watching(root) as (_, seen):
        assert seen.changes[0].line == "read MEMORY.md, memory/00.md, memory/01.md and 29 more"


# --- an orderly stop -------------------------------------------------------------------


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify")
@pytest.mark.parametrize("told_to_stop", [True, False])
def test_an_orderly_stop_is_silent_and_what_is_wrong_is_not(
    root: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, told_to_stop: bool
) -> None:
    """A short-lived `mcp` ended with "InotifyEmitter.queue_events() called when the thread is inactive" whenever the stop met an event."""
    from watchdog.observers.inotify import InotifyEmitter

    from memory_tools.watch_events import SystemEvents

    look = InotifyEmitter.queue_events
    looks, over = threading.Event(), threading.Event()

    def between_two_looks(emitter: InotifyEmitter, timeout: float) -> None:
        """The thread found that it should go on, and is overtaken before it takes the next event."""
        looks.set()
        while emitter._inotify is not None and told_to_stop:
            time.sleep(0.001)
        kept, emitter._inotify = emitter._inotify, None
        look(emitter, timeout)
        emitter._inotify = kept
        over.set()
        emitter.stopped_event.wait(LONG_S)

    monkeypatch.setattr(InotifyEmitter, "queue_events", between_two_looks)
    events = SystemEvents(lambda: None)
    events.watch({str(root): False})
    assert looks.wait(LONG_S)
    assert told_to_stop or over.wait(LONG_S)
    events.stop()
    assert over.wait(LONG_S)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == (0 if told_to_stop else 1), said


def test_a_face_that_ends_while_its_watcher_is_being_started_leaves_none_behind(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Watcher] = []
    leaving = threading.Event()
    start = Watcher.start

    def late(watcher: Watcher) -> Watcher:
        assert leaving.wait(LONG_S)
        started.append(watcher)
        return start(watcher)

    monkeypatch.setattr(Watcher, "start", late)
    resident = Resident(Config(root, encoder="none"))
    with resident:
        threading.Timer(0.2, leaving.set).start()
    assert started == [resident.watcher]
    assert not started[0]._thread.is_alive()
