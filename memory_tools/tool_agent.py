"""The calling agent as the judge of a store's calls: what it is asked out, what it answered in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory_tools.errors import InvalidInput
from memory_tools.judge_prompts import through
from memory_tools.judge_values import SummaryRequest
from memory_tools.tool_answers import Answers
from memory_tools.tool_entries import filled
from memory_tools.tool_memory import ToolMemoryStore
from memory_tools.tool_names import split_names
from memory_tools.tool_records import ToolCall, statistics_of
from memory_tools.tool_reports import Failed, SummaryReport


def due(store: ToolMemoryStore, tool_names: str | Sequence[str] | None) -> tuple[list[SummaryRequest], list[ToolCall]]:
    """The guidelines that are not up to date, and the calls without an evaluation. No names: of all tools."""
    requests, pending = list[SummaryRequest](), list[ToolCall]()
    for name in split_names(tool_names) or store.folder.names()[0]:
        loaded = store.folder.load(name)
        request = store.request(loaded)
        if not loaded.problem:
            pending += [replace(c, tool_name=name) for c in loaded.pending]
            requests += [] if all(c.is_summarized for c in request.calls) else [request]
    return requests, pending


def apply(store: ToolMemoryStore, answers: Answers) -> SummaryReport:
    """Evaluations fill calls that wait; a guideline passes the same checks as a model's, and its calls are marked.

    Raises InvalidInput for a call that does not wait for a judge; nothing of that tool is stored then.
    """
    now, folder = store.now(), store.folder
    for name, said in answers.evaluations.items():
        with folder.lock(name):
            loaded = folder.load(name)
            waiting = {c.key for c in loaded.pending}
            unknown = next((key for key in said if key not in waiting), None)
            if unknown is not None:
                raise InvalidInput(f"{name}: no call {unknown[0]} of {unknown[1]} waits for a judge", "ask again with --prompt")
            loaded = folder.save_calls(loaded, filled(loaded.calls.entries, said), ())
            folder.save_page(loaded, now, "agent")
    existing, missing, warnings = store.existing(tuple(answers.guidelines))
    summarized, failed = list[str](), list[Failed]()
    for name in existing:
        guideline, newest = answers.guidelines[name]
        reason = store.keep(_shown(store.request(folder.load(name)), newest), guideline, "agent", now)
        if reason:
            failed.append(Failed(name, reason))
        else:
            summarized.append(name)
    touched = dict.fromkeys([*answers.evaluations, *existing])
    memories = tuple(folder.memory(folder.load(n)) for n in touched)
    return SummaryReport(
        tuple(dict.fromkeys([*answers.guidelines, *touched])), tuple(summarized), (), tuple(failed), missing, memories, warnings
    )


def _shown(request: SummaryRequest, newest: str) -> SummaryRequest:
    """The request as it was when the agent was asked: calls that came since are not in its guideline."""
    if not newest:
        return request
    last = next((n for n in range(len(request.calls), 0, -1) if through(request.calls[:n]) == newest), 0)
    calls = request.calls[:last]
    return replace(request, calls=calls, statistics=statistics_of(calls))
