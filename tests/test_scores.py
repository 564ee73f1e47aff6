"""utility-scores.json on real disks: written by hand, by many processes, broken, cloned, and attached to what the notes are now."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shelf import NOW, Shelf

from memory_tools import entries, scores, seam
from memory_tools.errors import Busy, Damaged
from memory_tools.scores import Book, Sidecar, update

DEPLOY = "- The deploy script needs to be restarted after the disk was full, because it keeps a lock file."
BACKUP = "- 备份服务器每天凌晨三点把测试数据库复制到北边的办公室,保留三十天。"
NOTE = f"# 记忆\n\n## Deploy\n\n{DEPLOY}\n\n## 备份\n\n{BACKUP}\n"
SEED = {"MEMORY.md#备份": {"use_count": 5, "success_count": 4, "last_used": "2026-03-05T11:00:00Z", "utility": 0.85}}


@pytest.fixture
def sidecar(tmp_path: Path) -> Sidecar:
    (tmp_path / "memory").mkdir()
    return Sidecar(tmp_path / "memory" / "utility-scores.json")


@pytest.fixture
def shelf() -> Shelf:
    return Shelf(MEMORY=NOTE)


def by_hand(sidecar: Sidecar, value: object) -> bytes:
    content = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
    sidecar.path.write_bytes(content)
    return content


def on_disk(sidecar: Sidecar) -> dict[str, dict[str, object]]:
    loaded: dict[str, dict[str, object]] = json.loads(sidecar.path.read_text(encoding="utf-8"))
    return loaded


def one_more(id: str) -> Callable[[Book], None]:
    def change(book: Book) -> None:
        entry = book.entries.get(id, entries.Entry())
        book.entries[id] = replace(entry, use_count=entry.use_count + 1)

    return change


# --- the file as a person writes it -----------------------------------------------


def test_the_documented_shape_loads_and_attaches_by_its_address(sidecar: Sidecar, shelf: Shelf) -> None:
    by_hand(sidecar, SEED)
    usage = sidecar.usages(shelf.sections())[shelf.id("MEMORY.md#备份")]
    assert (usage.use_count, usage.success_count, usage.fail_count) == (5, 4, None)
    assert usage.last_used == datetime.fromisoformat("2026-03-05T11:00:00Z")
    assert sidecar.load().problems == ()


def test_there_is_no_file_until_there_is_something_to_keep(sidecar: Sidecar, shelf: Shelf) -> None:
    assert sidecar.usages(shelf.sections()) == {}
    assert not scores.recalculate(sidecar, shelf.sections(), NOW).written
    assert not sidecar.path.exists()
    update(sidecar, shelf.sections(), one_more(shelf.id("MEMORY.md#deploy")), NOW)
    assert on_disk(sidecar)["MEMORY.md#deploy"]["use_count"] == 1


def test_a_rewrite_reads_well_and_is_the_same_the_second_time(sidecar: Sidecar, shelf: Shelf) -> None:
    by_hand(sidecar, SEED)
    assert scores.recalculate(sidecar, shelf.sections(), NOW).written
    text = sidecar.path.read_text(encoding="utf-8")
    assert text.startswith('{\n  "MEMORY.md#备份": {\n    "body": "')
    assert text == json.dumps(json.loads(text), ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    assert not scores.recalculate(sidecar, shelf.sections(), NOW).written


def test_unknown_fields_and_keys_survive_a_rewrite(sidecar: Sidecar, shelf: Shelf) -> None:
    extra = {"note": "别删", "nested": {"b": [1, {"a": None}]}, "use_count": 2}
    by_hand(sidecar, {"MEMORY.md#deploy": extra, "$schema": "x", "_mine": {"a": 1}, "~mine": [1], "plain": 7})
    update(sidecar, shelf.sections(), one_more(shelf.id("MEMORY.md#deploy")), NOW)
    made = on_disk(sidecar)
    assert {k: made[k] for k in ("$schema", "_mine", "~mine", "plain")} == {"$schema": "x", "_mine": {"a": 1}, "~mine": [1], "plain": 7}
    assert made["MEMORY.md#deploy"]["note"] == "别删"
    assert made["MEMORY.md#deploy"]["nested"] == extra["nested"]
    assert made["MEMORY.md#deploy"]["use_count"] == 3


def test_more_successes_than_uses_are_clamped_and_told_and_left_as_they_are(sidecar: Sidecar, shelf: Shelf) -> None:
    by_hand(sidecar, b'{\n  "MEMORY.md#deploy": {"use_count": 3, "success_count": 9}\n}')
    (problem,) = sidecar.load().problems
    assert (problem.level, problem.line) == ("warning", 2)
    assert "9 successes of 3 uses" in problem.message
    scores.recalculate(sidecar, shelf.sections(), NOW)
    assert on_disk(sidecar)["MEMORY.md#deploy"]["success_count"] == 9


def test_values_of_the_wrong_kind_are_told_and_never_overwritten_by_a_guess(sidecar: Sidecar, shelf: Shelf) -> None:
    wrong = {"use_count": "many", "success_count": True, "last_used": "yesterday", "pinned": 1, "q": float("nan")}
    by_hand(sidecar, {"MEMORY.md#deploy": wrong})
    messages = [p.message for p in sidecar.load().problems]
    assert len(messages) == 5
    assert any('use_count is "many", which is not a number' in m for m in messages)
    scores.recalculate(sidecar, shelf.sections(), NOW)  # touches no count
    before = sidecar.path.read_bytes()
    with pytest.raises(Damaged, match=r"MEMORY\.md#deploy: use_count"):
        update(sidecar, shelf.sections(), one_more(shelf.id("MEMORY.md#deploy")), NOW)
    assert sidecar.path.read_bytes() == before


def test_a_time_without_a_zone_is_taken_as_utc(sidecar: Sidecar) -> None:
    by_hand(sidecar, {"MEMORY.md#deploy": {"use_count": 1, "last_used": "2026-03-05T11:00:00"}})
    assert sidecar.load().entries["MEMORY.md#deploy"].last_used == datetime.fromisoformat("2026-03-05T11:00:00Z")


def test_an_entry_whose_value_is_no_object_is_told_and_kept(sidecar: Sidecar, shelf: Shelf) -> None:
    by_hand(sidecar, {"MEMORY.md#deploy": 5, **SEED})
    assert "is not an entry" in sidecar.load().problems[0].message
    scores.recalculate(sidecar, shelf.sections(), NOW)
    assert on_disk(sidecar)["MEMORY.md#deploy"] == 5


# --- broken -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'{\n  "MEMORY.md#a": {"use_count": 1,}\n}', ":2:"),
        (b'{"a": 1}\n<<<<<<< HEAD\n', ":2:1: "),
        (b"", ":1:1: "),
        (b"[]", ":1:1: not a JSON object"),
        (b'{\n"a": "\xff"}', ":2:7: not UTF-8"),
        (b'{"a": ' + b"9" * 6000 + b"}", ":1:1: "),
        (b"[" * 100_000, ":1:1: "),
    ],
    ids=["comma", "conflict", "empty", "list", "not utf-8", "long number", "deep"],
)
def test_a_broken_file_is_reported_with_line_and_column_and_left_untouched(
    sidecar: Sidecar, shelf: Shelf, content: bytes, place: str
) -> None:
    by_hand(sidecar, content)
    (problem,) = sidecar.load().problems
    assert problem.level == "error"
    assert problem.message.startswith(f"{sidecar.path}{place}"), problem.message
    assert problem.line == int(place.strip(":").split(":")[0])
    assert sidecar.usages(shelf.sections()) == {}, "search goes on without it"
    with pytest.raises(Damaged) as e:
        update(sidecar, shelf.sections(), one_more(shelf.id("MEMORY.md#deploy")), NOW)
    assert "restore it" in e.value.hint
    assert sidecar.path.read_bytes() == content


def test_a_key_that_is_there_twice_is_told_and_not_silently_halved(sidecar: Sidecar, shelf: Shelf) -> None:
    content = by_hand(sidecar, b'{"MEMORY.md#deploy": {"use_count": 1}, "MEMORY.md#deploy": {"use_count": 2}}')
    assert "more than once" in sidecar.load().problems[0].message
    with pytest.raises(Damaged, match="more than once"):
        update(sidecar, shelf.sections(), one_more(shelf.id("MEMORY.md#deploy")), NOW)
    assert sidecar.path.read_bytes() == content


def test_a_byte_order_mark_and_half_a_surrogate_pair_come_through(sidecar: Sidecar, shelf: Shelf) -> None:
    by_hand(sidecar, b'\xef\xbb\xbf{"MEMORY.md#deploy": {"use_count": 1, "mood": "\\ud83d"}}')
    update(sidecar, shelf.sections(), one_more(shelf.id("MEMORY.md#deploy")), NOW)
    assert on_disk(sidecar)["MEMORY.md#deploy"]["mood"] == "\ud83d"


def test_a_file_that_may_not_be_read_is_told_with_the_true_cause(sidecar: Sidecar, shelf: Shelf) -> None:
    sidecar.path.mkdir()
    assert "directory" in sidecar.load().problems[0].message
    with pytest.raises(Exception, match="directory"):
        update(sidecar, shelf.sections(), one_more(shelf.id("MEMORY.md#deploy")), NOW)


# --- freshness --------------------------------------------------------------------


def test_an_edit_by_hand_is_seen_at_once(sidecar: Sidecar) -> None:
    by_hand(sidecar, SEED)
    assert len(sidecar.load().entries) == 1
    by_hand(sidecar, {**SEED, "MEMORY.md#deploy": {"use_count": 1}})
    assert len(sidecar.load().entries) == 2
    sidecar.path.unlink()
    assert len(sidecar.load().entries) == 0


def test_an_unchanged_file_is_not_read_again(sidecar: Sidecar) -> None:
    by_hand(sidecar, SEED)
    os.utime(sidecar.path, (1, 1))
    time.sleep(0.06)
    first = sidecar.load()
    assert sidecar.load() is first


# --- histories follow their memories ------------------------------------------------


def test_history_survives_a_rename_a_move_and_a_deleted_index(sidecar: Sidecar, shelf: Shelf) -> None:
    by_hand(sidecar, {**SEED, "MEMORY.md#deploy": {"use_count": 2, "success_count": 1}})
    scores.recalculate(sidecar, shelf.sections(), NOW)
    shelf.write({"MEMORY.md": f"# 记忆\n\n## Release\n\n{DEPLOY}\n", "knowledge/ops.md": f"## 备份\n\n{BACKUP} 新的一句。\n"})
    shelf.lose()
    usages = sidecar.usages(shelf.sections())
    assert usages[shelf.id("MEMORY.md#release")].use_count == 2
    assert usages[shelf.id("knowledge/ops.md#备份")].use_count == 5
    done = scores.recalculate(sidecar, shelf.sections(), NOW)
    assert (done.orphaned, done.written) == ((), True)
    made = on_disk(sidecar)
    assert list(made) == ["MEMORY.md#release", "knowledge/ops.md#备份"]
    assert made["MEMORY.md#release"]["id"] == shelf.id("MEMORY.md#release")


def test_merged_sections_add_their_counts(sidecar: Sidecar, shelf: Shelf) -> None:
    by_hand(sidecar, {**SEED, "MEMORY.md#deploy": {"use_count": 2, "success_count": 1, "last_used": "2026-04-01T00:00:00Z", "mine": 1}})
    scores.recalculate(sidecar, shelf.sections(), NOW)
    shelf.write({"MEMORY.md": f"# 记忆\n\n## 备份\n\n{BACKUP}\n{DEPLOY}\n"})
    scores.recalculate(sidecar, shelf.sections(), NOW)
    (entry,) = on_disk(sidecar).values()
    assert (entry["use_count"], entry["success_count"], entry["last_used"], entry["mine"]) == (7, 5, "2026-04-01T00:00:00Z", 1)


def test_an_entry_written_by_hand_beside_a_known_one_adds_to_it(sidecar: Sidecar, shelf: Shelf) -> None:
    by_hand(sidecar, {"MEMORY.md#deploy": {"use_count": 2, "success_count": 2}})
    scores.recalculate(sidecar, shelf.sections(), NOW)
    shelf.write({"MEMORY.md": NOTE.replace("## Deploy", "## Release")})
    by_hand(sidecar, {**on_disk(sidecar), "MEMORY.md#release": {"use_count": 1, "success_count": 1}})
    scores.recalculate(sidecar, shelf.sections(), NOW)
    (entry,) = on_disk(sidecar).values()
    assert (entry["use_count"], entry["success_count"]) == (3, 3)


def test_white_space_keeps_the_time_of_the_edit_and_another_body_has_a_new_one(sidecar: Sidecar, shelf: Shelf) -> None:
    by_hand(sidecar, {**SEED, "MEMORY.md#deploy": {"use_count": 1}})
    scores.recalculate(sidecar, shelf.sections(), NOW)
    assert {e["edited"] for e in on_disk(sidecar).values()} == {"2026-03-01T00:00:00Z"}
    shelf.write({"MEMORY.md": NOTE.replace("\n", "\r\n").replace("lock file", "lock file or two")})
    scores.recalculate(sidecar, shelf.sections(), NOW)
    made = on_disk(sidecar)
    assert made["MEMORY.md#备份"]["edited"] == "2026-03-01T00:00:00Z"
    assert made["MEMORY.md#deploy"]["edited"] == "2026-06-01T12:00:00Z"


# --- orphans ------------------------------------------------------------------------


def test_the_history_of_a_deleted_memory_waits_90_days_and_returns_with_its_text(sidecar: Sidecar, shelf: Shelf) -> None:
    """case: a git checkout of an older version"""
    by_hand(sidecar, {**SEED, "MEMORY.md#deploy": {"use_count": 2, "success_count": 1, "mine": "x"}})
    scores.recalculate(sidecar, shelf.sections(), NOW)
    shelf.write({"MEMORY.md": f"## 备份\n\n{BACKUP}\n"})
    assert scores.recalculate(sidecar, shelf.sections(), NOW).orphaned == ("MEMORY.md#deploy",)
    orphan = on_disk(sidecar)["~orphans"]["MEMORY.md#deploy"]
    assert isinstance(orphan, dict)
    assert orphan["orphaned"] == "2026-06-01T12:00:00Z"
    later = NOW + timedelta(days=89)
    assert scores.recalculate(sidecar, shelf.sections(), later).expired == ()
    shelf.write({"notes.md": None, "knowledge/old.md": f"## Old deploy\n\n{DEPLOY}\n"})
    assert scores.recalculate(sidecar, shelf.sections(), later).returned == ("MEMORY.md#deploy",)
    made = on_disk(sidecar)
    assert "~orphans" not in made
    assert (made["knowledge/old.md#old-deploy"]["use_count"], made["knowledge/old.md#old-deploy"]["mine"]) == (2, "x")
    assert "orphaned" not in made["knowledge/old.md#old-deploy"]


def test_an_orphan_of_more_than_90_days_goes_and_is_told(sidecar: Sidecar, shelf: Shelf) -> None:
    by_hand(sidecar, {"MEMORY.md#gone": {"use_count": 1}, **SEED})
    scores.recalculate(sidecar, shelf.sections(), NOW)
    assert scores.recalculate(sidecar, shelf.sections(), NOW + timedelta(days=91)).expired == ("MEMORY.md#gone",)
    assert list(on_disk(sidecar)) == ["MEMORY.md#备份"]


def test_a_sync_gives_a_new_index_the_ids_that_the_sidecar_knows(sidecar: Sidecar, shelf: Shelf) -> None:
    by_hand(sidecar, {**SEED, "MEMORY.md#deploy": {"use_count": 2}})
    scores.recalculate(sidecar, shelf.sections(), NOW)
    known = sidecar.load().scores
    shelf.write({"MEMORY.md": NOTE.replace("## 备份", "## 每天的备份")})
    unknown = [replace(t, id="") for t in shelf.traces]
    adopted = scores.adopt(known, unknown)
    assert {unknown[j].address: id for j, id in adopted.items()} == {a: shelf.id(a) for a in ("MEMORY.md#deploy", "MEMORY.md#每天的备份")}


def test_a_sync_gives_back_the_id_of_an_orphan_whose_text_returns(sidecar: Sidecar, shelf: Shelf) -> None:
    by_hand(sidecar, {"MEMORY.md#deploy": {"use_count": 2}})
    scores.recalculate(sidecar, shelf.sections(), NOW)
    id = shelf.id("MEMORY.md#deploy")
    shelf.write({"MEMORY.md": f"## 备份\n\n{BACKUP}\n"})
    scores.recalculate(sidecar, shelf.sections(), NOW)
    back = [*shelf.traces, *(replace(t, id="") for t in Shelf(other=f"## Deploy\n\n{DEPLOY}\n").traces)]
    assert scores.adopt(sidecar.load().scores, back) == {1: id}


def test_when_no_section_is_there_nothing_is_lost(sidecar: Sidecar, shelf: Shelf) -> None:
    by_hand(sidecar, SEED)
    scores.recalculate(sidecar, shelf.sections(), NOW)
    before = sidecar.path.read_bytes()
    scores.recalculate(sidecar, Shelf().sections(), NOW)
    assert list(on_disk(sidecar)) == ["~orphans"]
    scores.recalculate(sidecar, shelf.sections(), NOW)
    assert sidecar.path.read_bytes() == before


def test_while_files_wait_to_be_read_no_section_is_taken_to_be_gone(sidecar: Sidecar, shelf: Shelf) -> None:
    by_hand(sidecar, {**SEED, "MEMORY.md#deploy": {"use_count": 2}})
    scores.recalculate(sidecar, shelf.sections(), NOW)
    before = on_disk(sidecar)
    half = Shelf(other="## Else\n\ntext\n")
    update(sidecar, replace(half.sections(), complete=False), one_more(half.id("other.md#else")), NOW)
    made = on_disk(sidecar)
    assert made.pop("other.md#else")["use_count"] == 1
    assert made == before


# --- many writers -----------------------------------------------------------------


def test_what_a_person_saves_while_we_write_is_kept(sidecar: Sidecar, shelf: Shelf) -> None:
    by_hand(sidecar, SEED)
    calls = []

    def change(book: Book) -> None:
        one_more(shelf.id("MEMORY.md#deploy"))(book)
        if not calls:  # the editor asks for no lock
            by_hand(sidecar, {**SEED, "MEMORY.md#记忆": {"use_count": 9, "mine": "x"}})
        calls.append(1)

    update(sidecar, shelf.sections(), change, NOW)
    made = on_disk(sidecar)
    assert len(calls) == 2
    assert (made["MEMORY.md#deploy"]["use_count"], made["MEMORY.md#记忆"]["use_count"], made["MEMORY.md#备份"]["use_count"]) == (1, 9, 5)


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from test_scores import NOTE, Shelf, Sidecar, one_more, update, NOW
shelf = Shelf(MEMORY=NOTE)
sidecar = Sidecar(Path(sys.argv[2]))
for n in range(int(sys.argv[3])):
    update(sidecar, shelf.sections(), one_more(shelf.id("MEMORY.md#deploy")), NOW, timeout_s=60)
    print(n, flush=True)
"""


