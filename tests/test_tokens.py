"""Tokens: every script is searchable, identifiers survive, and a note and a question meet in the same tokens."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_tools.stems import stem
from memory_tools.tokens import MAX_CHARS, query_terms, tokenize


def meet(query: str, text: str) -> set[str]:
    """The tokens of weight that a query and a text share; stop words and weak characters left out."""
    return {term.text for term in query_terms(query) if term.weight >= 0.3} & set(tokenize(text))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("飞", "飞书插件"),
        ("飞书", "我们把飞书插件迁移到新服务器"),
        ("飞书迁移", "飞书插件已经迁移"),  # not adjacent
        ("超时怎么处理", "API 超时后重试三次"),
        ("gen-itgc", "gen-itgc后的审计"),
        ("gen-itgc后", "审计用 gen-itgc后 的脚本"),
        ("飞書", "飛書と飞書"),
        ("カメラ", "新しいカメラを買った"),
        ("ｶﾒﾗ", "カメラ"),
        ("がっこう", "がっこうへ行く"),
        ("한국어", "한국어를 배운다"),
        ("배운", "한국어를 배운다"),
        ("ภาษา", "ฉันเรียนภาษาไทย"),
        ("ปี", "สามปีก่อน"),
        ("हिन्दी", "मैं हिन्दी बोलता हूँ"),
        ("سلام", "سَلَام عليكم"),
        ("שלום", "שָׁלוֹם לכם"),
        ("москва", "Москва и МОСКВЫ"),
        ("ежик", "Ёжик в тумане"),
        ("αθηνα", "Αθήνα"),
        ("၁၂", "၁၂ ရက်"),
        ("🎉", "release day 🎉"),
        ("Ⅷ", "viii"),
    ],
)
def test_every_script_is_searchable(query: str, text: str) -> None:
    """case 1"""
    assert meet(query, text)


@pytest.mark.parametrize(
    "identifier",
    [
        *(
            "1.0.21",
            "2026.4.10",
            "E-4711",
            "9f8e7d6",
            "snake_case",
            "camelCase",
            "HTTPServer",
            "memory-tools",
            "v2.3.1",
            "10:30",
            "api.example.com",
        ),
        *(
            "C++",
            "C#",
            "gpt-4o",
            "utf8",
            "x86_64",
            "RFC2616",
            "foo@bar.com",
            "README.md",
            "OPENAI_API_KEY",
            "3.14",
            "__init__",
            "π4",
            "naïve_mode",
        ),
    ],
)
def test_an_identifier_is_found_whole_whatever_stands_around_it(identifier: str) -> None:
    """case 3"""
    whole = max(query_terms(identifier), key=lambda term: term.weight)
    for text in (
        identifier,
        f"see {identifier}, then",
        f"({identifier})",
        f"`{identifier}`",
        f"用{identifier}后",
        f"**{identifier}**:",
        f"“{identifier}”",
    ):
        assert whole.text in tokenize(text), text
        assert tokenize(text).count(whole.text) >= 1
    assert whole.kind == ("identifier" if not identifier.strip("_").isalpha() or identifier in ("camelCase", "HTTPServer") else "word")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("camel", "camelCase"),
        ("camelcase", "camelCase"),
        ("case", "snake_case"),
        ("4711", "E-4711"),
        ("itgc", "gen-itgc后"),
        ("api key", "APIKey"),
        ("server", "HTTPServer2"),
        ("1.0.21", "v1.0.21"),
        ("gpt", "gpt4"),
        ("2026", "2026.4.10"),
        ("20000", "20,000 characters"),
        ("20,000", "20000 characters"),
        ("example", "https://api.example.com/v1/embeddings?x=1"),
        ("embeddings", "https://api.example.com/v1/embeddings?x=1"),
        ("client.py", "src/api/client.py:42"),
        ("2026-03-05", "memory/2026-03-05-standup.md"),
        ("2026-03-05", "at 2026-03-05T11:00:00Z"),
        ("1.0.21", "app-1.0.21.tar.gz"),
        ("E-4711", "E‑4711"),
        ("configure", "con\u00adfig\u200bure"),
        ("github", "GitHub's"),
        ("ecole", "à l'école"),
        ("amore", "dell’amore"),
        ("brien", "O'Brien"),
        ("git", "how-to-configure-your-memory-with-markdown-files-and-vectors-in-git"),
        ("last", "x" * 80 + "_last"),
        ("كتاب", "کتاب"),
        ("می‌خواهم", "میخواهم"),
    ],
)
def test_a_part_of_an_identifier_is_found(query: str, text: str) -> None:
    """case 3"""
    assert meet(query, text)


@pytest.mark.parametrize(
    ("one", "other"), [("1.0.21", "1.0.22"), ("E-4711", "E-4712"), ("9f8e7d6", "9f8e7d7"), ("v1.0", "v2.0"), ("a_b", "a_c")]
)
def test_identifiers_that_differ_share_no_whole(one: str, other: str) -> None:
    assert not {t.text for t in query_terms(one) if t.weight == 1.0} & set(tokenize(other))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        *[
            ("servers", "server"),
            ("strasse", "Straße"),
            ("STRASSE", "straße"),
            ("naive", "naïve"),
            ("muller", "Müller"),
            ("cafe", "CAFÉ"),
            ("cafe\u0301", "café"),
        ],
        *[
            ("cities", "city"),
            ("running", "ran"),
            ("painted", "painting"),
            ("educate", "education"),
            ("Melanie", "Melanie's"),
            ("Melanie", "Melanie’s"),
        ],
        *[
            ("dont", "don't"),
            ("don’t", "don't"),
            ("ﬁle", "file"),
            ("Ｆｕｌｌ", "full"),
            ("istanbul", "İstanbul"),
            ("lodz", "Łódź"),
            ("aerø", "ÆRØ"),
        ],
    ],
)
def test_other_forms_of_a_word_are_found(query: str, text: str) -> None:
    """case 4"""
    assert {t.text for t in query_terms(query)} & set(tokenize(text))


@pytest.mark.parametrize(
    "forms",
    [
        *("make makes making made", "use uses using used", "try tries trying tried", "go goes going went gone", "add adds added adding"),
        *(
            "plan plans planned planning",
            "create creates created creation",
            "repeat repeats repeated repeating",
            "box boxes",
            "bus buses",
            "tree trees",
        ),
        *(
            "city cities",
            "family families",
            "happy happiness",
            "beauty beautiful",
            "quick quickly",
            "prepare prepared preparation",
            "die died dies dying",
        ),
        *("watch watches watched", "eat ate eaten eating", "child children", "format formats formatted", "agree agreed agrees"),
    ],
)
def test_the_forms_of_a_word_share_a_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1, {form: stem(form) for form in forms.split()}


@pytest.mark.parametrize(
    "words",
    ["even evening", "new news", "busy business", "sing string thing king", "status state", "red reed", "be bed", "is its", "server serve"],
)
def test_different_words_keep_different_stems(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == len(words.split())


@pytest.mark.parametrize("word", ["straße", "日志", "москва", "abc1", "a", "", "ünder"])
def test_what_is_not_plain_english_letters_is_not_stemmed(word: str) -> None:
    assert stem(word) == word


def test_stop_words_are_marked_and_kept() -> None:
    terms = {term.text: term for term in query_terms("What was the server for? 我们的服务器呢")}
    assert terms["the"].kind == terms["的"].kind == "stop"
    assert terms["the"].weight < terms["server"].weight
    assert terms["server"].kind == "word"
    assert terms["服务"].kind == "bigram"
    assert terms["服"].kind == "cjk"
    assert terms["服"].weight < terms["服务"].weight


def test_a_character_alone_weighs_like_a_word() -> None:
    """case 1"""
    assert query_terms("飞")[0].weight == 1.0


def test_the_terms_of_a_query_are_distinct_and_in_order() -> None:
    assert [term.text for term in query_terms("beta alpha BETA alpha")] == ["beta", "alpha"]
    assert query_terms("") == query_terms(" !?… ") == ()


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_tokens_never_fail_and_are_the_same_on_both_sides(text: str) -> None:
    tokens = tokenize(text)
    assert {term.text for term in query_terms(text)} == set(tokens)
    assert all(tokens)
    assert not any(token.isspace() or "\x1e" in token for token in tokens)
    assert all(0 < term.weight <= 1 for term in query_terms(text))


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.characters(codec="ascii"), max_size=80))
def test_the_fast_way_for_plain_text_gives_the_tokens_of_the_general_one(text: str) -> None:
    assert tokenize(text + " 。") == tokenize(text)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_case_and_normal_form_change_no_token_of_a_plain_word(text: str) -> None:
    import unicodedata

    for form in ("NFC", "NFD"):
        assert tokenize(unicodedata.normalize(form, text)) == tokenize(unicodedata.normalize("NFC", text))


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text", ["ﷺ" * 1_000_000, "a" * 5_000_000, "a\u0301" * 2_000_000, "记" * 2_000_000, "a-" * 1_000_000, "1," * 1_000_000, "\ud800" * 1000]
)
def test_a_hostile_text_is_bounded(text: str) -> None:
    assert len(tokenize(text)) <= 4 * MAX_CHARS
    assert len(query_terms(text)) < 10_000
