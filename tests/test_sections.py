"""Markdown to sections and blocks: golden fixtures in plain text, hostile input, and properties over any text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_tools import outline, sections
from memory_tools.errors import InvalidInput
from memory_tools.pieces import CAP, safe_cut, split_line
from memory_tools.records import Document
from memory_tools.sections import Reference, line_starts, parse, parse_reference, searched, split_lines
from memory_tools.tokens import tokenize

FIXTURES = Path(__file__).parent / "fixtures"


def dump(text: str) -> str:
    """A document as the fixtures write it: one line a section, one a block, problems and front matter behind."""
    document = parse("M.md", text)
    lines: list[str] = []
    for s in document.sections:
        noted = {"importance": s.importance, "triggers": list(s.triggers), "project": s.project}
        extra = "".join(f" {name}={value}" for name, value in noted.items() if value)
        lines.append(f"{s.address} {s.start_line}-{s.end_line} [{' > '.join(s.headings)}]{extra}")
        for b in s.blocks:
            first = split_lines(b.text)[0].rstrip("\r\n")
            lines.append(f"  {b.kind} {b.start_line}-{b.end_line} {first[:40]}")
    if document.front_matter_end:
        lines.append(f"front matter 1-{document.front_matter_end} {dict(document.front_matter)}")
    lines.extend(f"problem: {problem}" for problem in document.problems)
    return "".join(line + "\n" for line in lines)


def golden() -> list[tuple[str, str, str]]:
    """`title / . / input / . / expected / .`, as markdown-it's own fixtures are written."""
    source = (FIXTURES / "sections.txt").read_text(encoding="utf-8")
    return re.findall(r"(?ms)^([^\n.][^\n]*)\n\.\n(.*?)^\.\n(.*?)^\.\n", source)


@pytest.mark.parametrize(("title", "text", "expected"), golden(), ids=[title for title, _, _ in golden()])
def test_it_is_split_as_the_fixture_says(title: str, text: str, expected: str) -> None:
    """cases 10, 11"""
    assert dump(text) == expected
    check(parse("M.md", text), text)


def check(document: Document, text: str) -> None:
    """What must hold for any text: exact substrings and lines, a tiled file, unique addresses, nothing above the cap."""
    lines = split_lines(text)
    assert "".join(lines) == text
    assert document.total_lines == len(lines)
    at = len("".join(lines[: document.front_matter_end]))
    previous_end = document.front_matter_end
    for number, section in enumerate(document.sections):
        between = lines[previous_end : section.start_line - 1]
        assert not between or (number == 0 and not "".join(between).strip())
        previous_end = section.end_line
        assert text[section.start : section.end] == "".join(lines[section.start_line - 1 : section.end_line])
        for block in section.blocks:
            assert text[block.start : block.end] == block.text
            assert block.text.strip()
            assert len(block.text) <= CAP
            assert not text[at : block.start].strip(), "something that is not blank lies in no block"
            at = block.end
            whole = "".join(lines[block.start_line - 1 : block.end_line])
            assert block.text in whole
            if block.start_line != block.end_line:
                assert whole.startswith(block.text)
                assert not whole[len(block.text) :].strip("\r\n")
            assert section.start_line <= block.start_line <= block.end_line <= section.end_line
        if section.level:
            assert section.blocks[0].kind == "heading"
            assert section.headings[-1] == section.heading
            assert section.address.startswith(f"M.md#{section.slug}")
    assert not text[at:].strip()
    if document.sections:
        assert previous_end == len(lines)
    addresses = [s.address for s in document.sections]
    assert len(set(addresses)) == len(addresses)


PIECES = st.sampled_from(
    [
        *("# a\n", "# a-1\n", "## 主题\n", "# \n", "a\n===\n", "b\n---\n", "---\n", "...\n", "k: v\n", "```\n", "~~~ x\n", "***\n"),
        *("- ", "  - ", "1. ", "> ", "|a|b|\n", "|-|-|\n", "<!-- importance: 3 -->\n", "<!--", "-->", "<div>\n", "[x]: /y\n"),
        *("    ", "\t", "\n", "\r\n", "\r", "\f", "\u2028", "\x85", "\0", "\u3000", " ", "`", "[", "!", "&amp;", "\\"),
        *("text ", "飞书，迁移。", "👩\u200d💻", "e\u0301", "🇩🇪", "x" * 450 + "\n", "y " * 700, "。" * 1200),
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.lists(PIECES, max_size=40).map("".join), st.text(max_size=300)))
def test_blocks_tile_any_file_and_addresses_are_unique(text: str) -> None:
    """case 10"""
    check(parse("M.md", text), text)


