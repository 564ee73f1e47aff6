"""The index in, what stage 1 works on out: arrays over all blocks, their postings, cosines and exact texts."""

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
from memory_tools.likeness import Likeness, Words
from memory_tools.search import Corpus

if TYPE_CHECKING:
    from memory_tools.index import Index
    from memory_tools.vectors import Matrix

_RECORD = np.dtype([("low", "<u2"), ("count", "u1")])


KEPT = 2_000  # rows of blocks and sections that are kept between searches
KEPT_POSTINGS = 500_000  # the same of postings, of 12 bytes each: 6 MB
_TERM = 40  # postings as large as what else is kept of a term, also of one that no note holds


@dataclass(frozen=True, slots=True)
class Place:
    """Where blocks are, for the reader: their section's stable id and address, and the exact lines."""

    section_id: str
    address: str
    path: str
    source: str
    headings: tuple[str, ...]
    start_line: int
    end_line: int
    edited: datetime


@dataclass(frozen=True, slots=True)
class _Block:
    section: int
    first: int
    last: int
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class _Section:
    id: str
    address: str
    path: str
    source: str
    headings: tuple[str, ...]
    text: str
    edited: datetime


class Reader:
    """One state of the index. Positions in the Corpus arrays: files by path, blocks in reading order, whatever the order of edits."""

    def __init__(self, index: Index, matrix: Matrix | None, hidden_sources: Collection[str] = ()) -> None:
        self._connection = index.connection
        self._matrix = matrix
        count = int(self._connection.execute("SELECT count(*) FROM blocks").fetchone()[0])
        rows = self._connection.execute(
            "SELECT id, file, section, (kind = 'heading') + 2 * (kind = 'title'), tokens, last - first, coalesce(vector, -1), flags"
            " FROM blocks ORDER BY id"
        )
        table = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=count * 8).reshape(count, 8)
        files = self._connection.execute("SELECT id, source, day FROM files ORDER BY path").fetchall()
        self.holds_tools = any(source == "tools" for _, source, _ in files)
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
            there = np.flatnonzero(vector >= 0)
            vector[there[matrix.blank(vector[there])]] = -1  # a text that the encoder cannot read is near to nothing and far from nothing
        self.corpus = Corpus(
            file=file.astype(np.int32),
            section=section.astype(np.int32),
            length=table[:, 4].astype(np.int32),
            chars=table[:, 5].astype(np.int32),
            day=day[file],
            heading=table[:, 3] > 0,
            vector=vector,
            allowed=~hidden[file] & (table[:, 3] < 2) & (table[:, 4] > 0),  # no titles, nothing without a word
            flags=table[:, 7].astype(np.uint8),
        )
        self._blocks: dict[int, _Block] = {}
        self._sections: dict[int, _Section] = {}
        self._words: dict[int, Words] = {}
        self._postings: dict[str, tuple[NDArray[np.int64], NDArray[np.float32]]] = {}
        self._postings_held = 0

    def postings(self, term: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """search.Postings: positions, ascending, and term frequencies."""
        known = self._postings.get(term)
        if known is None:
            known = self._postings[term] = self._read_postings(term)
            self._postings_held += _TERM + known[0].size
            if self._postings_held > KEPT_POSTINGS:
                self._postings = {term: known}
                self._postings_held = _TERM + known[0].size
        return known

    def _read_postings(self, term: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
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

    def cosines(self, query: NDArray[np.float32]) -> NDArray[np.float32] | None:
        """Cosine of a unit query with every block, NaN where a block has no vector; None for a query that the encoder cannot read."""
        assert self._matrix is not None
        if not query.any():
            return None
        out = np.full(len(self.corpus), np.nan, dtype=np.float32)
        all_rows = self._matrix.cosines(query)
        there = self.corpus.vector >= 0
        out[there] = all_rows[self.corpus.vector[there]]
        return out

    @property
    def likeness(self) -> Likeness:
        """For passages.pick. Made when asked for: kept, it would hold the reader that holds it, until a garbage collection comes by."""
        return Likeness(lambda position: self.text(position, position), self._words)

    def text(self, first: int, last: int) -> str:
        """passages.TextOf: the file's exact text from the start of block `first` to the end of block `last` of the same section."""
        begin, end = self._block(first), self._block(last)
        return self._section(begin.section).text[begin.first : end.last]

    def place(self, first: int, last: int) -> Place:
        """Where blocks first..last of one section are."""
        begin, end = self._block(first), self._block(last)
        section = self._section(begin.section)
        return Place(
            section.id, section.address, section.path, section.source, section.headings, begin.start_line, end.end_line, section.edited
        )

    def _block(self, position: int) -> _Block:
        known = self._blocks.get(position)
        if known is None:
            if len(self._blocks) > KEPT:
                self._blocks.clear()
            row = self._connection.execute(
                "SELECT section, first, last, start_line, end_line FROM blocks WHERE id = ?", (int(self._ids[position]),)
            ).fetchone()
            known = self._blocks[position] = _Block(*row)
        return known

    def _section(self, key: int) -> _Section:
        known = self._sections.get(key)
        if known is None:
            if len(self._sections) > KEPT:
                self._sections.clear()
            id, address, path, source, headings, text, edited = self._connection.execute(
                "SELECT s.id, s.address, f.path, f.source, s.headings, s.text, s.edited"
                " FROM sections s JOIN files f ON f.id = s.file WHERE s.key = ?",
                (key,),
            ).fetchone()
            known = _Section(id, address, path, source, tuple(json.loads(headings)), text, datetime.fromtimestamp(edited, UTC))
            self._sections[key] = known
        return known
