"""One workspace's tool files: a tool's name to what is known of it, and changes to disk in an order that a crash cannot harm.

Calls are written before the page that counts them, and a guideline before the calls that it covers are marked: whatever a crash leaves
is complete, and the next write of that tool brings the rest up to date.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from memory_tools import durable, tool_files
from memory_tools.errors import Damaged, MemoryToolsError
from memory_tools.plain_files import check_inside, read_bytes
from memory_tools.tool_files import Calls, Entry, Page
from memory_tools.tool_names import file_stem
from memory_tools.tool_records import (
    TIME_FORMAT,
    Advice,
    Json,
    ToolCall,
    ToolMemory,
    parameters_document,
    statistics_document,
    statistics_of,
)
from memory_tools.tool_settings import ToolSettings

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A tool's files as read. `problem`: why the page cannot be used or written (damaged, another type, another tool); "" if it can."""

    name: str
    page: Page | None
    calls: Calls
    problem: str = ""

    @property
    def exists(self) -> bool:
        return self.page is not None or bool(self.calls.entries)

    @property
    def evaluated(self) -> tuple[ToolCall, ...]:
        return tuple(c for c in self.calls.calls if c.score is not None)

    @property
    def pending(self) -> tuple[ToolCall, ...]:
        return tuple(c for c in self.calls.calls if c.score is None)

    @property
    def author(self) -> str:
        return self.page.text_of("author") if self.page is not None else ""


