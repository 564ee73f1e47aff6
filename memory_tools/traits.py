"""A block's text in, what ranking wants to know of it out: flags and the label at the start of a list item. Pure; stored in the index."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .tokens import tokenize

VERSION = 1

QUESTION = 1  # ends in a question
LABELLED = 2  # starts with a label: `- **Ann**: ...`, `- Ann: ...`

# A label's tokens are postings of their own, so that a name in the question can meet the speaker. No token holds this character.
LABEL_MARK = "\x1e"

_LABEL = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(?:\*\*|__)?([^\W\d_][^\n:：*]{0,39}?)(?:\*\*|__)?\s*[:：](?:\*\*|__)?\s")
_ENDS_ASKING = re.compile(r"[?？]\s*(?:\[[^\]]*\]\s*)*[\"'”’)）]*\s*$")


@dataclass(frozen=True, slots=True)
class Traits:
    """`flags`: QUESTION | LABELLED. `terms`: extra postings of this block (term frequency 1, not counted in its length)."""

    flags: int
    terms: tuple[str, ...]


def traits(text: str, kind: str) -> Traits:
    """Traits of one block; `kind` as in records.Block."""
    flags = QUESTION if _ENDS_ASKING.search(text) else 0
    if kind != "item":
        return Traits(flags, ())
    label = _LABEL.match(text)
    if label is None or len(label[1].split()) > 4:
        return Traits(flags, ())
    return Traits(flags | LABELLED, tuple(dict.fromkeys(LABEL_MARK + token for token in tokenize(label[1]))))
