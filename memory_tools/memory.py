"""Memory: the one object behind every face. It knows all the stages and the order in which a call passes through them."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from memory_tools import config as configuration
from memory_tools import ask as request
from memory_tools import files, recall, sync
from memory_tools.config import Config
from memory_tools.errors import Busy, InvalidInput, MemoryToolsError, NotFound
from memory_tools.index import Index
from memory_tools.records import CheckReport, Excerpt, FeedbackReport, Remembered, Report, Scan, Skipped, Status, SyncReport
from memory_tools.utility import Settings, Usage, Weights

if TYPE_CHECKING:
    from memory_tools.corpus import Reader
    from memory_tools.encoders import Encoder
    from memory_tools.records import Trace
    from memory_tools.vectors import Floats, Matrix

P = ParamSpec("P")
R = TypeVar("R")
SEARCH_READS_S = 4.0  # how long a search reads new files before it answers from those that it has
SEARCH_ENCODES = 64  # pending blocks that a search encodes on the way


def _one_at_a_time(method: Callable[Concatenate[Memory, P], R]) -> Callable[Concatenate[Memory, P], R]:
    """One call at a time in a process; a damaged index is made anew and the call done again."""

    @wraps(method)
    def call(self: Memory, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock:
            if self._closed:
                raise InvalidInput("this Memory is closed", "open a new one")
            try:
                return method(self, *args, **kwargs)
            except sqlite3.DatabaseError as e:
                self._forget()
                self._index.start_over(str(e))
                return method(self, *args, **kwargs)

    return call


class Memory:
    """Recall over the Markdown memory of one workspace, which learns from outcomes. Also a context manager.

    `workspace` None: the configured one. `encoder` None: the configured one; "default", "none", "sentence-transformers:<path or name>",
    "openai:<base_url>#<model>". Raises NotFound where there is no such folder, InvalidInput for a wrong configuration.
    """

    def __init__(
        self,
        workspace: str | Path | None = None,
        encoder: str | None = None,
        *,
        config: Config | None = None,
    ) -> None:
        self.config = config or configuration.load(workspace, {"encoder": encoder})
        self.workspace = self.config.workspace
        if not self.workspace.is_dir():
            if self.workspace.exists():
                raise InvalidInput(f"{self.workspace}: is a file, not a workspace folder", "name the folder that holds MEMORY.md and memory/")
            raise NotFound(f"{self.workspace}: no such workspace folder", f"make one: memory-tools --workspace {self.workspace} init")
        self.settings = Settings(
            weights=Weights(**self.config.weights),
            **{
                key: getattr(self.config, key)
                for key in (
                    "feedback_bonus", "utility_threshold", "use_half_life_days", "edit_half_life_days", "success_prior", "prior_strength",
                    "min_judged", "memrl_lambda", "memrl_alpha", "pool",
                )
            },
        )  # fmt: skip
        self._lock = threading.RLock()
        self._closed = False
        self._index = Index(index_folder(self.config))
        self._encoder: Encoder | None = None
        self._encoder_problem: str | None = None
        self._encoder_opened = False
        self._matrix: Matrix | None = None
        self._readers: dict[bool, tuple[tuple[int, int], Reader]] = {}

    def close(self) -> None:
        """Close the index; calling it again does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._forget()
                self._index.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # --- recall ----------------------------------------------------------------

    @_one_at_a_time
    def search(
        self,
        query: str | Sequence[str],
        context: str | None = None,
        max_results: int | None = None,
        min_score: float | None = None,
        max_chars: int | None = None,
        policy: str | None = None,
        threshold: float | None = None,
        strict: bool = False,
        explain: bool = False,
        now: datetime | None = None,
        include_archive: bool = False,
    ) -> Report:
        """The memories that answer `query` (a text or several phrasings of it), best first; see Report.

        min_score is on relevance, threshold on utility, both in [0, 1]. max_chars bounds the text of all results together.
        strict: what passes, or nothing; otherwise the search is broadened where nothing does. Raises InvalidInput.
        """
        ask = request.ask(self.config, query, context, max_results, min_score, max_chars, policy, strict, explain, now, include_archive)
        settings = request.with_threshold(self.settings, threshold)
        degraded, warnings = self._freshen(time.monotonic() + SEARCH_READS_S)
        degraded += self._encode_pending(SEARCH_ENCODES)
        reader = self._reader(include_archive)
        encoded = self._encode_query(ask, degraded)
        history = self._history(warnings)
        answer = recall.answer(reader, ask, history, settings, encoded, self._encoder.name if encoded is not None and self._encoder else None)
        receipt = self._receipt(ask, answer, warnings)
        return Report(
            query=ask.phrasings[0],
            policy=ask.policy,
            results=answer.results,
            recall=receipt,
            broadened=answer.broadened,
            warnings=tuple([*warnings, *answer.warnings]),
            degraded=tuple(dict.fromkeys(degraded)),
            dropped=answer.dropped,
        )

    @_one_at_a_time
    def get(
        self,
        path_or_address_or_citation: str,
        from_line: int | str | None = None,
        lines: int | None = None,
        recall: str | None = None,
    ) -> Excerpt:
        """Lines of one file: all of it, the lines of a citation, or a section with its subsections. Reading what a recall showed is a use.

        Raises InvalidInput, NotFound (with the nearest names), Forbidden.
        """
        from memory_tools import reading

        self._freshen(time.monotonic() + SEARCH_READS_S)
        excerpt = reading.excerpt(self.workspace, self.config.extra_roots, self._index, path_or_address_or_citation, from_line, lines)
        self._use(excerpt, recall)
        return excerpt

    # --- the index ---------------------------------------------------------------

    @_one_at_a_time
    def sync(self, vectors: bool = True, progress: sync.Progress | None = None) -> SyncReport:
        """Bring the index up to what is on disk; returns when the lexical part and, with `vectors`, all vectors are complete."""
        self._index.refresh()
        scan = self._scan()
        taken = sync.take_in(self._index, scan, progress=progress)
        degraded = self._encode_pending(None, progress) if vectors else []
        return self._sync_report(scan, taken, degraded)

    @_one_at_a_time
    def rebuild(self, progress: sync.Progress | None = None) -> SyncReport:
        """Make the index anew from the files, aside, and swap it in when it is complete. Ids of sections are carried over."""
        self._index.refresh()
        scan = self._scan()
        degraded: list[str] = []
        taken = sync.Taken()

        def fill(aside: Index, carried: Sequence[Trace]) -> None:
            nonlocal taken, degraded
            taken = sync.take_in(aside, scan, before=carried, progress=progress)
            current, self._index, self._matrix = self._index, aside, None
            try:
                degraded = self._encode_pending(None, progress)
            finally:
                self._index, self._matrix = current, None

        self._forget()
        self._index.rebuild(lambda aside: fill(aside, sync.stored_traces(self._index.connection)))
        return self._sync_report(scan, taken, degraded)

    def _sync_report(self, scan: Scan, taken: sync.Taken, degraded: list[str]) -> SyncReport:
        counts = self._index.counts()
        return SyncReport(
            files=counts["files"],
            sections=counts["sections"],
            blocks=counts["blocks"],
            changed=taken.changed,
            removed=taken.removed,
            vectors_ready=counts["ready"],
            vectors_pending=counts["pending"] if self.config.encoder != "none" else 0,
            skipped=(*scan.skipped, *taken.skipped),
            warnings=tuple(self._index_warnings()),
            degraded=tuple(dict.fromkeys([*degraded, *self._index_degraded()])),
        )

    @_one_at_a_time
    def check(self, fix: bool = False) -> CheckReport:
        """What disagrees or needs a person, in files, index and scores. `fix` heals what is derived, and only that."""
        from memory_tools import checking

        if fix:
            self.sync()
        return checking.check(self.config, self._index, self._scan(), self._sidecar, fix)

    @_one_at_a_time
    def status(self) -> Status:
        """Counts as they are in the tables, and what is pending; changes nothing."""
        from memory_tools import checking

        self._index.refresh()
        return checking.status(self.config, self._index, self._scan(), self._sidecar, self._index_warnings(), self._index_degraded())

    def remember(self, text: str, heading: str | None = None, event_id: str | None = None) -> Remembered:
        """Append to today's note (user's time zone) under `heading` or the time; the same text within 10 minutes is stored once."""
        from memory_tools import workspace

        with self._lock:
            return workspace.remember(self.workspace, text, heading, event_id, datetime.now(self.config.zone()))

    # --- what a search is made of --------------------------------------------------

    def _scan(self) -> Scan:
        return files.scan(self.workspace, self.config.include, self.config.exclude, self.config.extra_roots)

    def _freshen(self, deadline: float) -> tuple[list[str], list[str]]:
        """Take in what changed on disk; (degraded, warnings). A busy or full disk leaves the answer to what is known already."""
        if self._index.refresh():
            self._forget()
        degraded, warnings = self._index_degraded(), self._index_warnings()
        scan = self._scan()
        try:
            taken = sync.take_in(self._index, scan, deadline=deadline)
        except Busy as e:
            return [*degraded, "index_busy"], [*warnings, e.message]
        if taken.waiting:
            degraded.append(f"files_pending:{taken.waiting}")
        return degraded, [*warnings, *_skipped_warnings([*scan.skipped, *taken.skipped])]

    def _open_encoder(self) -> Encoder | None:
        """The configured encoder, or None: without one, or where it cannot be used right now (then `degraded` says so)."""
        if not self._encoder_opened:
            from memory_tools.encoders import open_encoder

            self._encoder_opened = True
            try:
                self._encoder = open_encoder(self.config.encoder, api_key=self.config.encoder_api_key)
            except MemoryToolsError as e:
                if isinstance(e, InvalidInput):
                    raise
                self._encoder_problem = f"{e.message}. {e.hint}".strip()
        return self._encoder

    def _encode_pending(self, at_most: int | None, progress: sync.Progress | None = None) -> list[str]:
        """Encode blocks that wait; what is degraded about it. With more than `at_most` waiting, none: the next sync does them."""
        from memory_tools import embedding

        encoder = self._open_encoder()
        if encoder is None:
            return ["encoder_unavailable"] if self._encoder_problem else []
        try:
            if self._matrix is None:
                self._matrix = embedding.open_matrix(self._index, encoder)
                if embedding.heal(self._index, self._matrix):
                    self._readers.clear()
            waiting = embedding.pending(self._index)
            if waiting and (at_most is None or waiting <= at_most):
                waiting = embedding.fill(self._index, self._matrix, encoder, progress=progress)
        except Busy:
            return ["vectors_busy"]
        except MemoryToolsError as e:
            self._encoder_problem = f"{e.message}. {e.hint}".strip()
            return ["encoder_unavailable", f"vectors_pending:{embedding.pending(self._index)}"]
        self._encoder_problem = None
        return [f"vectors_pending:{waiting}"] if waiting else []

    def _encode_query(self, ask: request.Ask, degraded: list[str]) -> list[Floats] | None:
        """Unit vectors of the phrasings and, last, of the context. Each text alone: a vector must not depend on its companions."""
        if self._encoder is None or self._matrix is None or "encoder_unavailable" in degraded:
            return None
        try:
            return [self._encoder.encode([text], "query")[0] for text in (*ask.phrasings, *([ask.context] if ask.context else []))]
        except MemoryToolsError as e:
            self._encoder_problem = f"{e.message}. {e.hint}".strip()
            degraded.append("encoder_unavailable")
            return None

    def _reader(self, include_archive: bool) -> Reader:
        from memory_tools.corpus import Reader

        changes = self._index.changes()
        known = self._readers.get(include_archive)
        if known is None or known[0] != changes:
            known = (changes, Reader(self._index, self._matrix, () if include_archive else ("archive",)))
            self._readers[include_archive] = known
        return known[1]

    def _index_degraded(self) -> list[str]:
        return ["index_in_memory"] if self._index.in_memory else []

    def _index_warnings(self) -> list[str]:
        return [w for w in (self._index.problem, self._encoder_problem) if w]

    def _forget(self) -> None:
        """Drop what was read from the index."""
        self._readers.clear()
        self._matrix = None


def index_folder(config: Config) -> Path:
    """`<workspace>/.memory-tools`, or a folder of this workspace's own inside the configured place: several workspaces may share that."""
    if config.index_dir is None:
        return config.workspace / ".memory-tools"
    import hashlib

    real = str(config.workspace.resolve())
    return config.index_dir / f"{config.workspace.name}-{hashlib.blake2b(real.encode('utf-8', 'surrogateescape'), digest_size=4).hexdigest()}"


def _skipped_warnings(skipped: Iterable[Skipped]) -> list[str]:
    return [f"{s.path}: {s.reason}" for s in skipped]
