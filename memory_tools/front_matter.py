"""The YAML front matter of a note to plain values. Pure; what is broken is a problem and stays searchable text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memory_tools import plain_yaml
from memory_tools.errors import InvalidInput

_MAX_CHARS = 65_536
_MAX_LINES = 2_000
_CLOSE = re.compile(r"(?:---|\.\.\.)\s*")
_KEY = re.compile(r"(?m)^[\w\"'][^\n:]{0,100}:(?:\s|$)")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """`end` lines of front matter (0 without); `body`: the first line, from 0, that is Markdown; `broken`: lines before it are text."""

    values: Mapping[str, object] = field(default_factory=dict)
    end: int = 0
    body: int = 0
    broken: bool = False
    problems: tuple[str, ...] = ()


def front_matter(text: str, starts: Sequence[int]) -> FrontMatter:
    """Front matter is a first line `---`, YAML that is a mapping, and a line `---` or `...`."""
    if not text.startswith("---") or len(starts) < 3 or text[3 : starts[1]].strip():
        return FrontMatter()
    close = next((n for n in range(1, min(len(starts) - 1, _MAX_LINES)) if _CLOSE.fullmatch(text, starts[n], starts[n + 1])), None)
    if close is None:
        return FrontMatter()
    source = text[starts[1] : starts[close]]
    if not source.strip():
        return FrontMatter(end=close + 1, body=close + 1)
    if len(source) > _MAX_CHARS:
        return FrontMatter(body=close + 1, broken=True, problems=(f"front matter is longer than {_MAX_CHARS} characters",))
    try:
        # A blank line for the `---`: the error names the line of the file.
        values = plain_yaml.parse("\n" + source)
    except InvalidInput as e:
        # Two rules with text between them are no front matter; without a single `key:` nobody meant one.
        if _KEY.search(source) is None:
            return FrontMatter()
        return FrontMatter(body=close + 1, broken=True, problems=(f"front matter: {e.message}",))
    if not isinstance(values, dict):
        return FrontMatter()
    return FrontMatter({str(key): value for key, value in values.items()}, close + 1, close + 1)
