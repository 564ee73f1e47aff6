"""The one seam over effects on disk: each open, write, fsync, replace and SQLite statement passes `step`, where a test may fail it."""

from __future__ import annotations

from collections.abc import Callable

on_step: Callable[[str, str], None] | None = None  # (kind, target) -> None, may raise


def step(kind: str, target: str) -> None:
    """Called before an effect; `kind` is open, write, fsync, replace, unlink, mkdir or sqlite."""
    if on_step is not None:
        on_step(kind, target)
