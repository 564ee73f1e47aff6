"""Two open Memories of one workspace, as two processes have them: what one writes never breaks or bends what the other reads."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory_tools import Memory, embedding, recall
from memory_tools.encoders import open_encoder
from memory_tools.errors import Busy
from memory_tools.searched import searched_text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "memory").mkdir()
    (tmp_path / "MEMORY.md").write_text("# Memory\n\n## Deploy\n\n- deploy with the blue script\n\n## Backup\n\n- backups run at night\n")
    return tmp_path


def test_a_file_that_another_process_takes_in_during_a_search_does_not_end_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = recall.answer

    def edited_meanwhile(*arguments: object) -> recall.Answer:
        (root / "MEMORY.md").write_text("# Memory\n\nnothing is left\n")
        with Memory(root, encoder="none") as other:
            other.sync()
        return whole(*arguments)  # type: ignore[arg-type]

    with Memory(root, encoder="none") as memory:
        monkeypatch.setattr(recall, "answer", edited_meanwhile)
        assert "blue script" in memory.search("deploy blue script").results[0].snippet
        monkeypatch.undo()
        assert not memory.search("deploy blue script", strict=True).results


def test_an_encoder_that_another_process_changed_never_lends_its_rows_to_this_ones_vectors(root: Path) -> None:
    with Memory(root) as memory:
        memory.sync()
        (root / "memory" / "2026-03-01.md").write_text("".join(f"## Day {n}\n\n- kilo {n} of sugar\n\n" for n in range(5)))
        with Memory(root, encoder="none") as other:  # with the newer file's blocks first, as another encoder's rows would be
            other.sync()
            index = other._engine.index
            with index.write() as connection:
                connection.execute("DELETE FROM vectors")
                connection.execute("UPDATE blocks SET vector = NULL")
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('encoder', 'another (512)')")
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('vectors_number', 7)")
                connection.execute("UPDATE blocks SET vector = (SELECT count(*) FROM blocks b WHERE b.id > blocks.id)")
                connection.execute("INSERT OR IGNORE INTO vectors SELECT hash, vector FROM blocks")
        memory.search("sugar")
        reader = memory._engine.reader(include_archive=False)
        encoder = open_encoder("default")
        assert encoder is not None
        checked = 0
        for position in range(len(reader.corpus)):
            if reader.corpus.vector[position] >= 0 and not reader.corpus.heading[position]:
                text = searched_text("paragraph", reader.text(position, position), reader.place(position, position).headings, ())
                cosines = reader.cosines(encoder.encode([text], "passage")[0])
                assert cosines is not None
                assert cosines[position] > 0.9, text
                checked += 1
        assert checked >= 5


def test_vectors_of_an_encoder_that_was_changed_meanwhile_are_not_stored(root: Path) -> None:
    with Memory(root) as memory:
        memory.sync()
        engine = memory._engine
        assert engine.encoder is not None
        assert engine._matrix is not None
        with engine.index.write() as connection:
            connection.execute("DELETE FROM vectors")
            connection.execute("UPDATE blocks SET vector = NULL")
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('vectors_number', 7)")
        waiting = embedding.pending(engine.index)
        assert embedding.fill(engine.index, engine._matrix, engine.encoder) == waiting > 0
        assert embedding.rows(engine.index) == 0


def test_an_index_that_is_locked_is_busy_and_not_thrown_away(root: Path) -> None:
    with Memory(root, encoder="none") as memory:
        memory.sync()
        index = memory._engine.index
        index.connection.execute("PRAGMA journal_mode = DELETE")  # as on a file system where WAL cannot be had: writers shut readers out
        index.connection.execute("PRAGMA busy_timeout = 10")
        with closing(sqlite3.connect(index.database(), isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(Busy):
                memory.search("deploy")
        assert index.generation == 1
        assert memory.search("deploy").results


def test_what_was_known_of_a_deleted_index_is_forgotten_although_the_new_one_counts_as_many_changes(root: Path) -> None:
    with Memory(root, encoder="none") as memory:
        memory.search("deploy")
        old = memory._engine.index.changes()
        assert "MEMORY.md#deploy" in memory._engine.sections().ids
        shutil.rmtree(root / ".memory-tools")
        (root / "MEMORY.md").write_text("# Memory\n\n## Rollout\n\n- another script\n")
        memory.search("rollout")
        assert memory._engine.index.changes() == old
        assert "MEMORY.md#deploy" not in memory._engine.sections().ids
        assert memory.feedback("MEMORY.md#rollout").recorded[0].counted


def test_a_rebuild_without_an_index_keeps_the_ids_that_the_scores_know(root: Path) -> None:
    with Memory(root, encoder="none") as memory:
        memory.search("deploy")
        (root / "MEMORY.md").write_text((root / "MEMORY.md").read_text().replace("## Deploy", "## Rollout"))
        memory.feedback("MEMORY.md#rollout")
        known = memory._engine.sections().ids["MEMORY.md#rollout"]
    shutil.rmtree(root / ".memory-tools")
    with Memory(root, encoder="none") as memory:
        memory.rebuild()
        assert memory._engine.sections().ids["MEMORY.md#rollout"] == known


def test_a_search_that_asks_about_another_day_is_known_to_feedback(root: Path) -> None:
    with Memory(root, encoder="none") as memory:
        report = memory.search("deploy blue script", now=datetime(2020, 1, 1, tzinfo=UTC))
        done = memory.feedback([1], recall=report.recall)
        assert done.warnings == ()
        assert done.recorded[0].counted


def test_muted_sections_give_their_places_to_the_next_ones(root: Path) -> None:
    note = root / "memory" / "2026-03-01.md"
    note.write_text("".join(f"## Server {n}\n\n- server heron{n} stands in room {n}\n\n" for n in range(12)))
    with Memory(root, encoder="none") as memory:
        first = memory.search("which server stands in which room", max_results=5, min_score=0.01, policy="relevance").results
        memory.feedback([r.address for r in first[:2]])
        scores = root / "memory" / "utility-scores.json"
        scores.write_text(scores.read_text().replace('"use_count"', '"muted": true, "use_count"'))
        again = memory.search("which server stands in which room", max_results=5, min_score=0.01, policy="relevance").results
        assert len(again) == len(first) == 5
        assert not {r.address for r in first[:2]} & {r.address for r in again}
