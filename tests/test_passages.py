"""What of the scored blocks the reader gets to see: joined, folded, cut, and what corrects what."""

from __future__ import annotations

import unicodedata
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notes import Notes

from memory_tools.likeness import Likeness
from memory_tools.passages import LONGEST
from memory_tools.snippets import matches, shorten
from memory_tools.tokens import query_terms, tokenize


def stems(text: str) -> list[str]:
    return [term.text for term in query_terms(text) if term.kind != "stop"]


# --- near-duplicates -----------------------------------------------------------


def test_near_duplicates_are_folded_into_one_with_a_count() -> None:
    """case 12"""
    same = "The nightly backup of the orders database runs at three and is kept for thirty days."
    files = {
        f"memory/2026-01-{day:02}.md": f"# Day {day}\n\n- {same}\n- Something else happened on that very day.\n" for day in range(1, 9)
    }
    found = Notes(files).search("when does the backup of the orders database run?")
    hits = [p for p in found if p.terms and "backup" in p.terms]
    assert len(hits) == 1
    assert hits[0].similar == 7


def test_of_duplicates_the_newest_is_shown() -> None:
    """case 12"""
    files = {f"memory/2026-01-0{day}.md": "# Day\n\n- Renew the certificate of the registry.\n" for day in (3, 7, 5)}
    notes = Notes(files)
    assert notes.place[notes.search("registry certificate")[0].first][0] == "memory/2026-01-07.md"


def test_another_number_is_no_duplicate() -> None:
    notes = Notes({"a.md": "- The build takes 14 minutes on the small machine.\n- The build takes 19 minutes on the small machine.\n"})
    assert sum(p.last - p.first + 1 for p in notes.search("how long does the build take on the small machine")) == 2


# --- contradictions ------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "query"),
    [
        (
            "The API timeout is 30 seconds for every client.",
            "The API timeout is 60 seconds for every client now.",
            "what is the API timeout for a client",
        ),
        (
            "Production backups run at three in the morning.",
            "Production backups now run at five in the morning.",
            "when do production backups run?",
        ),
        ("生产数据库每天凌晨三点自动备份。", "生产数据库改为每天凌晨五点自动备份。", "生产数据库几点备份"),
    ],
)
def test_the_newer_of_two_that_contradict_comes_first_and_says_so(old: str, new: str, query: str) -> None:
    for first, second in ((old, new), (new, old)):
        notes = Notes({"memory/2026-01-05.md": f"# a\n\n- {first}\n", "memory/2026-02-05.md": f"# b\n\n- {second}\n"})
        found = notes.search(query, now=datetime(2026, 3, 1))
        assert notes.place[found[0].first][0] == "memory/2026-02-05.md"
        assert [notes.place[p][0] for p in found[0].differs] == ["memory/2026-01-05.md"]
        assert found[0].relevance >= found[1].relevance


def test_what_is_about_something_else_is_no_contradiction() -> None:
    notes = Notes(
        {"memory/2026-01-05.md": "- The gateway runs on port 8080.\n", "memory/2026-02-05.md": "- The mailer was rewritten in Go.\n"}
    )
    assert all(not p.differs for p in notes.search("gateway port"))


# --- joining -------------------------------------------------------------------


def test_neighbours_that_match_as_well_are_one_passage() -> None:
    notes = Notes(
        {
            "a.md": "# Trip\n\n- The cat is with Ines.\n"
            "- Trains to Lisbon are booked.\n- Hotels in Lisbon are booked.\n- The dog is with Jo.\n"
        }
    )
    found = notes.search("what is booked in Lisbon?")
    assert notes.shown(found[0]) == "- Trains to Lisbon are booked.\n- Hotels in Lisbon are booked."


def test_what_a_colon_announces_comes_with_it() -> None:
    notes = Notes(
        {"a.md": "# Ops\n\nTo roll back the gateway release, run this:\n\n```bash\nkubectl undo\n```\n\nOther text about cats.\n"}
    )
    assert "kubectl undo" in notes.answers("how do I roll back the gateway release?")[0]


def test_a_passage_never_leaves_its_section() -> None:
    notes = Notes({"a.md": "# One\n\n- apples are red\n\n# Two\n\n- apples are green\n"})
    for p in notes.search("apples are"):
        assert notes.corpus.section[p.first] == notes.corpus.section[p.last]


# --- cutting -------------------------------------------------------------------

LONG = "Filler words go on here. " * 60 + "The spare key is with the neighbours at number 14. " + "More filler follows after it. " * 60


def test_a_long_line_is_searchable_to_its_end_and_shown_around_the_match() -> None:
    """cases 10 and 11"""
    notes = Notes({"a.md": f"# Home\n\n{LONG}\n"})
    found = notes.search("spare key neighbours", limit=1)
    shown = notes.shown(found[0])
    assert "spare key is with the neighbours" in shown
    assert shown in notes.files["a.md"]
    assert len(shown) <= LONGEST


