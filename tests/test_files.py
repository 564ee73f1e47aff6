"""Which files are memory, how they are read, and what is never read: real folders, links, pipes and odd names."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_tools import files, globs
from memory_tools.errors import Forbidden, InvalidInput, MemoryToolsError, NotFound, TooLarge
from memory_tools.files import DEFAULT_INCLUDE, read, read_path, resolve, scan, writable
from memory_tools.records import Scan
from memory_tools.walk import Earlier, Walk

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")
as_user = pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read anything")


def put(root: Path, *paths: str, text: str = "x\n") -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def look(root: Path, include: Sequence[str] = DEFAULT_INCLUDE, exclude: Sequence[str] = (), **extra: Path) -> Scan:
    return scan(root, include, exclude, extra)


def paths(scanned: Scan) -> list[str]:
    return [found.path for found in scanned.found]


def reasons(scanned: Scan) -> dict[str, str]:
    return {skipped.path: skipped.reason for skipped in scanned.skipped}


# --- scan --------------------------------------------------------------------


def test_memory_files_are_found_with_their_source(tmp_path: Path) -> None:
    put(tmp_path, "MEMORY.md", "memory/2026-03-05.md", "memory/deep/er/x.md", "memory/tools/web.md", "memory/archive/old.md")
    put(
        tmp_path,
        "knowledge/api.md",
        "TOOLS.md",
        "USER.md",
        "AGENTS.md",
        "README.md",
        "memory/utility-scores.json",
        "memory/tools/web.calls.jsonl",
    )
    assert {found.path: found.source for found in look(tmp_path).found} == {
        "MEMORY.md": "memory",
        "TOOLS.md": "tools",
        "USER.md": "memory",
        "knowledge/api.md": "knowledge",
        "memory/2026-03-05.md": "memory",
        "memory/archive/old.md": "archive",
        "memory/deep/er/x.md": "memory",
        "memory/tools/web.md": "tools",
    }
    assert look(tmp_path).skipped == ()
    assert paths(look(tmp_path)) == sorted(paths(look(tmp_path)))


def test_no_include_means_the_usual_files(tmp_path: Path) -> None:
    put(tmp_path, "MEMORY.md", "x.md")
    assert paths(look(tmp_path, ())) == ["MEMORY.md"]


def test_virtual_environments_repositories_and_hidden_folders_are_not_walked(tmp_path: Path) -> None:
    """case 16"""
    put(tmp_path, *(f"memory/{name}/x.md" for name in (".git", "node_modules", ".venv", "venv", "__pycache__", ".obsidian")))
    put(tmp_path, "memory/.hidden.md", "memory/.#lock.md", "memory/x.md.tmp", "memory/.x.md.12.ab.tmp", "memory/kept.md")
    assert paths(look(tmp_path)) == ["memory/kept.md"]
    assert paths(look(tmp_path, ["**/*.md"])) == ["memory/kept.md"]


def test_memory_md_in_two_spellings_of_one_file_is_found_once(tmp_path: Path) -> None:
    put(tmp_path, "MEMORY.md")
    os.link(tmp_path / "MEMORY.md", tmp_path / "memory.md")
    assert paths(look(tmp_path)) == ["MEMORY.md"]
    assert reasons(look(tmp_path)) == {"memory.md": "is the same file as MEMORY.md"}


def test_two_files_in_two_spellings_are_both_memory(tmp_path: Path) -> None:
    put(tmp_path, "MEMORY.md", text="one")
    if (tmp_path / "memory.md").exists():
        pytest.skip("this file system does not tell the two apart")
    put(tmp_path, "memory.md", text="two")
    assert paths(look(tmp_path)) == ["MEMORY.md", "memory.md"]


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (["**/*.md"], [], ["a.md", "memory/a.md", "memory/b/c.md", "notes/d.md"]),
        (["*.md"], [], ["a.md"]),
        (["memory/*.md", "notes/**"], [], ["memory/a.md", "notes/d.md"]),
        (["memory/*/*.md"], [], ["memory/b/c.md"]),
        (["m*/**/*.md"], [], ["memory/a.md", "memory/b/c.md"]),
        (["./notes/d.md"], [], ["notes/d.md"]),
        (["**/[a-c].md"], [], ["a.md", "memory/a.md", "memory/b/c.md"]),
        (["**/[!a].md"], [], ["memory/b/c.md", "notes/d.md"]),
        (["**/*.md"], ["a.md"], ["memory/b/c.md", "notes/d.md"]),
        (["**/*.md"], ["/a.md"], ["memory/a.md", "memory/b/c.md", "notes/d.md"]),
        (["**/*.md"], ["memory"], ["a.md", "notes/d.md"]),
        (["memory/**/*.md"], ["memory/"], []),
        (["**/*.md"], ["b"], ["a.md", "memory/a.md", "notes/d.md"]),
        (["**/*.md"], ["memory/b/**"], ["a.md", "memory/a.md", "notes/d.md"]),
        (["../*.md"], [], []),
    ],
)
def test_globs_choose_the_files(tmp_path: Path, include: list[str], exclude: list[str], expected: list[str]) -> None:
    put(tmp_path / "w", "a.md", "memory/a.md", "memory/b/c.md", "notes/d.md", "notes/e.txt")
    put(tmp_path, "outside.md")
    assert paths(look(tmp_path / "w", include, exclude)) == expected


@pytest.mark.parametrize("pattern", ["", "/", "../x.md", "a/../../b", "[z-a].md"])
def test_an_unusable_glob_is_told(tmp_path: Path, pattern: str) -> None:
    assert globs.check_pattern(pattern)
    put(tmp_path, "MEMORY.md")
    assert pattern in reasons(look(tmp_path, [pattern]))
    assert paths(look(tmp_path, exclude=[pattern])) == ["MEMORY.md"]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="a*?[]!-/.\\^{}+(|)", max_size=12))
def test_any_glob_that_is_not_refused_can_be_used(pattern: str) -> None:
    if globs.check_pattern(pattern) is None:
        globs.included((pattern,)).fullmatch("a/b.md")
        globs.excluded((pattern,)).fullmatch("a/b.md")
        assert globs.walks((pattern,))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("pattern", ["[a||b].md", "[a&&b].md", "[a~~b].md", "[[a].md"])
def test_a_glob_that_pythons_sets_will_read_otherwise_one_day_warns_nobody(pattern: str) -> None:
    globs.included.cache_clear()
    assert globs.included((pattern,)).fullmatch("a.md")


def test_extra_roots_are_read_under_their_names(tmp_path: Path) -> None:
    put(tmp_path, "w/MEMORY.md", "team/a.md", "team/sub/b.md", "team/.git/c.md", "team/d.txt")
    scanned = look(tmp_path / "w", team=tmp_path / "team", gone=tmp_path / "gone")
    assert [(f.path, f.source) for f in scanned.found] == [("@team/a.md", "extra"), ("@team/sub/b.md", "extra"), ("MEMORY.md", "memory")]
    assert [(s.path, s.keep) for s in scanned.skipped] == [("@gone/", True)]
    assert paths(look(tmp_path / "w", exclude=["@team/sub/**"], team=tmp_path / "team")) == ["@team/a.md", "MEMORY.md"]


@posix
def test_a_link_that_leads_out_is_skipped_with_its_reason_and_the_rest_is_found(tmp_path: Path) -> None:
    """cases 18, 28"""
    put(tmp_path, "w/memory/kept.md", "secret/id.md", "secret/key.txt")
    memory = tmp_path / "w" / "memory"
    (memory / "out.md").symlink_to(tmp_path / "secret" / "id.md")
    (memory / "folder").symlink_to(tmp_path / "secret")
    (memory / "relative.md").symlink_to("../../secret/id.md")
    (memory / "nowhere.md").symlink_to("gone.md")
    (memory / "loop.md").symlink_to("loop.md")
    (memory / "up").symlink_to("..")
    (memory / "text.md").symlink_to("note.txt")
    (memory / "note.txt").write_text("not Markdown")
    scanned = look(tmp_path / "w")
    assert paths(scanned) == ["memory/kept.md"]
    assert {path: reason.split(";")[0] for path, reason in reasons(scanned).items()} == {
        "memory/out.md": "is a symbolic link that leads out of its root",
        "memory/folder": "is a symbolic link that leads out of its root",
        "memory/relative.md": "is a symbolic link that leads out of its root",
        "memory/nowhere.md": "is a symbolic link that leads nowhere",
        "memory/loop.md": "too many levels of symbolic links",
        "memory/up": "is a symbolic link to a folder above it",
        "memory/text.md": "is a symbolic link to a file that is not Markdown",
    }


@posix
def test_a_memory_folder_that_is_a_link_out_is_told(tmp_path: Path) -> None:
    """case 18"""
    put(tmp_path, "w/MEMORY.md", "cloud/a.md")
    (tmp_path / "w" / "memory").symlink_to(tmp_path / "cloud")
    scanned = look(tmp_path / "w")
    assert paths(scanned) == ["MEMORY.md"]
    assert "extra_roots" in reasons(scanned)["memory"]


@posix
def test_a_link_that_stays_inside_is_followed_once(tmp_path: Path) -> None:
    put(tmp_path, "memory/2026-03-05.md", "notes/n.md", ".private/p.md")
    (tmp_path / "memory" / "today.md").symlink_to("2026-03-05.md")
    (tmp_path / "memory" / "notes").symlink_to("../notes")
    (tmp_path / "memory" / "p.md").symlink_to("../.private/p.md")
    scanned = look(tmp_path)
    assert paths(scanned) == ["memory/2026-03-05.md", "memory/notes/n.md"]
    assert reasons(scanned) == {
        "memory/today.md": "is the same file as memory/2026-03-05.md",
        "memory/p.md": "is a symbolic link into a hidden folder",
    }


@posix
def test_a_workspace_may_itself_be_a_link(tmp_path: Path) -> None:
    put(tmp_path, "real/memory/a.md")
    (tmp_path / "link").symlink_to("real")
    assert paths(look(tmp_path / "link")) == ["memory/a.md"]
    assert read_path(tmp_path / "link", {}, "memory/a.md").text == "x\n"


@posix
def test_pipes_odd_names_and_giants_are_skipped(tmp_path: Path) -> None:
    """case 18"""
    put(tmp_path, "memory/kept.md", "memory/line\nbreak.md")
    os.mkfifo(tmp_path / "memory" / "pipe.md")
    (tmp_path / "memory" / "folder.md").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path / "memory") + b"/\xff.md")).write_text("x")
    with (tmp_path / "memory" / "giant.md").open("wb") as stream:
        stream.truncate(50 * 1024 * 1024)
    scanned = look(tmp_path)
    assert paths(scanned) == ["memory/kept.md"]
    assert reasons(scanned) == {
        "memory/line\nbreak.md": "its name holds a control character or is not UTF-8",
        "memory/\\udcff.md": "its name holds a control character or is not UTF-8",
        "memory/pipe.md": "is not a regular file",
        "memory/giant.md": f"52,428,800 bytes, the limit is {files.MAX_BYTES:,}; split it",
    }
    for skipped in scanned.skipped:
        skipped.path.encode("utf-8")


@posix
@as_user
def test_a_folder_that_may_not_be_listed_keeps_what_is_known_of_it(tmp_path: Path) -> None:
    """case 19"""
    put(tmp_path, "memory/closed/a.md", "memory/b.md")
    (tmp_path / "memory" / "closed").chmod(0)
    try:
        scanned = look(tmp_path)
    finally:
        (tmp_path / "memory" / "closed").chmod(0o700)
    assert paths(scanned) == ["memory/b.md"]
    assert [(s.path, s.reason, s.keep) for s in scanned.skipped] == [("memory/closed/", "permission denied", True)]


def test_a_folder_that_cannot_be_listed_keeps_what_is_known_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """case 19: root may list anything, so the system's answer is put in its place"""
    put(tmp_path, "memory/closed/a.md", "memory/b.md")
    listing = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return listing(path)

    monkeypatch.setattr(os, "scandir", refuse)
    scanned = look(tmp_path)
    assert paths(scanned) == ["memory/b.md"]
    assert [(s.path, s.reason, s.keep) for s in scanned.skipped] == [("memory/closed/", "permission denied", True)]