def writer(path: Path, times: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", WRITER, str(Path(__file__).parent), str(path), str(times)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)})


def test_four_processes_lose_no_count_of_each_other(sidecar: Sidecar) -> None:
    running = [writer(sidecar.path, 10) for _ in range(4)]
    said = sum(len(one.communicate()[0].split()) for one in running)
    assert said == 40
    assert on_disk(sidecar)["MEMORY.md#deploy"]["use_count"] == 40


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_killed_writer_leaves_a_whole_file_with_all_that_it_acknowledged(sidecar: Sidecar) -> None:
    acknowledged = 0
    for _ in range(2):
        one = writer(sidecar.path, 10_000)
        assert one.stdout is not None
        acknowledged += len([one.stdout.readline() for _ in range(5)])
        one.send_signal(signal.SIGKILL)
        acknowledged += len(one.communicate()[0].split(b"\n")) - 1
        counted = on_disk(sidecar)["MEMORY.md#deploy"]["use_count"]
        assert isinstance(counted, int)
        assert acknowledged <= counted <= acknowledged + 1
        acknowledged = counted


def test_a_write_that_fails_leaves_the_file_as_it_was(sidecar: Sidecar, shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    content = by_hand(sidecar, SEED)

    def full(kind: str, target: str) -> None:
        if kind == "write":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(seam, "on_step", full)
    with pytest.raises(Busy, match="No space left"):
        scores.recalculate(sidecar, shelf.sections(), NOW)
    assert sidecar.path.read_bytes() == content
    assert [p.name for p in sidecar.path.parent.iterdir() if p.suffix == ".tmp"] == []


# --- properties -------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
fields = st.dictionaries(st.sampled_from([*sorted(entries.KNOWN), "mine", ""]), json_values, max_size=6)
keys = st.sampled_from(["MEMORY.md#deploy", "MEMORY.md#备份", "MEMORY.md", "x#y", "~orphans", "_a"]) | st.text(max_size=6)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(keys, json_values | fields, max_size=5))
def test_any_json_object_is_read_and_written_back_as_it_was(whole: dict[str, object]) -> None:
    content = json.dumps(whole).encode()
    read = entries.parse(content, "x")
    again = json.loads(entries.formatted(read))
    assert json.dumps(again, sort_keys=True) == json.dumps({k: v for k, v in whole.items() if (k, v) != ("~orphans", {})}, sort_keys=True)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda t: t.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_read_or_reported(content: bytes) -> None:
    try:
        entries.parse(content, "scores.json")
    except Damaged as e:
        assert e.message.startswith("scores.json:")


def test_three_tenths_of_a_failure_beside_two_successes_are_no_impossible_count(sidecar: Sidecar) -> None:
    """`2 successes and 0.3 failures of 2.3 uses cannot be`, said by every search: 2.3 - 2 is less than 0.3 for a computer."""
    whole = {f"MEMORY.md#{n}-{w}": {"use_count": n + w, "success_count": n, "fail_count": w} for n in range(1, 30) for w in (0.1, 0.3, 0.7)}
    by_hand(sidecar, {address: {name: round(count, 9) for name, count in entry.items()} for address, entry in whole.items()})
    assert sidecar.load().problems == ()
    by_hand(sidecar, {"MEMORY.md#deploy": {"use_count": 2.3, "success_count": 2, "fail_count": 0.4}})
    assert "2 successes and 0.4 failures of 2.3 uses cannot be" in sidecar.load().problems[0].message
