"""The index in, what stage 1 works on out: arrays over all blocks, their postings, cosines and exact texts. Read anew when the index changed."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memory_tools import postings
from memory_tools.search import Corpus

if TYPE_CHECKING:
    from memory_tools.index import Index
    from memory_tools.vectors import Matrix

_RECORD = np.dtype([("low", "<u2"), ("count", "u1")])


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block is, for the reader: its section's stable id and address, and the exact lines."""

    section_id: str
    address: str
    path: str
    source: str
    headings: tuple[str, ...]
    heading: bool
    start_line: int
    end_line: int
    importance: float | None
    edited: datetime


class Reader:
    """One state of the index. Positions are those of the Corpus arrays: files by path, blocks in reading order, whatever the order of edits."""

    def __init__(self, index: Index, matrix: Matrix | None, hidden_sources: Collection[str] = ()) -> None:
        self._connection = index.connection
        self._matrix = matrix
        count = int(self._connection.execute("SELECT count(*) FROM blocks").fetchone()[0])
        rows = self._connection.execute(
            "SELECT id, file, section, kind = 'heading', tokens, last - first, coalesce(vector, -1), flags FROM blocks ORDER BY id"
        )
        table = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=count * 8).reshape(count, 8)
        files = self._connection.execute("SELECT id, source, day FROM files ORDER BY path").fetchall()
        rank = np.zeros(max((f[0] for f in files), default=0) + 1, dtype=np.int32)
        day = np.zeros(max(len(files), 1), dtype=np.int32)
        hidden = np.zeros(max(len(files), 1), dtype=np.bool_)
        for i, (id, source, at) in enumerate(files):
            rank[id], day[i], hidden[i] = i, at, source in hidden_sources
        file = rank[table[:, 1]]
        order = np.lexsort((table[:, 0], file))
        self._in_order = bool((order == np.arange(count)).all())
        table, file = table[order], file[order]
        self._ids = table[:, 0]
        self._lowest = int(self._ids.min()) if count else 0
        self._position = np.full(int(self._ids.max()) - self._lowest + 1 if count else 0, -1, dtype=np.int64)
        self._position[self._ids - self._lowest] = np.arange(count)
        section = np.cumsum(np.concatenate(([0], table[1:, 2] != table[:-1, 2]))) if count else table[:, 2]
        self._rows_needed = int(table[:, 6].max()) + 1 if count else 0
        vector = table[:, 6].astype(np.int32)
        if matrix is None:
            vector = np.full(count, -1, dtype=np.int32)
        else:
            vector[vector >= matrix.load(self._rows_needed)] = -1  # a matrix that was cut off: as if not encoded yet
        self.corpus = Corpus(
            file=file.astype(np.int32),
            section=section.astype(np.int32),
            length=table[:, 4].astype(np.int32),
            chars=table[:, 5].astype(np.int32),
            day=day[file],
            heading=table[:, 3].astype(np.bool_),
            vector=vector,
            allowed=~hidden[file],
            flags=table[:, 7].astype(np.uint8),
        )
        self._texts: dict[int, tuple[int, str]] = {}
        self._section_keys = table[:, 2]

    def postings(self, term: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """search.Postings: positions, ascending, and term frequencies."""
        lists = list(postings.read(self._connection, term))
        if not lists:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        packed = [np.frombuffer(docs, dtype=_RECORD) for _, docs in lists]
        ids = np.concatenate([p["low"].astype(np.int64) + (base - self._lowest) for p, (base, _) in zip(packed, lists, strict=True)])
        counts = np.concatenate([p["count"] for p in packed]).astype(np.float32)
        inside = (ids >= 0) & (ids < self._position.size)
        if not inside.all():
            ids, counts = ids[inside], counts[inside]
        where = self._position[ids]
        alive = where >= 0
        if not alive.all():
            where, counts = where[alive], counts[alive]
        if not self._in_order:
            order = np.argsort(where, kind="stable")
            where, counts = where[order], counts[order]
        return where, counts

    def cosines(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosine of a unit query with every block, NaN where a block has no vector yet."""
        assert self._matrix is not None
        out = np.full(len(self.corpus), np.nan, dtype=np.float32)
        all_rows = self._matrix.cosines(query)
        there = self.corpus.vector >= 0
        out[there] = all_rows[self.corpus.vector[there]]
        return out

    def section_text(self, position: int) -> tuple[int, str]:
        """First line and exact text of the section that holds a block."""
        key = int(self._section_keys[position])
        if key not in self._texts:
            line, text = self._connection.execute("SELECT start_line, text FROM sections WHERE key = ?", (key,)).fetchone()
            self._texts[key] = (int(line), str(text))
        return self._texts[key]

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Character offsets of blocks first..last in their section's text."""
        ids = (int(self._ids[first]), int(self._ids[last]))
        start = self._connection.execute("SELECT first FROM blocks WHERE id = ?", (ids[0],)).fetchone()[0]
        end = self._connection.execute("SELECT last FROM blocks WHERE id = ?", (ids[1],)).fetchone()[0]
        return int(start), int(end)

    def text(self, first: int, last: int) -> str:
        """passages.TextOf: the file's exact text from the start of block `first` to the end of block `last` of the same section."""
        start, end = self.span(first, last)
        return self.section_text(first)[1][start:end]

    def place(self, first: int, last: int) -> Place:
        """Where blocks first..last of one section are."""
        row = self._connection.execute(
            "SELECT s.id, s.address, f.path, f.source, s.headings, b.kind = 'heading', b.start_line, s.importance, s.edited"
            " FROM blocks b JOIN sections s ON s.key = b.section JOIN files f ON f.id = b.file WHERE b.id = ?",
            (int(self._ids[first]),),
        ).fetchone()
        end_line = self._connection.execute("SELECT end_line FROM blocks WHERE id = ?", (int(self._ids[last]),)).fetchone()[0]
        id, address, path, source, headings, heading, start_line, importance, edited = row
        return Place(
            id, address, path, source, tuple(json.loads(headings)), bool(heading), int(start_line), int(end_line), importance,
            datetime.fromtimestamp(edited, UTC),
        )  # fmt: skip
