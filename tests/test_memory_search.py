"""Searching a real workspace: what is found, what is said about it, and what happens when something is missing."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory_tools import Memory, seam
from memory_tools.errors import InvalidInput, NotFound

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)

NOTES = {
    "MEMORY.md": (
        "# Memory\n\n## 主动汇报约定\n\n"
        "- 任务完成后主动汇报结果，不要等用户来问\n- 失败也要汇报，附上原因\n\n"
        "## Servers\n\n- the staging server is called heron and lives in Falkenstein\n"
        "- release 1.0.21 fixed error E-4711 in commit 9f8e7d6\n"
        "- call `fetch_user_profile` before `renderDashboard`\n\n## gen-itgc后 流程\n\n- 飞书里的审批插件已经迁移到新平台\n"
    ),
    "memory/2026-03-05.md": (
        "# 2026-03-05\n\n## 09:10\n\n- Straße repaired near the café, so the delivery is late\n\n"
        "## 16:40\n\n- moved the backup job to 03:00\n"
    ),
    "memory/2026-03-12.md": ("# 2026-03-12\n\n## 10:00\n\n- moved the backup job to 05:00 because 03:00 collided with the import\n"),
    "knowledge/timeouts.md": "# Timeouts\n\n- set the read timeout to twice the usual P99\n",
    "TOOLS.md": "# Tools\n\n- akshare needs a mirror when the network is slow\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in NOTES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return tmp_path


def _first(memory: Memory, query: str, **options: object) -> str:
    found = memory.search(query, now=NOW, **options).results
    return found[0].snippet if found else ""


@pytest.mark.parametrize("encoder", ["none", "default"])
@pytest.mark.parametrize(
    ("query", "held"),
    [
        ("汇报", "汇报"),
        ("飞书插件迁移", "飞书里的审批插件"),
        ("gen-itgc后", "飞书里的审批插件"),
        ("What is our staging server called?", "heron"),
        ("servers called heron", "heron"),
        ("1.0.21", "1.0.21"),
        ("E-4711", "E-4711"),
        ("9f8e7d6", "9f8e7d6"),
        ("fetch_user_profile", "fetch_user_profile"),
        ("renderDashboard", "renderDashboard"),
        ("strasse cafe", "Straße"),
        ("akshare 慢", "akshare"),
    ],
)
def test_every_script_and_every_identifier_is_found_first(root: Path, encoder: str, query: str, held: str) -> None:
    """cases 1, 2, 3, 4 and 6"""
    with Memory(root, encoder=encoder) as memory:
        assert held in _first(memory, query)


@pytest.mark.parametrize("encoder", ["none", "default"])
def test_a_quantity_is_no_code_that_everything_else_must_hold(tmp_path: Path, encoder: str) -> None:
    lines = "- uploads above 500 MB are rejected by the proxy\n\n## Laptop\n\n- the old laptop has 500MB of swap\n"
    (tmp_path / "MEMORY.md").write_text(f"# Memory\n\n## Uploads\n\n{lines}", encoding="utf-8")
    with Memory(tmp_path, encoder=encoder) as memory:
        assert "proxy" in _first(memory, "are uploads of 500MB rejected by the proxy?", min_score=0)


def test_the_snippet_is_exactly_those_lines_of_the_file(root: Path) -> None:
    """case 11"""
    with Memory(root, encoder="none") as memory:
        for query in ("汇报 失败 原因", "staging server", "backup job", "timeout"):
            for result in memory.search(query, min_score=0.0, now=NOW):
                lines = (root / result.path).read_text(encoding="utf-8").split("\n")
                assert result.snippet == "\n".join(lines[result.start_line - 1 : result.end_line])
                assert result.snippet in (root / result.path).read_text(encoding="utf-8")
                assert result.content == result.snippet
                assert result.citation == f"{result.path}#L{result.start_line}-L{result.end_line}"


@pytest.mark.parametrize("query", ["", "   ", "\n\t", [], ["", " "]])
def test_an_empty_query_is_an_error(root: Path, query: str | list[str]) -> None:
    """case 5"""
    with Memory(root, encoder="none") as memory, pytest.raises(InvalidInput, match="empty"):
        memory.search(query)


@pytest.mark.parametrize(
    ("query", "said"),
    [("\u00a0", "empty"), (["\u2003", "\x1c"], "empty"), ("?\u00a0?", "no word"), (["\u2003", "..."], "no word")],
    ids=ascii,
)
def test_white_space_of_other_kinds_asks_nothing_either(root: Path, query: str | list[str], said: str) -> None:
    """A no-break space was searched as an empty text."""
    with Memory(root, encoder="none") as memory:
        with pytest.raises(InvalidInput, match=said):
            memory.search(query)
        assert memory.search([*([query] if isinstance(query, str) else query), "汇报"]).query == "汇报"


@pytest.mark.parametrize("query", ["???", "？？！", " - ", ["...", "—"]])
def test_a_query_of_punctuation_alone_is_an_error_and_not_a_search_for_nothing(root: Path, query: str | list[str]) -> None:
    with Memory(root, encoder="none") as memory:
        with pytest.raises(InvalidInput, match="holds no word"):
            memory.search(query)
        assert memory.search([*([query] if isinstance(query, str) else query), "汇报"]).results


@pytest.mark.parametrize("query", ["a\0b", "half \ud83d pair", "x" * 30_000, ["a"] * 3 + [f"q{i}" for i in range(20)]])
def test_a_query_that_is_no_text_or_too_long_is_an_error(root: Path, query: str | list[str]) -> None:
    with Memory(root, encoder="none") as memory, pytest.raises(InvalidInput, match="query"):
        memory.search(query)


@pytest.mark.parametrize("encoder", ["none", "default"])
def test_nonsense_finds_nothing_and_says_so(root: Path, encoder: str) -> None:
    """case 5"""
    with Memory(root, encoder=encoder) as memory:
        memory.sync()
        for query in ("zxqv blorptang fnordwick", "qqqq wwww eeee"):
            report = memory.search(query, strict=True, now=NOW)
            assert report.results == ()
            assert any("No relevant memory found" in w for w in report.warnings)


def test_results_carry_calibrated_numbers_that_differ(root: Path) -> None:
    """case 5: not all 0 or 100 %."""
    with Memory(root) as memory:
        memory.sync()
        found = memory.search("what happened to the backup job and the staging server", min_score=0.0, max_results=20, now=NOW).results
        assert all(0 <= r.relevance <= 1 and 0 <= r.recency <= 1 and 0 <= r.utility <= 1 and 0 <= r.score <= 1 for r in found)
        assert len({round(r.relevance, 2) for r in found}) >= 3
        scores = [r.score for r in found]
        assert scores == sorted(scores, reverse=True)


def test_the_first_results_are_the_same_for_every_larger_number(root: Path) -> None:
    for i in range(40):
        (root / f"memory/2026-02-{i % 28 + 1:02d}-{i}.md").write_text(f"- the backup job number {i} ran for {i * 7 % 40} minutes\n")
    with Memory(root, encoder="none") as memory:
        whole = [r.citation for r in memory.search("backup job minutes", min_score=0.0, max_results=50, now=NOW)]
        assert len(whole) > 30
        for n in (1, 2, 5, 10, 21, 30):
            assert [r.citation for r in memory.search("backup job minutes", min_score=0.0, max_results=n, now=NOW)] == whole[:n]


def test_without_an_encoder_everything_is_searchable_and_status_counts_for_real(root: Path) -> None:
    """case 6"""
    with Memory(root, encoder="none") as memory:
        report = memory.sync()
        status = memory.status()
        assert (report.files, status.files) == (5, 5)
        assert status.blocks == report.blocks >= 10
        assert (status.vectors_ready, status.vectors_pending, status.degraded) == (0, 0, ())


def test_changing_the_encoder_never_mixes_vectors(root: Path) -> None:
    """case 7"""
    with Memory(root) as memory:
        memory.sync()
        index = memory._engine.index
        first = index.vectors_path()
        index.set_meta("encoder", "some other model (384)")  # as if the index had been made by it
    with Memory(root) as memory:
        report = memory.sync()
        assert report.vectors_pending == 0
        assert memory._engine.index.vectors_path() != first
        assert "汇报" in _first(memory, "汇报")


def test_an_encoder_that_cannot_be_reached_is_said_in_every_reply(root: Path) -> None:
    """case 8"""
    with Memory(root, encoder="openai:http://127.0.0.1:9#none") as memory:
        for _ in range(2):
            report = memory.search("staging server", now=NOW)
            assert "heron" in report.results[0].snippet
            assert "encoder_unavailable" in report.degraded
            assert report.warnings


def test_archived_text_is_searched_only_when_asked_for(root: Path) -> None:
    """case 9: filtered before the top is taken."""
    (root / "memory/archive").mkdir()
    (root / "memory/archive/2026-01.md").write_text("".join(f"- the heron server was moved, try {i}\n" for i in range(60)))
    with Memory(root, encoder="none") as memory:
        assert {r.source for r in memory.search("heron server", max_results=3, now=NOW)} == {"memory"}
        assert {r.source for r in memory.search("heron server", max_results=3, include_archive=True, now=NOW)} != {"memory"}


def test_a_question_about_what_was_archived_does_not_find_everything_else(root: Path) -> None:
    """Ten unrelated notes of relevance .57: the question's words counted as known, because the archive that was left out held them."""
    (root / "memory/archive").mkdir()
    (root / "memory/archive/2026-01.md").write_text("# Archive\n\n## Old router\n\nThe router has its admin page on port 81.\n")
    with Memory(root, encoder="default") as memory:
        memory.sync()
        before = memory.search("router admin page", min_score=0.0, now=NOW)
        assert memory.search("router admin page", include_archive=True, now=NOW)[0].source != "memory"
        (root / "memory/archive/2026-01.md").unlink()
        after = memory.search("router admin page", min_score=0.0, now=NOW)
    assert [(r.citation, round(r.relevance, 2)) for r in before] == [(r.citation, round(r.relevance, 2)) for r in after]
    assert max(r.relevance for r in before) < 0.25


