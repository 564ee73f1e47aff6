"""A configuration in, a Memory that a long-running face keeps open out: watched, and with what is wrong said in every reply."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from memory_tools import render, verbs
from memory_tools.errors import MemoryToolsError
from memory_tools.memory import Memory
from memory_tools.watch import Change, Watcher

if TYPE_CHECKING:
    from memory_tools.config import Config
    from memory_tools.tool_memory import ToolMemoryStore

log = logging.getLogger("memory_tools.resident")

RETRY_S = 2.0  # while there is no workspace
CLOSE_S = 3.0


class Resident:
    """Opens the memory when it is first asked for, and again and again while the workspace is missing.

    The watcher has a Memory of its own: a first index of many notes must not keep a search waiting.
    """

    def __init__(self, config: Config, on_change: Callable[[Change], None] | None = None) -> None:
        self.config = config
        self.watcher: Watcher | None = None
        self._on_change = on_change
        self._memory: Memory | None = None
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._starter = threading.Thread(target=self._start_watching, name="memory-tools-start", daemon=True)

    def __enter__(self) -> Resident:
        """Returns at once; the index is made beside."""
        self._starter.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the watcher in order, or it would be told as one that died."""
        self._stopping.set()
        ending = threading.Thread(target=self._close, name="memory-tools-close", daemon=True)
        ending.start()
        # Whoever waits for the process to end must not wait for a first index or a network: what is cut off there is done again later.
        ending.join(CLOSE_S)

    def _close(self) -> None:
        self._starter.join()  # or the watcher that it is about to start would be stopped by nobody
        if self.watcher is not None:
            self.watcher.stop()
            self.watcher.memory.close()
        with self._lock:
            if self._memory is not None:
                self._memory.close()

    def memory(self) -> Memory:
        """The open memory. Raises NotFound while there is no workspace."""
        with self._lock:
            if self._memory is None:
                self._memory = Memory(config=self.config)
            return self._memory

    def tools(self, workspace_id: str | None) -> ToolMemoryStore:
        """Tool memory of the workspace of that id; one store, and so one judge and one pace, for all requests. Raises as `memory`."""
        memory = self.memory()
        with self._lock:
            own = memory.tools
        return own.of_workspace(workspace_id)

    def call(self, verb: str, arguments: Mapping[str, object]) -> render.Json:
        """The document of an agent-facing verb. Raises MemoryToolsError, for anything that goes wrong."""
        try:
            document = verbs.call(self.memory(), verb, arguments)
        except Exception as e:
            if not isinstance(e, MemoryToolsError):
                log.exception("%s failed", verb)
            raise render.failure(e) from e
        return self.marked(document)

    def marked(self, document: render.Json) -> render.Json:
        """The document, with what is wrong with the watcher among its `degraded`."""
        degraded = document.get("degraded")
        if self.watcher is None or not self.watcher.degraded or not isinstance(degraded, list):
            return document
        return {**document, "degraded": [*degraded, *self.watcher.degraded]}

    def _start_watching(self) -> None:
        told = ""
        while not self._stopping.is_set():
            try:
                self.watcher = Watcher(Memory(config=self.config), self._on_change).start()
                return
            except MemoryToolsError as e:  # the folder may be mounted or made later
                if e.message != told:
                    log.warning("%s", e.message)
                told = e.message
            self._stopping.wait(RETRY_S)
