"""YAML text to plain values by the safe loader, with aliases and depth bounded. Shared by front matter and configuration."""

from __future__ import annotations

from memory_tools.errors import InvalidInput

MAX_ALIASES = 20  # "billion laughs" needs few anchors and many aliases
MAX_DEPTH = 20
MAX_NODES = 10_000


def parse(text: str) -> object:
    """The value of one YAML document, None for an empty one. Raises InvalidInput with line and column."""
    import yaml

    loader: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    aliases = nodes = depth = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            aliases += isinstance(event, yaml.AliasEvent)
            nodes += isinstance(event, yaml.NodeEvent)
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
                raise InvalidInput("YAML merges (`<<`) are not read: a few of them multiply without end; write the keys out")
            if aliases > MAX_ALIASES or nodes > MAX_NODES or depth > MAX_DEPTH:
                raise InvalidInput("YAML is nested too deep, too large, or repeats too many aliases")
        value: object = yaml.load(text, Loader=loader)  # a safe loader in either case
        return value
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InvalidInput(f"{where}not valid YAML ({e.problem or e.context})") from e
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as e:
        raise InvalidInput(f"not valid YAML ({type(e).__name__}: {str(e)[:200]})") from e