@settings(max_examples=100, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join))
def test_line_endings_change_no_section(text: str) -> None:
    plain = re.sub(r"\r\n|\r", "\n", text)
    for ending in ("\r\n", "\r"):
        one, other = parse("M.md", plain), parse("M.md", plain.replace("\n", ending))
        ranges = [[(s.address, s.start_line, s.end_line) for s in document.sections] for document in (one, other)]
        assert ranges[0] == ranges[1]


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join))
def test_rules_left_out_for_want_of_their_sign_change_nothing(text: str) -> None:
    starts = line_starts(text)
    signs = outline._SIGNS
    marks = outline.outline(text, starts)
    try:
        outline._SIGNS = ()
        assert outline.outline(text, starts) == marks
    finally:
        outline._SIGNS = signs


def test_every_word_past_the_cap_is_in_a_block() -> None:
    """case 10"""
    words = [f"word{i}" for i in range(2000)]
    document = parse("M.md", "# Long\n- " + " ".join(words) + "\n")
    found = {token for section in document.sections for block in section.blocks for token in tokenize(searched(block))}
    assert set(words) <= found


@pytest.mark.parametrize("end", ["。", "！", ". ", "; ", "，", " "])
def test_a_long_line_is_cut_at_the_best_place_there_is(end: str) -> None:
    text = ("字" * 90 + end) * 40
    ranges = split_line(text, 0, len(text))
    assert len(ranges) > 2
    assert all(b - a <= CAP for a, b in ranges)
    assert all(text[a:b].endswith(end.strip()) and len(text[a:b]) > CAP // 2 for a, b in ranges[:-1])


CLUSTERS = ["e\u0301\u0302", "👩\u200d👩\u200d👧", "👍🏽", "🇩🇪", "각", "\u1112\u1161\u11ab", "❤\ufe0f", "कि"]


@pytest.mark.parametrize("cluster", CLUSTERS, ids=ascii)
def test_no_visible_character_is_cut_in_two(cluster: str) -> None:
    """case 11"""
    text = cluster * 700
    ranges = split_line(text, 0, len(text))
    assert all((b - a) % len(cluster) == 0 for a, b in ranges)
    assert "".join(text[a:b] for a, b in ranges) == text


def test_a_cluster_longer_than_the_cap_is_cut_all_the_same() -> None:
    text = "a" + "\u0301" * 5000
    assert all(b - a <= CAP for a, b in split_line(text, 0, len(text)))
    assert safe_cut(text, 3000, 2000) == 3000


HOSTILE = {
    "hashes": "#" * 200_000,
    "brackets": "[" * 200_000,
    "backticks": "`" * 200_000,
    "dashes": "- " * 100_000,
    "quotes": ">" * 200_000,
    "quote lines": ">" * 500 + " a\n# b\n",
    "deep list": "".join("  " * i + "- a\n" for i in range(500)) + "\n# b\n",
    "one line of nested lists": "- " * 60 + "x\n\n# b\n",
    "tabs": ("\t" * 400 + "x\n") * 50,
    "open comments": "<!--\n" * 20_000,
    "open brackets in a heading": "# " + "[" * 900 + "\n",
    "link definitions": "[a]: x\n" * 5_000,
    "nul": "a\0b\n# c\0d\n",
    "lone carriage returns": "a\r# b\rc\r",
    "form feeds": "a\f\n# b\n\u2028# c\n\x0b\n",
    "combining marks": "a" + "\u0301" * 100_000,
    "a line of 5 MB": "word " * 1_000_000,
    "surrogates": "# \ud83d\n- \udc00 x\n",
    "yaml bomb": "---\na0: &a0 [x]\n" + "".join(f"a{i + 1}: &a{i + 1} [{','.join([f'*a{i}'] * 9)}]\n" for i in range(9)) + "---\n# b\n",
    "yaml depth": "---\nk: " + "[" * 5_000 + "\n---\n# b\n",
    "yaml date": "---\nd: 2026-99-99\n---\n# b\n",
    "yaml integer": "---\nn: " + "9" * 6_000 + "\n---\n# b\n",
    "a comment that closes in the middle of a long line": "<!-- " + "x" * 2_000 + " --> " + "y" * 2_000 + "\n# b\n",
    "a fence opened by a long line": "```" + "x" * 3_000 + "\n# no\n```\n# b\n",
    "many headings": "# a\n" * 5_000,
    "lines just under the cap": ("x" * 999 + "\n") * 50,
}


@pytest.mark.timeout(120)  # each takes a fraction of a second; what is quadratic takes hours
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_split_like_any_other(name: str) -> None:
    document = parse("M.md", HOSTILE[name])
    check(document, HOSTILE[name])
    if "# b" in HOSTILE[name]:
        assert any(s.slug == "b" for s in document.sections), "a heading behind it was swallowed"


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.startswith("yaml")])
def test_front_matter_that_cannot_be_read_is_a_problem_and_its_text_is_kept(name: str) -> None:
    document = parse("M.md", HOSTILE[name])
    assert document.problems
    assert not document.front_matter
    assert document.sections[0].blocks[0].text.startswith("---")


