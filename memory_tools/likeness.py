"""Two short texts in, whether they say the same, or something else about the same, out. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memory_tools.tokens import query_terms

SAME = 0.9  # shared words over all words of both
SUBJECT, OVERLAP, LEAST = 0.5, 0.3, 3  # shared words over the shorter one's, over both's, and at least


@dataclass(frozen=True, slots=True)
class Words:
    content: frozenset[str]
    numbers: frozenset[str]


class Likeness:
    """Compares blocks by position; each text is read once."""

    def __init__(self, text: Callable[[int], str]) -> None:
        self._text = text
        self._words: dict[int, Words] = {}

    def words(self, position: int) -> Words:
        if position not in self._words:
            self._words[position] = words_of(self._text(position))
        return self._words[position]

    def same(self, a: int, b: int) -> bool:
        """The same but for a few words; with another number in it, it is not the same."""
        one, other = self.words(a), self.words(b)
        if one.numbers != other.numbers:
            return False
        both = one.content | other.content
        return not both or len(one.content & other.content) >= SAME * len(both)

    def other(self, a: int, b: int) -> bool:
        """About the same thing, and not the same: one may correct the other."""
        one, other = self.words(a), self.words(b)
        shared = len(one.content & other.content)
        if shared < LEAST or shared < SUBJECT * min(len(one.content), len(other.content)):
            return False
        return shared >= OVERLAP * len(one.content | other.content) and not self.same(a, b)


def words_of(text: str) -> Words:
    """What a text's words and numbers are, as the index has them, without stop words and single characters of a longer run."""
    content = frozenset(t.text for t in query_terms(text) if t.kind != "stop" and not (t.kind == "cjk" and t.weight < 1))
    return Words(content, frozenset(word for word in content if any(c.isdigit() for c in word) or any(c in _HAN_NUMBERS for c in word)))


_HAN_NUMBERS = frozenset("一二三四五六七八九十百千万两零〇半")
