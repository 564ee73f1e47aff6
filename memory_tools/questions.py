"""A question's text in, what its words ask for out. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from memory_tools.tokens import tokenize

_WHEN = re.compile(
    r"\b(?:when|how long|how recently|since when|what (?:year|month|date|day|time)|which (?:year|month|date|day))\b"
    r"|\b(?:wann|seit wann|wie lange|quand|cuándo|cuando|quando|когда|сколько времени)\b"
    r"|什么时候|何时|何時|几点|哪天|哪一天|多久|哪年|几月|几号|いつ|何日|何月|언제|며칠",
    re.IGNORECASE,
)
_PIECE = re.compile(r"\s+|[^\s]+")
_UNSPACED = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\U00020000-\U000323af]")


def asks_when(text: str) -> bool:
    """Whether the answer is a time."""
    return _WHEN.search(text) is not None


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
