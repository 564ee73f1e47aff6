"""Glob patterns over workspace paths to one compiled test and the folders worth walking. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_MAGIC = re.compile(r"[*?\[]")


def translate(pattern: str) -> str:
    """`**/` is any folders, `*` and `?` stay within one name, `[a-z]` is one character."""
    out: list[str] = []
    i = 0
    while i < len(pattern):
        if pattern.startswith("**/", i):
            out.append("(?:[^/]+/)*")
            i += 3
        elif pattern.startswith("**", i):
            out.append(".*")
            i += 2
        elif pattern[i] == "*":
            out.append("[^/]*")
            i += 1
        elif pattern[i] == "?":
            out.append("[^/]")
            i += 1
        elif pattern[i] == "[" and (close := pattern.find("]", i + 2)) > 0:
            inner = re.sub(r"[\\\[&~|]", r"\\\g<0>", pattern[i + 1 : close])  # what only Python's own sets would understand
            out.append(f"[{'^' + inner[1:] if inner[0] in '!^' else inner}]")
            i = close + 1
        else:
            out.append(re.escape(pattern[i]))
            i += 1
    return "".join(out)


@lru_cache(maxsize=64)
def included(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Matches, in full, a path that one of the patterns names from the root on."""
    return re.compile("|".join(f"(?:{translate(_clean(p))})" for p in patterns) or r"(?!)")


@lru_cache(maxsize=64)
def excluded(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Matches a path, a file's or a folder's, that is left out. A pattern without `/` names something at any depth, as in .gitignore."""
    parts = []
    for pattern in patterns:
        clean = _clean(pattern)
        anywhere = "/" not in clean and not pattern.startswith(("/", "./"))
        parts.append(f"{'(?:.*/)?' if anywhere else ''}{translate(clean)}")
    return re.compile("|".join(f"(?:{p})" for p in parts) or r"(?!)")


@lru_cache(maxsize=64)
def walks(patterns: tuple[str, ...]) -> tuple[tuple[str, bool], ...]:
    """The folders to list for these patterns, each with whether its subfolders are walked; none lies in another that is walked."""
    wanted: dict[str, bool] = {}
    for pattern in patterns:
        parts = _clean(pattern).split("/")
        fixed = 0
        while fixed < len(parts) - 1 and not _MAGIC.search(parts[fixed]):
            fixed += 1
        folder = "/".join(parts[:fixed])
        deep = fixed < len(parts) - 1 or "**" in parts[-1]
        wanted[folder] = wanted.get(folder, False) or deep
    deep_ones = [f for f, deep in wanted.items() if deep]
    return tuple((f, d) for f, d in sorted(wanted.items()) if not any(_inside(f, other) for other in deep_ones))


def _inside(folder: str, other: str) -> bool:
    return folder != other and (not other or folder.startswith(other + "/"))


def _clean(pattern: str) -> str:
    return re.sub(r"/+", "/", pattern.replace("\\", "/")).removeprefix("./").strip("/")


def check_pattern(pattern: str) -> str | None:
    """What is wrong with a pattern, None where nothing is."""
    clean = _clean(pattern)
    if not clean:
        return "an empty pattern"
    if ".." in clean.split("/"):
        return "a pattern may not lead out of the workspace"
    try:
        re.compile(translate(clean))
    except re.error as e:
        return f"not a glob: {e}"
    return None


def usable(patterns: Sequence[str]) -> tuple[str, ...]:
    """Patterns as the functions above take them, without those that `check_pattern` finds fault with."""
    return tuple(p for p in patterns if check_pattern(p) is None)
