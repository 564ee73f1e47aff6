"""A question's text in, what its words ask for out. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from memory_tools.tokens import STOP, tokenize

_WHEN = re.compile(
    r"(?:^|[.?!,;:]|\b(?:and|or|since|know|remember|say|said|tell))\s*(?:exactly\s+)?when\b"  # not "what helps when it rains"
    r"|\b(?:how long|how recently|what (?:year|month|date|day|time)|which (?:year|month|date|day))\b"
    r"|(?:^|[.?!,;:¿])\s*(?:wann|quand|cuándo|quando|когда)\b"
    r"|\b(?:seit wann|bis wann|wie lange|depuis quand|desde cuándo|сколько времени)\b"
    r"|什么时候|何时|何時|几点|哪天|哪一天|多久|哪年|几月|几号|いつ|何日|何月|언제|며칠",
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_PIECE = re.compile(r"\s+|[^\s]+")
_UNSPACED = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\U00020000-\U000323af]")
_UNSPACED_RUN = re.compile(f"({_UNSPACED.pattern}+)")


def asks_when(text: str) -> bool:
    """Whether the answer is a time."""
    return _WHEN.search(text.lower()) is not None


def names(text: str) -> list[list[str]]:
    """What looks like a name: words in title case that do not begin a sentence, each as its tokens."""
    found = []
    for match in _WORD.finditer(text):
        word = match[0]
        before = text[: match.start()].rstrip(" \t\n\"'“‘«(*_")
        if not before or before[-1] in ".!?:;。！？" or not (word[0].isupper() and word[1:].islower()) or word.lower() in STOP:
            continue
        found.append(tokenize(word))
    return [tokens for tokens in found if tokens]


def between(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text without the spans (ascending, apart)."""
    out, at = [], 0
    for start, end in spans:
        out.append(text[at:start])
        at = end
    return " ".join([*out, text[at:]])


def without(text: str, names: Collection[str]) -> str:
    """The text without the words whose tokens are all in `names`; the text itself where nothing else would be left."""
    if not names:
        return text
    kept = []
    for piece in _PIECE.findall(text):
        if _UNSPACED.search(piece):
            for name in sorted(names, key=lambda name: (-len(name), name)):
                piece = piece.replace(name, "")
            kept.append(piece)
            continue
        tokens = tokenize(piece)
        if not tokens or not all(token in names for token in tokens):
            kept.append(piece)
    rest = " ".join("".join(kept).split())
    return rest if tokenize(rest) else text


def words_held(phrasings: Sequence[str], terms: Sequence[str]) -> list[str]:
    """The question's own words whose tokens are among `terms` (the weightiest first), for a reader: stems and pairs of characters are none.

    Stop words only where there is nothing else; the terms themselves where no word is recognised.
    """
    rank = {term: at for at, term in enumerate(terms)}
    found: dict[str, int] = {}
    for piece in (part for text in phrasings for part in _UNSPACED_RUN.split(text)):
        if _UNSPACED_RUN.fullmatch(piece):
            _runs_held(piece, rank, found)
            continue
        for word in piece.split():
            tokens, bare = _tokens(word)
            held = [token for token in tokens if token in rank]
            for shown in [bare] if held and len(held) == len(tokens) else held:
                found.setdefault(shown, min(rank[token] for token in held))
    said = [word for word in found if word.lower() not in STOP] or list(found)
    return sorted(said, key=lambda word: (found[word], word)) or list(terms)


@lru_cache(maxsize=128)  # a question's words, for each of its results
def _tokens(word: str) -> tuple[list[str], str]:
    return tokenize(word), word.strip("\"'“”‘’«».,:;!?()[]…")


def _runs_held(run: str, rank: Mapping[str, int], found: dict[str, int]) -> None:
    """Stretches of a text without spaces that pairs of characters cover; characters alone where no pair does."""
    size = 2 if any(run[i : i + 2] in rank for i in range(len(run) - 1)) else 1
    start, end, best = 0, 0, len(rank)  # the stretch so far; a pair that does not overlap with it begins another one
    for i in range(len(run) - size + 1):
        at = rank.get(run[i : i + size])
        if at is None:
            continue
        if i >= end > start:
            found.setdefault(run[start:end], best)
            end = start
        if end == start:
            start, best = i, len(rank)
        end, best = i + size, min(best, at)
    if end > start:
        found.setdefault(run[start:end], best)
