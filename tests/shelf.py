"""Notes as texts in, their sections with ids as the index would hold them out; edits carry ids along. Real stages, no index."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from memory_tools import identity, sections
from memory_tools.records import Trace
from memory_tools.scores import Sections

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
WRITTEN = datetime(2026, 3, 1, tzinfo=UTC)


def traces_of(path: str, text: str) -> list[Trace]:
    document = sections.parse(path, text)
    return [replace(identity.trace_of(s, text, order), edited=WRITTEN) for order, s in enumerate(document.sections)]


class Shelf:
    """Files by path; `sections()` is what the scores are given."""

    def __init__(self, **notes: str) -> None:
        self.traces: list[Trace] = []
        self.write({name.replace("__", "/") + ".md": text for name, text in notes.items()})

    def write(self, notes: dict[str, str | None]) -> None:
        """Files as they are now; None: gone."""
        old = [t for t in self.traces if t.path in notes]
        new = [t for path, text in sorted(notes.items()) if text is not None for t in traces_of(path, text)]
        came_from = {j: i for i, j in identity.match(old, new).pairs.items()}
        taken = {t.id for t in self.traces}
        kept = [t for t in self.traces if t.path not in notes]
        for j, trace in enumerate(new):
            before = old[came_from[j]] if j in came_from else None
            id = before.id if before else identity.new_id(trace, taken)
            taken.add(id)
            same = before is not None and before.body == trace.body
            kept.append(replace(trace, id=id, edited=before.edited if before and same else NOW if before else trace.edited))
        self.traces = sorted(kept, key=lambda t: (t.path, t.order))

    def lose(self) -> None:
        """The index is made anew: other ids."""
        self.traces = [replace(t, id=f"new{n}") for n, t in enumerate(self.traces)]

    def sections(self) -> Sections:
        return Sections({t.address: t.id for t in self.traces}, lambda: list(self.traces))

    def id(self, address: str) -> str:
        return next(t.id for t in self.traces if t.address == address)
