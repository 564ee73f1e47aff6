"""The YAML front matter of a note to plain values. Pure; what is broken is a problem and stays searchable text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_MAX_CHARS = 65_536
_MAX_LINES = 2_000
_MAX_ALIASES = 20  # anchors that refer to anchors double with each line; twenty cannot make more than a few thousand values
_MAX_DEPTH = 30
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
        values = _load(source)
    except _Broken as e:
        # Two rules with text between them are no front matter; without a single `key:` nobody meant one.
        if _KEY.search(source) is None:
            return FrontMatter()
        return FrontMatter(body=close + 1, broken=True, problems=(f"front matter is not valid YAML: {e}",))
    if not isinstance(values, dict):
        return FrontMatter()
    return FrontMatter({str(key): value for key, value in values.items()}, close + 1, close + 1)


class _Broken(ValueError):
    pass


def _load(source: str) -> object:
    import yaml

    loader: type[yaml.SafeLoader] | type[yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        aliases = depth = 0
        for event in yaml.parse(source, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                aliases += 1
            elif isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if aliases > _MAX_ALIASES or depth > _MAX_DEPTH:
                raise _Broken("too many aliases" if aliases > _MAX_ALIASES else "nested too deeply")
        return yaml.load(source, Loader=loader)
    except yaml.MarkedYAMLError as e:
        line = f"line {e.problem_mark.line + 2}: " if e.problem_mark is not None else ""
        raise _Broken(f"{line}{e.problem or 'not readable'}") from e
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as e:
        raise _Broken(str(e).splitlines()[0] if str(e) else "not readable") from e
