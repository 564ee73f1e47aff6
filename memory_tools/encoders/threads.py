"""How many threads a matrix product may take: one, inside `with one_blas_thread():`, whatever numpy was started with.

OpenBLAS's threads wait for each other by spinning. On two cores with six busy processes, encoding 1,000 texts took 45 s with its two
threads and 6 s with one (12 s and 2.3 s of processor time). `OPENBLAS_NUM_THREADS=1` in the environment before numpy is imported does the
same and makes that import quicker; this is for the programs that had imported numpy already.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_guard = threading.Lock()
_inside = 0  # how many threads are within `one_blas_thread`; the first one in sets, the last one out restores
_before = 1


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Re-entrant and for several threads at once. Without effect where numpy's BLAS is not an OpenBLAS that came with it."""
    global _inside, _before
    controls = None if os.environ.get("OPENBLAS_NUM_THREADS") == "1" else _controls()
    if controls is None:
        yield
        return
    get, put = controls
    with _guard:
        if _inside == 0:
            _before = get()
            put(1)
        _inside += 1
    try:
        yield
    finally:
        with _guard:
            _inside -= 1
            if _inside == 0:
                put(_before)


def workers(at_most: int = 4) -> int:
    """Threads for work that releases the interpreter's lock and does not spin: the processors this process may use, at most four."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(at_most, usable))


@cache
def _controls() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    import numpy

    package = Path(numpy.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        for path in sorted(folder.glob("*openblas*")):
            try:
                library = ctypes.CDLL(str(path))
            except OSError:
                continue
            for prefix, suffix in (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", "")):
                get = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
                put = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
                if get is not None and put is not None:
                    get.restype, put.argtypes, put.restype = ctypes.c_int, [ctypes.c_int], None
                    return get, put
    return None
