"""Two short texts in, whether they say the same, or something else about the same, out. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from memory_tools.tokens import STOP

KEPT = 2_000  # texts
SAME = 0.9  # shared words over all words of both
SUBJECT, OVERLAP, LEAST = 0.5, 0.3, 3  # shared words over the shorter one's, over both's, and at least


@dataclass(frozen=True, slots=True)
class Words:
    content: frozenset[str]
    numbers: frozenset[str]


class Likeness:
    """Compares blocks by position; each text is read once. `words`: of those that were read before."""

    def __init__(self, text: Callable[[int], str], words: dict[int, Words] | None = None) -> None:
        self._text = text
        self._words = {} if words is None else words

    def words(self, position: int) -> Words:
        known = self._words.get(position)
        if known is None:
            if len(self._words) > KEPT:
                self._words.clear()
            known = self._words[position] = words_of(self._text(position))
        return known

    def same(self, a: int, b: int) -> bool:
        """The same but for a few words; with another number in it, it is not the same."""
        return _same(self.words(a), self.words(b))

    def others(self, a: int, candidates: Iterable[int]) -> list[int]:
        """Which candidates are about the same thing as a, and not the same: one may correct the other."""
        one = self.words(a)
        return [b for b in candidates if _other(one, self.words(b))]


def _other(one: Words, other: Words) -> bool:
    shared = len(one.content & other.content)
    if shared < LEAST or shared < SUBJECT * min(len(one.content), len(other.content)):
        return False
    return shared >= OVERLAP * (len(one.content) + len(other.content) - shared) and not _same(one, other)


def _same(one: Words, other: Words) -> bool:
    if one.numbers != other.numbers:
        return False
    shared = len(one.content & other.content)
    return shared >= SAME * (len(one.content) + len(other.content) - shared)


def words_of(text: str) -> Words:
    """A text's words without stop words, runs without spaces as pairs; and its numbers. Rougher than the index's, and much faster."""
    if text.isascii():
        words = frozenset(_ASCII.findall(text.lower())) - STOP
        return Words(words, frozenset(word for word in words if not word.isalpha()))
    content: set[str] = set()
    numbers: set[str] = set()
    runs, unspaced = _patterns()
    for run in runs.findall(text.lower()):
        if unspaced.match(run):
            pairs = [run[i : i + 2] for i in range(len(run) - 1)] or [run]
            content.update(pairs)
            numbers.update(pair for pair in pairs if not _HAN_NUMBERS.isdisjoint(pair))
        elif run not in STOP:
            content.add(run)
            if not run.isalpha():
                numbers.add(run)
    return Words(frozenset(content), frozenset(numbers))


_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7a3\U00020000-\U000323af"
_ASCII = re.compile("[a-z0-9_]+")
_HAN_NUMBERS = frozenset("一二三四五六七八九十百千万两零〇半")


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Runs of letters with or without spaces between words; what the latter begin with. Compiled for the first text that is not ASCII."""
    return re.compile(f"[{_SPACELESS}]+|[^\\W{_SPACELESS}]+"), re.compile(f"[{_SPACELESS}]")
