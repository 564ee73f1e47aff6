"""Blocks without a vector in, vectors in the matrix out: each distinct text is encoded once, whatever file it is in."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from memory_tools.vectors import Matrix

if TYPE_CHECKING:
    from memory_tools.encoders import Encoder
    from memory_tools.index import Index

BATCH = 256  # texts encoded between two commits; what is done stays done when the process is stopped


def open_matrix(index: Index, encoder: Encoder) -> Matrix:
    """The matrix of this encoder; vectors of another one are forgotten first, so that they are never mixed."""
    name = f"{encoder.name} ({encoder.dimension})"
    if index.meta("encoder") != name:
        with index.write() as connection:
            if index.meta("encoder") not in (None, name):
                connection.execute("DELETE FROM vectors")
                connection.execute("UPDATE blocks SET vector = NULL")
                connection.execute("INSERT INTO meta VALUES ('vectors_number', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1")
            index.set_meta("encoder", name)
    return Matrix(index.vectors_path(), encoder.dimension)


def heal(index: Index, matrix: Matrix) -> bool:
    """Forget vectors whose rows are not in the file any more (deleted or cut off). True where there were any."""
    wanted = rows(index)
    there = matrix.load(wanted)
    if there >= wanted:
        return False
    with index.write() as connection:
        connection.execute("DELETE FROM vectors WHERE row >= ?", (there,))
        connection.execute("UPDATE blocks SET vector = NULL WHERE vector >= ?", (there,))
    return True


def carry(index: Index, matrix: Matrix, aside: Index) -> None:
    """Put the vectors that are in use into the matrix of a generation that is being made, so that nothing is encoded again."""
    found = index.connection.execute("SELECT hash, min(vector) FROM blocks WHERE vector IS NOT NULL GROUP BY hash ORDER BY 2").fetchall()
    if not found:
        return
    with aside.write() as connection:
        aside.set_meta("encoder", index.meta("encoder"))
        connection.executemany("INSERT INTO vectors VALUES (?, ?)", [(hash, new) for new, (hash, _) in enumerate(found)])
        Matrix(aside.vectors_path(), matrix.dimension).write_raw(0, matrix.raw(np.array([row for _, row in found], dtype=np.int64)))


def rows(index: Index) -> int:
    """Rows of the matrix that the index knows of."""
    value = index.connection.execute("SELECT max(row) FROM vectors").fetchone()[0]
    return 0 if value is None else int(value) + 1


def pending(index: Index) -> int:
    return int(index.connection.execute("SELECT count(*) FROM blocks WHERE vector IS NULL").fetchone()[0])


def fill(
    index: Index, matrix: Matrix, encoder: Encoder, *, at_most: int | None = None, progress: Callable[[int, int], None] | None = None
) -> int:
    """Encode pending blocks, all or the newest `at_most`; returns how many still wait. Raises Unavailable (encoder) and Busy (disk)."""
    first = waiting = pending(index)
    left = at_most
    while waiting and (left is None or left > 0):
        texts = _pending_texts(index, BATCH if left is None else min(BATCH, left))
        if left is not None:
            left -= len(texts)
        vectors = encoder.encode(list(texts.values()), "passage")
        with index.write() as connection:  # the matrix is written under the same lock, so no two processes take the same rows
            if matrix.path != index.vectors_path():  # another process has another encoder by now: these vectors are not of its kind
                break
            known = {h for h in texts if connection.execute("SELECT 1 FROM vectors WHERE hash = ?", (h,)).fetchone()}
            fresh = [i for i, h in enumerate(texts) if h not in known]
            if fresh:
                row = rows(index)
                matrix.write(row, vectors[fresh])
                hashes = list(texts)
                connection.executemany("INSERT INTO vectors VALUES (?, ?)", [(hashes[i], row + n) for n, i in enumerate(fresh)])
            connection.executemany(
                "UPDATE blocks SET vector = (SELECT row FROM vectors WHERE hash = ?1) WHERE hash = ?1 AND vector IS NULL",
                [(h,) for h in texts],
            )
        waiting = pending(index)
        if progress:
            progress(first - waiting, first)
    return waiting


def _pending_texts(index: Index, count: int) -> dict[bytes, str]:
    """Distinct texts by hash, of the newest blocks without a vector."""
    from memory_tools.searched import searched_text

    rows = index.connection.execute(
        "SELECT b.hash, b.kind, s.headings, s.triggers, substr(s.text, b.first + 1, b.last - b.first)"
        " FROM blocks b JOIN sections s ON s.key = b.section WHERE b.vector IS NULL ORDER BY b.id DESC LIMIT ?",
        (count,),
    )
    return {hash: searched_text(kind, text, json.loads(headings), json.loads(triggers)) for hash, kind, headings, triggers, text in rows}