def test_a_code_that_only_the_archive_holds_speaks_against_no_note(root: Path) -> None:
    """.89 without the archive, .01 with it: what the phrasing with the code found was taken for notes that lack the code."""
    (root / "memory/archive").mkdir()
    (root / "memory/archive/2026-01.md").write_text("# Archive\n\n- T-9001 was closed\n")
    question = ["T-9001 staging server heron", "akshare mirror"]
    with Memory(root, encoder="none") as memory:
        known = memory.search(question, min_score=0.0, policy="relevance", now=NOW)[1]
        (root / "memory/archive/2026-01.md").unlink()
        unknown = memory.search(question, min_score=0.0, policy="relevance", now=NOW)[1]
    assert "heron" in known.snippet
    assert abs(known.relevance - unknown.relevance) < 0.1


@pytest.mark.parametrize("query", ["上周五", "letzten Freitag"])  # in "last Friday" the word itself stands in the other note
def test_a_day_alone_asks_for_its_notes_and_not_for_what_speaks_of_that_day(root: Path, query: str) -> None:
    """`Tom works no longer on Fridays`, first of all for 上周五, and the note of that Friday third."""
    days = {
        "03-09": "## Tom\n\nTom works Mondays and Thursdays now, no longer on Fridays.\n",
        "03-13": "## Sale\n\nSold 61 starter kits at 39.90, and the coupon GRUEN10 must be switched off at the end of the month.\n",
        "03-14": "## 年末安排\n\n放假期间 Tom 每两天检查一次三号温室。\n",
        "03-18": "## 22:15\n\nsecond id\n",
        "03-19": "## 22:16\n\nfrüh\n",
    }
    for day, text in days.items():
        (root / f"memory/2026-{day}.md").write_text(f"# 2026-{day}\n\n{text}", encoding="utf-8")
    with Memory(root, encoder="default") as memory:
        memory.sync()
        assert "GRUEN10" in _first(memory, query)
        assert "Tom works" in _first(memory, "who works on Fridays?")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("mist pressures in the storages", {"mist", "storages", "pressures"}),  # not: storag, pressur
        ("湿度传感器误差", {"湿度传感器"}),  # not: 湿度, 度传, 传感, 感器, 度, 湿
        ("gen-itgc后 E-4711?", {"gen-itgc", "E-4711", "后"}),
        ("192.168.7.22", {"168", "192"}),
        ("what is this", {"is", "this"}),
    ],
)
def test_why_names_the_questions_words_and_not_their_stems(tmp_path: Path, query: str, words: set[str]) -> None:
    """`why: matches pressur, minut`, `matches 度传, 湿度, 传感, 感器`."""
    lines = ("the mist pressure of a storage", "湿度传感器读数偏高", "gen-itgc后 E-4711", "host 192.168.1.1", "this is it")
    (tmp_path / "MEMORY.md").write_text("# M\n\n" + "".join(f"- {line}\n" for line in lines), encoding="utf-8")
    with Memory(tmp_path, encoder="none") as memory:
        why = memory.search(query, min_score=0.0, now=NOW)[0].why.split("; ")[0]
    assert set(why.removeprefix("matches ").split(", ")) == words


