"""Roots and their patterns to the folders to watch, each with whether its whole subtree is: never what a scan does not enter."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from memory_tools import globs
from memory_tools.walk import NEVER_WALKED, is_inside

MAX_DEPTH = 40


def ignored(name: str) -> bool:
    """A folder that a scan does not enter: hidden, or other people's code."""
    return name.startswith(".") or name in NEVER_WALKED


def to_watch(root: Path, include: tuple[str, ...]) -> dict[str, bool]:
    """Real folders under `root`, each with True where everything below it is to be watched too. {} where the root is missing.

    A subtree is watched as a whole only where it holds no ignored folder: a `.git` in it alone has hundreds. The root is always
    watched, so that folders that are missing yet are seen when they are made.
    """
    real_root = os.path.realpath(root)
    if not Path(real_root).is_dir():
        return {}
    out: dict[str, bool] = {real_root: False}
    for folder, deep in globs.walks(include):
        start = Path(real_root, folder)
        while not start.is_dir():  # the nearest folder that there is: what is missing is made in it
            start, deep = start.parent, False
        real = os.path.realpath(start)
        if is_inside(real_root, real):
            _add(out, _subtree(real_root, real, {real}) if deep else {real: False})
    return _without_covered(out)


def _subtree(root: str, folder: str, seen: set[str], depth: int = 0) -> dict[str, bool]:
    out: dict[str, bool] = {}
    linked: dict[str, bool] = {}
    whole = depth < MAX_DEPTH
    try:
        with os.scandir(folder) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except OSError:  # gone or closed to us: the scan says so
        return {}
    for entry in listed:
        if entry.is_symlink():
            real = os.path.realpath(entry.path)
            target = real if Path(real).is_dir() else str(Path(real).parent) if real.endswith((".md", ".markdown")) else None
            if target is not None and target not in seen and is_inside(root, target):
                seen.add(target)
                _add(linked, {target: False} if target != real else _subtree(root, target, seen, depth + 1))
        elif entry.is_dir(follow_symlinks=False):
            if ignored(entry.name):
                whole = False
            elif depth < MAX_DEPTH:
                below = _subtree(root, entry.path, seen, depth + 1)
                whole = whole and below.get(entry.path, False)
                _add(out, below)
    # Links are not followed by a watch on the whole, so their targets are watched beside it.
    return {**linked, **({folder: True} if whole else {**out, folder: False})}


def _add(out: dict[str, bool], more: dict[str, bool]) -> None:
    for folder, whole in more.items():
        out[folder] = out.get(folder, False) or whole


def _without_covered(folders: dict[str, bool]) -> dict[str, bool]:
    whole = [folder for folder, deep in folders.items() if deep]
    return {folder: deep for folder, deep in sorted(folders.items()) if not any(_below(folder, whole_one) for whole_one in whole)}


def _below(folder: str, other: str) -> bool:
    return folder != other and is_inside(other, folder)


def names(folders: Iterable[str]) -> str:
    """A few of the folders, for a message."""
    every = sorted(folders)
    return ", ".join(every[:3]) + (f" and {len(every) - 3} more" if len(every) > 3 else "")
