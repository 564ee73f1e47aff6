"""A workspace is made without touching what is there, and a memory is appended exactly once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memory_tools import note_entry, seam, sections, workspace
from memory_tools.errors import Busy, Forbidden, InvalidInput, NotFound, TooLarge
from memory_tools.reports import Remembered

SHANGHAI = timezone(timedelta(hours=8))
NOW = datetime(2026, 3, 5, 14, 32, tzinfo=SHANGHAI)
NOTE = "memory/2026-03-05.md"


def remember(
    root: Path, text: str, heading: str | None = None, event_id: str | None = None, *, minutes: float = 0, now: datetime = NOW
) -> Remembered:
    return workspace.remember(root, text, heading, event_id, now + timedelta(minutes=minutes))


def lines(root: Path, one: Remembered) -> str:
    every = sections.split_lines((root / one.path).read_bytes().decode("utf-8-sig"))
    return "".join(every[one.start_line - 1 : one.end_line])


# --- init ----------------------------------------------------------------------


def test_init_makes_what_is_missing_and_says_so(tmp_path: Path) -> None:
    root = tmp_path / "new" / "place"
    done = workspace.init(root)
    assert set(done.created) == {"MEMORY.md", "memory/", ".gitignore"}
    assert (root / "memory").is_dir()
    assert ".memory-tools/" in (root / ".gitignore").read_text()


def test_init_never_overwrites(tmp_path: Path) -> None:
    (tmp_path / "memory.md").write_text("mine")
    (tmp_path / ".gitignore").write_text("secret\n.memory-tools\n")
    done = workspace.init(tmp_path)
    assert (tmp_path / "memory.md").read_text() == "mine"
    assert not (tmp_path / "MEMORY.md").exists() or (tmp_path / "MEMORY.md").samefile(tmp_path / "memory.md")
    assert (tmp_path / ".gitignore").read_text() == "secret\n.memory-tools\n"
    assert done.created == ("memory/",)
    assert done.hints == (".gitignore: add .*.lock", ".gitignore: add memory/.remembered.jsonl")
    assert workspace.init(tmp_path).created == ()


def test_init_where_a_file_is_in_the_way_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInput, match="is a file"):
        workspace.init(tmp_path / "file")
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "memory").write_text("x")
    with pytest.raises(InvalidInput, match="is a file"):
        workspace.init(tmp_path / "ws")


# --- remember: what is written ---------------------------------------------------


def test_a_memory_is_appended_under_the_time_with_its_exact_place(tmp_path: Path) -> None:
    one = remember(tmp_path, "Anna prefers short mails.\n\n- and no calls")
    assert one == Remembered(NOTE, f"{NOTE}#1432", 1, 5, True)
    assert lines(tmp_path, one) == "## 14:32\n\nAnna prefers short mails.\n\n- and no calls\n"
    two = remember(tmp_path, "second", "会议 Notes", minutes=1)
    assert two == Remembered(NOTE, f"{NOTE}#会议-notes", 7, 9, True)
    assert (tmp_path / NOTE).read_bytes().endswith(b"second\n")


def test_the_date_is_the_users_and_not_utc(tmp_path: Path) -> None:
    """case 24: a daily note dated in UTC."""
    night = datetime(2026, 3, 5, 23, 30, tzinfo=UTC)
    assert remember(tmp_path, "late", now=night.astimezone(SHANGHAI)).path == "memory/2026-03-06.md"
    assert remember(tmp_path, "late", now=night.astimezone(timezone(timedelta(hours=-5)))).stored is False


def test_a_daily_note_is_never_overwritten(tmp_path: Path) -> None:
    """case 24: a daily note overwritten."""
    (tmp_path / "memory").mkdir()
    (tmp_path / NOTE).write_bytes(b"\xef\xbb\xbf# Mine\r\n\r\nkept as it is")
    one = remember(tmp_path, "new\nlines")
    content = (tmp_path / NOTE).read_bytes()
    assert content == b"\xef\xbb\xbf# Mine\r\n\r\nkept as it is\r\n\r\n## 14:32\r\n\r\nnew\r\nlines\r\n"
    assert (one.start_line, one.end_line, one.address) == (5, 8, f"{NOTE}#1432")


def test_a_text_with_headings_is_kept_as_it_is(tmp_path: Path) -> None:
    one = remember(tmp_path, "# Big\n\nbody\n\n### Small\n\nmore")
    assert lines(tmp_path, one) == "## 14:32\n\n# Big\n\nbody\n\n### Small\n\nmore\n"
    assert one.address == f"{NOTE}#1432"


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1)",
        "~~~~\n```\nx",
        "<!-- open",
        "<pre>\nx",
        "- item\n\n  ```\n  in a list",
        "<script>\n\nlet a",
        "> ```\n> quoted",
    ],
)
def test_what_a_text_leaves_open_does_not_swallow_the_next_entry(tmp_path: Path, text: str) -> None:
    remember(tmp_path, text)
    assert text in (tmp_path / NOTE).read_text()
    second = remember(tmp_path, "after", "Second", minutes=1)
    assert second.address == f"{NOTE}#second"


def test_a_fence_that_the_note_has_left_open_is_closed_before_the_entry(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / NOTE).write_text("# Log\n\n```sh\nmake")
    one = remember(tmp_path, "seen", "Entry")
    assert one.address == f"{NOTE}#entry"
    assert (tmp_path / NOTE).read_text() == "# Log\n\n```sh\nmake\n```\n\n## Entry\n\nseen\n"


@pytest.mark.parametrize(
    ("heading", "line"), [("## Plan", "## Plan"), ("#1 issue", "## #1 issue"), ("C #", "## C \\#"), ("  ", "## 14:32")]
)
def test_a_heading_comes_out_as_it_was_meant(tmp_path: Path, heading: str, line: str) -> None:
    remember(tmp_path, "x", heading)
    assert (tmp_path / NOTE).read_text().split("\n")[0] == line


_PIECES = [*"ab`~#->*<!| \t\r\n中\f\x85\u2028", "```", "<!--", "- ", "1. ", "\n\n", "---"]
_TEXTS = st.lists(st.sampled_from(_PIECES), min_size=1, max_size=30).map("".join)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(note=st.one_of(st.just(""), _TEXTS), body=_TEXTS.filter(lambda text: text.strip() != ""))
@example(note="a", body="b")
@example(note="", body="```")
@example(note="", body="## Title")
@example(note="## Title\n\nx", body="x")
@example(note="- a\n\n  ```", body="  ~~~")
def test_any_text_behind_any_note_has_its_own_section_and_exact_lines(note: str, body: str) -> None:
    body = note_entry.body_of(body)
    added = note_entry.compose("n.md", note, "Title", body)
    joined = note + ("" if not note or note.endswith(("\n", "\r")) else "\n") + added
    place = note_entry.locate("n.md", joined, body, note)
    assert place is not None
    every = sections.split_lines(joined)
    own = "".join(every[place.start_line - 1 : place.end_line]).replace("\r\n", "\n").replace("\r", "\n")
    assert own == f"## Title\n\n{body}\n"
    assert place.address.startswith("n.md#title")


# --- remember: exactly once ------------------------------------------------------


def test_the_same_text_within_ten_minutes_is_stored_once(tmp_path: Path) -> None:
    """case 24: duplicated on retry."""
    first = remember(tmp_path, "same", "A")
    again = remember(tmp_path, "same\r\n", "B", minutes=9.9)
    assert (again.address, again.start_line, again.end_line, again.stored) == (first.address, first.start_line, first.end_line, False)
    assert remember(tmp_path, "same", minutes=10.1).stored is True
    assert (tmp_path / NOTE).read_text().count("same") == 2


def test_the_same_event_is_stored_once_however_late(tmp_path: Path) -> None:
    first = remember(tmp_path, "one", event_id="e1")
    again = remember(tmp_path, "one", event_id="e1", minutes=60 * 24 * 3)
    assert (again.path, again.start_line, again.stored) == (first.path, first.start_line, False)
    other = remember(tmp_path, "another text", event_id="e1", minutes=30)
    assert (other.start_line, other.end_line, other.stored) == (first.start_line, first.end_line, False)
    assert remember(tmp_path, "one", event_id="e2", minutes=5).stored is False
    assert remember(tmp_path, "one", event_id="e2", minutes=60).stored is False
    assert remember(tmp_path, "one", event_id="e3", minutes=60).stored is True


def test_the_place_of_a_repeated_text_is_where_it_stands_now(tmp_path: Path) -> None:
    remember(tmp_path, "same", "A")
    note = tmp_path / NOTE
    note.write_text("# Put above\n\nby hand\n\n" + note.read_text())
    again = remember(tmp_path, "same", minutes=1)
    assert (again.start_line, again.end_line, again.stored) == (5, 7, False)


def test_what_a_person_deleted_is_stored_again(tmp_path: Path) -> None:
    remember(tmp_path, "same", event_id="e")
    (tmp_path / NOTE).unlink()
    assert remember(tmp_path, "same", event_id="e").stored is True
    assert "same" in (tmp_path / NOTE).read_text()


def test_many_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    threads = [threading.Thread(target=remember, args=(tmp_path, f"text {n}", f"H{n}")) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    parsed = sections.parse(NOTE, (tmp_path / NOTE).read_text())
    assert sorted(s.heading for s in parsed.sections if s.level) == sorted(f"H{n}" for n in range(12))


def test_a_journal_from_a_stranger_is_no_way_out_and_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    row = '{"time": "2026-03-05T14:32:00+08:00", "event": "e", "hash": "h", "path": "../../etc/x.md", "size": -1}\n'
    (tmp_path / "memory" / workspace.JOURNAL).write_text(row + "[]\nnot json\n" + row.replace("+08:00", "") + '{"time": 3}\n')
    assert remember(tmp_path, "x", event_id="e").stored is True


# --- remember: crashes and refusals ------------------------------------------------


def test_a_failure_at_any_step_stores_nothing_or_everything_and_a_retry_makes_it_once(tmp_path: Path) -> None:
    """Fails the n-th effect for rising n; after a retry with the same event the text stands exactly once."""
    for n in range(1, 100):
        root = tmp_path / str(n)
        (root / "memory").mkdir(parents=True)
        (root / NOTE).write_text("before\n")
        left = n

        def fail(kind: str, target: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise OSError(28, "No space left on device", target)

        seam.on_step = fail
        try:
            remember(root, "the text", event_id="e")
            done = True
        except (Busy, OSError):
            done = False
        finally:
            seam.on_step = None
        if done and left > 0:
            assert n > 3
            return
        remember(root, "the text", event_id="e", minutes=30)
        assert (root / NOTE).read_text().count("the text") == 1
        assert (root / NOTE).read_text().startswith("before\n")
    raise AssertionError("the steps never ended")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX only")
def test_a_killed_writer_and_its_retry_store_the_text_once(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\nfrom datetime import datetime, UTC\nfrom pathlib import Path\n"
        "from memory_tools import seam, workspace\nleft = int(sys.argv[2])\n"
        "def kill(kind, target):\n    global left\n    left -= 1\n    if left == 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "seam.on_step = kill\n"
        "workspace.remember(Path(sys.argv[1]), 'the text', None, 'e', datetime(2026, 3, 5, 14, 32, tzinfo=UTC))\n"
    )
    for step in (4, 6, 8, 9, 10):
        root = tmp_path / str(step)
        root.mkdir()
        subprocess.run([sys.executable, "-c", code, str(root), str(step)], check=False, timeout=60)
        remember(root, "the text", event_id="e", now=datetime(2026, 3, 5, 14, 50, tzinfo=UTC))
        assert (root / NOTE).read_text().count("the text") == 1


@pytest.mark.parametrize("text", ["", "  \n\t\n", "a\0b", "half \ud83d pair"])
def test_text_that_cannot_be_stored_is_refused(tmp_path: Path, text: str) -> None:
    """case 23: stored or an error."""
    with pytest.raises(InvalidInput):
        remember(tmp_path, text)
    assert not (tmp_path / "memory").exists() or not list((tmp_path / "memory").glob("*.md"))


def test_other_wrong_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TooLarge):
        remember(tmp_path, "x" * (note_entry.MAX_TEXT_CHARS + 1))
    with pytest.raises(InvalidInput, match="one line"):
        remember(tmp_path, "x", "two\nlines")
    with pytest.raises(InvalidInput, match="event id"):
        remember(tmp_path, "x", event_id="e\0")
    with pytest.raises(NotFound, match="does not exist"):
        remember(tmp_path / "missing", "x")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="is a file"):
        remember(tmp_path / "file", "x")


def test_nothing_is_written_outside_or_into_what_is_no_note(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name, make in {
        "folder": lambda root: (root / "memory").symlink_to(outside),
        "note": lambda root: ((root / "memory").mkdir(), (root / NOTE).symlink_to(outside / "x.md")),
        "journal": lambda root: ((root / "memory").mkdir(), (root / "memory" / workspace.JOURNAL).symlink_to(outside / "j")),
        "file": lambda root: (root / "memory").write_text("x"),
        "fifo": lambda root: ((root / "memory").mkdir(), os.mkfifo(root / NOTE)),
        "utf16": lambda root: ((root / "memory").mkdir(), (root / NOTE).write_text("x", encoding="utf-16")),
    }.items():
        root = tmp_path / name
        root.mkdir()
        make(root)
        with pytest.raises(Forbidden):
            remember(root, "x")
    assert list(outside.iterdir()) == []