def test_sources_are_told(root: Path) -> None:
    with Memory(root, encoder="none") as memory:
        assert memory.search("read timeout P99", now=NOW)[0].source == "knowledge"
        assert memory.search("akshare mirror", now=NOW)[0].source == "tools"


def test_a_long_line_is_searchable_to_its_end_and_cut_around_the_match(root: Path) -> None:
    """cases 10, 11 and 37"""
    line = (
        "- " + " ".join(f"filler{i}" for i in range(4_000)) + " the password hint is marmalade " + " ".join(f"tail{i}" for i in range(500))
    )
    (root / "memory/2026-03-15.md").write_text(line + "\n")
    with Memory(root, encoder="none") as memory:
        result = memory.search("marmalade", now=NOW)[0]
        assert "marmalade" in result.snippet
        assert len(result.snippet) < 3_000
        assert result.snippet in line
        assert (result.start_line, result.end_line) == (1, 1)


@pytest.mark.parametrize("budget", [40, 100, 250, 1000])
def test_max_chars_holds_and_the_best_is_cut_rather_than_dropped(root: Path, budget: int) -> None:
    """case 37"""
    (root / "memory/2026-03-15.md").write_text("- " + "marmalade recipe " * 60 + "\n- short marmalade\n")
    with Memory(root, encoder="none") as memory:
        whole = memory.search("marmalade recipe", min_score=0.0, now=NOW).results
        report = memory.search("marmalade recipe", min_score=0.0, max_chars=budget, now=NOW)
        assert 0 < sum(len(r.snippet) for r in report) <= budget
        assert report[0].path == whole[0].path
        assert report[0].snippet in (root / report[0].path).read_text()


