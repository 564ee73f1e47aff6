"""A Memory in, a thread that keeps its index fresh out. File events are hints; what changed is decided by the scan alone.

So a lost, late or doubled event costs time and never an answer, and where events cannot be had the same scan runs every few seconds.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from memory_tools import files, watch_folders, watch_state
from memory_tools.config import index_folder
from memory_tools.errors import MemoryToolsError
from memory_tools.reports import SyncReport

if TYPE_CHECKING:
    from memory_tools.memory import Memory

log = logging.getLogger("memory_tools.watch")

DEBOUNCE_S = 1.5  # quiet for so long after the last event: an editor's save is several, a git checkout thousands
LONGEST_WAIT_S = 15.0  # a file that is written to all the time must not keep the others waiting
RESCAN_S = 30.0  # beside events: network folders and containers lose them
POLL_S = 2.0  # instead of events
DAY_S = 24 * 3600.0
_FAILED = object()  # equal to no listing


@dataclass(frozen=True, slots=True)
class Change:
    """What one look at the files found."""

    time: datetime
    report: SyncReport

    @property
    def line(self) -> str:
        """`read memory/a.md, memory/b.md; gone c.md`, however many there are on one line."""
        parts = [
            f"{word} {', '.join(sorted(names)[:3])}" + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
            for word, names in (("read", self.report.changed), ("gone", self.report.removed))
            if names
        ]
        return "; ".join(parts)


class Events(Protocol):
    """A source of hints. `watch` sets what is watched, before every look: folders come and go. OSError where the system refuses."""

    def watch(self, folders: Mapping[str, bool]) -> None: ...

    def alive(self) -> bool: ...

    def stop(self) -> None: ...


class Watcher:
    """Keeps one Memory's index fresh in a thread of its own. `hint` is called by the events, `problem` is for people ("" when well).

    on_change: called in that thread after a look that found something. Errors of one look are told and the next is tried;
    anything else ends the watcher, which then says so in `died`.
    """

    def __init__(
        self,
        memory: Memory,
        on_change: Callable[[Change], None] | None = None,
        *,
        debounce_s: float = DEBOUNCE_S,
        poll_s: float = POLL_S,
        events: Callable[[Callable[[], None]], Events] | None = None,
    ) -> None:
        self.memory = memory
        self.problem = ""
        self.died = False
        self.polling = False
        self._on_change = on_change
        self._debounce_s, self._poll_s = debounce_s, poll_s
        self._make_events = events or _system_events
        self._events: Events | None = None
        self._watched: Mapping[str, bool] = {}
        self._woken = threading.Condition()
        self._hinted_at: float | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="memory-tools-watch", daemon=True)
        self._looked = threading.Event()
        self._state_file: Path | None = None
        self._told = ""  # the last failure that was logged
        self._said: str | None = None  # the problem that the state file holds

    def start(self) -> Watcher:
        """Begin. The first look is done in the thread as well: an index of many notes takes a while."""
        self._thread.start()
        return self

    def stop(self, timeout_s: float = 5.0) -> None:
        """End, after the look that is under way, if that takes no longer than `timeout_s`."""
        with self._woken:
            self._stopping = True
            self._woken.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def wait_until_looked(self, timeout_s: float) -> bool:
        """Whether the first look is done."""
        return self._looked.wait(timeout_s)

    def hint(self) -> None:
        """Something may have changed."""
        with self._woken:
            self._hinted_at = time.monotonic()
            self._woken.notify_all()

    @property
    def degraded(self) -> tuple[str, ...]:
        """The words for a reply, () while all is well."""
        return ("watcher_died",) if self.died else ()

    # --- the thread ------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with watch_state.claimed(index_folder(self.memory.config)) as self._state_file:
                self._watch()
        except Exception as e:  # the thread's last word: without it a watcher would die in silence
            self.died = True
            self.problem = f"the watcher has died ({type(e).__name__}: {e}); searches still see every change"
            log.exception("the watcher has died")
        finally:
            self._looked.set()
            if self._events is not None:
                self._events.stop()

    def _watch(self) -> None:
        last_day = time.monotonic()
        before: object = None
        looked_at = float("-inf")
        hinted = True
        while not self._stopping:
            self._arm()
            seen = self._glance()
            # A poll only lists the files; the rest of a look (vectors that wait for a network, for one) is not tried every two seconds.
            if hinted or seen != before or time.monotonic() - looked_at > RESCAN_S:
                # What failed (the index in use, for one) is tried again soon, as if nothing had been seen.
                looked_at, before = time.monotonic(), seen if self._look() else _FAILED
            self._looked.set()
            self._tell()
            if time.monotonic() - last_day > DAY_S:
                last_day = time.monotonic()
                self._carry_scores()
            hinted = self._wait(self._poll_s if self.polling or not self._watched or before is _FAILED else RESCAN_S)

    def _arm(self) -> None:
        """Watch the folders there are now; poll where the system will not."""
        if self.polling:
            return
        config = self.memory.config
        folders = watch_folders.to_watch(config.workspace, config.include or files.DEFAULT_INCLUDE)
        for root in config.extra_roots.values():
            folders.update(watch_folders.to_watch(root, ("**/*.md",)))
        try:
            if self._events is None:
                self._events = self._make_events(self.hint)
            elif not self._events.alive():
                raise OSError("the system's file events have ended")
            self._events.watch(folders)
            self._watched = folders
        except OSError as e:
            self.polling = True
            self.problem = f"file events cannot be had ({e.strerror or e}); looking every {self._poll_s:g} s instead"
            log.warning("%s (%s)", self.problem, watch_folders.names(folders))
            if self._events is not None:
                self._events.stop()
                self._events = None

    def _glance(self) -> object:
        """What the listing says; equal to the last one where no file changed. None where the workspace is missing."""
        config = self.memory.config
        try:
            return files.scan(config.workspace, config.include, config.exclude, config.extra_roots).found
        except MemoryToolsError:
            return None

    def _look(self) -> bool:
        """Take in what changed; False where that failed."""
        report = self._guarded(self.memory.sync)
        if not isinstance(report, SyncReport):
            return False
        if report.changed or report.removed:
            self._carry_scores()
            if self._on_change is not None:
                self._on_change(Change(datetime.now(UTC), report))
        return True

    def _carry_scores(self) -> None:
        """Let the addresses in the scores follow the notes. Without scores nothing is made: not even a folder that was just removed."""
        if (self.memory.config.workspace / "memory" / "utility-scores.json").exists():
            self._guarded(self.memory.recalculate)

    def _guarded(self, act: Callable[[], object]) -> object | None:
        """The result, or None where it failed in a way that may pass: a busy disk, a folder away for a moment."""
        try:
            done = act()
        except (MemoryToolsError, OSError, sqlite3.Error) as e:
            if str(e) != self._told:  # the same failure, tried again every few seconds, is told once
                log.warning("%s", e)
            self._told = str(e)
            return None
        self._told = ""
        return done

    def _tell(self) -> None:
        path = self._state_file
        if path is not None and path.parent.is_dir() and self.problem != self._said:
            self._guarded(lambda: watch_state.write(path, self.problem))
            self._said = self.problem

    def _wait(self, at_most_s: float) -> bool:
        """Whether there was a hint; then it has been quiet since for the debounce."""
        with self._woken:
            if self._hinted_at is None and not self._stopping:
                self._woken.wait(at_most_s)
            if self._hinted_at is None or self._stopping:
                return False
            first = self._hinted_at
            while not self._stopping:
                now = time.monotonic()
                left = min(self._hinted_at + self._debounce_s, first + LONGEST_WAIT_S) - now
                if left <= 0:
                    break
                self._woken.wait(left)
            self._hinted_at = None
            return True


def _system_events(hint: Callable[[], None]) -> Events:
    from memory_tools.watch_events import SystemEvents

    return SystemEvents(hint)
