"""The open index with its encoder and vectors: brought up to the files, read, encoded for, made anew. Knows nothing of utility."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_tools import files, freshness, walk
from memory_tools.attach import Sections
from memory_tools.config import Config, index_folder
from memory_tools.errors import Busy, InvalidInput, MemoryToolsError
from memory_tools.freshness import Adopt, Progress, Taken
from memory_tools.index import Index
from memory_tools.records import Scan, Skipped, Trace
from memory_tools.reports import SyncReport

if TYPE_CHECKING:
    from memory_tools.corpus import Reader
    from memory_tools.encoders import Cosines, Encoder
    from memory_tools.vectors import Floats, Matrix


@dataclass(frozen=True, slots=True)
class Meaning:
    """Unit vectors of texts, the encoder's name, and what its cosines mean (None: not known)."""

    vectors: Sequence[Floats]
    encoder: str
    scale: Cosines | None


TOLD = 5  # skipped files that an answer names


class Engine:
    """Derived data of one workspace. `problems` are for people, `degraded` words for programs."""

    def __init__(self, config: Config, adopt: Adopt | None = None) -> None:
        self.adopt = adopt
        self._earlier = walk.Earlier()
        self._fresh: tuple[Scan, tuple[int, int]] | None = None  # when last nothing was to be taken in
        self._waiting = 0  # files that a deadline left for later
        self.config = config
        self.index = Index(index_folder(config))
        self.closed = False
        self.encoder: Encoder | None = None
        self._encoder_problem: str | None = None
        self._scale: Cosines | None = None
        self._encoder_opened = False
        self._matrix: Matrix | None = None
        self._sections: tuple[tuple[int, int], Sections] | None = None
        self._readers: dict[bool, tuple[tuple[int, int], Reader]] = {}

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.forget()
            self.index.close()

    def forget(self) -> None:
        """Drop what was read from the index."""
        self._readers.clear()
        # `_fresh` too: an index that was deleted counts its writes from 1 again.
        self._matrix = self._sections = self._fresh = None

    def start_over(self, error: sqlite3.DatabaseError) -> None:
        """A damaged index: an empty one takes its place."""
        self.forget()
        self.index.start_over(str(error))

    def _reopen(self) -> None:
        """Follow the files of the index where they were swapped, deleted or cut off meanwhile."""
        if self.index.refresh() or (self._matrix is not None and self._matrix.lost()):
            self.forget()

    def scan(self) -> Scan:
        config = self.config
        return files.scan(config.workspace, config.include, config.exclude, config.extra_roots, self._earlier)

    # --- up to date ----------------------------------------------------------------

    def freshen(self, deadline: float | None, warnings: list[str], degraded: list[str]) -> None:
        """Take in what changed on disk, until `deadline` (time.monotonic()). A busy or full disk leaves the answer to what is known."""
        self._reopen()
        degraded += self.degraded()
        warnings += self.problems()
        scan = self.scan()
        seen = (scan, self.index.changes())
        if seen == self._fresh or not freshness.stale(self.index, scan):
            self._fresh, self._waiting = seen, 0  # what a deadline had left may be read by another process meanwhile
            warnings += _told(scan.skipped)
            return
        from memory_tools.sync import take_in

        try:
            taken = take_in(self.index, scan, deadline=deadline, adopt=self.adopt)
            self._waiting = taken.waiting
        except Busy as e:
            degraded.append("index_busy")
            warnings.append(e.message)
            return
        if taken.waiting:
            degraded.append(f"files_pending:{taken.waiting}")
        warnings += _told([*scan.skipped, *taken.skipped])

    def waiting_files(self) -> int:
        """Files that changed on disk since they were read; changes nothing."""
        self._reopen()
        return freshness.changed(self.index, self.scan())

    def sync(self, vectors: bool, progress: Progress | None) -> SyncReport:
        from memory_tools.sync import take_in

        self._reopen()
        scan = self.scan()
        taken = take_in(self.index, scan, adopt=self.adopt, progress=progress)
        self._waiting = 0
        degraded = self.encode_pending(None, progress) if vectors else []
        if self.index.wasteful():
            self.rebuild(None, keep_vectors=True)
        return self._report(scan, taken, degraded)

    def rebuild(self, progress: Progress | None, keep_vectors: bool = False) -> SyncReport:
        """Everything anew from the files, aside, swapped in when it is complete. Ids of sections are carried over."""
        from memory_tools import embedding
        from memory_tools.rows import stored_traces
        from memory_tools.sync import take_in

        self.index.refresh()
        scan, current, matrix = self.scan(), self.index, self._matrix
        taken, degraded = Taken(), []

        def fill(aside: Index) -> None:
            nonlocal taken, degraded
            if keep_vectors and matrix is not None:
                with current.snapshot():  # another process may add vectors meanwhile, or those of another encoder
                    rows = embedding.rows(current)
                    # A process that only wrote them has not mapped them yet.
                    if matrix.path == current.vectors_path() and not matrix.lost() and matrix.load(rows) == rows:
                        embedding.carry(current, matrix, aside)
            self.forget()
            taken = take_in(aside, scan, before=stored_traces(current.connection), adopt=self.adopt, progress=progress)
            self.index = aside
            try:
                degraded = self.encode_pending(None, progress)
            finally:
                self.index = current
                self.forget()

        current.rebuild(fill)
        return self._report(scan, taken, degraded)

    def _report(self, scan: Scan, taken: Taken, degraded: list[str]) -> SyncReport:
        counts = self.index.counts()
        return SyncReport(
            files=counts["files"],
            sections=counts["sections"],
            blocks=counts["blocks"],
            changed=taken.changed,
            removed=taken.removed,
            vectors_ready=counts["ready"],
            vectors_pending=counts["pending"] if self.config.encoder != "none" else 0,
            skipped=(*scan.skipped, *taken.skipped),
            warnings=tuple(self.problems()),
            degraded=tuple(dict.fromkeys([*degraded, *self.degraded()])),
        )

    def degraded(self) -> list[str]:
        return ["index_in_memory"] if self.index.in_memory else []

    def problems(self) -> list[str]:
        return [w for w in (self.index.problem, self._encoder_problem) if w]

    def sections(self) -> Sections:
        """The sections that are there, for the scores: address -> id, read once for each state of the index, and their traces."""
        changes = self.index.changes()
        if self._sections is None or self._sections[0] != changes:
            # Former addresses too: an entry written by hand has nothing else to be found by after its section was renamed.
            ids = dict(
                self.index.connection.execute(
                    "SELECT address, id FROM former WHERE id IN (SELECT id FROM sections) UNION ALL SELECT address, id FROM sections"
                ).fetchall()
            )
            self._sections = (changes, Sections(ids, self._traces, complete=not self._waiting))
        return self._sections[1]

    def _traces(self) -> list[Trace]:
        from memory_tools.rows import stored_traces

        return stored_traces(self.index.connection)

    # --- read --------------------------------------------------------------------------

    def reader(self, include_archive: bool) -> Reader:
        """The arrays of the index as it is now; the same object while nothing changed."""
        from memory_tools.corpus import Reader

        changes = self.index.changes()
        known = self._readers.get(include_archive)
        if known is None or known[0] != changes:
            known = (changes, Reader(self.index, self._matrix, () if include_archive else ("archive",)))
            self._readers[include_archive] = known
        return known[1]

    def encode_pending(self, at_most: int | None, progress: Progress | None = None) -> list[str]:
        """Encode blocks that wait; what is degraded about it. With more than `at_most` waiting, none: the next sync does them."""
        from memory_tools import embedding

        encoder = self._open_encoder()
        if encoder is None:
            return ["encoder_unavailable"] if self._encoder_problem else []
        try:
            if self._matrix is not None and self._matrix.path != self.index.vectors_path():
                self.forget()  # another process has changed the encoder: the rows that the index names are not in this matrix
            if self._matrix is None:
                self._matrix = embedding.open_matrix(self.index, encoder)
                self._readers.clear()  # those of the time when the encoder could not be reached have no vectors
                embedding.heal(self.index, self._matrix)
            waiting = embedding.pending(self.index)
            if waiting and (at_most is None or waiting <= at_most):
                waiting = embedding.fill(self.index, self._matrix, encoder, progress=progress)
        except Busy:
            return ["vectors_busy"]
        except MemoryToolsError as e:
            self._encoder_problem = f"{e.message}. {e.hint}".strip()
            return ["encoder_unavailable", f"vectors_pending:{embedding.pending(self.index)}"]
        self._measure(encoder)
        self._encoder_problem = None
        return [f"vectors_pending:{waiting}"] if waiting else []

    def encode_query(self, texts: Sequence[str], degraded: list[str]) -> Meaning | None:
        """The texts encoded, each alone: a vector must not depend on its companions. None: answer without."""
        if self.encoder is None or self._matrix is None or "encoder_unavailable" in degraded:
            return None
        try:
            return Meaning([self.encoder.encode([text], "query")[0] for text in texts], self.encoder.name, self._scale)
        except MemoryToolsError as e:
            self._encoder_problem = f"{e.message}. {e.hint}".strip()
            degraded.append("encoder_unavailable")
            return None

    def _measure(self, encoder: Encoder) -> None:
        """What a cosine of this encoder means; measured once for each model and kept in the user's cache."""
        if self._scale is None:
            with suppress(MemoryToolsError):  # said when it cannot encode either; relevance is read off the corpus until then
                self._scale = encoder.cosines

    def _open_encoder(self) -> Encoder | None:
        """The configured encoder, or None: without one, or where it cannot be used right now. Raises InvalidInput for a wrong name."""
        if not self._encoder_opened:
            from memory_tools.encoders import open_encoder

            self._encoder_opened = True
            try:
                self.encoder = open_encoder(self.config.encoder, api_key=self.config.encoder_api_key)
            except MemoryToolsError as e:
                if isinstance(e, InvalidInput):
                    raise
                self._encoder_problem = f"{e.message}. {e.hint}".strip()
        return self.encoder


def _told(skipped: Sequence[Skipped]) -> list[str]:
    """Every answer carries these, so of many (a folder full of links) the first and a count; `check` and `sync` name them all."""
    more = len(skipped) - TOLD
    rest = [f"{more} more {'file is' if more == 1 else 'files are'} not searched; `memory-tools check` names them"] if more > 0 else []
    return [f"{s.path}: {s.reason}" for s in skipped[:TOLD]] + rest