def test_a_file_in_place_of_a_folder_is_told(tmp_path: Path) -> None:
    put(tmp_path, "memory", "MEMORY.md")
    scanned = look(tmp_path)
    assert paths(scanned) == ["MEMORY.md"]
    assert [(s.path, s.keep) for s in scanned.skipped] == [("memory/", False)]


def test_a_workspace_that_is_missing_or_a_file_is_an_error(tmp_path: Path) -> None:
    put(tmp_path, "file")
    with pytest.raises(NotFound, match="no such workspace"):
        look(tmp_path / "gone")
    with pytest.raises(InvalidInput, match="is a file"):
        look(tmp_path / "file")
    with pytest.raises(NotFound):
        look(Path("nul\0byte"))


def test_a_change_shows_in_the_state_without_reading(tmp_path: Path) -> None:
    """case 14: saved in place, by rename, deleted, renamed"""
    put(tmp_path, "memory/a.md", "memory/b.md")
    before = {f.path: f.stat for f in look(tmp_path).found}
    put(tmp_path, "memory/.a.md.swp", text="new\n")
    (tmp_path / "memory" / ".a.md.swp").replace(tmp_path / "memory" / "a.md")
    (tmp_path / "memory" / "b.md").rename(tmp_path / "memory" / "c.md")
    after = {f.path: f.stat for f in look(tmp_path).found}
    assert set(after) == {"memory/a.md", "memory/c.md"}
    assert after["memory/a.md"] != before["memory/a.md"]
    assert after["memory/a.md"].inode != before["memory/a.md"].inode


