"""Calls of an agent's tools in, what is known of each tool out: recorded, evaluated, distilled into guidelines, handed back.

The store of one workspace. A judge that uses the network is asked only after a call is on disk and while no file is locked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tools.config import Config, index_folder
from memory_tools.errors import Forbidden, InvalidInput, NotFound, Unavailable
from memory_tools.tool_files import one_line
from memory_tools.tool_names import split_names, workspace_folder
from memory_tools.tool_records import TIME_FORMAT, ToolCall, ToolMemory, figures_text, marked, statistics_of
from memory_tools.tool_settings import ToolSettings, settings_of
from memory_tools.tool_store import Key, Loaded, ToolFolder
from memory_tools.tool_usage import ToolUsage

if TYPE_CHECKING:  # a search only wants a page's success rate and must not pay for judges
    from memory_tools.judge_values import Evaluation, Failure, Guideline, Judge, SummaryRequest
    from memory_tools.tool_reports import RecordReport, RetrieveReport, StatsReport, SummaryReport

log = logging.getLogger("memory_tools.tools")

MAX_RETRIED = 20  # calls that waited from earlier and are judged again in one run, for each tool


def open_tools(config: Config) -> ToolMemoryStore:
    """The store of the configured workspace. Raises NotFound where there is no such folder."""
    if not config.workspace.is_dir():
        raise NotFound(f"{config.workspace}: no such workspace folder", f"make one: memory-tools --workspace {config.workspace} init")
    return ToolMemoryStore(config.workspace, settings_of(config), usage=index_folder(config) / "tool-usage.jsonl")


class ToolMemoryStore:
    """`workspace`: the folder that holds memory/. `usage`: where retrievals are counted; the workspace's .memory-tools without."""

    def __init__(self, workspace: Path, settings: ToolSettings | None = None, *, usage: Path | None = None) -> None:
        self._root = workspace
        self._settings = settings or ToolSettings()
        self._usage = ToolUsage(usage or workspace / ".memory-tools" / "tool-usage.jsonl")
        self._judges: dict[str, Judge] = {}
        self.folder = ToolFolder(workspace, "default", self._settings)

    def of_workspace(self, workspace_id: str | None) -> ToolMemoryStore:
        """The store of another workspace of this server. Raises InvalidInput for an id that is not allowed."""
        folder, name = workspace_folder(self._root, workspace_id)
        if name == "default":
            return self
        other = copy(self)  # the same judges and counts
        other.folder = ToolFolder(folder, name, self._settings, inside=self._root)
        return other

    # --- record ----------------------------------------------------------------------------------

    def record(self, calls: Sequence[Mapping[str, object]], judge: str | Judge | None = None) -> RecordReport:
        """Store calls, each once, masked and evaluated. What a judge cannot evaluate now waits and is kept.

        Raises InvalidInput for what is missing or of a wrong type, before anything is stored; Busy or Forbidden where the disk refuses.
        """
        from memory_tools.tool_entries import added, ready
        from memory_tools.tool_reports import RecordReport

        chosen = self._judge(judge)
        now = self.now()
        batch = ready(calls, now)
        duplicates, new = 0, dict[str, int]()
        touched: dict[str, Loaded] = {}
        waiting: list[ToolCall] = []
        warnings: list[str] = []
        for name, group in batch.by_tool.items():
            with self.folder.lock(name):
                loaded = self.folder.load(name)
                change = added(loaded.calls, group, chosen, time.time())
                if change.changed:
                    loaded = self.folder.save_calls(loaded, change.entries, change.appended)
                if change.changed or loaded.page is None:
                    loaded = self.folder.save_page(loaded, now, chosen.name)
            duplicates, new[name] = duplicates + change.duplicates, len(change.appended)
            touched[name] = loaded
            waiting += change.to_judge
            if loaded.problem:
                warnings.append(loaded.problem)
        if waiting:
            touched |= self._fill(chosen, waiting, {n: loaded.evaluated for n, loaded in touched.items()}, now)
        sent = {c.key for group in batch.by_tool.values() for c in group}
        pending = [c for loaded in touched.values() for c in loaded.pending if c.key in sent]
        report = RecordReport(
            total=batch.total,
            added=sum(new.values()),
            duplicates=duplicates,
            refused=batch.refused,
            pending=len(pending),
            pending_reasons=tuple(dict.fromkeys(c.waiting or "another request is judging it" for c in pending)),
            masked=batch.masked,
            memories=tuple(self.folder.memory(loaded) for loaded in touched.values()),
            warnings=tuple(warnings),
        )
        log.info("record workspace=%s tools=%s: %s", self.folder.workspace_id, list(batch.by_tool), report.answer)
        return report

    def _fill(
        self, judge: Judge, waiting: Sequence[ToolCall], earlier: Mapping[str, Sequence[ToolCall]], now: datetime
    ) -> dict[str, Loaded]:
        """Ask a slow judge about stored calls of any tools at once, and store what it says. The tools as they are then."""
        from memory_tools.judge_values import Failure
        from memory_tools.tool_entries import filled

        known = [c for name in dict.fromkeys(c.tool_name for c in waiting) for c in earlier.get(name, ())]
        said = judge.evaluate(waiting, known)
        out: dict[str, Loaded] = {}
        for name in dict.fromkeys(c.tool_name for c in waiting):
            found: dict[Key, Evaluation | Failure] = {c.key: s for c, s in zip(waiting, said, strict=True) if c.tool_name == name}
            for key, failure in found.items():
                if isinstance(failure, Failure):
                    log.warning("judge %s: call %s of %s waits: %s", judge.name, key[0], name, failure.reason)
            with self.folder.lock(name):
                loaded = self.folder.load(name)
                loaded = self.folder.save_calls(loaded, filled(loaded.calls.entries, found), ())
                out[name] = self.folder.save_page(loaded, now, judge.name)
        return out

    def _retry(self, names: Sequence[str], judge: Judge, now: datetime) -> None:
        """Calls that waited from an earlier run are judged now, if this judge can."""
        from memory_tools.tool_entries import stale

        waiting: list[ToolCall] = []
        earlier: dict[str, Sequence[ToolCall]] = {}
        for name in names:
            loaded = self.folder.load(name)
            old = [c for c in loaded.pending if stale(c, time.time())][-MAX_RETRIED:]
            waiting += [replace(c, tool_name=name) for c in old]
            earlier[name] = loaded.evaluated
        if waiting and judge.name != "agent":
            self._fill(judge, waiting, earlier, now)

    # --- summarise -------------------------------------------------------------------------------

    def summarize(self, tool_names: str | Sequence[str] | None, judge: str | Judge | None = None) -> SummaryReport:
        """Distil the newest calls of each tool into its guideline, where at least one of them is not in it yet."""
        from memory_tools.tool_reports import Failed, SummaryReport

        names = split_names(tool_names)
        if not tool_names:
            return SummaryReport((), named=False)
        chosen, now = self._judge(judge), self.now()
        existing, missing, warnings = self.existing(names)
        summarized, skipped, failed = list[str](), list[str](), list[Failed]()
        with ExitStack() as locks:
            if not chosen.instant:
                for name in sorted(existing):  # in one order everywhere, so that two requests cannot wait for each other
                    locks.enter_context(self.folder.summary_lock(name))
            self._retry(existing, chosen, now)
            requests: list[SummaryRequest] = []
            for name in existing:
                loaded = self.folder.load(name)
                request = self.request(loaded)
                if loaded.problem:
                    failed.append(Failed(name, loaded.problem))
                elif not request.calls and loaded.pending:
                    failed.append(Failed(name, f"no call is evaluated yet: {loaded.pending[-1].waiting or 'being judged'}"))
                elif all(c.is_summarized for c in request.calls):
                    skipped.append(name)
                else:
                    requests.append(request)
            answers = chosen.summarize(requests) if requests else []
            for request, answer in zip(requests, answers, strict=True):
                reason = self.keep(request, answer, chosen.name, now)
                if reason:
                    failed.append(Failed(request.tool_name, reason))
                    log.warning("summary of %s failed, its guideline stays: %s", request.tool_name, reason)
                else:
                    summarized.append(request.tool_name)
        memories = tuple(self.folder.memory(self.folder.load(n)) for n in existing)
        report = SummaryReport(names, tuple(summarized), tuple(skipped), tuple(failed), missing, memories, warnings)
        log.info("summary workspace=%s tools=%s: %s", self.folder.workspace_id, list(names), report.answer)
        return report

    def request(self, loaded: Loaded) -> SummaryRequest:
        """The newest evaluated calls and what they are distilled with."""
        from memory_tools.judge_values import SummaryRequest

        window = loaded.evaluated[-self._settings.recent :]
        previous = loaded.page.guideline or "" if loaded.page is not None else ""
        return SummaryRequest(loaded.name, window, statistics_of(window), previous)

    def keep(self, request: SummaryRequest, answer: Guideline | Failure, author: str, now: datetime) -> str:
        """Write a guideline, and only then mark its calls. The reason why nothing was written, "" if it was."""
        from memory_tools.judge_values import Failure, checked_guideline
        from memory_tools.masking import mask
        from memory_tools.tool_entries import masked_advice
        from memory_tools.tool_files import entry

        if isinstance(answer, Failure):
            return answer.reason
        try:
            text = checked_guideline(mask(answer.text).text)
        except InvalidInput as e:
            return e.message
        text = f"{text}\n\n## Statistics\n\n{figures_text(request.statistics)}"
        looked_at = {c.key for c in request.calls}
        with self.folder.lock(request.tool_name):
            loaded = self.folder.load(request.tool_name)
            if loaded.problem:
                return loaded.problem
            loaded = self.folder.save_page(loaded, now, author, text, masked_advice(answer.parameters))
            entries = [entry(marked(e.call)) if e.call is not None and e.call.key in looked_at else e for e in loaded.calls.entries]
            self.folder.save_calls(loaded, entries, ())
        return ""

    # --- retrieve ----------------------------------------------------------------------------------

    def retrieve(self, tool_names: str | Sequence[str] | None) -> RetrieveReport:
        """The memories of these tools, by exact name, in the order asked."""
        from memory_tools.tool_reports import RetrieveReport

        started = time.perf_counter()
        names = split_names(tool_names)
        if not tool_names:
            return RetrieveReport((), named=False)
        log.info("retrieve workspace=%s tools=%s", self.folder.workspace_id, list(names))
        memories: list[ToolMemory] = []
        existing, missing, warnings = self.existing(names, memories)
        if self.folder.workspace.is_dir():
            self._usage.count(self.folder.workspace_id, existing, missing, self.now().strftime(TIME_FORMAT))
        log.info("retrieved %d of %d in %.1f ms", len(memories), len(names), 1000 * (time.perf_counter() - started))
        return RetrieveReport(names, tuple(memories), missing, warnings)

    def existing(
        self, names: Sequence[str], memories: list[ToolMemory] | None = None
    ) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Which of these tools have a memory, which have none, and what is wrong with some; `memories` takes those that have one."""
        existing, missing, warnings = list[str](), list[str](), list[str]()
        for name in names:
            loaded = None
            try:
                loaded = self.folder.load(name)
                problem = loaded.problem
            except Forbidden as e:  # a link, a device: one such file must not hide the other tools
                problem = e.message
            found = loaded is not None and loaded.exists and not (problem and loaded.page is not None)
            if problem or not found:
                log.warning("tool %s: %s", one_line(name), problem or f"not found in workspace {self.folder.workspace_id}")
            warnings += [problem] if problem else []
            (existing if found else missing).append(name)
            if found and loaded is not None and memories is not None:
                memories.append(memory := self.folder.memory(loaded))
                log.info("matched %s memory_id=%s total_calls=%d", one_line(name), memory.memory_id, len(memory.calls))
        return tuple(existing), tuple(missing), tuple(warnings)

    # --- figures -----------------------------------------------------------------------------------

    def stats(self, tool_names: str | Sequence[str] | None = None) -> StatsReport:
        """Each tool's figures, the best composite first; no names: all tools."""
        from memory_tools.tool_reports import StatsReport
        from memory_tools.tool_stats import ordered, stats_of

        names = split_names(tool_names)
        problems: tuple[str, ...] = ()
        if not names:
            names, problems = self.folder.names()
        existing, missing, warnings = self.existing(names)
        usage = self._usage.read(self.folder.workspace_id)
        tools = [stats_of(self.folder.load(n), usage.get(n), self._settings.recent) for n in existing]
        known = set(existing) if split_names(tool_names) == () else set(self.folder.names()[0])
        wanted = {n: a.missing for n, a in sorted(usage.items(), key=lambda i: (-i[1].missing, i[0])) if a.missing and n not in known}
        return StatsReport(ordered(tools), wanted, missing, (*problems, *warnings))

    def success_rate(self, path: str) -> tuple[float, int] | None:
        """For a search that met the page `path` (`memory/tools/<name>.md`): the tool's success rate and its calls; None without calls."""
        return self.folder.page_statistics(path)

    def _judge(self, judge: str | Judge | None) -> Judge:
        if judge is not None and not isinstance(judge, str):
            return judge
        name = judge or self._settings.judge
        if name not in self._judges:
            from memory_tools.judge import AbsentJudge, open_judge

            try:  # kept: its pace holds over all requests
                self._judges[name] = open_judge(name, self._settings)
            except Unavailable as e:
                return AbsentJudge(name, f"{e.message} ({e.hint})")
        return self._judges[name]

    def now(self) -> datetime:
        return datetime.now(self._settings.zone).astimezone(self._settings.zone)
