"""A heading's text to its GitHub-style slug, and repeats to unique ones. Pure."""

from __future__ import annotations

import re
import unicodedata

EMPTY = "section"  # the slug of a heading without letters, digits, marks, `_` or `-`

_ASCII_DROPPED = re.compile(r"[^a-z0-9_\- ]")
# Letters, marks, decimal digits, letter-like numerals and connectors stay, as github-slugger's table keeps them.
_KEPT = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "Pc"})


def _keep(char: str) -> bool:
    if char in " -":
        return True
    if unicodedata.category(char) in _KEPT:
        return True
    # Circled and squared Latin letters are symbols by category and still Alphabetic.
    return "\u24b6" <= char <= "\u24e9" or "\U0001f130" <= char <= "\U0001f149" or (
        "\U0001f150" <= char <= "\U0001f169" or "\U0001f170" <= char <= "\U0001f189"
    )


def slug(heading: str) -> str:
    """Lower case, punctuation and symbols dropped, letters of every script kept, each space a `-`; never empty."""
    lowered = heading.lower()
    kept = _ASCII_DROPPED.sub("", lowered) if lowered.isascii() else "".join(c for c in lowered if _keep(c))
    return kept.replace(" ", "-") or EMPTY


class Slugger:
    """Unique slugs within one file: `a`, `a-1`, `a-2`."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def unique(self, base: str) -> str:
        """`base` is a slug; the answer differs from every earlier one."""
        result = base
        # The suffixed form may itself be a heading ("a", "a-1", "a").
        while result in self._seen:
            self._seen[base] += 1
            result = f"{base}-{self._seen[base]}"
        self._seen[result] = 0
        return result
