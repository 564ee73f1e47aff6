"""Everything derived comes back by itself: each of its files deleted, cut, replaced by garbage or by an old version, open or closed."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import faulty
import pytest

from memory_tools import Memory, freshness, memory, seam, sync
from memory_tools.errors import Busy
from memory_tools.index import Index

NEWEST = "the spare key hangs behind the boiler"
WHERE = "memory/2026-03-05.md#1640"


def _deleted(path: Path, old: Path) -> None:
    path.unlink()


def _emptied(path: Path, old: Path) -> None:
    path.write_bytes(b"")


def _cut(path: Path, old: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def _garbage(path: Path, old: Path) -> None:
    path.write_bytes(bytes(n * 31 % 251 for n in range(max(64, path.stat().st_size))))


def _older(path: Path, old: Path) -> None:
    shutil.copy(old, path)


def _replaced(path: Path, old: Path) -> None:
    """As a synchronising program does it: another file of that name."""
    shutil.copy(old, path.with_name("incoming"))
    path.with_name("incoming").replace(path)


DAMAGES = (_deleted, _emptied, _cut, _garbage, _older, _replaced)
each_damage = pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__.strip("_"))


def prepared(root: Path, encoder: str) -> Path:
    """A workspace with an index, all its derived files; a folder with older versions of each comes out."""
    faulty.make(root)
    with faulty.opened(root, encoder) as memory:
        memory.sync()
        memory.search(faulty.ASKED)
        memory.tool_memories("web_search")
    old = root.parent / "old"
    shutil.copytree(root / ".memory-tools", old)
    note = root / "memory" / "2026-03-05.md"
    note.write_text(note.read_text(encoding="utf-8") + f"\n## 16:40\n\n- {NEWEST}\n", encoding="utf-8")
    with faulty.opened(root, encoder) as memory:
        memory.sync()
    return old


def derived(root: Path) -> list[str]:
    return sorted(p.name for p in (root / ".memory-tools").iterdir() if p.is_file() and not p.name.endswith(".lock"))


def whole(memory: Memory, root: Path) -> None:
    """It answers with the old and the newest, status asks itself, and check is clean or heals."""
    assert memory.search(faulty.ASKED)[0].address == faulty.ANSWER
    assert memory.search("where does the spare key hang")[0].address == WHERE
    status = memory.status()
    assert not [w for w in status.warnings if "does not find itself" in w]
    assert (status.files, status.sections) == (4, 9)
    memory.check(fix=True)
    report = memory.check()
    assert report.ok, report.findings
    assert memory.search("where does the spare key hang")[0].address == WHERE
    memory.feedback(faulty.DEPLOY, event_id="e1")
    memory.feedback(faulty.DEPLOY, event_id="e1")
    assert faulty.look(root).counts[faulty.DEPLOY] == (6, 5)


def copied(made: Path, root: Path) -> None:
    """A copy that passes for the original: an index whose database has another inode would not be opened at all."""
    shutil.copytree(made, root)
    folder = root / ".memory-tools"
    number = (folder / "current").read_text().split()[0]
    (folder / "current").write_text(f"{number} {(folder / f'index-{number}.db').stat().st_ino}\n")


@pytest.mark.parametrize("encoder", ["none", "default"])
@each_damage
def test_a_derived_file_damaged_between_two_processes_comes_back(
    tmp_path: Path, damage: Callable[[Path, Path], None], encoder: str
) -> None:
    old = prepared(tmp_path / "made", encoder)
    names = derived(tmp_path / "made")
    assert {"current", "index-1.db", "recalls.jsonl"} <= set(names)
    for name in names:
        root = tmp_path / "ws"
        faulty.copied(tmp_path / "made", root)
        if (old / name).exists():
            damage(root / ".memory-tools" / name, old / name)
        try:
            with faulty.opened(root, encoder) as memory:
                whole(memory, root)
        except BaseException as e:
            e.add_note(name)
            raise
        shutil.rmtree(root)


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be replaced there")
@pytest.mark.parametrize("encoder", ["none", "default"])
@pytest.mark.parametrize("damage", [_deleted, _garbage, _replaced], ids=["deleted", "garbage", "replaced"])
def test_a_derived_file_damaged_under_a_running_process_comes_back(
    tmp_path: Path, damage: Callable[[Path, Path], None], encoder: str
) -> None:
    old = prepared(tmp_path / "made", encoder)
    for name in derived(tmp_path / "made"):
        if not (old / name).exists():
            continue
        root = tmp_path / "ws"
        faulty.copied(tmp_path / "made", root)
        try:
            with faulty.opened(root, encoder) as memory:
                assert memory.search(faulty.ASKED)
                damage(root / ".memory-tools" / name, old / name)
                assert memory.search("where does the spare key hang")[0].address == WHERE
                memory.status()
                memory.check(fix=True)
                whole(memory, root)
        except BaseException as e:
            e.add_note(name)
            raise
        shutil.rmtree(root)


@pytest.mark.skipif(sys.platform == "win32", reason="an open folder cannot be removed there")
@pytest.mark.parametrize("encoder", ["none", "default"])
def test_the_whole_index_deleted_under_a_running_process_is_made_again(tmp_path: Path, encoder: str) -> None:
    prepared(tmp_path / "ws", encoder)
    with faulty.opened(tmp_path / "ws", encoder) as memory:
        for _ in range(3):
            assert memory.search(faulty.ASKED)
            shutil.rmtree(tmp_path / "ws" / ".memory-tools")
            assert memory.search("where does the spare key hang")[0].address == WHERE
        whole(memory, tmp_path / "ws")


@pytest.mark.parametrize("looked_at_first", [False, True])
def test_an_index_deleted_and_half_made_again_is_not_taken_for_the_whole_one_that_counted_as_many_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looked_at_first: bool
) -> None:
    """Found two of six notes from then on, and said of none that it was still to be read: a new index counts its writes from 1 again."""
    (tmp_path / "memory").mkdir()
    for n in range(6):
        (tmp_path / "memory" / f"{n}.md").write_text(f"# Note {n}\n\n- something about things\n")
    monkeypatch.setattr(freshness, "RACY_NS", 0)  # or each look at files made just now is a write
    with Memory(tmp_path, encoder="none") as opened:
        opened.search("things")
        opened.search("things")
        shutil.rmtree(tmp_path / ".memory-tools")
        monkeypatch.setattr(sync, "CHUNK_BYTES", 20)
        monkeypatch.setattr(memory, "SEARCH_READS_S", -1.0)
        if looked_at_first:
            opened.status()
        told = [opened.search("things").degraded for _ in range(6)]
        assert told == [(f"files_pending:{n}",) for n in (5, 4, 3, 2, 1)] + [()]
        assert opened.status().files == 6


def test_a_vectors_file_cut_off_under_a_running_process_does_not_end_it(tmp_path: Path) -> None:
    """A mapped file that shrinks ends a process that reads behind its end (SIGBUS)."""
    prepared(tmp_path / "ws", "default")
    code = (
        "import sys\nfrom pathlib import Path\nsys.path.insert(0, sys.argv[2])\nimport faulty\nroot = Path(sys.argv[1])\n"
        "with faulty.opened(root, 'default') as memory:\n"
        "    memory.search(faulty.ASKED)\n"
        "    for path in (root / '.memory-tools').glob('vectors-*.i8'):\n"
        "        path.open('r+b').truncate(0)\n"
        "    assert memory.search(faulty.ASKED)[0].address == faulty.ANSWER\n"
        "    memory.check(fix=True)\n"
        "    assert memory.check().ok\n"
    )
    here = Path(__file__).parent
    command = [sys.executable, "-c", code, str(tmp_path / "ws"), str(here)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=here.parent)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_a_vectors_file_cut_off_while_a_sync_encodes_does_not_end_the_rebuild_that_follows(tmp_path: Path) -> None:
    """Its mapped rows were carried into the new generation without a look at the file (SIGBUS)."""
    prepared(tmp_path / "ws", "default")
    code = (
        "import sys\nfrom pathlib import Path\nsys.path.insert(0, sys.argv[2])\nimport faulty\nfrom memory_tools.index import Index\n"
        "root = Path(sys.argv[1])\n"
        "def wasteful(index):\n"
        "    for path in (root / '.memory-tools').glob('vectors-*.i8'):\n"
        "        path.open('r+b').truncate(0)\n"
        "    return index.generation == 1\n"
        "with faulty.opened(root, 'default') as memory:\n"
        "    memory.search(faulty.ASKED)\n"
        "    Index.wasteful = wasteful\n"
        "    memory.sync()\n"
        "    assert memory._engine.index.generation == 2\n"
        "    assert memory.search(faulty.ASKED)[0].address == faulty.ANSWER\n"
        "    assert memory.check().ok\n"
    )
    here = Path(__file__).parent
    command = [sys.executable, "-c", code, str(tmp_path / "ws"), str(here)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=here.parent)
    assert done.returncode == 0, (done.returncode, done.stderr)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM postings",
        "DELETE FROM blocks WHERE id % 2",
        "DELETE FROM sections",
        "DELETE FROM files",
        "UPDATE sections SET text = 'x' || text",
        "UPDATE files SET hash = 'other', size = size + 1",
        "DELETE FROM meta",
        "DROP TABLE postings",
        "DROP TABLE meta",
        "UPDATE meta SET value = 'none' WHERE key = 'versions'",
    ],
)
def test_an_index_that_says_other_things_than_the_files_is_found_and_healed(tmp_path: Path, statement: str) -> None:
    prepared(tmp_path / "ws", "none")
    connection = sqlite3.connect(tmp_path / "ws" / ".memory-tools" / "index-1.db")
    connection.execute(statement)
    connection.commit()
    connection.close()
    with faulty.opened(tmp_path / "ws") as memory:
        memory.check(fix=True)
        whole(memory, tmp_path / "ws")


def test_status_asks_the_index_a_question_that_it_must_answer(tmp_path: Path) -> None:
    prepared(tmp_path / "ws", "none")
    with faulty.opened(tmp_path / "ws") as memory:
        assert not memory.status().warnings
        memory._engine.index.connection.execute("DELETE FROM postings")
        said = [w for w in memory.status().warnings if "does not find itself" in w]
        assert said
        assert "check --fix" in said[0]
        memory.check(fix=True)
        assert not memory.status().warnings


def test_what_no_version_of_ours_wrote_is_made_anew_and_told(tmp_path: Path) -> None:
    prepared(tmp_path / "ws", "none")
    (tmp_path / "ws" / ".memory-tools" / "index-1.db").write_bytes(b"SQLite format 3\0" + b"\7" * 4000)
    with faulty.opened(tmp_path / "ws") as memory:
        assert any("made anew" in w for w in memory.search(faulty.ASKED).warnings)
        assert isinstance(memory._engine.index, Index)
        whole(memory, tmp_path / "ws")


def test_receipts_that_are_garbage_cost_pending_credit_and_nothing_else(tmp_path: Path) -> None:
    prepared(tmp_path / "ws", "none")
    (tmp_path / "ws" / ".memory-tools" / "recalls.jsonl").write_bytes(b"\0\xff{]\n" * 100 + b'{"recall":')
    with faulty.opened(tmp_path / "ws") as memory:
        recall = memory.search("where is the deploy script").recall
        assert recall is not None
        memory.feedback(1, recall=recall)
        memory.feedback(1, recall=recall)
    assert faulty.look(tmp_path / "ws").counts[faulty.DEPLOY] == (6, 5)
    assert json.loads((tmp_path / "ws" / "memory" / "utility-scores.json").read_text(encoding="utf-8"))


def test_temporary_files_of_killed_writers_are_told_and_removed_when_they_are_old(tmp_path: Path) -> None:
    """Each kill between writing and renaming left one behind, for ever."""
    prepared(tmp_path / "ws", "none")
    folder = tmp_path / "ws" / "memory"
    old, young, other = (folder / f".{name}.tmp" for name in ("utility-scores.json.77.0a1b2c3d", "x.md.78.0a1b2c3d", "mine"))
    for path in (old, young, other):
        path.write_text("{}", encoding="utf-8")
    for path in (old, other):
        os.utime(path, (1, 1))
    with faulty.opened(tmp_path / "ws") as memory:
        assert [f.code for f in memory.check().findings if "tmp" in f.message] == ["leftover"]
        assert memory.check().ok
        memory.check(fix=True)
    assert [path.exists() for path in (old, young, other)] == [False, True, True]


def test_who_makes_an_index_beside_another_that_makes_it_is_not_told_that_it_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite refuses a switch to WAL at once while another connection makes the same one: 6 of 6,000 rounds of four openers failed."""
    refused = []

    def meets_another(kind: str, target: str) -> None:
        if target == "PRAGMA journal_mode = WAL" and len(refused) < 3:
            refused.append(target)
            raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(seam, "on_step", meets_another)
    index = Index(tmp_path / ".memory-tools")
    assert len(refused) == 3
    assert (index.in_memory, index.problem) == (False, None)
    index.close()


