"""recalls.jsonl: what was shown, remembered by many processes at once, trimmed under their hands, half written, or not writable at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shelf import NOW

from memory_tools import recall_log, receipts, seam
from memory_tools.errors import MemoryToolsError
from memory_tools.recall_log import Part, Shown
from memory_tools.receipts import Receipts

ONE = Shown("id1", "MEMORY.md#主动汇报约定", "MEMORY.md#L3-L7")
TWO = Shown("id2", "memory/2026-03-05.md#api", "memory/2026-03-05.md#L9-L9")


@pytest.fixture
def log(tmp_path: Path) -> Receipts:
    return Receipts(tmp_path / ".memory-tools" / "recalls.jsonl")


def test_what_a_search_showed_is_found_by_id_and_as_last(log: Receipts) -> None:
    first = log.append(NOW, "API 超时怎么处理", [ONE, TWO])
    second = log.append(NOW, "x", [TWO])
    assert first != second
    assert len(first) == 5
    found = log.load().find(first, NOW)
    assert found is not None
    assert (found.query, found.shown) == ("API 超时怎么处理", (ONE, TWO))
    last = log.load().find("last", NOW)
    assert last is not None
    assert last.id == second
    assert log.load().find("r0000", NOW) is None


def test_a_recall_is_forgotten_after_seven_days(log: Receipts) -> None:
    id = log.append(NOW, "q", [ONE])
    assert log.load().find(id, NOW + timedelta(days=6, hours=23)) is not None
    assert log.load().find(id, NOW + timedelta(days=7, hours=1)) is None
    assert log.load().find("last", NOW + timedelta(days=7, hours=1)) is None


def test_a_search_imports_nothing_that_locks(tmp_path: Path) -> None:
    code = f"""
