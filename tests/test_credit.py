"""Reads and outcomes find their memory, count once, and survive retries, edits, kills and folders that cannot be written."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from shelf import NOW, Shelf

from memory_tools import seam
from memory_tools.credit import Credit
from memory_tools.errors import Busy, Damaged, InvalidInput, MemoryToolsError, NotFound
from memory_tools.recall_log import Shown
from memory_tools.reports import FeedbackReport

DEPLOY, BACKUP, API = "MEMORY.md#deploy", "MEMORY.md#备份", "MEMORY.md#api"
NOTE = (
    "# 记忆\n\n## Deploy\n\n- restart the script after the disk was full\n\n## 备份\n\n- 每天凌晨三点备份测试数据库,保留三十天。\n\n"
    "## API\n\n- a timeout is tried again three times\n"
)


class Desk:
    """A workspace's scores and receipts, with the calls as Memory makes them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.shelf = Shelf(MEMORY=NOTE)
        self.credit = Credit(root / "memory" / "utility-scores.json", root / ".memory-tools" / "recalls.jsonl")
        self.now = NOW

    def search(self, *addresses: str) -> str:
        shown = [Shown(self.shelf.id(a), a, f"{a.partition('#')[0]}#L1-L2") for a in addresses]
        return self.credit.shown(self.now, "q", shown)

    def read(self, address: str, recall: str | None = None) -> tuple[str, ...]:
        return self.credit.use([self.shelf.id(address)], recall, self.now, self.shelf.sections())

    def feedback(
        self,
        *addresses: str,
        outcome: bool | None = True,
        recall: str | None = None,
        event: str | None = None,
        positive: bool = False,
        weight: float = 1.0,
    ) -> FeedbackReport:
        ids = [self.shelf.id(a) for a in addresses]
        return self.credit.feedback(ids, outcome, positive, weight, recall, event, self.now, self.shelf.sections())

    def counts(self, address: str) -> tuple[float, float, float | None]:
        path = self.root / "memory" / "utility-scores.json"
        entry = json.loads(path.read_text(encoding="utf-8")).get(address, {}) if path.exists() else {}
        return entry.get("use_count", 0), entry.get("success_count", 0), entry.get("fail_count", 0)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# --- showing, reading, judging ----------------------------------------------------


def test_showing_counts_nothing(desk: Desk) -> None:
    """case 26: what is popular is not reinforced by being found; only outcomes count."""
    for _ in range(20):
        desk.search(DEPLOY, BACKUP)
    assert not (desk.root / "memory").exists()


def test_counts_go_into_the_sidecar_and_nowhere_else(desk: Desk) -> None:
    """case 25: nothing is written into a note."""
    (desk.root / "MEMORY.md").write_text(NOTE, encoding="utf-8")
    desk.search(DEPLOY)
    desk.read(DEPLOY)
    desk.feedback(DEPLOY)
    assert (desk.root / "MEMORY.md").read_text(encoding="utf-8") == NOTE
    assert sorted(p.name for p in desk.root.rglob("*") if p.is_file() and not p.name.endswith(".lock")) == [
        "MEMORY.md",
        "recalls.jsonl",
        "utility-scores.json",
    ]


def test_reading_what_was_shown_is_a_use_with_unknown_outcome_once(desk: Desk) -> None:
    recall = desk.search(DEPLOY)
    assert desk.read(DEPLOY) == ()
    assert desk.counts(DEPLOY) == (1, 0, 0)
    desk.read(DEPLOY)
    desk.read(DEPLOY, recall)
    assert desk.counts(DEPLOY) == (1, 0, 0)


def test_reading_without_a_search_or_long_after_it_counts_nothing(desk: Desk) -> None:
    desk.read(DEPLOY)
    recall = desk.search(BACKUP)
    desk.read(DEPLOY, recall)
    desk.now += timedelta(hours=2)
    desk.read(BACKUP)
    assert desk.counts(DEPLOY) == desk.counts(BACKUP) == (0, 0, 0)
    desk.read(BACKUP, recall)  # named, it may be late
    assert desk.counts(BACKUP) == (1, 0, 0)


