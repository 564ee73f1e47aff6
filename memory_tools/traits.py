"""A section's blocks in, what ranking wants to know of each out: flags, and who says it. Pure; stored in the index."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memory_tools import date_words
from memory_tools.records import Block, Section
from memory_tools.tokens import tokenize

VERSION = 3

QUESTION = 1  # ends in a question
LABELLED = 2  # starts with a label: `- **Ann**: ...`, `Ann: ...`
TURN = 4  # is part of a conversation
TIMED = 8  # says when: a date, a weekday, "last week", "三月"

# A speaker's label is posted on its own, so that a name in the question can meet the speaker. No token holds this character.
LABEL_MARK = "\x1e"

_LABEL = (
    r"^\s*(?:(?:[-*+]|\d{1,3}[.)])\s+)?(?:\[[^\]\n]{1,30}\]\s*|\d{1,2}:\d\d(?::\d\d)?\s+(?:[-–]\s+)?)?(?:\*\*|__)?"  # item, time or box
    r"([^\W\d_][^\n:：*`|()\[\]]{0,39}?)(?:\*\*|__)?(?:\s*\([^()\n]{1,20}\))?\s*(?:[:：](?:\*\*|__)?(?=\s)|：)"
)
_LABEL_WORDS = 4
_ENDS_ASKING = r"[?？]\s*(?:\[[^\]]*\]\s*)*[\"'”’)）」』]*\s*$"
_TIME_WORDS = sorted(
    {
        *(name for name in date_words.MONTHS if name not in ("may", "march", "mars", "mei")),
        *date_words.WEEKDAYS,
        *(word for word in date_words.DAYS if word[0].isascii() or word[0] in "вспз"),
        *date_words.TIME_WORDS.split(),
    },
    key=lambda word: (-len(word), word),
)
_TIMED = (
    rf"\b(?:{'|'.join(map(re.escape, _TIME_WORDS))})\b|\b(?:19|20)\d\d\b|\b\d{{1,2}}:\d\d\b|\b\d{{1,2}}\s?(?:am|pm)\b"
    r"|[\d〇一二三四五六七八九十几两]\s*[年月日号號周週天点點时時]|[今明昨前后後去上下本这每先来](?:年|月|周|週|天|日|晚|早|个月|星期)|星期|礼拜|凌晨|早晨|上午|下午|晚上"
    r"|지난|다음|매주|매년|요일|\d\s*[년월일시]"
)


@lru_cache(maxsize=8)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled when a note is read: a search needs only the flags, and not the 12 ms."""
    return re.compile(pattern)


@dataclass(frozen=True, slots=True)
class Traits:
    """`flags`: QUESTION | LABELLED | TURN | TIMED. `terms`: extra postings of this block (frequency 1, not counted in its length)."""

    flags: int
    terms: tuple[str, ...]


def of_section(section: Section) -> tuple[Traits, ...]:
    """Traits of each block of a section, in order."""
    labels = [_label(block) for block in section.blocks]
    talk = _is_talk(section.blocks, labels)
    return tuple(_traits(block, label, talk) for block, label in zip(section.blocks, labels, strict=True))


def traits(text: str, kind: str) -> Traits:
    """Traits of one block that stands alone; of_section knows more."""
    block = Block(1, 1, 0, len(text), text, kind)
    return _traits(block, _label(block), False)


def _traits(block: Block, label: str | None, talk: bool) -> Traits:
    if block.kind == "heading":
        return Traits(0, ())
    flags = QUESTION if _compiled(_ENDS_ASKING).search(block.text) else 0
    if _compiled(_TIMED).search(block.text.lower()):
        flags |= TIMED
    if label is not None:
        flags |= LABELLED
    if not talk:
        return Traits(flags, ())
    return Traits(flags | TURN, () if label is None else _label_terms(label))


def _label(block: Block) -> str | None:
    """What stands before the colon at the start of an item or a paragraph, if it is as short as a name."""
    if block.kind not in ("item", "paragraph"):
        return None
    match = _compiled(_LABEL).match(block.text)
    return match[1].strip().casefold() if match is not None and len(match[1].split()) <= _LABEL_WORDS else None


def _is_talk(blocks: Sequence[Block], labels: Sequence[str | None]) -> bool:
    """Whether people take turns here: most pieces carry a label, and few labels come again and again; keys of a list are many."""
    counts = Counter(label for label in labels if label is not None)
    labelled = sum(counts.values())
    pieces = sum(block.kind != "heading" for block in blocks)
    return labelled >= 4 and 2 * labelled >= pieces and 2 * len(counts) <= labelled and sum(c >= 2 for c in counts.values()) >= 2


def _label_terms(label: str) -> tuple[str, ...]:
    """Words of a name; of a name without spaces its bigrams, for single characters are in every name."""
    return tuple(dict.fromkeys(LABEL_MARK + token for token in tokenize(label) if len(token) > 1))
