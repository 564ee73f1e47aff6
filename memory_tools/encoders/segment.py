"""Text in, vocabulary piece ids out: the normaliser and the unigram segmentation of the default encoder, over mapped tables.

The same ids as the library's own tokenizer (held equal by tests), reached differently because a fresh process must be ready at once: the
vocabulary is a sorted list of pieces in a mapped file that is searched by halves, so that a query touches a few pages of it instead of
building a dictionary of 250,000 prefixes. Two facts of this vocabulary make it quick, and `tables.build` refuses one without them: no piece
holds a word boundary inside, so that words are segmented one by one and remembered; and only 175 characters (combining marks, vowel signs,
jamo) can join the character before them, so that text without those is normalised one character at a time.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable

BOUNDARY = "\u2581"  # stands before each word in the vocabulary's pieces
_UNKNOWN, _BEGIN, _END = 0, 1, 2
_MAX_WORDS = 100_000  # words remembered, about 25 MB; then forgotten, so that a long-running process does not grow
_MAX_PREFIXES = 400_000
_LABEL = 0x800000FF  # a trie unit's label, with the bit that marks a leaf
_SURROGATES = re.compile("[\ud800-\udfff]")


class Characters(dict[int, str]):
    """Code point -> its normalised text, worked out when first met. Also normalises runs of characters that join."""

    def __init__(self, units: memoryview, replacements: bytes, joining: str) -> None:
        super().__init__()
        self._units = units  # double-array trie over UTF-8 bytes: unit = offset, leaf flag, label
        self._replacements = replacements  # NUL-terminated UTF-8 strings, addressed by the trie's values
        self._joins = re.compile(f"[{re.escape(joining)}]") if joining else re.compile("(?!)")

    def __missing__(self, code: int) -> str:
        raw = chr(code).encode("utf-8")
        found = self._longest(raw, 0)
        text = self[code] = found[0].decode("utf-8") if found else chr(code)
        return text

    def normalise(self, text: str) -> str:
        """`text` with every known sequence replaced, longest first; spaces are left for the caller."""
        if text.isascii() and text.isprintable():
            return text
        if not self._joins.search(text):
            return text.translate(self)
        raw, out, at = text.encode("utf-8"), bytearray(), 0
        while at < len(raw):
            found = self._longest(raw, at)
            if found:
                out += found[0]
                at += found[1]
                continue
            size = 1 if raw[at] < 0x80 else 2 if raw[at] < 0xE0 else 3 if raw[at] < 0xF0 else 4
            out += raw[at : at + size]
            at += size
        return out.decode("utf-8")

    def _longest(self, raw: bytes, at: int) -> tuple[bytes, int] | None:
        """The longest known sequence at `at`: (its replacement, its length in bytes)."""
        units, value, length = self._units, -1, 0
        unit = units[0]
        node = (unit >> 10) << ((unit & 0x200) >> 6)
        for i in range(at, len(raw)):
            node ^= raw[i]
            unit = units[node]
            if (unit & _LABEL) != raw[i]:
                break
            node ^= (unit >> 10) << ((unit & 0x200) >> 6)
            if unit & 0x100:
                value, length = units[node] & 0x7FFFFFFF, i + 1 - at
        if value < 0 or value >= len(self._replacements):
            return None
        return self._replacements[value : self._replacements.index(0, value)], length


class Prefixes(dict[str, int]):
    """String -> piece id + 1, 0 where it only begins a piece, -1 where no piece begins with it. Worked out when first met."""

    def __init__(self, pieces: Callable[[int], bytes], ids: memoryview) -> None:
        super().__init__()
        self._pieces = pieces  # the n-th piece in byte order
        self._ids = ids
        self._starts: dict[str, tuple[int, int]] = {}  # first two characters -> their stretch of the list

    def __missing__(self, prefix: str) -> int:
        if len(self) >= _MAX_PREFIXES:
            self.clear()
        key = prefix.encode("utf-8")
        low, high = self._stretch(prefix[:2]) if len(prefix) > 2 else (0, len(self._ids))
        at = bisect_left(range(high), key, low, high, key=self._pieces)
        value = -1
        if at < high:
            piece = self._pieces(at)
            if piece.startswith(key):
                value = self._ids[at] + 1 if len(piece) == len(key) else 0
        self[prefix] = value
        return value

    def _stretch(self, start: str) -> tuple[int, int]:
        known = self._starts.get(start)
        if known is None:
            key, everything = start.encode("utf-8"), len(self._ids)
            low = bisect_left(range(everything), key, key=self._pieces)
            high = bisect_left(range(everything), key + b"\xff", low, key=self._pieces)  # no UTF-8 byte is 0xff
            known = self._starts[start] = (low, high)
        return known


class Segmenter:
    """Text -> piece ids. Words are remembered, which makes repeated text (any real notes) several times faster."""

    def __init__(self, characters: Characters, prefixes: Prefixes, scores: memoryview, unknown_score: float, longest: int) -> None:
        self._characters = characters
        self._prefixes = prefixes
        self._scores = scores
        self._longest = longest
        self._unknown_score = unknown_score
        self._words: dict[str, list[int]] = {}

    def ids(self, text: str) -> list[int]:
        """Begin, pieces, end; the empty list for a text of which nothing is left after normalising."""
        if _SURROGATES.search(text):  # a lone surrogate has no UTF-8; a mark is as good as any other unknown character
            text = _SURROGATES.sub("\ufffd", text)
        out = [_BEGIN]
        for chunk in text.split(" "):
            known = self._words.get(chunk)
            if known is None:
                known = self._chunk(chunk)
                if len(chunk) <= 64:
                    if len(self._words) >= _MAX_WORDS:
                        self._words.clear()
                    self._words[chunk] = known
            out += known
        out.append(_END)
        return out if len(out) > 2 else []

    def _chunk(self, chunk: str) -> list[int]:
        """What stands between two spaces: normalising may turn characters of it into spaces."""
        out: list[int] = []
        for word in self._characters.normalise(chunk).split(" "):
            if word:
                out += self._word(BOUNDARY + word)
        return out

    def _word(self, word: str) -> list[int]:
        """Best path by the sum of the pieces' scores; on equal sums the one whose last piece begins earliest. Sums are exact in double."""
        size, longest, prefixes, scores = len(word), self._longest, self._prefixes, self._scores
        best = [0.0] + [-1e38] * size
        came_from = [0] * (size + 1)
        piece = [_UNKNOWN] * (size + 1)
        for start in range(size):
            base = best[start]
            single = False
            for end in range(start + 1, min(start + longest, size) + 1):
                found = prefixes[word[start:end]]
                if found < 0:
                    break
                if found:
                    total = base + scores[found - 1]
                    if total > best[end]:
                        best[end], came_from[end], piece[end] = total, start, found - 1
                    single = single or end == start + 1
            if not single and base + self._unknown_score > best[start + 1]:
                best[start + 1], came_from[start + 1], piece[start + 1] = base + self._unknown_score, start, _UNKNOWN
        ids, end = [], size
        while end:
            ids.append(piece[end])
            end = came_from[end]
        ids.reverse()
        return ids
