"""A name that does not exist and those that do, to the one that was meant. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

# Words of other tools for the same thing, which no measure of letters finds near.
_SISTERS = {
    "limit": "max results",
    "top": "max results",
    "top k": "max results",
    "k": "max results",
    "n": "max results",
    "count": "max results",
    "size": "max results",
    "threshold": "min score",
    "score": "min score",
    "max tokens": "max chars",
    "q": "query",
    "question": "query",
    "text": "query",
    "file": "path",
    "address": "path",
    "citation": "path",
    "offset": "from",
    "start": "from",
    "start line": "from",
    "line": "from",
    "end": "lines",
    "content": "text",
    "memory": "text",
    "title": "heading",
    "result": "outcome",
    "success": "outcome",
    "memories": "used",
    "ids": "used",
    "addresses": "used",
    "dir": "workspace",
    "root": "workspace",
}


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that says the same in another spelling or word, else the one of nearest letters; None where nothing is near."""
    spelled = {_words(one): one for one in sorted(known)}
    words = _words(name)
    if words in spelled:
        return spelled[words]
    sister = _SISTERS.get(words)
    if sister in spelled:
        return spelled[sister]
    import difflib

    near = difflib.get_close_matches(words, spelled, n=1, cutoff=0.6)
    return spelled[near[0]] if near else None


def _words(name: str) -> str:
    """`--max-results`, `max_results` and `maxResults` are the same words."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return re.sub(r"[-_\s]+", " ", spaced).strip().lower()