def test_a_daily_note_with_148_equal_headings_has_148_addresses() -> None:
    text = "".join(f"## Heartbeat\n\n- entry {i} " + "of the log " * 200 + "\n\n" for i in range(148))
    assert len(text) > 320_000
    document = parse("M.md", text)
    check(document, text)
    assert [s.address for s in document.sections] == ["M.md#heartbeat", *(f"M.md#heartbeat-{i}" for i in range(1, 148))]


def test_comments_are_left_out_of_the_searched_text_and_not_of_the_lines() -> None:
    document = parse("M.md", "# A\n<!-- trigger: zebra -->\n- kept <!-- importance: 5 --> text\n- `<!-- project: shown -->`\n\n---\n")
    blocks = document.sections[0].blocks
    assert [searched(b).strip() for b in blocks] == ["# A", "", "- kept  text", "- `<!-- project: shown -->`", ""]
    assert [(b.start_line, b.end_line) for b in blocks] == [(1, 1), (2, 2), (3, 3), (4, 4), (6, 6)]
    assert document.sections[0].project is None


def test_a_comment_inside_a_fence_is_searched() -> None:
    block = parse("M.md", "```\n<!-- importance: 5 -->\n```\n").sections[0].blocks[0]
    assert searched(block) == block.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MEMORY.md", Reference("MEMORY.md")),
        ("MEMORY.md#", Reference("MEMORY.md")),
        ("MEMORY.md#主动汇报约定", Reference("MEMORY.md", "主动汇报约定")),
        ("MEMORY.md#L3-L7", Reference("MEMORY.md", None, 3, 7)),
        ("MEMORY.md#L3-7", Reference("MEMORY.md", None, 3, 7)),
        ("MEMORY.md#L3", Reference("MEMORY.md", None, 3, 3)),
        ("MEMORY.md#l3", Reference("MEMORY.md", "l3")),
        ("@team/a b/x.md#slug-1", Reference("@team/a b/x.md", "slug-1")),
        ("notes/C#.md#c", Reference("notes/C#.md", "c")),
        ("notes/C#.md", Reference("notes/C#.md")),
        ("  MEMORY.md#a\n", Reference("MEMORY.md", "a")),
        ("folder", Reference("folder")),
    ],
)
def test_a_reference_names_a_file_a_section_or_lines(text: str, expected: Reference) -> None:
    """case 29"""
    assert parse_reference(text) == expected


@pytest.mark.parametrize("text", ["", "  ", "#slug", "M.md#L0", "M.md#L7-L3"])
def test_a_reference_that_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_reference(text)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_a_reference_never_fails_otherwise(text: str) -> None:
    try:
        parse_reference(text)
    except InvalidInput:
        return


def test_lines_end_at_three_breaks_only() -> None:
    assert split_lines("a\rb\r\nc\nd\fe\u2028f\x85g\n\n") == ["a\r", "b\r\n", "c\n", "d\fe\u2028f\x85g\n", "\n"]
    assert split_lines("") == []


def test_the_version_is_a_number_that_the_index_can_keep() -> None:
    assert isinstance(sections.VERSION, int)