def test_feedback_resolves_the_use_that_reading_counted(desk: Desk) -> None:
    desk.search(DEPLOY, BACKUP)
    desk.read(DEPLOY)
    desk.now += timedelta(hours=3)
    (row,) = desk.feedback(DEPLOY).recorded
    assert (row.address, row.outcome, row.use_count, row.success_count, row.fail_count, row.counted) == (DEPLOY, "success", 1, 1, 0, True)
    assert desk.counts(DEPLOY) == (1, 1, 0)
    assert desk.counts(BACKUP) == (0, 0, 0), "what was merely shown gets nothing"


def test_the_same_recall_and_memory_again_changes_nothing(desk: Desk) -> None:
    """case 24: a retry is harmless."""
    recall = desk.search(DEPLOY)
    assert desk.feedback(DEPLOY, recall=recall).recorded[0].counted
    for outcome in (True, False, None):
        assert not desk.feedback(DEPLOY, outcome=outcome, recall=recall).recorded[0].counted
    assert desk.counts(DEPLOY) == (1, 1, 0)


def test_the_same_event_again_changes_nothing(desk: Desk) -> None:
    """case 24: a retry is harmless."""
    assert [r.counted for r in desk.feedback(DEPLOY, BACKUP, event="run-7").recorded] == [True, True]
    assert [r.counted for r in desk.feedback(DEPLOY, BACKUP, event="run-7").recorded] == [False, False]
    desk.feedback(DEPLOY, event="run-8", outcome=False)
    assert desk.counts(DEPLOY) == (2, 1, 1)
    assert desk.counts(BACKUP) == (1, 1, 0)


def test_without_a_name_every_feedback_counts(desk: Desk) -> None:
    desk.search(DEPLOY)
    for _ in range(3):
        desk.feedback(DEPLOY)
    assert desk.counts(DEPLOY) == (3, 3, 0)


def test_an_unknown_outcome_is_a_use_and_no_failure(desk: Desk) -> None:
    desk.feedback(DEPLOY, outcome=None)
    assert desk.counts(DEPLOY) == (1, 0, 0)
    desk.search(DEPLOY)
    desk.feedback(DEPLOY, outcome=None)
    desk.feedback(DEPLOY, outcome=False)  # what came of it, later
    assert desk.counts(DEPLOY) == (2, 0, 1)


def test_a_memory_named_twice_counts_once(desk: Desk) -> None:
    assert len(desk.feedback(DEPLOY, DEPLOY).recorded) == 1
    assert desk.counts(DEPLOY) == (1, 1, 0)


def test_a_weight_makes_counts_fractional_and_nothing_else_does(desk: Desk) -> None:
    desk.feedback(DEPLOY)
    assert isinstance(desk.counts(DEPLOY)[0], int)
    desk.feedback(DEPLOY, weight=0.5, outcome=False)
    desk.feedback(DEPLOY, weight=0.5)
    assert desk.counts(DEPLOY) == (2, 1.5, 0.5)
    for weight in (0.0, 1.5, float("nan")):
        with pytest.raises(InvalidInput, match="weight"):
            desk.feedback(DEPLOY, weight=weight)


def test_a_file_without_failures_gets_them_from_the_uses_first(desk: Desk) -> None:
    path = desk.root / "memory" / "utility-scores.json"
    path.parent.mkdir()
    path.write_text(json.dumps({BACKUP: {"use_count": 5, "success_count": 4, "last_used": "2026-03-05T11:00:00Z", "utility": 0.85}}))
    desk.feedback(BACKUP, outcome=None)
    assert desk.counts(BACKUP) == (6, 4, 1)


def test_a_thumb_is_a_persons_word_and_needs_no_new_outcome(desk: Desk) -> None:
    recall = desk.search(DEPLOY)
    low = desk.feedback(DEPLOY, recall=recall).recorded[0]
    high = desk.feedback(DEPLOY, recall=recall, positive=True).recorded[0]
    assert (high.counted, high.use_count) == (False, 1)
    assert high.utility == pytest.approx(min(low.utility + 0.1, 1.0))