def test_a_small_budget_cuts_the_best_and_does_not_drop_it_for_a_short_one() -> None:
    """case 37"""
    notes = Notes({"a.md": f"# Home\n\n{LONG[:900]} The spare key is with the neighbours, ask for the spare key. {LONG[:60]}\n\n- key\n"})
    found = notes.search("where is the spare key of the neighbours", max_chars=120)
    assert "spare key" in notes.shown(found[0])
    assert sum(len(notes.shown(p)) for p in found) <= 120


@pytest.mark.parametrize("budget", [1, 10, 60, 200, 1000])
def test_a_budget_is_kept(budget: int) -> None:
    """case 37"""
    notes = Notes({"a.md": "# Trip\n\n" + "\n".join(f"- Lisbon plan number {i} with some more words" for i in range(30)) + "\n"})
    found = notes.search("Lisbon plan", max_chars=budget, limit=30)
    assert found
    assert 0 < sum(len(notes.shown(p)) for p in found) <= budget


def test_the_snippet_holds_most_of_the_words_asked_for_and_starts_tidily() -> None:
    """case 11"""
    start, end = shorten(LONG, stems("spare key neighbours"), 120)
    assert "The spare key is with the neighbours at number 14." in LONG[start:end]
    assert start == 0 or LONG[start - 1].isspace()


def test_chinese_text_is_cut_around_its_match() -> None:
    text = "这里是一些无关的文字。" * 40 + "备用钥匙在邻居家里。" + "后面还有别的内容。" * 40
    start, end = shorten(text, stems("备用钥匙"), 40)
    assert "备用钥匙" in text[start:end]
    assert end - start <= 40


@pytest.mark.parametrize("cluster", ["👩‍👩‍👧‍👦", "🇩🇪", "é", "👍🏽", "각"])
def test_no_visible_character_is_split(cluster: str) -> None:
    """case 11"""
    text = cluster * 60
    for room in range(len(cluster), 4 * len(cluster) + 1):
        start, end = shorten(text, (), room)
        assert end - start <= room
        assert text[start:end] == cluster * ((end - start) // len(cluster))


@settings(max_examples=150)
@given(st.text(max_size=300), st.integers(0, 120), st.text(max_size=20))
def test_any_text_is_cut_to_the_room_and_keeps_a_match_where_one_fits(text: str, room: int, query: str) -> None:
    terms = stems(query)
    start, end = shorten(text, terms, room)
    assert 0 <= start <= end <= len(text)
    assert end - start <= room
    hits = matches(text, terms)
    if hits and room >= 40 and all(b - a <= room for a, b, _ in hits):
        assert any(start <= a and b <= end for a, b, _ in hits)


# --- order ---------------------------------------------------------------------

WORDS = ["gateway", "port", "backup", "Lisbon", "ticket", "key", "boiler", "paint", "8080", "14", "Tomasz", "Priya"]
LINES = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=14)


@settings(max_examples=60, deadline=None)
@given(LINES, LINES, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), st.integers(1, 12))
def test_the_first_results_are_the_same_for_every_larger_limit(one: list[str], other: list[str], query: str, limit: int) -> None:
    notes = Notes(
        {
            "MEMORY.md": "# A\n\n" + "\n".join(f"- {line}" for line in one) + "\n",
            "memory/2026-01-01.md": "# B\n\n" + "\n\n".join(other) + "\n",
            "memory/2026-01-02.md": "# C\n\n" + "\n".join(f"- {line}" for line in other[::-1]) + "\n",
        }
    )
    few, many = notes.search(query, limit=limit), notes.search(query, limit=50)
    assert few == many[:limit]
    assert [p.relevance for p in many] == sorted((p.relevance for p in many), reverse=True)
    covered = [position for p in many for position in range(p.first, p.last + 1)]
    assert len(covered) == len(set(covered))
    assert all(0.0 <= p.relevance <= 1.0 for p in many)
    assert all(notes.shown(p) in notes.files[notes.place[p.first][0]] for p in many)


def test_likeness_tells_same_other_and_unrelated() -> None:
    texts = [
        "The timeout is 30 seconds for clients",
        "The timeout is 30 seconds for clients!",
        "The timeout is 60 seconds for clients",
        "Cats sleep",
    ]
    likeness = Likeness(lambda i: texts[i])
    assert likeness.same(0, 1)
    assert not likeness.same(0, 2)
    assert likeness.others(0, (1, 2, 3)) == [2]


def test_a_term_is_found_where_its_other_form_stands() -> None:
    text = "We were running three servers."
    assert [text[a:b].rstrip(".") for a, b, _ in matches(text, [*tokenize("server"), *tokenize("run")])] == ["running", "servers"]
    assert unicodedata.normalize("NFC", "é") == "é"