def test_near_duplicates_are_folded_with_a_count(root: Path) -> None:
    """case 12"""
    for day in range(1, 9):
        (root / f"memory/2026-01-{day:02d}.md").write_text("- heartbeat: the heron server answered all checks today\n")
    with Memory(root, encoder="none") as memory:
        report = memory.search("heartbeat heron server answered checks", min_score=0.0, now=NOW)
        assert sum("heartbeat" in r.snippet for r in report) == 1
        assert report[0].similar == 7


def test_the_newer_of_two_that_contradict_comes_first_and_says_so(root: Path) -> None:
    with Memory(root) as memory:
        memory.sync()
        report = memory.search("when does the backup job run?", now=NOW)
        assert "05:00" in report[0].snippet
        assert report[0].differs == ("memory/2026-03-05.md#L9-L9",)
        assert "memory/2026-03-05.md#L9-L9" in report[0].why


def test_a_weight_in_the_configuration_changes_the_order(root: Path) -> None:
    (root / "memory/2026-03-16.md").write_text("## Alpha\n\n- to restart the heron gateway press the blue button and wait\n")
    (root / "memory/2026-03-17.md").write_text("## Beta\n\n- the heron gateway restarts by itself\n")
    history = {
        "memory/2026-03-16.md#alpha": {"use_count": 6, "success_count": 0, "last_used": "2026-03-19T00:00:00Z", "utility": 0.2},
        "memory/2026-03-17.md#beta": {"use_count": 6, "success_count": 6, "last_used": "2026-03-19T00:00:00Z", "utility": 0.9},
    }
    (root / "memory/utility-scores.json").write_text(json.dumps(history))
    query = "how to restart the heron gateway: press the blue button"
    orders = {}
    for name, weights in {"relevance": "{success_rate: 0}", "success": "{relevance: 0.05, success_rate: 1}"}.items():
        (root / "memory-tools.yaml").write_text(f"weights: {weights}\nutility_threshold: 0\n")
        with Memory(root, encoder="none") as memory:
            orders[name] = [r.address for r in memory.search(query, min_score=0.2, now=NOW) if r.address in history]
    assert orders["relevance"] == ["memory/2026-03-16.md#alpha", "memory/2026-03-17.md#beta"]
    assert orders["success"] == ["memory/2026-03-17.md#beta", "memory/2026-03-16.md#alpha"]


