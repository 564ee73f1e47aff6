"""Folders in, hints out whenever the system reports a change to a note or a folder in them (watchdog)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import EventEmitter, ObservedWatch

from memory_tools.walk import SUFFIXES
from memory_tools.watch_folders import ignored


class SystemEvents:
    """One watchdog observer. The constructor and `watch` raise OSError where the system has no watches left."""

    def __init__(self, hint: Callable[[], None]) -> None:
        logging.getLogger("watchdog.observers.inotify").addFilter(_no_orderly_stop)  # once: the same filter is not added again
        self._handler = _Handler(hint)
        self._observer = Observer()
        self._observer.start()
        self._watches: dict[_Key, ObservedWatch] = {}

    def watch(self, folders: Mapping[str, bool]) -> None:
        """Watch these folders and no others, anew where one was removed and made again under its name."""
        wanted = {key for folder, whole in folders.items() if (key := _key(folder, whole)) is not None}
        dead = {emitter.watch for emitter in self._observer.emitters if not emitter.is_alive()}
        for key in [key for key, watch in self._watches.items() if key not in wanted or watch in dead]:
            self._observer.unschedule(self._watches.pop(key))
        for key in sorted(wanted - set(self._watches)):
            try:
                self._watches[key] = self._observer.schedule(self._handler, key[0], recursive=key[1])
            except FileNotFoundError:  # gone since it was listed; the next look lists again
                continue

    def alive(self) -> bool:
        return self._observer.is_alive()

    def stop(self) -> None:
        self._observer.stop()
        if self._observer.is_alive():
            self._observer.join(2.0)


_Key = tuple[str, bool, int, int]  # folder, whole subtree, device and inode: a folder renamed away keeps its watch, and not its name


def _key(folder: str, whole: bool) -> _Key | None:
    try:
        state = Path(folder).stat()
    except OSError:
        return None
    return folder, whole, state.st_dev, state.st_ino


def _no_orderly_stop(record: logging.LogRecord) -> bool:
    """False for the error that watchdog logs where a thread of its own was told to stop between two looks at whether it was.

    Every stop with events still under way may be such a one. Said by a thread that nobody told to stop, it is an error and passes.
    """
    thread = threading.current_thread()  # a filter is called where the record is made
    return not ("thread is inactive" in record.getMessage() and isinstance(thread, EventEmitter) and not thread.should_keep_running())


class _Handler(FileSystemEventHandler):
    def __init__(self, hint: Callable[[], None]) -> None:
        self._hint = hint

    def on_any_event(self, event: FileSystemEvent) -> None:
        # Opening and closing for reading is what our own look does: taken as hints they would never end.
        if event.event_type in ("opened", "closed_no_write"):
            return
        names = [Path(str(path)).name for path in (event.src_path, event.dest_path) if path]
        if event.is_directory:
            if event.event_type != "modified" and not all(ignored(name) for name in names):
                self._hint()
        elif any(name.lower().endswith(SUFFIXES) for name in names):
            self._hint()
