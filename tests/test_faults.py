"""Every verb that writes, failed or killed at its steps: nothing of record is lost, doubled or torn, and what is derived heals."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import faulty
import pytest

from memory_tools import Memory

each_verb = pytest.mark.parametrize("verb", faulty.VERBS, ids=lambda verb: verb.name)
each_mode = pytest.mark.parametrize("mode", faulty.MODES, ids=lambda mode: mode.name)
FULL, STAYS, _, _, KILLED, TORN = faulty.MODES


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def can_run(mode: faulty.Mode) -> None:
    if mode.ends and not hasattr(os, "fork"):
        pytest.skip("ending a process at a step needs fork")


def told(verb: faulty.Verb, mode: faulty.Mode, hits: Counter[str]) -> None:
    print(f"{verb.name:24} {mode.name:32} " + " ".join(f"{kind} {count}" for kind, count in sorted(hits.items())))


@each_verb
def test_each_kind_of_step_refused_loses_nothing(tmp_path: Path, verb: faulty.Verb) -> None:
    """The seam is passed by every kind of effect that the verb has: zero hits of one are a failure too."""
    mode = FULL if faulty.VERBS.index(verb) % 2 else STAYS
    hits = faulty.every_step(verb, mode, tmp_path, faulty.first_of_each_kind)
    told(verb, mode, hits)
    assert not {kind for kind in verb.kinds if not hits[kind]}


@each_verb
def test_a_kill_at_each_kind_of_step_loses_nothing(tmp_path: Path, verb: faulty.Verb) -> None:
    mode = TORN if faulty.VERBS.index(verb) % 2 else KILLED
    can_run(mode)
    hits = faulty.every_step(verb, mode, tmp_path, faulty.last_of_each_kind)
    told(verb, mode, hits)
    assert not {kind for kind in verb.kinds if not hits[kind]}


@pytest.mark.slow
@pytest.mark.timeout(900)
@each_mode
@each_verb
def test_every_third_step_failed_in_every_way_loses_nothing(tmp_path: Path, verb: faulty.Verb, mode: faulty.Mode) -> None:
    """Every step is failed by `python benchmarks/reliability.py faults`; here each in one of two ways."""
    can_run(mode)
    hits = faulty.every_step(verb, mode, tmp_path, faulty.every_third(faulty.MODES.index(mode)))
    told(verb, mode, hits)
    assert hits.total()


# --- found by the above -------------------------------------------------------------------------------


def test_the_history_of_a_hand_written_entry_moves_into_the_archive_and_back(tmp_path: Path) -> None:
    """It named an address and nothing else, so archiving its section left it behind as an orphan."""
    faulty.make(tmp_path)
    with faulty.opened(tmp_path) as memory:
        memory.archive(yes=True)
        archived = {row.address: row.use_count for row in memory.scores().memories}
        assert archived == {faulty.DEPLOY: 5, next(a for a in archived if a.startswith("memory/archive/")): 6}
        memory.restore(faulty.PRINTER)
        assert {row.address: row.use_count for row in memory.scores().memories} == {faulty.DEPLOY: 5, faulty.PRINTER: 6}


def test_a_rebuild_on_a_full_disk_is_an_error_of_ours(tmp_path: Path) -> None:
    """A folder that could not be made came out as a bare OSError."""
    faulty.make(tmp_path)
    rebuild = next(verb for verb in faulty.VERBS if verb.name == "first sync")
    hits = faulty.every_step(rebuild, FULL, tmp_path / "steps", faulty.first_of_each_kind)
    assert hits["mkdir"] == 1
    assert isinstance(Memory(tmp_path, encoder="none"), Memory)


def test_an_index_that_breaks_right_after_the_count_does_not_count_again(tmp_path: Path) -> None:
    """A broken index is made anew and the call done again: by then the outcome was in the file."""
    faulty.make(tmp_path)
    with faulty.opened(tmp_path) as memory:

        def break_it(kind: str, target: str) -> None:
            if kind == "replace" and target.endswith("utility-scores.json"):
                memory._engine.index.connection.executescript("DROP TABLE sections")

        with faulty.failing(break_it):
            report = memory.feedback(faulty.DEPLOY)
        assert report.recorded[0].use_count == 6
    assert faulty.look(tmp_path).counts[faulty.DEPLOY] == (6, 5)
