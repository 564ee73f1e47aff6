"""The calls that agents know, on the default workspace: one Memory a process, opened at the first call."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from memory_tools import config
from memory_tools.memory import Memory
from memory_tools.records import Report
from memory_tools.reports import Excerpt

_lock = threading.Lock()
_open: dict[str, Memory] = {}


def _default() -> Memory:
    """The Memory of the default workspace, which the environment may have changed since the last call."""
    settings = config.load()
    key = str(settings.workspace)
    with _lock:
        known = _open.get(key)
        if known is None or known.config != settings:
            if known is not None:
                known.close()
            known = _open[key] = Memory(config=settings)
        return known


def memory_search(query: str | Sequence[str], maxResults: int = 10, minScore: float = 0.5) -> Report:
    """Search the default workspace; see Memory.search."""
    return _default().search(query, max_results=maxResults, min_score=minScore)


def memory_get(path: str, from_line: int | str | None = None, lines: int | None = None, recall: str | None = None) -> Excerpt:
    """Read from the default workspace; see Memory.get."""
    return _default().get(path, from_line=from_line, lines=lines, recall=recall)


def two_stage_retrieval(query: str | Sequence[str], context: str | None, max_results: int = 5) -> list[dict[str, str | float]]:
    """Twice as many candidates as asked for, filtered and sorted by utility with policy `seed` and its fallbacks.

    A list of {"content", "source", "utility"}, best first.
    """
    report = _default().search(query, context=context, max_results=max_results * 2, policy="seed")
    found: list[dict[str, str | float]] = [{"content": r.content, "source": r.path, "utility": r.utility} for r in report.results]
    return sorted(found, key=lambda r: (-float(r["utility"]), str(r["source"])))[:max_results]
