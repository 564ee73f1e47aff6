"""A block in, the text that is matched for it out: the same at every place that tokenises or encodes one. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from memory_tools.records import Block
from memory_tools.sections import searched


def searched_text(kind: str, text: str, headings: Sequence[str], triggers: Sequence[str]) -> str:
    """A block's text without comments; of a heading the whole path of headings, and the words that trigger the section.

    A "title" is a heading with nothing but subsections under it.
    """
    if kind in ("heading", "title"):
        return "\n".join((*headings, *triggers))
    return searched(Block(1, 1, 0, len(text), text, kind))


def text_hash(text: str) -> bytes:
    """16 bytes: equal texts share one vector, whatever file they are in."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
