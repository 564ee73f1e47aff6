"""Dates in questions and in the names of notes."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tools.dates import YEARS_BACK, mentions, note_day, query_days

NOW = datetime(2026, 3, 20, 9, 30)  # a Friday


def days(text: str) -> list[tuple[str, str]]:
    return [(date.fromordinal(r.first).isoformat(), date.fromordinal(r.last).isoformat()) for r in query_days(text, NOW)]


@pytest.mark.parametrize(
    "text",
    [
        "what happened on 2023-05-08",
        "2023/5/8",
        "2023.05.08",
        "20230508",
        "8 May 2023",
        "the 8th of May, 2023",
        "May 8th, 2023",
        "on may 8 2023?",
        "8.5.2023",
        "am 8. Mai 2023",
        "le 8 mai 2023",
        "el 8 de mayo de 2023",
        "8 мая 2023",
        "2023年5月8日",
        "2023年5月8号的会议",
        "二〇二三年五月八号",
        "2023년 5월 8일",
    ],
)
def test_one_day_is_read_however_it_is_written(text: str) -> None:
    assert days(text) == [("2023-05-08", "2023-05-08")]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("yesterday", "2026-03-19", "2026-03-19"),
        ("昨天说了什么", "2026-03-19", "2026-03-19"),
        ("gestern", "2026-03-19", "2026-03-19"),
        ("前天", "2026-03-18", "2026-03-18"),
        ("today", "2026-03-20", "2026-03-20"),
        ("three days ago", "2026-03-17", "2026-03-17"),
        ("三天前", "2026-03-17", "2026-03-17"),
        ("two weeks ago", "2026-03-03", "2026-03-09"),
        ("last week", "2026-03-09", "2026-03-15"),
        ("上周", "2026-03-09", "2026-03-15"),
        ("上周三", "2026-03-11", "2026-03-11"),
        ("last Monday", "2026-03-16", "2026-03-16"),
        ("last weekend", "2026-03-14", "2026-03-15"),
        ("this month", "2026-03-01", "2026-03-31"),
        ("上个月", "2026-02-01", "2026-02-28"),
        ("last summer", "2025-06-01", "2025-08-31"),
        ("summer 2021", "2021-06-01", "2021-08-31"),
        ("in 2023", "2023-01-01", "2023-12-31"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("去年", "2025-01-01", "2025-12-31"),
        ("去年五月", "2025-05-01", "2025-05-31"),
        ("October 2025", "2025-10-01", "2025-10-31"),
    ],
)
def test_relative_and_longer_spans_are_read_against_now(text: str, first: str, last: str) -> None:
    assert days(text) == [(first, last)]


@pytest.mark.parametrize(
    ("text", "first"), [("last May", "2025-05-01"), ("in March", "2026-03-01"), ("三月五号", "2026-03-05"), ("3月5日", "2026-03-05")]
)
def test_a_month_without_a_year_is_most_likely_the_last_one(text: str, first: str) -> None:
    ranges = query_days(text, NOW)
    assert date.fromordinal(ranges[0].first).isoformat() == first
    assert ranges[0].weight == 1.0
    assert {r.weight for r in ranges[1:]} == {0.5}
    assert len(ranges) <= YEARS_BACK + 1


@pytest.mark.parametrize(
    "text",
    [
        "may I ask who did that",
        "march on",
        "version 1.0.21",
        "port 8080",
        "it took three hours",
        "2023-13-45",
        "31.02.2025",
        "",
    ],
)
def test_what_is_no_date_is_not_taken_for_one(text: str) -> None:
    assert days(text) == []


def test_a_numeric_date_that_reads_two_ways_is_read_both_ways() -> None:
    assert days("on 3/5/2026") == [("2026-05-03", "2026-05-03"), ("2026-03-05", "2026-03-05")]


def test_mentions_tell_where_they_are_and_do_not_overlap() -> None:
    text = "Between 2026-01-02 and last week, on May 3, 2025"
    found = mentions(text, NOW)
    assert [text[m.start : m.end] for m in found] == ["2026-01-02", "last week", "May 3, 2025"]


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("memory/2026-03-05.md", "2026-03-05"),
        ("memory/2026-03-05-retro.md", "2026-03-05"),
        ("memory/20260305.md", "2026-03-05"),
        ("memory/2026/03/05.md", "2026-03-05"),
        ("memory/2026_03_05.md", "2026-03-05"),
    ],
)
def test_a_note_named_after_a_day_is_of_that_day(path: str, day: str) -> None:
    assert note_day(path) == date.fromisoformat(day).toordinal()


@pytest.mark.parametrize(
    "path", ["MEMORY.md", "memory/2026-13-45.md", "memory/2026-02-30.md", "knowledge/rfc-2119.md", "memory/12026-03-051.md"]
)
def test_other_names_have_no_day(path: str) -> None:
    assert note_day(path) == 0


@given(st.dates(min_value=date(1950, 1, 1), max_value=date(2099, 12, 31)))
def test_iso_dates_are_read_exactly(day: date) -> None:
    assert [(r.first, r.last) for r in query_days(f"notes of {day.isoformat()}, please", NOW)] == [(day.toordinal(), day.toordinal())]


@given(st.text(max_size=60))
def test_no_text_fails_and_every_mention_is_in_the_text(text: str) -> None:
    for mention in mentions(text, NOW):
        assert 0 <= mention.start < mention.end <= len(text)
        assert all(1 <= r.first <= r.last for r in mention.ranges)


WORDS = "last next this 3 12 2023 may monday week 年 月 5 日 上 周 三 ago days in of 99 0 - 二 个 前"


@given(st.lists(st.sampled_from(WORDS.split(" ")), min_size=1, max_size=7))
def test_any_mix_of_date_words_is_read_without_failing(words: list[str]) -> None:
    for joined in (" ".join(words), "".join(words)):
        for mention in mentions(joined, NOW):
            assert all(1 <= r.first <= r.last for r in mention.ranges)