import sys
from datetime import UTC, datetime
from pathlib import Path
from memory_tools.recall_log import Shown
from memory_tools.receipts import Receipts
Receipts(Path({str(tmp_path / "r.jsonl")!r})).append(datetime.now(UTC), "q", [Shown("a", "b", "c")])
print([m for m in ("filelock", "numpy", "sqlite3") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_half_written_last_line_costs_itself_alone(log: Receipts) -> None:
    first = log.append(NOW, "one", [ONE])
    with log.path.open("ab") as file:
        file.write(b'{"recall":"rhalf","time":"2026-06-01T12:00')
    second = log.append(NOW, "two", [TWO])
    known = log.load()
    assert list(known.recalls) == [first, second]
    assert known.broken == 1


def test_a_missing_file_is_an_empty_one(log: Receipts) -> None:
    assert log.load().recalls == {}
    assert log.load().pending() == []


def test_deleting_the_folder_under_a_running_process_does_no_harm(log: Receipts) -> None:
    log.append(NOW, "one", [ONE])
    log.path.unlink()
    log.path.parent.rmdir()
    id = log.append(NOW, "two", [ONE])
    assert list(log.load().recalls) == [id]


@pytest.mark.parametrize("code", [13, 28, 30])
def test_a_folder_that_cannot_be_written_is_told_with_its_cause(log: Receipts, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: str, target: str) -> None:
        raise OSError(code, os.strerror(code), target)

    monkeypatch.setattr(seam, "on_step", refuse)
    with pytest.raises(MemoryToolsError, match=os.strerror(code)):
        log.append(NOW, "q", [ONE])


def test_a_long_query_is_cut_and_half_a_surrogate_pair_is_no_crash(log: Receipts) -> None:
    log.append(NOW, "x" * 10_000 + "\ud83d", [ONE])
    log.append(NOW, "\ud83d", [ONE])
    assert [len(r.query) for r in log.load().recalls.values()] == [300, 1]


# --- which recall explains a use or an outcome ---------------------------------------


def test_a_use_belongs_to_the_newest_recall_of_the_last_hour_that_showed_it(log: Receipts) -> None:
    log.append(NOW - timedelta(hours=2), "old", [ONE])
    newer = log.append(NOW - timedelta(minutes=30), "newer", [ONE])
    log.append(NOW, "other", [TWO])
    found = log.load().to_use("id1", NOW)
    assert found is not None
    assert found.id == newer
    assert log.load().to_use("id1", NOW + timedelta(hours=1)) is None
    assert log.load().to_use("id3", NOW) is None


def test_an_outcome_belongs_to_the_recall_for_which_the_memory_was_read(log: Receipts) -> None:
    read = log.append(NOW - timedelta(hours=5), "read", [ONE])
    log.end(log.begin(NOW, "", [Part("id1", read, "use")]), True)
    shown = log.append(NOW, "shown", [ONE])
    found = log.load().to_judge("id1", NOW)
    assert found is not None
    assert found.id == read
    log.end(log.begin(NOW, "", [Part("id1", read, "success")]), True)
    found = log.load().to_judge("id1", NOW)
    assert found is not None
    assert found.id == shown


def test_what_was_tried_and_not_ended_is_pending_and_what_was_void_counted_nothing(log: Receipts) -> None:
    open_one = log.begin(NOW, "e1", [Part("id1", "r1", "success")])
    void = log.begin(NOW, "e2", [Part("id2", "r1", "success")])
    log.end(void, False)
    known = log.load()
    assert [t.token for t in known.pending()] == [open_one]
    assert known.states == {}
    assert known.events == {}
    log.end(open_one, True)
    assert log.load().states == {("r1", "id1"): "success"}
    assert log.load().events == {"e1": open_one}


# --- trimming ---------------------------------------------------------------------------


def test_trimming_keeps_the_last_thousand_recalls_and_seven_days(log: Receipts) -> None:
    old = log.append(NOW - timedelta(days=8), "old", [ONE])
    event = log.begin(NOW, "e1", [Part("id1", "r1", "success")])
    log.end(event, True)
    waiting = log.begin(NOW, "e2", [Part("id1", "r2", "use")])
    stale = log.begin(NOW - timedelta(days=8), "e3", [])
    ids = [log.append(NOW, f"query {n}", [TWO]) for n in range(1005)]
    assert log.trim(NOW)
    known = log.load()
    assert list(known.recalls) == ids[-1000:]
    assert old not in known.recalls
    assert known.events == {"e1": event}
    assert [t.token for t in known.pending()] == [waiting]
    assert stale not in known.tries
    assert log.trim(NOW)
    assert log.load().recalls == known.recalls


def test_no_recall_gets_the_id_of_one_that_was_trimmed_away_and_whose_outcome_is_still_known(
    log: Receipts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome of the new one would count as given already."""
    old = log.append(NOW, "old", [ONE])
    log.end(log.begin(NOW, "", [Part("id1", old, "success")]), True)
    for n in range(recall_log.KEEP_RECALLS):
        log.append(NOW, f"query {n}", [TWO])
    assert log.trim(NOW)
    assert log.load().states == {(old, "id1"): "success"}
    drawn = iter([old[1:], "2222"])
    monkeypatch.setattr(receipts, "_random", lambda letters: next(drawn))
    assert log.append(NOW, "new", [ONE]) == "r2222"


def test_the_file_stays_bounded_by_itself(log: Receipts) -> None:
    shown = [Shown(f"id{n}", f"memory/2026-03-{n:02}.md#section-{n}", f"memory/2026-03-{n:02}.md#L1-L9") for n in range(1, 11)]
    for n in range(2600):
        log.append(NOW + timedelta(minutes=n), "q" * 200, shown)
    assert log.path.stat().st_size < 3_000_000
    assert 1000 <= len(log.load().recalls) < 2600


def test_a_recall_that_comes_while_the_file_is_trimmed_is_kept(log: Receipts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Appends need no lock: whoever trims looks after what was appended to the file that was replaced."""
    log.append(NOW, "before", [ONE])
    made: list[str] = []

    def meanwhile(kind: str, target: str) -> None:
        if kind == "replace" and not made:
            monkeypatch.setattr(seam, "on_step", None)
            made.append(Receipts(log.path).append(NOW, "meanwhile", [TWO]))

    monkeypatch.setattr(seam, "on_step", meanwhile)
    assert log.trim(NOW)
    assert made
    assert [r.query for r in log.load().recalls.values()] == ["before", "meanwhile"]


def test_a_line_written_into_a_file_that_was_just_replaced_is_written_again(log: Receipts, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append(NOW, "before", [ONE])

    def meanwhile(kind: str, target: str) -> None:
        if kind == "write" and target == str(log.path):
            monkeypatch.setattr(seam, "on_step", None)
            log.path.replace(log.path.with_name("away"))
            log.path.write_bytes(b"")

    monkeypatch.setattr(seam, "on_step", meanwhile)
    id = log.append(NOW, "late", [TWO])
    assert list(log.load().recalls) == [id]


def test_trimming_is_left_to_who_holds_the_lock(log: Receipts) -> None:
    from memory_tools import durable

    log.append(NOW, "q", [ONE])
    with durable.lock(log.path):
        assert log.trim(NOW) is False


APPENDER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from test_receipts import NOW, ONE, Receipts
log = Receipts(Path(sys.argv[2]))
for n in range(60):
    print(log.append(NOW, "q", [ONE]), flush=True)
    if n % 7 == 0:
        log.trim(NOW)
"""


def test_processes_that_append_and_trim_at_once_lose_no_recall(log: Receipts) -> None:
    command = [sys.executable, "-c", APPENDER, str(Path(__file__).parent), str(log.path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    ids = [id for one in running for id in one.communicate()[0].split()]
    assert len(ids) == 240
    assert set(log.load().recalls) == set(ids)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.binary(max_size=30) | st.sampled_from([b'{"recall":1}', b'{"try":"t","parts":[[1]]}', b"[]", b'"x"', b'{"done":"t"}'])))
def test_any_file_is_read(lines: list[bytes]) -> None:
    recall_log.parse(b"\n".join(lines))


def test_a_deeply_nested_line_is_a_broken_line() -> None:
    assert recall_log.parse(b"[" * 100_000).broken == 1
    assert recall_log.parse(json.dumps({"recall": "r", "time": "never", "query": "", "shown": []}).encode()).broken == 1


STEPS = ("search", "another searches", "outcome", "trimmed", "rewritten", "cut", "half a line", "replaced", "deleted", "read")


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.sampled_from(STEPS), min_size=2, max_size=14))
def test_what_was_read_in_parts_is_what_a_new_process_reads(steps: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    kept = Receipts(tmp_path_factory.mktemp("w") / "recalls.jsonl")
    ids: list[str] = []
    for number, step in enumerate(steps):
        whole = kept.path.read_bytes() if kept.path.exists() else b""
        if step in ("search", "another searches"):
            ids.append((kept if step == "search" else Receipts(kept.path)).append(NOW, f"question {number}", [ONE, TWO]))
        elif step == "outcome":
            Receipts(kept.path).end(kept.begin(NOW, f"event {number}", [Part("id1", ids[-1] if ids else "", "success")]), True)
        elif step == "trimmed":
            Receipts(kept.path).trim(NOW)
        elif step == "rewritten":  # in place, by hand
            kept.path.write_bytes(whole.replace(b"question", b"a longer question"))
        elif step == "cut":
            kept.path.write_bytes(whole[: len(whole) * 2 // 3])
        elif step == "half a line":
            with kept.path.open("ab") as file:
                file.write(b'{"recall":"r')
        elif step == "replaced":
            kept.path.with_name("incoming").write_bytes(whole[len(whole) // 2 :])
            kept.path.with_name("incoming").replace(kept.path)
        elif step == "deleted":
            kept.path.unlink(missing_ok=True)
        if step == "read" or number == len(steps) - 1:
            assert kept.load() == Receipts(kept.path).load()