def test_nothing_found_is_broadened_unless_strict(root: Path) -> None:
    with Memory(root, encoder="none") as memory:
        query = "heron feather colour in the museum of Leipzig"
        assert memory.search(query, min_score=0.9, strict=True, now=NOW).results == ()
        report = memory.search(query, min_score=0.9, now=NOW)
        half = memory.search(query, min_score=0.45, strict=True, now=NOW)
        assert [r.citation for r in report] == [r.citation for r in half]
        assert report.broadened == bool(half.results)


def test_all_below_the_threshold_gives_the_best_one_with_a_warning_unless_strict(root: Path) -> None:
    history = {"MEMORY.md#servers": {"use_count": 9, "success_count": 0, "last_used": "2025-01-01T00:00:00Z", "utility": 0.0}}
    (root / "memory/utility-scores.json").write_text(json.dumps(history))
    with Memory(root, encoder="none") as memory:
        query = "staging server heron Falkenstein"
        assert memory.search(query, strict=True, threshold=0.9, now=NOW).results == ()
        report = memory.search(query, threshold=0.9, now=NOW)
        assert "heron" in report[0].snippet
        assert len(report) == 1
        said = " ".join(report.warnings)
        assert "0.9 to 0.7" in said
        assert "new" in said


def test_a_missing_workspace_and_one_that_is_a_file_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such workspace"):
        Memory(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInput, match="is a file"):
        Memory(tmp_path / "file")