def test_a_deep_nest_of_folders_ends(tmp_path: Path) -> None:
    deep = tmp_path / "memory"
    for _ in range(60):
        deep = deep / "d"
    put(deep, "x.md")
    put(tmp_path, "memory/d/y.md")
    scanned = look(tmp_path)
    assert paths(scanned) == ["memory/d/y.md"]
    assert "nested" in scanned.skipped[0].reason


# --- read --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "text", "problem"),
    [
        (b"", "", ""),
        ("ü 记忆\r\n".encode(), "ü 记忆\r\n", ""),
        (b"\xef\xbb\xbf# A\n", "# A\n", ""),
        (b"a\nb \xff c\n", "a\nb \ufffd c\n", "line 2: not UTF-8"),
        ("# 记忆\n".encode("gb18030"), None, "line 1: not UTF-8"),
        ("# A\n".encode("utf-16"), "# A\n", "UTF-16"),
        (b"a\0b\rc\x0cd", "a\0b\rc\x0cd", ""),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd", "not UTF-8"),
    ],
)
def test_a_file_is_read_as_utf_8_or_says_why_not(tmp_path: Path, raw: bytes, text: str | None, problem: str) -> None:
    """case 18"""
    (tmp_path / "MEMORY.md").write_bytes(raw)
    got = read(look(tmp_path).found[0])
    assert text is None or got.text == text
    assert problem in "".join(got.problems)
    assert bool(got.problems) == bool(problem)
    got.text.encode("utf-8")


