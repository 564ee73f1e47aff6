"""Recall over plain Markdown memory that learns which memories actually help: `Memory`, and its calls on the default workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memory_tools.defaults import memory_get, memory_search, two_stage_retrieval
    from memory_tools.memory import Memory

__all__ = ["Memory", "memory_get", "memory_search", "two_stage_retrieval"]
__version__ = "0.1.0"

_WHERE = dict.fromkeys(("memory_get", "memory_search", "two_stage_retrieval"), "memory_tools.defaults") | {"Memory": "memory_tools.memory"}


def __getattr__(name: str) -> Any:
    """Import on first use: `memory-tools --help` must not pay for what it does not need."""
    if name in _WHERE:
        from importlib import import_module

        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'memory_tools' has no attribute {name!r}")
