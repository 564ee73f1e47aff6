"""Tending what was learned: the table of scores, a proposed threshold, recomputed utilities, and moving what no longer helps, or back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from memory_tools import archive, scores, standing

if TYPE_CHECKING:
    from memory_tools.credit import Credit
    from memory_tools.engine import Engine
    from memory_tools.settings import Settings


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """What each memory has been worth, the most useful first."""

    memories: tuple[standing.Row, ...]


@dataclass(frozen=True, slots=True)
class Recalculated:
    """What bringing utility-scores.json up to date did. The tuples hold addresses."""

    memories: int
    written: bool
    orphaned: tuple[str, ...] = ()  # their sections are gone; kept for 90 days
    returned: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def _entries(engine: Engine, credit: Credit) -> Mapping[str, scores.Entry]:
    """Section id -> history, as the files are now. Raises Damaged where the sidecar cannot be read."""
    engine.freshen(None, [], [])
    snapshot = credit.sidecar.load()
    if snapshot.damaged is not None:
        raise snapshot.damaged
    return scores.attach(snapshot.scores, engine.sections()).entries


def table(engine: Engine, credit: Credit, settings: Settings) -> ScoreTable:
    entries = _entries(engine, credit)
    address = {trace.id: trace.address for trace in engine.sections().traces()}  # `ids` would hold former addresses as well
    entries = {address[id]: entry for id, entry in entries.items() if id in address}
    return ScoreTable(standing.table(entries, datetime.now(UTC), settings))


def tune(engine: Engine, credit: Credit, settings: Settings) -> standing.Tuning:
    return standing.tune(_entries(engine, credit).values(), datetime.now(UTC), settings)


def recalculate(engine: Engine, credit: Credit, settings: Settings) -> Recalculated:
    engine.freshen(None, [], [])
    done = scores.recalculate(credit.sidecar, engine.sections(), datetime.now(UTC), settings)
    told = tuple(f.message for f in done.problems)
    return Recalculated(len(done.entries), done.written, done.orphaned, done.returned, done.expired, told)


def planned(engine: Engine, credit: Credit, settings: Settings) -> archive.Plan:
    entries = _entries(engine, credit)
    days = engine.config.archive_after_days
    return archive.plan(engine.config.workspace, entries, engine.sections().traces(), datetime.now(UTC), settings, days)


def move(engine: Engine, credit: Credit, settings: Settings) -> archive.Done:
    """Archive what is planned; histories move along with their sections."""
    # An entry as a person or an older file writes it names an address alone, and that is about to change: it gets its id and traces first.
    recalculate(engine, credit, settings)
    plan = planned(engine, credit, settings)
    done = archive.apply(engine.config.workspace, plan, datetime.now(engine.config.zone()))
    recalculate(engine, credit, settings)
    return replace(done, kept=(*plan.kept, *done.kept))


def restore(engine: Engine, credit: Credit, settings: Settings, address: str) -> archive.Moved:
    moved = archive.restore(engine.config.workspace, address)
    recalculate(engine, credit, settings)
    return moved