def test_the_hash_is_of_the_bytes(tmp_path: Path) -> None:
    put(tmp_path, "MEMORY.md", "USER.md")
    one, other = (read(f) for f in look(tmp_path).found)
    assert one.hash == other.hash
    (tmp_path / "MEMORY.md").write_bytes(b"\xef\xbb\xbfx\n")
    changed = read(look(tmp_path).found[0])
    assert changed.text == one.text
    assert changed.hash != one.hash


def test_a_file_that_vanishes_before_it_is_read_is_not_found(tmp_path: Path) -> None:
    put(tmp_path, "MEMORY.md")
    found = look(tmp_path).found[0]
    (tmp_path / "MEMORY.md").unlink()
    with pytest.raises(NotFound, match=r"MEMORY\.md"):
        read(found)


def test_a_file_above_the_limit_is_too_large(tmp_path: Path) -> None:
    put(tmp_path, "MEMORY.md", text="x" * 1000)
    with pytest.raises(TooLarge, match="1,000 bytes"):
        read(look(tmp_path).found[0], max_bytes=999)
    assert len(read(look(tmp_path).found[0], max_bytes=1000).text) == 1000


@posix
@as_user
def test_a_file_without_permission_says_so(tmp_path: Path) -> None:
    """case 30"""
    put(tmp_path, "MEMORY.md")
    (tmp_path / "MEMORY.md").chmod(0)
    with pytest.raises(Forbidden, match="Permission denied"):
        read(look(tmp_path).found[0])
    with pytest.raises(Forbidden, match="Permission denied"):
        read_path(tmp_path, {}, "MEMORY.md")


def test_a_refusal_of_the_system_is_reported_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """case 30: root may read anything, so the system's answer is put in its place"""
    put(tmp_path, "MEMORY.md")

    def refuse(path: str, *_: object) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(Forbidden, match=r"MEMORY\.md: Permission denied"):
        read_path(tmp_path, {}, "MEMORY.md")


