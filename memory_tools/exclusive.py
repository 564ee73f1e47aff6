"""A method of whoever holds an engine, let in one call at a time, and called again after a damaged index was made anew."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar, cast

from memory_tools.errors import Busy, InvalidInput

if TYPE_CHECKING:
    from threading import RLock

    from memory_tools.engine import Engine


class Holder(Protocol):
    """What holds an open index, and lets one call at it at a time."""

    _lock: RLock
    _engine: Engine


H = TypeVar("H", bound=Holder)
P = ParamSpec("P")
R = TypeVar("R")


def one_at_a_time(method: Callable[Concatenate[H, P], R]) -> Callable[Concatenate[H, P], R]:
    """One call at a time in a process; an index that turns out to be damaged is made anew and the call done again."""

    @wraps(method)
    def call(self: H, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock:
            if self._engine.closed:
                raise InvalidInput("this Memory is closed", "open a new one")
            try:
                return method(self, *args, **kwargs)
            except sqlite3.DatabaseError as e:
                if isinstance(e, sqlite3.OperationalError) and "locked" in str(e):  # in use, not damaged
                    raise Busy(f"another process holds the index ({e})", "try again in a moment") from e
                self._engine.start_over(e)
                return method(self, *args, **kwargs)

    return cast("Callable[Concatenate[H, P], R]", call)
