"""Unit vectors in, cosines out: one matrix of int8 rows with a scale each, mapped from a file (or held in memory where no file can be).

Import inside the function that searches or encodes: it imports numpy.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memory_tools import seam
from memory_tools.encoders.threads import one_blas_thread
from memory_tools.errors import Busy
from memory_tools.records import Stat

Floats = NDArray[np.float32]

CHUNK = 512  # rows turned into float32 at a time: 1 MB at 512 dimensions stays in a core's cache; 4,096 take twice as long
_EXACT = float(2**24)  # whole numbers up to here are exact in float32


class Matrix:
    """Rows are appended and never changed. Which row belongs to what is the index's to know, so a torn append is only an orphan."""

    def __init__(self, path: Path | None, dimension: int) -> None:
        self.dimension = dimension
        self.path = path
        self._row = np.dtype([("scale", "<f4"), ("values", "i1", (dimension,))])
        self._rows: NDArray[np.void] = np.zeros(0, dtype=self._row)
        self._seen: Stat | None = None  # the file's state when its rows were last found credible

    def write(self, first_row: int, vectors: Floats) -> None:
        """Put unit vectors, float32 (n, dimension), at rows first_row..; durable when it returns. Raises Busy (disk full, not writable)."""
        self._write(first_row, self._quantised(vectors))

    def _write(self, first_row: int, rows: NDArray[np.void]) -> None:
        if self.path is None:
            self._rows = np.concatenate((self._rows[:first_row], rows))
            return
        try:
            seam.step("open", str(self.path))
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o600)
            try:
                seam.step("write", str(self.path))
                os.lseek(handle, first_row * self._row.itemsize, os.SEEK_SET)
                left = memoryview(rows.tobytes())
                while left:
                    left = left[os.write(handle, left) :]
                seam.step("fsync", str(self.path))
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as e:
            raise Busy(f"{self.path}: vectors cannot be written ({e.strerror or e})") from e

    def load(self, rows: int) -> int:
        """Map the first `rows` rows; returns how many there are, fewer where the file was cut off, deleted or holds something else."""
        if self.path is None or rows == self._rows.size:
            return int(min(rows, self._rows.size))
        try:
            state = self.path.stat()
            there = min(rows, state.st_size // self._row.itemsize)
            # A plain ndarray over the map: np.memmap's own slicing costs a Python call each.
            self._rows = np.memmap(self.path, dtype=self._row, mode="r", shape=(there,)).view(np.ndarray) if there else self._rows[:0]
        except (OSError, ValueError):  # deleted or cut between stat and map: as if it held nothing, and the next sync makes it anew
            self._rows = np.zeros(0, dtype=self._row)
        else:
            self._seen = Stat.of(state)
        self._rows = self._rows[: self._credible()]
        return int(self._rows.size)

    def _credible(self) -> int:
        """Rows up to the first whose scale no unit vector has: what stands there was not written by `write`."""
        scale = self._rows["scale"]
        most = np.float32(1.001 / 127)
        odd = ~((scale == 0) | ((scale >= most / np.float32(1.01 * self.dimension**0.5)) & (scale <= most)))
        return int(odd.argmax()) if odd.any() else int(scale.size)

    def blank(self, rows: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of these rows are all zero: texts that the encoder cannot read."""
        return np.asarray(self._rows["scale"][rows] == 0)

    def lost(self) -> bool:
        """Was the file deleted, written over or cut off since it was mapped? Reading behind its end would end the process."""
        if self.path is None or not self._rows.size:
            return False
        try:
            state = self.path.stat()
        except OSError:
            return True
        now = Stat.of(state)
        if now == self._seen:
            return False
        if state.st_size < self._rows.size * self._row.itemsize or self._credible() < self._rows.size:
            return True
        self._seen = now
        return False

    def spoilt(self, rows: int) -> int:
        """How many of the first `rows` rows are neither blank nor of unit length: no encoder wrote those."""
        bad = 0
        there = self.load(rows)
        for at in range(0, there, CHUNK):
            part = self._rows[at : min(at + CHUNK, there)]
            with np.errstate(all="ignore"):
                length = np.linalg.norm(part["values"].astype(np.float32), axis=1) * part["scale"]
                bad += int(np.count_nonzero(~((np.abs(length - 1) < 0.05) | (length == 0))))
        return bad

    def raw(self, rows: NDArray[np.int64]) -> NDArray[np.void]:
        """These rows as they are stored."""
        return self._rows[rows]

    def write_raw(self, first_row: int, rows: NDArray[np.void]) -> None:
        """Put rows as `raw` gave them at first_row..; as `write`."""
        self._write(first_row, rows)

    def cosines(self, query: Floats) -> Floats:
        """Cosine of a unit query, float32 (dimension,), with every row: float32 (rows,).

        The query is scaled to whole numbers small enough that each product sum is exact in float32, so the same question gives
        the same numbers whatever the number of threads and the order of summation: a cold command ranks as a warm process.
        """
        out = np.empty(self._rows.size, dtype=np.float32)
        if not out.size:
            return out
        scale = np.float32(0.98 * _EXACT / (127.0 * self.dimension**0.5))
        whole = np.rint(query * scale).astype(np.float32)
        values, scales = self._rows["values"], self._rows["scale"]
        with one_blas_thread():
            for at in range(0, out.size, CHUNK):
                np.matmul(values[at : at + CHUNK].astype(np.float32), whole, out=out[at : at + CHUNK])
        out *= scales
        out /= scale
        return out

    def _quantised(self, vectors: Floats) -> NDArray[np.void]:
        rows = np.zeros(len(vectors), dtype=self._row)
        scale = np.abs(vectors).max(axis=1) / np.float32(127) if len(vectors) else np.zeros(0, dtype=np.float32)
        rows["scale"] = scale
        rows["values"] = np.rint(vectors / np.where(scale > 0, scale, 1)[:, None]).astype(np.int8)
        return rows