def test_outcomes_are_kept_as_a_trend(desk: Desk) -> None:
    for outcome in (True, None, False, True):
        desk.feedback(DEPLOY, outcome=outcome)
    assert json.loads((desk.root / "memory" / "utility-scores.json").read_text())[DEPLOY]["recent"] == "+-+"


# --- names ------------------------------------------------------------------------


def test_positions_count_from_one_and_last_is_the_newest(desk: Desk) -> None:
    desk.search(BACKUP)
    desk.search(DEPLOY, BACKUP)
    recall = desk.credit.recall("last", desk.now)
    assert desk.credit.at(recall, 2) == desk.shelf.id(BACKUP)
    for position in (0, 3):
        with pytest.raises(InvalidInput, match="2 results"):
            desk.credit.at(recall, position)


def test_an_unknown_recall_is_told(desk: Desk) -> None:
    with pytest.raises(NotFound, match="no search"):
        desk.credit.recall("last", desk.now)
    with pytest.raises(NotFound, match="r9999"):
        desk.credit.recall("r9999", desk.now)


def test_an_outcome_for_a_recall_that_is_forgotten_counts_once_all_the_same(desk: Desk) -> None:
    report = desk.feedback(DEPLOY, recall="r9999")
    assert report.recorded[0].counted
    assert "r9999" in report.warnings[0]
    assert not desk.feedback(DEPLOY, recall="r9999").recorded[0].counted
    assert desk.counts(DEPLOY) == (1, 1, 0)


def test_an_old_address_in_a_receipt_finds_its_memory_after_an_edit(desk: Desk) -> None:
    recall = desk.search(DEPLOY)
    id = desk.shelf.id(DEPLOY)
    desk.shelf.write(
        {"MEMORY.md": NOTE.replace("## Deploy", "## Deploy\n\n- a twin above\n\n## Deploy").replace("disk was full", "disk is full")}
    )
    assert desk.shelf.id("MEMORY.md#deploy-1") == id
    found = desk.credit.at(desk.credit.recall(recall, desk.now), 1)
    desk.credit.feedback([found], True, False, 1.0, recall, None, desk.now, desk.shelf.sections())
    assert desk.counts("MEMORY.md#deploy-1") == (1, 1, 0)


def test_an_outcome_of_a_memory_that_is_gone_goes_to_its_history_or_is_told(desk: Desk) -> None:
    desk.feedback(DEPLOY)
    ids = [desk.shelf.id(DEPLOY), desk.shelf.id(API)]
    desk.shelf.write({"MEMORY.md": "## 备份\n\n- 每天凌晨三点备份测试数据库,保留三十天。\n"})
    report = desk.credit.feedback(ids, False, False, 1.0, None, None, desk.now, desk.shelf.sections())
    assert len(report.warnings) == 1
    assert ids[1] in report.warnings[0]
    made = json.loads((desk.root / "memory" / "utility-scores.json").read_text(encoding="utf-8"))
    assert made["~orphans"][DEPLOY]["fail_count"] == 1


def test_orphans_and_problems_are_listed_by_check(desk: Desk) -> None:
    desk.feedback(DEPLOY)
    desk.shelf.write({"MEMORY.md": "## 备份\n\n- 每天凌晨三点备份测试数据库,保留三十天。\n"})
    desk.feedback(BACKUP)
    (found,) = desk.credit.findings()
    assert (found.level, found.code, found.path) == ("note", "orphan", "MEMORY.md")
    assert "1 uses, 1 helped" in found.message
    (desk.root / "memory" / "utility-scores.json").write_text("{")
    (found,) = desk.credit.findings()
    assert (found.level, found.code, found.line) == ("error", "scores_damaged", 1)


def test_tool_memories_have_statistics_of_their_own_and_no_entry(desk: Desk) -> None:
    desk.shelf.write({"memory/tools/web.md": "## Web\n\n- give short queries\n", "TOOLS.md": "## API\n\n- a second source\n"})
    report = desk.feedback("memory/tools/web.md#web", "TOOLS.md#api")
    assert [r.address for r in report.recorded] == ["TOOLS.md#api"]
    assert "memory/tools/web.md#web" in report.warnings[0]
    desk.search("memory/tools/web.md#web")
    desk.read("memory/tools/web.md#web")
    assert desk.counts("memory/tools/web.md#web") == (0, 0, 0)


