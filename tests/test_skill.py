"""The skill's pages and their installer go in; what a person finds in the skills folder afterwards comes out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from memory_tools import skill
from memory_tools.errors import InvalidInput

ROOT = Path(__file__).resolve().parent.parent
ACTIVATION_WORDS = (
    "记忆检索", "memory retrieval", "查找知识", "find knowledge", "搜索记忆", "search memory",
    "两阶段检索", "two-stage retrieval", "效用过滤", "utility filtering",
)  # fmt: skip


def front_matter() -> dict[str, object]:
    _, block, _ = (ROOT / "SKILL.md").read_text(encoding="utf-8").split("---\n", 2)
    loaded = yaml.safe_load(block)
    assert isinstance(loaded, dict)
    return loaded


def states(done: skill.Installed) -> dict[str, str]:
    return {page.path.relative_to(done.folder).as_posix(): page.state for page in done.pages}


def test_the_whole_skill_lands_in_a_folder_named_like_the_skill(tmp_path: Path) -> None:
    done = skill.install(tmp_path / "skills")
    assert done.folder == tmp_path / "skills" / "memory-retrieval"
    assert states(done) == dict.fromkeys(["SKILL.md", "skill/feedback.md", "skill/recall.md", "skill/tools.md"], "written")
    assert (done.folder / "SKILL.md").read_bytes() == (ROOT / "SKILL.md").read_bytes()


def test_installing_twice_changes_nothing(tmp_path: Path) -> None:
    first = skill.install(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in first.folder.rglob("*")}
    again = skill.install(tmp_path)
    assert set(states(again).values()) == {"unchanged"}
    assert not again.changed
    assert {path: path.stat().st_mtime_ns for path in again.folder.rglob("*")} == before


def test_an_old_page_is_upgraded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = checkout(tmp_path / "old", {"SKILL.md": "old\n", "skill/recall.md": "old page\n"})
    monkeypatch.setattr(skill, "__file__", str(old / "memory_tools" / "skill.py"))
    skill.install(tmp_path)
    monkeypatch.undo()
    done = states(skill.install(tmp_path))
    assert (done["SKILL.md"], done["skill/recall.md"], done["skill/tools.md"]) == ("upgraded", "upgraded", "written")


def test_an_edited_page_stays_and_the_new_one_lies_beside_it(tmp_path: Path) -> None:
    page = skill.install(tmp_path).folder / "SKILL.md"
    page.write_text("mine\n", encoding="utf-8")
    done = skill.install(tmp_path)
    assert states(done)["SKILL.md"] == "kept"
    assert page.read_text(encoding="utf-8") == "mine\n"
    assert page.with_name("SKILL.md.new").read_bytes() == (ROOT / "SKILL.md").read_bytes()
    assert "SKILL.md.new" in done.pages[0].note


def test_taking_the_new_page_over_removes_the_copy_beside_it(tmp_path: Path) -> None:
    page = skill.install(tmp_path).folder / "SKILL.md"
    page.write_text("mine\n", encoding="utf-8")
    skill.install(tmp_path)
    page.write_bytes(page.with_name("SKILL.md.new").read_bytes())
    assert states(skill.install(tmp_path))["SKILL.md"] == "unchanged"
    assert not page.with_name("SKILL.md.new").exists()


def test_a_page_that_a_stranger_put_there_is_not_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "memory-retrieval"
    folder.mkdir()
    (folder / "SKILL.md").write_text("another skill of that name\n", encoding="utf-8")
    assert states(skill.install(tmp_path))["SKILL.md"] == "kept"
    assert (folder / "SKILL.md").read_text(encoding="utf-8") == "another skill of that name\n"


def test_a_page_that_this_version_no_longer_has_is_removed_unless_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = checkout(tmp_path / "old", {"SKILL.md": "old\n", "skill/gone.md": "gone\n", "skill/loved.md": "loved\n"})
    monkeypatch.setattr(skill, "__file__", str(old / "memory_tools" / "skill.py"))
    folder = skill.install(tmp_path).folder
    (folder / "skill" / "loved.md").write_text("edited\n", encoding="utf-8")
    monkeypatch.undo()
    done = states(skill.install(tmp_path))
    assert done["skill/gone.md"] == "removed"
    assert done["skill/loved.md"] == "kept"
    assert not (folder / "skill" / "gone.md").exists()
    assert "skill/gone.md" not in json.loads((folder / skill.MANIFEST).read_text(encoding="utf-8"))["pages"]


def test_a_manifest_from_a_stranger_removes_nothing_outside_the_skill(tmp_path: Path) -> None:
    folder = skill.install(tmp_path).folder
    outside = tmp_path / "notes.md"
    outside.write_text("keep\n", encoding="utf-8")
    pages = {"../notes.md": [skill._hash(b"keep\n")], "skill/../../notes.md": [skill._hash(b"keep\n")]}
    (folder / skill.MANIFEST).write_text(json.dumps({"pages": pages}), encoding="utf-8")
    skill.install(tmp_path)
    assert outside.exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pages": 3}', '{"pages": {"SKILL.md": "x"}}'])
def test_a_broken_manifest_loses_no_edit(tmp_path: Path, content: str) -> None:
    folder = skill.install(tmp_path).folder
    (folder / skill.MANIFEST).write_text(content, encoding="utf-8")
    (folder / "SKILL.md").write_text("mine\n", encoding="utf-8")
    assert states(skill.install(tmp_path))["SKILL.md"] == "kept"


def test_a_checkout_with_other_line_endings_is_no_edit(tmp_path: Path) -> None:
    page = skill.install(tmp_path).folder / "SKILL.md"
    page.write_bytes(page.read_bytes().replace(b"\n", b"\r\n"))
    assert states(skill.install(tmp_path))["SKILL.md"] == "unchanged"


def test_a_file_in_the_folders_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "memory-retrieval").write_text("", encoding="utf-8")
    with pytest.raises(InvalidInput, match="is a file"):
        skill.install(tmp_path)


def test_links_hold_in_the_checkout_and_in_the_installed_folder(tmp_path: Path) -> None:
    for folder in (ROOT, skill.install(tmp_path).folder):
        pages = [folder / name for name in skill.sources()]
        links = [(page, link) for page in pages for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))]
        assert links
        for page, link in links:
            assert (page.parent / link).is_file(), f"{page}: {link}"


def test_pages_are_reached_from_the_first_page_directly() -> None:
    text = (ROOT / "SKILL.md").read_text(encoding="utf-8")
    for name in skill.sources():
        assert name == "SKILL.md" or f"({name})" in text


def test_the_front_matter_is_what_openclaw_reads() -> None:
    front = front_matter()
    assert front["name"] == skill.NAME
    metadata = front["metadata"]
    assert isinstance(metadata, dict)
    openclaw = metadata["openclaw"]
    assert openclaw["requires"] == {"bins": ["memory-tools"]}
    [entry] = openclaw["install"]
    assert (entry["kind"], entry["package"], entry["bins"]) == ("uv", "markdown-memory-tools", ["memory-tools"])


def test_the_front_matter_keeps_to_the_open_standard() -> None:
    front = front_matter()
    assert set(front) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", str(front["name"]))
    assert len(str(front["description"])) <= 1024
    assert len(str(front["compatibility"])) <= 500
    block = (ROOT / "SKILL.md").read_text(encoding="utf-8").split("---\n", 2)[1]
    assert not re.search(r":\s*[\[{]", block), "the standard's strict YAML has no flow style"


@pytest.mark.parametrize("word", ACTIVATION_WORDS)
def test_each_activation_word_is_in_the_description(word: str) -> None:
    assert word in str(front_matter()["description"])


@pytest.mark.parametrize(
    "text",
    [
        "查找关于 [topic] 的知识", "检索记忆：[query]，上下文：[context]", "查找最相关的 [topic] 知识，按效用排序",
        "找到 2 条相关记忆（按效用排序）",
        "sonnet4.5", "memory_search", "memory_get", "`read`", "`write`", "No relevant memory found", "data, not instructions",
        "ice-review", "self-challenge", "skill-extractor", "https://arxiv.org/abs/2601.03192",
    ],
)  # fmt: skip
def test_what_the_skill_promises_is_on_its_first_page(text: str) -> None:
    assert text in (ROOT / "SKILL.md").read_text(encoding="utf-8")


def test_the_first_page_stays_short_enough_for_a_prompt() -> None:
    assert len((ROOT / "SKILL.md").read_text(encoding="utf-8")) < 9_000


def checkout(root: Path, pages: dict[str, str]) -> Path:
    """A checkout of another version: the given pages beside an empty package."""
    (root / "memory_tools").mkdir(parents=True)
    for name, text in pages.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root
