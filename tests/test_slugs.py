"""Slugs held against what github-slugger and GitHub are known to give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tools.slugs import EMPTY, Slugger, slug

# Input and answer as github-slugger documents them, and a few of GitHub's own pages.
KNOWN = [
    ("alpha", "alpha"),
    ("bravoCharlieDelta", "bravocharliedelta"),
    ("__proto__", "__proto__"),
    ("heading with a - dash", "heading-with-a---dash"),
    ("heading with an _ underscore", "heading-with-an-_-underscore"),
    ("heading with a period.txt", "heading-with-a-periodtxt"),
    ("exchange.bind_headers(exchange, routing [, bindCallback])", "exchangebind_headersexchange-routing--bindcallback"),
    (" a ", "-a-"),
    ("apostrophe’s should be trimmed", "apostrophes-should-be-trimmed"),
    ("I ♥ unicode", "i--unicode"),
    ("en–dash", "endash"),
    ("😄 unicode emoji", "-unicode-emoji"),
    ("😄-😄 unicode emoji", "--unicode-emoji"),
    ("😄_😄 unicode emoji", "_-unicode-emoji"),
    (":ok_hand: Single", "ok_hand-single"),
    ("Профили пользователей", "профили-пользователей"),
    ("Привет non-latin 你好", "привет-non-latin-你好"),
    ("主动汇报约定", "主动汇报约定"),
    ("API 超时怎么处理？", "api-超时怎么处理"),
    ("飞书（插件）：迁移", "飞书插件迁移"),
    ("カメラ・レンズ", "カメラレンズ"),
    ("한국어 제목", "한국어-제목"),
    ("हिन्दी में", "हिन्दी-में"),
    ("ภาษาไทย", "ภาษาไทย"),
    ("İstanbul", "i̇stanbul"),
    ("Σίσυφος ΟΔΟΣ", "σίσυφος-οδος"),
    ("Ⅷ ② ½ x²", "ⅷ---x"),
    ("Ⓐ 🄰", "ⓐ-🄰"),
    ("tab\there", "tabhere"),
    ("full　width", "fullwidth"),
    ("2026-03-05", "2026-03-05"),
    ("13:56", "1356"),
]


@pytest.mark.parametrize(("heading", "expected"), KNOWN)
def test_a_heading_gets_the_slug_that_github_gives(heading: str, expected: str) -> None:
    assert slug(heading) == expected


@pytest.mark.parametrize("heading", ["", "!!!", "🎉", "？", "\u200d"])
def test_an_empty_slug_becomes_section(heading: str) -> None:
    assert slug(heading) == EMPTY == "section"


@pytest.mark.parametrize(
    ("bases", "expected"),
    [
        (["echo", "echo", "echo-1", "echo-1", "echo"], ["echo", "echo-1", "echo-1-1", "echo-1-2", "echo-2"]),
        (["foxtrot-1", "foxtrot", "foxtrot"], ["foxtrot-1", "foxtrot", "foxtrot-2"]),
        (["-a-", "-a-"], ["-a-", "-a--1"]),
        (["golf", "golf", "golf"], ["golf", "golf-1", "golf-2"]),
        (["a", "a", "a-1", "a"], ["a", "a-1", "a-1-1", "a-2"]),
        (["a", "a-1", "a", "a"], ["a", "a-1", "a-2", "a-3"]),
    ],
)
def test_repeats_are_numbered_as_github_slugger_does(bases: list[str], expected: list[str]) -> None:
    slugger = Slugger()
    assert [slugger.unique(base) for base in bases] == expected


@given(st.lists(st.sampled_from(["a", "a-1", "a-1-1", "a-2", "b"]), max_size=60))
def test_no_two_headings_of_a_file_share_a_slug(bases: list[str]) -> None:
    slugger = Slugger()
    given_out = [slugger.unique(base) for base in bases]
    assert len(set(given_out)) == len(given_out)


@given(st.text(max_size=80))
def test_any_text_has_a_slug_without_spaces_or_punctuation(heading: str) -> None:
    made = slug(heading)
    assert made
    assert not set(made) & set(" #./\\:?!,()[]\n\r\t")