# --- when things are broken ---------------------------------------------------------


def test_a_broken_sidecar_stops_feedback_but_not_reading(desk: Desk) -> None:
    desk.search(DEPLOY)
    path = desk.root / "memory" / "utility-scores.json"
    path.parent.mkdir()
    path.write_text('{"a": 1,}')
    assert "utility-scores.json:1:" in desk.read(DEPLOY)[0]
    with pytest.raises(Damaged, match=r"utility-scores\.json:1:"):
        desk.feedback(DEPLOY)
    assert path.read_text() == '{"a": 1,}'


def test_without_receipts_outcomes_still_count_and_it_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(kind: str, target: str) -> None:
        if "recalls.jsonl" in target or target.endswith(".memory-tools"):
            raise OSError(30, "Read-only file system", target)

    monkeypatch.setattr(seam, "on_step", read_only)
    report = desk.feedback(DEPLOY)
    assert desk.counts(DEPLOY) == (1, 1, 0)
    assert "Read-only file system" in report.warnings[0]


def test_a_feedback_whose_end_could_not_be_written_twice_is_ended_later_and_counts_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index's disk was full for a while: this process took the credit for ended, the next one for void, and it counted again."""
    room = iter([True, False, False, False])  # begun, not ended; not ended by the next one either, which is not begun

    def full(kind: str, target: str) -> None:
        if kind == "write" and target.endswith("recalls.jsonl") and not next(room, True):
            raise OSError(28, "No space left on device", target)

    desk.search(DEPLOY)
    monkeypatch.setattr(seam, "on_step", full)
    assert desk.feedback(DEPLOY, event="first").warnings == ()
    assert "No space left" in desk.feedback(API, event="second").warnings[0]
    desk.feedback(DEPLOY, event="third")
    desk.credit = Credit(desk.credit.sidecar.path, desk.credit.receipts.path)
    desk.feedback(DEPLOY, event="first")
    assert desk.counts(DEPLOY) == (2, 2, 0)


def test_deleting_the_receipts_costs_pending_credit_and_nothing_else(desk: Desk) -> None:
    desk.search(DEPLOY)
    desk.read(DEPLOY)
    (desk.root / ".memory-tools" / "recalls.jsonl").unlink()
    desk.feedback(DEPLOY)
    assert desk.counts(DEPLOY) == (2, 1, 0)


def test_a_clock_that_jumps_back_makes_no_memory_older(desk: Desk) -> None:
    desk.feedback(DEPLOY)
    desk.now -= timedelta(days=30)
    desk.feedback(DEPLOY)
    entry = json.loads((desk.root / "memory" / "utility-scores.json").read_text())[DEPLOY]
    assert entry["last_used"] == "2026-06-01T12:00:00Z"


# --- exactly once -------------------------------------------------------------------


class Killed(BaseException):
    pass


def steps_of_a_feedback(desk: Desk) -> int:
    seen = []
    seam.on_step = lambda kind, target: seen.append(kind)
    try:
        desk.feedback(DEPLOY, BACKUP, event="counted")
    finally:
        seam.on_step = None
    return len(seen)


