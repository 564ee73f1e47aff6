"""YAML text to plain values by the safe loader, with aliases and depth bounded. Shared by front matter and configuration."""

from __future__ import annotations

import re

from memory_tools.errors import InvalidInput

MAX_ALIASES = 20  # "billion laughs" needs few anchors and many aliases
MAX_DEPTH = 20
MAX_NODES = 10_000
MAX_DIGITS = 1_000  # Python itself refuses to write out some thousand
_NUMBER = re.compile(r"[-+]?[0-9a-fA-FxXoO_:]+")


def parse(text: str) -> object:
    """The value of one YAML document, None for an empty one. Raises InvalidInput with line and column."""
    import yaml

    loader: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    aliases = nodes = 0
    inside: list[str | None] = []  # anchors of the collections that are open
    try:
        for event in yaml.parse(text, Loader=loader):
            aliases += isinstance(event, yaml.AliasEvent)
            nodes += isinstance(event, yaml.NodeEvent)
            if isinstance(event, yaml.CollectionStartEvent):
                inside.append(event.anchor)
            elif isinstance(event, yaml.CollectionEndEvent):
                inside.pop()
            elif isinstance(event, yaml.AliasEvent) and event.anchor in inside:
                raise InvalidInput(f"YAML: *{str(event.anchor)[:60]} is inside of itself")
            elif isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
                raise InvalidInput("YAML merges (`<<`) are not read: a few of them multiply without end; write the keys out")
            elif isinstance(event, yaml.ScalarEvent) and len(event.value) > MAX_DIGITS and _NUMBER.fullmatch(event.value):
                raise InvalidInput(f"YAML: a number of more than {MAX_DIGITS:,} digits")
            if aliases > MAX_ALIASES or nodes > MAX_NODES or len(inside) > MAX_DEPTH:
                raise InvalidInput("YAML is nested too deep, too large, or repeats too many aliases")
        value: object = yaml.load(text, Loader=loader)  # a safe loader in either case
        return value
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InvalidInput(f"{where}not valid YAML ({e.problem or e.context})") from e
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as e:
        raise InvalidInput(f"not valid YAML ({type(e).__name__}: {str(e)[:200]})") from e