class ToolFolder:
    """`<workspace>/memory/tools` of one workspace."""

    def __init__(self, workspace: Path, workspace_id: str, settings: ToolSettings, *, inside: Path | None = None) -> None:
        self.workspace = workspace
        self._inside = inside or workspace  # what no link may lead out of
        self.workspace_id = workspace_id
        self.folder = workspace / "memory" / "tools"
        self._settings = settings

    def page_path(self, name: str) -> Path:
        return self.folder / f"{file_stem(name)}.md"

    def calls_path(self, name: str) -> Path:
        return self.folder / f"{file_stem(name)}.calls.jsonl"

    def lock(self, name: str) -> AbstractContextManager[None]:
        """Held by whoever writes either file of a tool."""
        check_inside(self._inside, self.folder)
        return durable.lock(self.calls_path(name))

    def summary_lock(self, name: str) -> AbstractContextManager[None]:
        """Held while a slow judge writes a guideline, so that a second request waits and then finds it done."""
        check_inside(self._inside, self.folder)
        wait_s = (self._settings.judge_timeout_s + 10) * self._settings.judge_attempts + 30
        return durable.lock(self.folder / f"{file_stem(name)}.summary", wait_s)

    def load(self, name: str) -> Loaded:
        """What is on disk. Raises Forbidden, Busy; a page that does not parse is a problem and no error: the calls are still there."""
        check_inside(self._inside, self.folder)
        calls = tool_files.parse_calls(read_bytes(self.calls_path(name)) or b"")
        path = self.page_path(name)
        content = read_bytes(path)
        if content is None:
            return Loaded(name, None, calls)
        try:
            page = tool_files.parse_page(path, content.decode("utf-8-sig"))
        except UnicodeDecodeError as e:
            return Loaded(name, None, calls, f"{path}: not UTF-8 ({e.reason} at byte {e.start})")
        except Damaged as e:
            return Loaded(name, None, calls, e.message)
        kind, owner = page.text_of("memory_type"), page.text_of("when_to_use")
        if kind not in ("", "tool"):
            return Loaded(name, page, calls, f"{path}: wrong type: memory_type is {kind!r}, not 'tool'")
        if owner not in ("", name):
            return Loaded(name, page, calls, f"{path}: name mismatch: when_to_use is {owner!r}, not {name!r}")
        return Loaded(name, page, calls)

    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of all tools that have files here, sorted, and what was wrong with the others."""
        check_inside(self._inside, self.folder)
        names, problems = set[str](), list[str]()
        stems = {p.name.removesuffix(suffix) for suffix in (".calls.jsonl", ".md") for p in self._listed(suffix)}
        for stem in sorted(stems):
            try:
                names.add(self._name_of(stem))
            except MemoryToolsError as e:
                problems.append(e.message)
        return tuple(sorted(names)), tuple(problems)

    def _listed(self, suffix: str) -> list[Path]:
        return [p for p in self.folder.glob(f"*{suffix}") if not p.name.startswith(".")] if self.folder.is_dir() else []

    def _name_of(self, stem: str) -> str:
        content = read_bytes(self.folder / f"{stem}.md")
        name, problem = "", ""
        if content is not None:
            try:
                name = tool_files.parse_page(self.folder / f"{stem}.md", content.decode("utf-8-sig")).text_of("when_to_use")
            except (Damaged, UnicodeDecodeError) as e:
                problem = str(e)  # the calls know the name too
        if name and file_stem(name) == stem:
            return name
        calls = tool_files.parse_calls(read_bytes(self.folder / f"{stem}.calls.jsonl") or b"").calls
        if not calls and problem:
            raise Damaged(problem)
        return calls[-1].tool_name if calls else stem

    def page_statistics(self, path: str) -> tuple[float, int] | None:
        """(success rate, calls) as a page's front matter says; None for another file, or one without calls."""
        folder, _, name = path.rpartition("/")
        if folder != "memory/tools" or not name.endswith(".md"):
            return None
        try:
            content = read_bytes(self.folder / name) or b""
            found = tool_files.parse_page(self.folder / name, content.decode("utf-8-sig")).front.get("statistics")
        except (MemoryToolsError, UnicodeDecodeError):
            return None  # a search shows the page all the same
        rate, calls = (found.get("success_rate"), found.get("total_calls")) if isinstance(found, dict) else (None, None)
        if not isinstance(rate, int | float) or not isinstance(calls, int) or calls <= 0:
            return None
        return round(rate * calls) / calls, calls  # the rate as written is rounded; successes are whole

    def memory(self, loaded: Loaded) -> ToolMemory:
        """The tool's memory as callers see it."""
        page, evaluated = loaded.page or Page(), loaded.evaluated
        statistics = statistics_of(evaluated)
        first = loaded.calls.calls[0].create_time if loaded.calls.calls else ""
        created = page.text_of("time_created") or first
        warnings = [loaded.problem] if loaded.problem else []
        if loaded.calls.damaged:
            warnings.append(f"{self.calls_path(loaded.name)}: {loaded.calls.damaged} lines hold no call")
        return ToolMemory(
            workspace_id=self.workspace_id,
            memory_id=page.text_of("memory_id") or memory_id(self.workspace_id, loaded.name),
            when_to_use=loaded.name,
            content=page.content if not loaded.problem else "",
            score=round(statistics.average_score, 4),
            time_created=created,
            time_modified=page.text_of("time_modified") or created,
            author=loaded.author,
            calls=evaluated,
            pending=loaded.pending,
            statistics=statistics,
            parameters=page.parameters,
            warnings=tuple(warnings),
        )

    # --- writing, for a caller that holds the tool's lock --------------------------------------------

    def save_calls(self, loaded: Loaded, entries: Sequence[Entry], appended: Sequence[ToolCall]) -> Loaded:
        """The calls file holds the newest of `entries` followed by `appended`."""
        path = self.calls_path(loaded.name)
        every = (*entries, *(tool_files.entry(c) for c in appended))
        kept = tool_files.newest(every, self._settings.max_history)
        if len(kept) == len(every) and tuple(entries) == loaded.calls.entries and loaded.calls.whole:
            if appended:
                tool_files.append_calls(path, appended)
        else:
            durable.replace(path, tool_files.format_calls(kept))
        return replace(loaded, calls=Calls(kept))

    def save_page(
        self,
        loaded: Loaded,
        now: datetime,
        author: str,
        guideline: str | None = None,
        parameters: Mapping[str, Advice] | None = None,
    ) -> Loaded:
        """The page says what the calls say, and holds `guideline` where one is given. A page with a problem is left as it is."""
        if loaded.problem:
            return loaded
        page = loaded.page or Page()
        statistics = statistics_of(loaded.evaluated)
        values: dict[str, Json] = {
            "memory_id": page.text_of("memory_id") or memory_id(self.workspace_id, loaded.name),
            "memory_type": "tool",
            "when_to_use": loaded.name,
            "score": round(statistics.average_score, 4),
            "author": author if guideline is not None or not loaded.author else loaded.author,
            "time_created": page.text_of("time_created") or now.strftime(TIME_FORMAT),
            "time_modified": _modified(page.text_of("time_modified"), now, new_guideline=guideline is not None),
            "statistics": statistics_document(statistics) | {"pending_calls": len(loaded.pending)},
        }
        if guideline is not None:
            page = _keep_edits(page, now)
            values["parameters"] = parameters_document(parameters or {})
            values["guideline_hash"] = _digest(tool_files.neutral(guideline))
        text = tool_files.format_page(page, values, guideline, loaded.name)
        durable.replace(self.page_path(loaded.name), text.encode())
        return replace(loaded, page=tool_files.parse_page(self.page_path(loaded.name), text))


def memory_id(workspace_id: str, name: str) -> str:
    """The same for the same tool, so that a page that was lost comes back with its id."""
    return hashlib.sha256(f"{workspace_id}\0{name}".encode("utf-8", "replace")).hexdigest()[:32]


def _modified(before: str, now: datetime, *, new_guideline: bool) -> str:
    """Never earlier than before, and later for a new guideline: a client may have cached the old one within the same second."""
    stamp = now.strftime(TIME_FORMAT)
    if stamp > before or not before:
        return stamp
    if not new_guideline:
        return before
    try:
        return (datetime.strptime(before, TIME_FORMAT) + timedelta(seconds=1)).strftime(TIME_FORMAT)
    except (ValueError, OverflowError):
        return stamp  # written by hand in another form


def _digest(guideline: str) -> str:
    return hashlib.sha256(" ".join(guideline.split()).encode("utf-8", "replace")).hexdigest()[:16]


def _keep_edits(page: Page, now: datetime) -> Page:
    """A guideline that a person edited stays below the new one, as that person's own text."""
    written, was = page.guideline, page.text_of("guideline_hash")
    if not written or not was or _digest(written) == was:
        return page
    kept = f"\n## Edited by hand before {now:%Y-%m-%d}\n\n{written.strip()}\n"
    return replace(page, body=page.body.rstrip("\r\n") + "\n" + kept)