@posix
@pytest.mark.parametrize("swap", ["file", "folder", "pipe"])
def test_what_was_swapped_in_for_a_file_is_not_read(tmp_path: Path, swap: str) -> None:
    """case 28"""
    put(tmp_path, "w/memory/a.md", "secret/a.md", text="secret")
    found = look(tmp_path / "w").found[0]
    memory = tmp_path / "w" / "memory"
    (memory / "a.md").unlink()
    if swap == "file":
        (memory / "a.md").symlink_to(tmp_path / "secret" / "a.md")
    elif swap == "folder":
        memory.rmdir()
        memory.symlink_to(tmp_path / "secret")
    else:
        os.mkfifo(memory / "a.md")
    with pytest.raises(Forbidden):
        read(found)


# --- resolve -----------------------------------------------------------------


def test_a_path_inside_is_resolved(tmp_path: Path) -> None:
    put(tmp_path, "w/MEMORY.md", "w/memory/a b.md", "w/AGENTS.markdown", "team/x.md")
    work, roots = tmp_path / "w", {"team": tmp_path / "team"}
    real = Path(os.path.realpath(tmp_path))
    assert resolve(work, roots, "MEMORY.md") == real / "w" / "MEMORY.md"
    assert resolve(work, roots, "./memory//a b.md") == real / "w" / "memory" / "a b.md"
    assert resolve(work, roots, "AGENTS.markdown") == real / "w" / "AGENTS.markdown"
    assert resolve(work, roots, "@team/x.md") == real / "team" / "x.md"
    assert read_path(work, roots, "@team/x.md").text == "x\n"


@pytest.mark.parametrize(
    ("path", "error", "says"),
    [
        ("", InvalidInput, "not a path"),
        ("  ", InvalidInput, "not a path"),
        ("a\0b.md", InvalidInput, "not a path"),
        ("a\nb.md", InvalidInput, "not a path"),
        ("\ud800.md", InvalidInput, "not a path"),
        ("x" * 5000 + ".md", InvalidInput, "not a path"),
        ("x" * 300 + ".md", MemoryToolsError, "too long"),
        ("../secret.md", Forbidden, "not inside"),
        ("memory/../../secret.md", Forbidden, "not inside"),
        ("memory/../MEMORY.md", Forbidden, "not inside"),
        ("/etc/passwd.md", Forbidden, "not inside"),
        ("~/x.md", Forbidden, "not inside"),
        ("secret.txt", Forbidden, "only Markdown"),
        ("memory", Forbidden, "only Markdown"),
        (".", Forbidden, "only Markdown"),
        (".env", Forbidden, "only Markdown"),
        ("folder.md", InvalidInput, "is a folder"),
        ("gone.md", NotFound, "no such file"),
        ("MEMORY.md/x.md", NotFound, ""),
        ("@nobody/x.md", NotFound, "no extra root"),
        ("@team/../w/MEMORY.md", Forbidden, "not inside"),
        ("@team", Forbidden, "only Markdown"),
    ],
)
def test_a_path_that_may_not_be_read_is_refused_with_the_true_cause(tmp_path: Path, path: str, error: type[Exception], says: str) -> None:
    """case 28"""
    put(tmp_path, "w/MEMORY.md", "w/secret.txt", "w/.env", "w/folder.md/x", "secret.md", "team/x.md")
    with pytest.raises(error, match=f"(?i){says}") as caught:
        read_path(tmp_path / "w", {"team": tmp_path / "team"}, path)
    str(caught.value).encode("utf-8")


