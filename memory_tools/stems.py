"""An English word in lower case to its stem: plurals, -ed, -ing and a few common endings, by well-known rules. Pure."""

from __future__ import annotations

import re

_WORD = re.compile(r"[a-z]{4,}")
_VOWEL = re.compile(r"[aeiouy]")
_DOUBLE = re.compile(r"([bdfgmnprt])\1$")
_CVC = re.compile(r"[^aeiou][aeiouy][^aeiouwxy]$")
_IRREGULAR = {"news": "news", "this": "this", "series": "series", "species": "species", "lens": "lens"}


def stem(word: str) -> str:
    """`servers` to `server`, `running` to `run`, `cities` to `citi` as `city`. What is not plain a-z, or short, stays as it is."""
    if _WORD.fullmatch(word) is None:
        return word
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    word = _plural(word)
    if word.endswith("ied") and len(word) > 4:
        return word[:-2]
    for suffix in ("ing", "ed"):
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            if len(base) < 2 or _VOWEL.search(base) is None or word.endswith("eed"):
                break
            word = _restored(base)
            break
    if word.endswith("y") and len(word) > 3 and word[-2] not in "aeiou":
        word = word[:-1] + "i"
    elif word.endswith("e") and len(word) > 4:
        word = word[:-1]
    return word


def _plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("ies") and len(word) > 4:
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _restored(base: str) -> str:
    """The verb before -ing or -ed: `hopp` is hop, `mak` is make; both forms end the same after the final e is dropped."""
    if _DOUBLE.search(base):
        return base[:-1]
    return base
