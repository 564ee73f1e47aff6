"""Memory: the one object behind every face. It knows all the stages and the order in which a call passes through them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tools import ask as request
from memory_tools import config as configuration
from memory_tools import recall
from memory_tools.config import Config, index_folder
from memory_tools.credit import Credit
from memory_tools.engine import Engine
from memory_tools.errors import InvalidInput, MemoryToolsError, NotFound
from memory_tools.exclusive import one_at_a_time
from memory_tools.freshness import Progress
from memory_tools.history import Usage
from memory_tools.recall_log import Shown
from memory_tools.records import Report
from memory_tools.reports import CheckReport, Excerpt, FeedbackReport, Remembered, Status, SyncReport

if TYPE_CHECKING:
    from memory_tools.archive import Done, Moved, Plan
    from memory_tools.judge_values import Judge
    from memory_tools.scores_merge import Merged
    from memory_tools.standing import Tuning
    from memory_tools.tool_memory import ToolMemoryStore
    from memory_tools.tool_reports import RecordReport, RetrieveReport, StatsReport, SummaryReport
    from memory_tools.upkeep import Recalculated, ScoreTable

SEARCH_READS_S = 4.0  # how long a search reads new files before it answers from those that it has
SEARCH_ENCODES = 64  # pending blocks that a search encodes on the way


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
        self.settings = request.settings_of(self.config)
        self._lock = threading.RLock()
        receipts = index_folder(self.config) / "recalls.jsonl"
        self._credit = Credit(self.workspace / "memory" / "utility-scores.json", receipts, self.settings, inside=self.workspace)
        self._engine = Engine(self.config, adopt=self._credit.sidecar.adopt)
        self._tools: ToolMemoryStore | None = None

    def close(self) -> None:
        """Close the index; calling it again does nothing."""
        with self._lock:
            self._engine.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # --- recall ----------------------------------------------------------------

    @one_at_a_time
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
        with engine.index.snapshot():
            reader = engine.reader(include_archive)
            question = recall.read(reader, ask)
            usages = self._credit.usages(engine.sections())
            warnings += [f.message for f in self._credit.sidecar.load().problems]
            meaning = engine.encode_query([*question.wordings, *([ask.context] if ask.context else [])], degraded)
            answer = recall.answer(reader, ask, question, meaning, usages, self._tool_usage, settings)
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

    @one_at_a_time
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
        index, roots = self._engine.index, self.config.extra_roots
        with index.snapshot():
            excerpt = reading.excerpt(self.workspace, roots, index, path_or_address_or_citation, from_line, lines)
        return replace(excerpt, notes=(*excerpt.notes, *self._use(excerpt, recall, datetime.now(UTC))))

    # --- the index ---------------------------------------------------------------

    @one_at_a_time
    def sync(self, vectors: bool = True, progress: Progress | None = None) -> SyncReport:
        """Bring the index up to what is on disk; returns when the lexical part and, with `vectors`, all vectors are complete."""
        return self._engine.sync(vectors, progress)

    @one_at_a_time
    def rebuild(self, progress: Progress | None = None) -> SyncReport:
        """Make the index anew from the files, aside, and swap it in when it is complete. Ids of sections are carried over."""
        return self._engine.rebuild(progress)

    @one_at_a_time
    def check(self, fix: bool = False) -> CheckReport:
        """What disagrees or needs a person, in files, index and scores. `fix` heals what is derived, and only that."""
        from memory_tools import checking, tool_check

        return checking.check(self._engine, self._credit, fix, tool_check.findings(self.tools.folder, fix, self.tools.now()))

    @one_at_a_time
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

    @one_at_a_time
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

    @one_at_a_time
    def scores(self) -> ScoreTable:
        """What each memory has been worth, the most useful first. Raises Damaged."""
        from memory_tools import upkeep

        return upkeep.table(self._engine, self._credit, self.settings)

    @one_at_a_time
    def tune(self) -> Tuning:
        """What other utility thresholds would have kept and dropped of the outcomes so far; it proposes, a person decides."""
        from memory_tools import upkeep

        return upkeep.tune(self._engine, self._credit, self.settings)

    @one_at_a_time
    def recalculate(self) -> Recalculated:
        """Stored utilities, addresses and traces of utility-scores.json brought up to date. Raises Damaged, Busy."""
        from memory_tools import upkeep

        return upkeep.recalculate(self._engine, self._credit, self.settings)

    @one_at_a_time
    def archive(self, yes: bool = False) -> Plan | Done:
        """Sections that no longer help: the plan to move them to memory/archive/, or with `yes` the move. Raises Damaged, Busy."""
        from memory_tools import upkeep

        return (upkeep.move if yes else upkeep.planned)(self._engine, self._credit, self.settings)

    @one_at_a_time
    def restore(self, address: str) -> Moved:
        """Put an archived section back where it was; `address` is the one it had, or has in the archive. Raises NotFound, Busy."""
        from memory_tools import upkeep

        return upkeep.restore(self._engine, self._credit, self.settings, address)

    @one_at_a_time
    def merge_scores(self, base: str | Path, ours: str | Path, theirs: str | Path) -> Merged:
        """Merge two branches' utility-scores.json into `ours`, adding what each counted since `base`. Raises Damaged, NotFound."""
        from memory_tools import scores_merge

        return scores_merge.merge_files(Path(base), Path(ours), Path(theirs))

    # --- tool memory -----------------------------------------------------------------

    @property
    def tools(self) -> ToolMemoryStore:
        """Tool memory of this workspace; its own locks let several processes and threads in at once."""
        if self._tools is None:
            from memory_tools.tool_memory import open_tools

            self._tools = open_tools(self.config)
        return self._tools

    def record_tool_calls(self, calls: Sequence[Mapping[str, object]], judge: str | Judge | None = None) -> RecordReport:
        """Store calls of tools, each once, masked and evaluated; the newest 100 of a tool are kept. Raises InvalidInput, Busy."""
        return self.tools.record(calls, judge)

    def summarize_tools(self, tool_names: str | Sequence[str] | None, judge: str | Judge | None = None) -> SummaryReport:
        """Distil the newest calls of tools into guidelines; those without a new call are skipped. Names: a list, or comma-separated."""
        return self.tools.summarize(tool_names, judge)

    def tool_memories(self, tool_names: str | Sequence[str] | None) -> RetrieveReport:
        """What is known of tools, by exact name, in the order asked; missing ones are listed."""
        return self.tools.retrieve(tool_names)

    def tool_stats(self, tool_names: str | Sequence[str] | None = None) -> StatsReport:
        """Success, score, time, tokens and trend of tools, the best first; and which were asked for and have no memory."""
        return self.tools.stats(tool_names)

    def _tool_usage(self, path: str) -> Usage:
        """A tool's own success rate, as the history of its page: it has no entry in utility-scores.json."""
        known = self.tools.success_rate(path)
        if known is None:
            return Usage()
        rate, calls = known
        return Usage(use_count=calls, success_count=rate * calls, fail_count=calls - rate * calls)

    def _receipt(self, ask: request.Ask, answer: recall.Answer, warnings: list[str]) -> str | None:
        """Remember what was shown, so that a later use or outcome finds it. A receipt that cannot be written costs only that."""
        shown = [Shown(c.section_id, r.address, r.citation) for c, r in zip(answer.shown, answer.results, strict=True)]
        try:
            # By the real clock, as the feedback that will name it, also where `now` asks about another day.
            return self._credit.shown(datetime.now(UTC), ask.phrasings[0], shown)
        except MemoryToolsError as e:
            warnings.append(f"this recall is not remembered, name memories by their addresses in feedback: {e.message}")
            return None

    def _use(self, excerpt: Excerpt, recall: str | None, now: datetime) -> tuple[str, ...]:
        """What was read after a recall showed it is a use."""
        from memory_tools import naming

        ids = naming.overlapping(self._engine.index, excerpt.path, excerpt.start_line, excerpt.end_line)
        if not ids or excerpt.path.startswith("memory/tools/"):
            return ()
        return self._credit.use(ids, recall, now, self._engine.sections())