@pytest.mark.parametrize("named", ["event", "recall"])
def test_a_feedback_killed_at_any_step_and_retried_counts_once(tmp_path: Path, named: str) -> None:
    total = steps_of_a_feedback(Desk(tmp_path / "dry"))
    assert total > 8
    for number in range(total):
        desk = Desk(tmp_path / f"{named}{number}")
        recall = desk.search(DEPLOY, BACKUP)
        name = {"event": "e1"} if named == "event" else {"recall": recall}
        left = [number]

        def step(kind: str, target: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Killed

        seam.on_step = step
        try:
            desk.feedback(DEPLOY, BACKUP, **name)  # type: ignore[arg-type]
        except Killed:
            pass
        finally:
            seam.on_step = None
        again = Desk(desk.root)
        again.feedback(API, outcome=False)  # another one comes between
        again.feedback(DEPLOY, BACKUP, **name)  # type: ignore[arg-type]
        assert (again.counts(DEPLOY), again.counts(BACKUP), again.counts(API)) == ((1, 1, 0), (1, 1, 0), (1, 0, 1)), f"step {number}"


def test_a_feedback_that_failed_at_any_step_and_is_retried_counts_once(tmp_path: Path) -> None:
    total = steps_of_a_feedback(Desk(tmp_path / "dry"))
    for number in range(total):
        desk = Desk(tmp_path / str(number))
        left = [number]

        def step(kind: str, target: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == -1:
                raise OSError(28, "No space left on device", target)

        seam.on_step = step
        try:
            desk.feedback(DEPLOY, BACKUP, event="e1")
            failed = False
        except (Busy, MemoryToolsError):
            failed = True
        finally:
            seam.on_step = None
        before = desk.counts(DEPLOY)
        report = desk.feedback(DEPLOY, BACKUP, event="e1")
        if desk.counts(DEPLOY) == (2, 2, 0):
            # Counted without a receipt, which was told then: that is the one case a retry cannot know.
            assert not failed
            assert before == (1, 1, 0)
            continue
        assert desk.counts(DEPLOY) == desk.counts(BACKUP) == (1, 1, 0), f"step {number}"
        assert report.recorded[0].counted is (before == (0, 0, 0))


def test_an_undone_sidecar_lets_a_retry_count_again(desk: Desk) -> None:
    """A kill came before the receipt was ended, then a person restored yesterday's file: nothing of it is there any more."""
    path = desk.root / "memory" / "utility-scores.json"
    path.parent.mkdir()
    path.write_text("{}")
    seam.on_step = lambda kind, target: (_ for _ in ()).throw(Killed()) if kind == "write" and desk.counts(DEPLOY)[0] else None
    try:
        with pytest.raises(Killed):
            desk.feedback(DEPLOY, event="e1")
    finally:
        seam.on_step = None
    assert desk.counts(DEPLOY) == (1, 1, 0)
    path.write_text("{}")
    assert desk.feedback(DEPLOY, event="e1").recorded[0].counted
    assert desk.counts(DEPLOY) == (1, 1, 0)


WORKER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from test_credit import Desk, DEPLOY, BACKUP
desk = Desk(Path(sys.argv[2]))
for n in range(int(sys.argv[4])):
    event = f"{sys.argv[3]}-{n}"
    desk.feedback(DEPLOY, event=event)
    print(event, flush=True)
    time.sleep(0.01)  # who takes a lock again at once may starve the others, whose turn comes by polling
"""


def worker(root: Path, name: str, times: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, str(Path(__file__).parent), str(root), name, str(times)]
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=path)


def test_eight_processes_with_25_feedbacks_each_count_200(desk: Desk) -> None:
    running = [worker(desk.root, f"p{n}", 25) for n in range(8)]
    said = [line for one in running for line in one.communicate()[0].split()]
    assert len(set(said)) == 200
    assert desk.counts(DEPLOY) == (200, 200, 0)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("rounds", [2, pytest.param(30, marks=pytest.mark.slow)])
def test_killed_workers_that_retry_lose_and_double_nothing(desk: Desk, rounds: int) -> None:
    dice = random.Random(5)
    wanted: set[str] = set()
    for round in range(rounds):
        running = [worker(desk.root, f"r{round}w{n}", 1000) for n in range(2)]
        for one in running:
            assert one.stdout is not None
            for _ in range(dice.randint(1, 6)):
                wanted.add(one.stdout.readline().strip())
        for one in running:
            one.send_signal(signal.SIGKILL)
        for n, one in enumerate(running):
            wanted |= {line for line in one.communicate()[0].split("\n")[:-1] if line}
            # The one that was under way when the kill came is tried again, as its caller would.
            following = f"r{round}w{n}-{sum(e.startswith(f'r{round}w{n}-') for e in wanted)}"
            desk.feedback(DEPLOY, event=following)
            wanted.add(following)
    assert desk.counts(DEPLOY) == (len(wanted), len(wanted), 0)