@posix
def test_no_link_leads_a_reader_out(tmp_path: Path) -> None:
    """case 28"""
    put(tmp_path, "w/MEMORY.md", "w/.env", "secret/a.md")
    (tmp_path / "w" / "out.md").symlink_to(tmp_path / "secret" / "a.md")
    (tmp_path / "w" / "folder").symlink_to(tmp_path / "secret")
    (tmp_path / "w" / "env.md").symlink_to(".env")
    (tmp_path / "w" / "loop.md").symlink_to("loop.md")
    (tmp_path / "w-evil").mkdir()
    put(tmp_path, "w-evil/a.md")
    (tmp_path / "w" / "evil.md").symlink_to(tmp_path / "w-evil" / "a.md")  # its path begins as the root's does
    os.mkfifo(tmp_path / "w" / "pipe.md")
    for path in ("out.md", "folder/a.md", "env.md", "loop.md", "evil.md", "pipe.md"):
        with pytest.raises(Forbidden):
            read_path(tmp_path / "w", {}, path)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(["..", ".", "/", "memory", "a.md", "@team", "~", "\\", "secret.md", "\0", "C:", " "]), max_size=8).map("".join)
)
def test_no_path_at_all_leads_out(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    """case 28"""
    root = tmp_path_factory.getbasetemp() / "no-path"
    if not root.exists():
        put(root, "w/memory/a.md", "w/a.md", "secret.md", "team/a.md")
    try:
        real = resolve(root / "w", {"team": root / "team"}, path)
    except MemoryToolsError:
        return
    inside = os.path.realpath(root / "w"), os.path.realpath(root / "team")
    assert str(real).startswith(tuple(one + os.sep for one in inside))


# --- writable ----------------------------------------------------------------


def test_a_file_to_be_written_is_contained_too(tmp_path: Path) -> None:
    put(tmp_path, "w/MEMORY.md", "secret/a.md")
    work = tmp_path / "w"
    real = Path(os.path.realpath(work))
    assert writable(work, "memory/2026-03-05.md") == real / "memory" / "2026-03-05.md"
    assert writable(work, "MEMORY.md") == real / "MEMORY.md"
    for path in ("../x.md", "memory/x.txt", "@team/x.md", "/x.md"):
        with pytest.raises((Forbidden, NotFound)):
            writable(work, path)
    if sys.platform != "win32":
        (work / "memory").symlink_to(tmp_path / "secret")
        (work / "link.md").symlink_to("MEMORY.md")
        for path in ("memory/a.md", "memory/new.md", "link.md"):
            with pytest.raises(Forbidden):
                writable(work, path)


# --- scan after scan ---------------------------------------------------------

EDITS = ("write", "append", "rename", "delete", "link", "hard link", "folder for a file", "swap", "empty a folder", "nothing")
PLACES = ("MEMORY.md", "memory/a.md", "memory/b.md", "memory/deep/c.md", "knowledge/d.md", "memory/skip.md", "memory/e.txt")


@posix
@settings(max_examples=60, deadline=None)
@given(edits=st.lists(st.tuples(st.sampled_from(EDITS), st.sampled_from(PLACES), st.sampled_from(PLACES)), max_size=10))
def test_a_scan_that_remembers_the_last_one_finds_what_a_fresh_one_finds(
    edits: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("ws")
    put(root, "MEMORY.md", "memory/a.md", "knowledge/d.md")
    earlier = Earlier()
    for number, (edit, one, other) in enumerate(edits):
        path, second = root / one, root / other
        path.parent.mkdir(parents=True, exist_ok=True)
        second.parent.mkdir(parents=True, exist_ok=True)
        if edit == "write" and (path.is_file() or not os.path.lexists(path)):
            put(root, one, text=f"text {number}\n")
        elif edit == "append" and path.is_file():
            with path.open("a") as file:
                file.write("more\n")
        elif edit in ("rename", "swap") and path.is_file() and second.is_file():
            path.replace(second)
        elif edit in ("delete", "folder for a file") and (path.is_file() or path.is_symlink()):
            path.unlink()
            if edit == "folder for a file":
                path.mkdir()
        elif edit == "link" and not path.exists() and not path.is_symlink():
            path.symlink_to(second)
        elif edit == "hard link" and second.is_file() and not path.exists() and not path.is_symlink():
            os.link(second, path)
        elif edit == "empty a folder":
            shutil.rmtree(root / "memory" / "deep", ignore_errors=True)
        kept = scan(root, DEFAULT_INCLUDE, ("skip.md",), {}, earlier)
        assert kept == scan(root, DEFAULT_INCLUDE, ("skip.md",), {})
        assert scan(root, DEFAULT_INCLUDE, ("skip.md",), {}, earlier) is kept


def test_a_scan_that_was_interrupted_does_not_hide_what_it_was_about_to_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in a session that goes on: the new note was not seen until some other one changed."""
    put(tmp_path, "MEMORY.md")
    earlier = Earlier()
    assert paths(scan(tmp_path, DEFAULT_INCLUDE, (), {}, earlier)) == ["MEMORY.md"]
    put(tmp_path, "memory/new.md")
    with monkeypatch.context() as interrupted:
        interrupted.setattr(Walk, "_once", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            scan(tmp_path, DEFAULT_INCLUDE, (), {}, earlier)
    assert paths(scan(tmp_path, DEFAULT_INCLUDE, (), {}, earlier)) == ["MEMORY.md", "memory/new.md"]


def _interrupt(walk: Walk) -> None:
    raise KeyboardInterrupt
