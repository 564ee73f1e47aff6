"""Memory: the one object behind every face. It knows all the stages and the order in which a call passes through them."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, cast

from memory_tools import ask as request
from memory_tools import config as configuration
from memory_tools import recall
from memory_tools.config import Config
from memory_tools.credit import Credit
from memory_tools.engine import Engine, index_folder
from memory_tools.errors import InvalidInput, MemoryToolsError, NotFound
from memory_tools.freshness import Progress
from memory_tools.receipts import Shown
from memory_tools.records import CheckReport, Excerpt, FeedbackReport, Remembered, Report, Status, SyncReport
from memory_tools.utility import Settings, Weights

if TYPE_CHECKING:
    from memory_tools.archive import Done, Moved, Plan
    from memory_tools.scores_merge import Merged
    from memory_tools.standing import Tuning
    from memory_tools.upkeep import Recalculated, ScoreTable

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
                self._engine.start_over(e)
                return method(self, *args, **kwargs)

    return cast("Callable[Concatenate[Memory, P], R]", call)


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
                raise InvalidInput(
                    f"{self.workspace}: is a file, not a workspace folder", "name the folder that holds MEMORY.md and memory/"
                )
            raise NotFound(f"{self.workspace}: no such workspace folder", f"make one: memory-tools --workspace {self.workspace} init")
        self.settings = Settings(
            weights=Weights(**self.config.weights),
            **{
                key: getattr(self.config, key)
                for key in (
                    "feedback_bonus",
                    "utility_threshold",
                    "use_half_life_days",
                    "edit_half_life_days",
                    "success_prior",
                    "prior_strength",
                    "min_judged",
                    "memrl_lambda",
                    "memrl_alpha",
                    "pool",
                )
            },
        )
        self._lock = threading.RLock()
        self._closed = False
        self._engine = Engine(self.config)
        receipts = index_folder(self.config) / "recalls.jsonl"
        self._credit = Credit(self.workspace / "memory" / "utility-scores.json", receipts, self.settings)

    def close(self) -> None:
        """Close the index; calling it again does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._engine.close()

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
        engine, degraded, warnings = self._engine, list[str](), list[str]()
        engine.freshen(time.monotonic() + SEARCH_READS_S, warnings, degraded)
        degraded += engine.encode_pending(SEARCH_ENCODES)
        reader = engine.reader(include_archive)
        question = recall.read(reader, ask)
        usages = self._credit.usages(engine.sections())
        warnings += [f.message for f in self._credit.sidecar.load().problems]
        encoded = engine.encode_query([*question.wordings, *([ask.context] if ask.context else [])], degraded)
        encoder = engine.encoder.name if encoded is not None and engine.encoder else None
        answer = recall.answer(reader, ask, question, encoded, encoder, usages, settings)
        receipt = self._receipt(ask, answer, warnings)
        return Report(
            query=ask.phrasings[0],
            policy=ask.policy,
            results=answer.results,
            recall=receipt,
            broadened=answer.broadened,
            warnings=(*warnings, *answer.warnings),
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

        self._engine.freshen(time.monotonic() + SEARCH_READS_S, [], [])
        excerpt = reading.excerpt(
            self.workspace, self.config.extra_roots, self._engine.index, path_or_address_or_citation, from_line, lines
        )
        return replace(excerpt, notes=(*excerpt.notes, *self._use(excerpt, recall, datetime.now(UTC))))

    # --- the index ---------------------------------------------------------------

    @_one_at_a_time
    def sync(self, vectors: bool = True, progress: Progress | None = None) -> SyncReport:
        """Bring the index up to what is on disk; returns when the lexical part and, with `vectors`, all vectors are complete."""
        return self._engine.sync(vectors, progress)

    @_one_at_a_time
    def rebuild(self, progress: Progress | None = None) -> SyncReport:
        """Make the index anew from the files, aside, and swap it in when it is complete. Ids of sections are carried over."""
        return self._engine.rebuild(progress)

    @_one_at_a_time
    def check(self, fix: bool = False) -> CheckReport:
        """What disagrees or needs a person, in files, index and scores. `fix` heals what is derived, and only that."""
        from memory_tools import checking

        return checking.check(self._engine, self._credit, fix)

    @_one_at_a_time
    def status(self) -> Status:
        """Counts as they are in the tables, and what is pending; changes nothing."""
        from memory_tools import checking

        return checking.status(self._engine, self._credit)

    def remember(self, text: str, heading: str | None = None, event_id: str | None = None) -> Remembered:
        """Append to today's note (user's time zone) under `heading` or the time; the same text within 10 minutes is stored once."""
        from memory_tools import workspace

        with self._lock:
            return workspace.remember(self.workspace, text, heading, event_id, datetime.now(self.config.zone()))

    # --- utility -------------------------------------------------------------------

    @_one_at_a_time
    def feedback(
        self,
        used: str | int | Sequence[str | int],
        outcome: bool | None = True,
        positive: bool = False,
        weight: float = 1.0,
        recall: str | None = None,
        event_id: str | None = None,
    ) -> FeedbackReport:
        """What came of using memories: True it helped, False it did not, None unknown. Positions and names of a recall are credited to it.

        `used`: addresses, citations, or positions from 1 in `recall` ("last" is the newest). `positive`: the person's thumb, +0.1.
        The same event_id, or the same recall and memory again, changes nothing. One unknown name: an error, and nothing is recorded.
        Raises InvalidInput, NotFound, Damaged (the sidecar needs a person), Busy.
        """
        from memory_tools import naming

        warnings, now = list[str](), datetime.now(UTC)
        self._engine.freshen(time.monotonic() + SEARCH_READS_S, warnings, [])
        ids, recall = naming.section_ids(self._engine.index, self._credit, used, recall, now)
        report = self._credit.feedback(ids, outcome, positive, weight, recall, event_id, now, self._engine.sections())
        return replace(report, warnings=(*warnings, *report.warnings))

    @_one_at_a_time
    def scores(self) -> ScoreTable:
        """What each memory has been worth, the most useful first. Raises Damaged."""
        from memory_tools import upkeep

        return upkeep.table(self._engine, self._credit, self.settings)

    @_one_at_a_time
    def tune(self) -> Tuning:
        """What other utility thresholds would have kept and dropped of the outcomes so far; it proposes, a person decides."""
        from memory_tools import upkeep

        return upkeep.tune(self._engine, self._credit, self.settings)

    @_one_at_a_time
    def recalculate(self) -> Recalculated:
        """Stored utilities, addresses and traces of utility-scores.json brought up to date. Raises Damaged, Busy."""
        from memory_tools import upkeep

        return upkeep.recalculate(self._engine, self._credit, self.settings)

    @_one_at_a_time
    def archive(self, yes: bool = False) -> Plan | Done:
        """Sections that no longer help: the plan to move them to memory/archive/, or with `yes` the move. Raises Damaged, Busy."""
        from memory_tools import upkeep

        return (upkeep.move if yes else upkeep.planned)(self._engine, self._credit, self.settings)

    @_one_at_a_time
    def restore(self, address: str) -> Moved:
        """Put an archived section back where it was; `address` is the one it had, or has in the archive. Raises NotFound, Busy."""
        from memory_tools import upkeep

        return upkeep.restore(self._engine, self._credit, self.settings, address)

    @_one_at_a_time
    def merge_scores(self, base: str | Path, ours: str | Path, theirs: str | Path) -> Merged:
        """Merge two branches' utility-scores.json into `ours`, adding what each counted since `base`. Raises Damaged, NotFound."""
        from memory_tools import scores_merge

        return scores_merge.merge_files(Path(base), Path(ours), Path(theirs))

    def _receipt(self, ask: request.Ask, answer: recall.Answer, warnings: list[str]) -> str | None:
        """Remember what was shown, so that a later use or outcome finds it. A receipt that cannot be written costs only that."""
        shown = [Shown(c.section_id, r.address, r.citation) for c, r in zip(answer.shown, answer.results, strict=True)]
        try:
            return self._credit.shown(ask.now, ask.phrasings[0], shown)
        except MemoryToolsError as e:
            warnings.append(f"this recall is not remembered, name memories by their addresses in feedback: {e.message}")
            return None

    def _use(self, excerpt: Excerpt, recall: str | None, now: datetime) -> tuple[str, ...]:
        """What was read after a recall showed it is a use."""
        from memory_tools import naming

        ids = naming.overlapping(self._engine.index, excerpt.path, excerpt.start_line, excerpt.end_line)
        return self._credit.use(ids, recall, now, self._engine.sections()) if ids else ()
