"""The index follows the files: whatever was done to them, a sync ends where a rebuild would; nothing is ever written to a note."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sqlite3
import time
import tracemalloc
import weakref
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_tools import Memory, freshness, identity, memory, sections, sync, tokens, traits
from memory_tools.index import Index
from memory_tools.rows import stored_traces


def _write(root: Path, path: str, text: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def _open(root: Path) -> Memory:
    return Memory(root, encoder="none")


def _found(memory: Memory, query: str) -> list[str]:
    return [r.citation for r in memory.search(query, min_score=0.3, policy="relevance", strict=True)]


def _contents(root: Path) -> list[tuple[object, ...]]:
    """Everything that a search depends on, whatever numbers the rows have."""
    folder = root / ".memory-tools"
    connection = sqlite3.connect(folder / f"index-{(folder / 'current').read_text().split()[0]}.db")
    rows = connection.execute(
        "SELECT f.path, f.hash, f.source, s.address, s.headings, s.text, s.body, b.kind, b.start_line, b.end_line, b.first,"
        " b.last, b.tokens, b.flags, b.hash FROM blocks b JOIN sections s ON s.key = b.section JOIN files f ON f.id = s.file"
        " ORDER BY f.path, s.ord, b.id"
    ).fetchall()
    connection.close()
    return rows


@pytest.fixture
def root(tmp_path: Path) -> Path:
    _write(
        tmp_path,
        "MEMORY.md",
        "# Memory\n\n## Deploy\n\n- the deploy script lives in ops/deploy.sh\n\n## 备份\n\n- 数据库每天凌晨三点备份\n",
    )
    _write(tmp_path, "memory/2026-03-05.md", "# 2026-03-05\n\n## 14:05\n\n- rotated the staging certificate\n")
    return tmp_path


def test_a_search_sees_an_edit_made_a_moment_before(root: Path) -> None:
    """case 13"""
    with _open(root) as memory:
        assert _found(memory, "certificate") == ["memory/2026-03-05.md#L5-L5"]
        for word in ("quux1", "quux2", "quux3"):  # the same size within the same tick of the clock
            _write(root, "memory/2026-03-06.md", f"- {word}\n")
            assert _found(memory, word) == ["memory/2026-03-06.md#L1-L1"]


def test_same_size_and_same_times_are_read_again_shortly_after(root: Path) -> None:
    """case 13: a clock that ticks coarsely must not hide an edit."""
    note = root / "memory/2026-03-06.md"
    with _open(root) as memory:
        note.write_text("- aaaa\n")
        stat = note.stat()
        assert _found(memory, "aaaa")
        with note.open("r+") as stream:  # the same inode
            stream.write("- bbbb\n")
        os.utime(note, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        assert _found(memory, "bbbb")
        assert not _found(memory, "aaaa")


def test_renamed_replaced_and_deleted_files_answer_no_more(root: Path) -> None:
    """case 14"""
    with _open(root) as memory:
        assert _found(memory, "certificate")
        (root / "memory/2026-03-05.md").rename(root / "memory/2026-03-07.md")
        assert _found(memory, "certificate") == ["memory/2026-03-07.md#L5-L5"]
        temporary = root / "memory/.2026-03-07.md.swp"  # how vim and others save
        temporary.write_text("# 2026-03-07\n\n- renewed the licence\n")
        temporary.replace(root / "memory/2026-03-07.md")
        assert not _found(memory, "certificate")
        assert _found(memory, "licence") == ["memory/2026-03-07.md#L3-L3"]
        shutil.rmtree(root / "memory")  # as a checkout of another branch does
        assert not _found(memory, "licence")
        _write(root, "memory/2026-03-05.md", "- rotated the staging certificate\n")
        assert _found(memory, "certificate") == ["memory/2026-03-05.md#L1-L1"]


def test_a_moved_section_keeps_its_row_and_the_index_is_not_thrown_away(root: Path) -> None:
    """Symptom: a renamed note broke a unique key, and the whole index was made anew without a word."""
    with _open(root) as memory:
        memory.sync()
        (root / "memory/2026-03-05.md").rename(root / "memory/2026-03-07.md")
        report = memory.sync()
        assert (report.changed, report.removed, report.warnings) == (("memory/2026-03-07.md",), ("memory/2026-03-05.md",), ())
        text = (root / "memory/2026-03-07.md").read_text(encoding="utf-8")
        _write(root, "memory/2026-03-07.md", "# Empty\n")  # its sections to another known file, in one pass
        _write(root, "MEMORY.md", (root / "MEMORY.md").read_text(encoding="utf-8") + "\n" + text)
        report = memory.sync()
        assert set(report.changed) == {"MEMORY.md", "memory/2026-03-07.md"}
        assert report.warnings == ()


def test_indexing_and_searching_write_to_no_note(root: Path) -> None:
    """case 20"""
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in root.rglob("*.md")}
    with _open(root) as memory:
        memory.sync()
        memory.search("certificate")
        memory.rebuild()
        memory.check(fix=True)
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in root.rglob("*.md")} == before
    assert sorted(p.name for p in root.iterdir()) == [".memory-tools", "MEMORY.md", "memory"]


def test_one_added_paragraph_encodes_only_itself(root: Path) -> None:
    """case 17"""

    def rows() -> int:
        folder = root / ".memory-tools"
        connection = sqlite3.connect(folder / f"index-{(folder / 'current').read_text().split()[0]}.db")
        count = int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])
        connection.close()
        return count

    with Memory(root) as memory:
        memory.sync()
        before = rows()
        text = (root / "MEMORY.md").read_text(encoding="utf-8")
        _write(root, "MEMORY.md", text.replace("## 备份", "- and one more line about releases\n\n## 备份"))
        report = memory.sync()
        assert report.vectors_pending == 0
        assert rows() == before + 1


def _mostly_deleted(memory: Memory) -> None:
    """As after some thousand edits: numbers were given to many more blocks than are alive."""
    with memory._engine.index.write() as connection:
        connection.execute("UPDATE meta SET value = 1000000 WHERE key = 'next_block'")


@pytest.mark.parametrize("searched", [False, True], ids=["by one that only writes", "by one that has searched"])
def test_an_index_that_is_mostly_of_deleted_text_is_made_anew_and_nothing_is_encoded_again(root: Path, searched: bool) -> None:
    """A watcher with vectors died of it, after some 4,600 edits: it had written the vectors and never read one."""
    question = "when is the database copied"
    with Memory(root) as memory:
        memory.sync()
        ahead = Memory(root).search(question)
        if searched:
            memory.search(question)
        _mostly_deleted(memory)
        text = (root / "MEMORY.md").read_text(encoding="utf-8")
        _write(root, "MEMORY.md", text + "\n## Cellar\n\n- one line about the cellar\n")
        encoder, encoded = memory._engine.encoder, 0
        assert encoder is not None
        encode = encoder.encode

        def counted(texts: list[str], kind: str) -> object:
            nonlocal encoded
            encoded += len(texts)
            return encode(texts, kind)  # type: ignore[arg-type]

        encoder.encode = counted  # type: ignore[assignment]
        report = memory.sync()
        index = memory._engine.index
        assert (index.generation, index.wasteful(), report.vectors_pending) == (2, False, 0)
        assert encoded == 2  # the new heading and its line
        assert [(r.address, r.relevance) for r in memory.search(question)] == [(r.address, r.relevance) for r in ahead]
        assert memory.check().ok
        _mostly_deleted(memory)
        memory.sync()
        assert (index.generation, memory.check().ok) == (3, True)


def test_an_index_made_anew_takes_no_vectors_of_an_encoder_that_was_changed_meanwhile(root: Path) -> None:
    with Memory(root) as memory:
        memory.sync()
        _mostly_deleted(memory)
        rebuild = memory._engine.rebuild

        def changed_meanwhile(*arguments: object, **options: bool) -> object:
            with Memory(root, encoder="none") as other, other._engine.index.write() as connection:
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('encoder', 'another (512)')")
                connection.execute("INSERT OR REPLACE INTO meta VALUES ('vectors_number', 7)")
            return rebuild(*arguments, **options)  # type: ignore[arg-type]

        memory._engine.rebuild = changed_meanwhile  # type: ignore[method-assign, assignment]
        memory.sync()
        index = memory._engine.index
        assert (index.generation, str(index.meta("encoder")).startswith("another")) == (2, False)
        assert memory.check().ok


def test_what_cannot_be_read_is_kept_and_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """cases 18 and 19"""
    import memory_tools.seam

    with _open(root) as memory:
        assert _found(memory, "certificate")
        note = root / "memory/2026-03-05.md"
        os.utime(note)  # it looks changed, so it must be read

        def deny(kind: str, target: str) -> None:
            if kind == "open" and target.endswith("2026-03-05.md"):
                raise PermissionError(13, "Permission denied", target)

        monkeypatch.setattr(memory_tools.seam, "on_step", deny)
        report = memory.search("certificate", min_score=0.0)
        assert [r.path for r in report.results][:1] == ["memory/2026-03-05.md"]
        assert any("2026-03-05.md" in w and "ermission" in w for w in report.warnings)
        monkeypatch.setattr(memory_tools.seam, "on_step", None)
        assert memory.check().ok


def test_a_note_that_is_not_utf8_is_read_with_replacement_and_told(root: Path) -> None:
    """case 18"""
    (root / "memory/2026-03-08.md").write_bytes("- caf\xe9 on the corner\n".encode("latin-1"))
    with _open(root) as memory:
        assert _found(memory, "corner") == ["memory/2026-03-08.md#L1-L1"]
        assert any(f.path == "memory/2026-03-08.md" and "UTF-8" in f.message for f in memory.check().findings)


def test_another_tokeniser_reads_every_file_again_and_keeps_the_ids(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _open(root) as memory:
        memory.sync()
        ids = {t.address: t.id for t in stored_traces(memory._engine.index.connection)}
        monkeypatch.setattr(freshness, "VERSIONS", "another one")
        report = memory.sync()
        assert sorted(report.changed) == ["MEMORY.md", "memory/2026-03-05.md"]
        assert {t.address: t.id for t in stored_traces(memory._engine.index.connection)} == ids


def test_the_versions_that_are_looked_at_are_those_of_the_modules() -> None:
    made = f"sections {sections.VERSION}, tokens {tokens.VERSION}, traits {traits.VERSION}, identity {identity.VERSION}"
    assert made == freshness.VERSIONS


def test_a_first_index_that_takes_long_answers_from_what_it_has_and_goes_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """case 15: an answer is bounded."""
    for i in range(30):
        _write(root, f"memory/old/note{i}.md", f"- marker{i} stays\n")
    monkeypatch.setattr(sync, "CHUNK_BYTES", 200)
    index = Index(None)
    with _open(root) as memory:
        scan = memory._engine.scan()
        first = sync.take_in(index, scan, deadline=time.monotonic() - 1)
        assert first.changed
        assert len(first.changed) + first.waiting == 32
        assert 0 < sync.take_in(index, scan, deadline=time.monotonic() - 1).waiting < first.waiting
        assert sync.take_in(index, scan).waiting == 0
        assert index.counts()["files"] == 32


def test_what_was_read_of_the_index_is_freed_by_the_next_edit_and_not_by_a_garbage_collection_some_day(root: Path) -> None:
    """A server with 80,000 blocks grew from 100 to 300 MB within 60 edits: nine old states of the index, 15 MB each."""
    gc.disable()
    try:
        with _open(root) as memory:
            memory.search("deploy script")
            old = weakref.ref(memory._engine.reader(False))
            assert old() is not None
            _write(root, "MEMORY.md", "# Memory\n\n- the deploy script was moved\n")
            memory.search("deploy script")
            assert old() is None
    finally:
        gc.enable()


def test_questions_for_words_that_no_note_holds_leave_little_behind(root: Path) -> None:
    """24 MB, and 6 were meant: an empty list of postings was taken for as small as ten postings."""
    with _open(root) as memory:
        reader = memory._engine.reader(False)
        tracemalloc.start()
        try:
            for n in range(60_000):
                reader.postings(f"word{n}")
            assert tracemalloc.get_traced_memory()[1] < 8_000_000
        finally:
            tracemalloc.stop()


def test_who_once_answered_from_a_part_of_the_notes_takes_one_that_is_gone_for_gone_after_another_has_read_the_rest(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server beside a watcher: the history stood under the address of the deleted note for as long as the server ran."""
    monkeypatch.setattr(freshness, "RACY_NS", 0)  # or each look at files made just now is a write
    _write(root, "memory/2026-03-06.md", "# Friday\n\n- Anna waters the plants in the corridor\n")
    with _open(root) as server, _open(root) as watcher:
        with monkeypatch.context() as hasty:
            hasty.setattr(sync, "CHUNK_BYTES", 10)
            hasty.setattr(memory, "SEARCH_READS_S", -1.0)
            assert server.search("plants").degraded == ("files_pending:2",)
        watcher.sync()
        server.feedback(["memory/2026-03-06.md#friday", "MEMORY.md#deploy"])
        (root / "memory/2026-03-06.md").unlink()
        watcher.sync()
        server.feedback(["MEMORY.md#deploy"])
    scores = json.loads((root / "memory" / "utility-scores.json").read_text(encoding="utf-8"))
    assert list(scores["~orphans"]) == ["memory/2026-03-06.md#friday"]


