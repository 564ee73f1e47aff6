"""The tool files of a workspace in, what disagrees or needs a person out; `fix` heals what the calls themselves can tell."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import datetime

from memory_tools.errors import MemoryToolsError
from memory_tools.reports import Finding
from memory_tools.tool_records import statistics_document, statistics_of
from memory_tools.tool_store import Loaded, ToolFolder


def findings(folder: ToolFolder, fix: bool, now: datetime) -> tuple[Finding, ...]:
    """In the order of the tools' names. Calls are never dropped: only a last line that a crash cut off is, which no one was promised."""
    try:
        names, problems = folder.names()
    except MemoryToolsError as e:  # the folder is a link out of the workspace, or cannot be read
        return (Finding("error", "tool_folder", e.message, "memory/tools"),)
    found = [Finding("error", "tool_page_damaged", p, "memory/tools") for p in problems]
    for name in names:
        try:
            with folder.lock(name) if fix else nullcontext():
                found += _of_one(folder, folder.load(name), fix, now)
        except MemoryToolsError as e:
            found.append(Finding("error", "tool_file", e.message, _path(folder, name)))
    return tuple(found)


def _of_one(folder: ToolFolder, loaded: Loaded, fix: bool, now: datetime) -> list[Finding]:
    path = _path(folder, loaded.name)
    if loaded.problem:
        return [Finding("error", "tool_page_damaged", loaded.problem, path)]
    out: list[Finding] = []
    if loaded.calls.damaged:
        text = f"{loaded.calls.damaged} lines of its calls file hold no call; they are kept, and pushed out by new calls"
        out.append(Finding("warning", "tool_calls_unreadable", text, path))
    if not loaded.calls.whole:
        out.append(Finding("warning", "tool_calls_cut_off", "the last line of its calls file was cut off by a crash", path, fixed=fix))
        if fix:
            loaded = folder.save_calls(loaded, loaded.calls.entries, ())
    written = loaded.page.front.get("statistics") if loaded.page is not None else None
    expected = statistics_document(statistics_of(loaded.evaluated)) | {"pending_calls": len(loaded.pending)}
    if loaded.calls.calls and written != expected:
        what = "is missing" if loaded.page is None else "does not say what its calls say"
        out.append(Finding("warning", "tool_page_stale", f"the page {what}; the next call or --fix writes it", path, fixed=fix))
        if fix:
            folder.save_page(loaded, now, loaded.author or "rules")
    return out


def _path(folder: ToolFolder, name: str) -> str:
    return folder.page_path(name).relative_to(folder.workspace).as_posix()