@pytest.mark.parametrize("refused", ["open", "sqlite"], ids=["its file cannot be made", "its file stays empty"])
def test_a_rebuild_whose_new_generation_could_only_be_held_in_memory_leaves_the_old_one_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    """Swapped in, the pointer would name an empty file, or none, and every search would read all notes again."""
    root = tmp_path / "ws"
    prepared(root, "none")
    folder, opened, hits = root / ".memory-tools", "", 0

    def full(kind: str, target: str) -> None:
        nonlocal opened, hits
        opened = target if kind == "open" else opened
        if kind == refused and opened.endswith("index-2.db"):
            hits += 1
            raise sqlite3.OperationalError("database or disk is full") if kind == "sqlite" else OSError(errno.ENOSPC, "No space left on device")

    before, pointer = faulty.look(root), (folder / "current").read_bytes()
    with faulty.opened(root) as memory:
        known = memory._engine.index.connection.execute("SELECT id, address, text FROM sections ORDER BY id").fetchall()
        monkeypatch.setattr(seam, "on_step", full)
        with pytest.raises(Busy, match="cannot be kept there"):
            memory.rebuild()
        monkeypatch.setattr(seam, "on_step", None)
        assert hits == 1
        index = memory._engine.index
        assert (index.generation, index.in_memory, memory.check().ok) == (1, False, True)
        assert index.connection.execute("SELECT id, address, text FROM sections ORDER BY id").fetchall() == known
        assert memory.search(faulty.ASKED).degraded == ()
    assert (folder / "current").read_bytes() == pointer
    assert faulty.look(root) == before
    with faulty.opened(root) as memory:  # a process that comes later
        assert memory._engine.index.generation == 1
        memory.rebuild()
        assert {p.name for p in folder.glob("index-*.db")} == {f"index-{memory._engine.index.generation}.db"}
        whole(memory, root)