def test_an_empty_workspace_answers_and_does_not_fail(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        report = memory.search("anything")
        assert report.results == ()
        assert memory.status().files == 0
        assert memory.check().ok


def test_a_folder_that_cannot_hold_the_index_is_searched_in_memory_and_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(kind: str, target: str) -> None:
        if ".memory-tools" in target and kind in ("mkdir", "open", "write", "sqlite"):
            raise PermissionError(13, "Permission denied", target)

    monkeypatch.setattr(seam, "on_step", deny)
    with Memory(root) as memory:
        report = memory.search("staging server heron", now=NOW)
        assert "heron" in report[0].snippet
        assert "index_in_memory" in report.degraded
        assert any("cannot be kept" in w for w in report.warnings)
    assert not (root / ".memory-tools/index-1.db").exists()


def test_an_index_that_is_deleted_or_replaced_under_a_running_process_is_made_again(root: Path) -> None:
    """case 21"""
    with Memory(root, encoder="none") as memory:
        assert "heron" in _first(memory, "staging server heron")
        shutil.rmtree(root / ".memory-tools")
        assert "heron" in _first(memory, "staging server heron")
        next((root / ".memory-tools").glob("index-*.db")).unlink()
        assert "heron" in _first(memory, "staging server heron")
        with Memory(root, encoder="none") as other:
            other.rebuild()
        assert "heron" in _first(memory, "staging server heron")
        assert memory.check().ok


def test_a_damaged_index_heals_itself_and_is_told(root: Path) -> None:
    """case 21"""
    with Memory(root, encoder="none") as memory:
        memory.sync()
    database = next((root / ".memory-tools").glob("index-*.db"))
    database.write_bytes(b"SQLite format 3\0" + b"garbage" * 5000)
    with Memory(root, encoder="none") as memory:
        report = memory.search("staging server heron", now=NOW)
        assert "heron" in report[0].snippet
        assert any("made anew" in w for w in report.warnings)
        assert memory.check().ok


def test_an_edit_that_no_search_has_seen_yet_is_no_fault_of_the_index(root: Path) -> None:
    """`error  MEMORY.md: changed without its times or size`, and exit code 1, after every edit by hand."""
    with Memory(root, encoder="none") as memory:
        memory.sync()
        with (root / "MEMORY.md").open("a") as note:
            note.write("\n- the new router is called ibis\n")
        (root / "memory/2026-03-05.md").unlink()
        assert [(f.level, f.code) for f in memory.check().findings] == [("note", "stale")]
        assert "ibis" in _first(memory, "router ibis")
        connection = memory._engine.index.connection
        connection.execute("UPDATE files SET hash = x'00', read_ns = mtime_ns + 10000000000 WHERE path = 'TOOLS.md'")
        assert [f.message for f in memory.check().findings if f.level == "error"] == ["TOOLS.md: changed without its times or size"]
        assert memory.check(fix=True).findings[0].fixed
        assert memory.check().ok


def test_vectors_that_were_cut_off_are_made_again(root: Path) -> None:
    with Memory(root) as memory:
        memory.sync()
        path = memory._engine.index.vectors_path()
    assert path is not None
    with path.open("r+b") as stream:
        stream.truncate(516 * 3)
    with Memory(root) as memory:
        assert any(f.code == "vectors_missing" for f in memory.check().findings)
        memory.search("heron")
        assert memory.status().vectors_pending == 0
        assert memory.check().ok


@pytest.mark.parametrize("name", ["MEMORY.md#\ud83d", "MEMORY.md#a\0b"])
def test_a_name_that_is_no_text_is_refused_in_feedback(root: Path, name: str) -> None:
    with Memory(root, encoder="none") as memory, pytest.raises(InvalidInput, match="used"):
        memory.feedback(name)


def test_a_folder_full_of_links_does_not_flood_every_answer(root: Path) -> None:
    for n in range(40):
        (root / "memory" / f"link{n:02}.md").symlink_to(root / "MEMORY.md")
    with Memory(root, encoder="none") as memory:
        for report in (memory.search("staging server", now=NOW), memory.search("staging server", now=NOW)):
            told = [w for w in report.warnings if "link" in w or "not searched" in w]
            assert told[0] == "memory/link00.md: is the same file as MEMORY.md"
            assert told[-1] == "35 more files are not searched; `memory-tools check` names them"
            assert len(told) == 6
        assert sum(f.path is not None and "link" in f.path for f in memory.check().findings) == 40


def test_a_single_use_reads_as_one(root: Path) -> None:
    with Memory(root, encoder="none") as memory:
        memory.get(memory.search("staging server", now=NOW).results[0].address)
        assert "used once, outcome unknown" in memory.search("staging server", now=NOW).results[0].why