_NAMES = ["MEMORY.md", "memory/2026-03-01.md", "memory/2026-03-02.md", "knowledge/a.md"]
_PIECES = [
    "# Top\n",
    "## Deploy\n",
    "## 备份\n",
    "## Deploy\n",
    "- run the script\n",
    "- 三点备份\n",
    "plain words here\n",
    "\n",
    "```\n# code\n```\n",
]
_edits = st.lists(
    st.tuples(st.sampled_from(_NAMES), st.one_of(st.none(), st.lists(st.sampled_from(_PIECES), max_size=8))), min_size=1, max_size=6
)


@given(_edits)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_history_of_edits_synced_equals_a_rebuild(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, list[str] | None]]
) -> None:
    root = tmp_path_factory.mktemp("ws")
    with _open(root) as memory:
        for path, pieces in edits:
            if pieces is None:
                (root / path).unlink(missing_ok=True)
            else:
                _write(root, path, "".join(pieces))
            memory.sync()
        synced = _contents(root)
        found = [_found(memory, q) for q in ("deploy script", "备份", "words")]
        assert memory.check().ok
        memory.rebuild()
        assert _contents(root) == synced
        assert [_found(memory, q) for q in ("deploy script", "备份", "words")] == found


def test_a_search_answers_while_another_process_writes_the_index(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """case 22: many readers, one writer."""
    from memory_tools import index

    monkeypatch.setattr(index, "BUSY_TIMEOUT_S", 0.2)
    with _open(root) as memory:
        assert _found(memory, "certificate")
        database = next((root / ".memory-tools").glob("index-*.db"))
        writer = sqlite3.connect(database, isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        assert _found(memory, "certificate")
        _write(root, "memory/2026-03-09.md", "- a line that cannot be taken in yet: quuxinator\n")
        report = memory.search("certificate", min_score=0.3)
        assert [r.path for r in report] == ["memory/2026-03-05.md"]
        assert "index_busy" in report.degraded
        writer.execute("ROLLBACK")
        writer.close()
        assert _found(memory, "quuxinator") == ["memory/2026-03-09.md#L1-L1"]
