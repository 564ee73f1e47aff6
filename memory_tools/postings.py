"""Which blocks hold a term, and how often: posting lists packed into blobs, a row for each term and bucket of block ids.

SQLite's own FTS5 needs 41 ms to rank the 8,700 blocks of 20,800 that an ordinary question touches, and 21 ms only to list them
(fts5vocab); these rows take 1.3 ms, any window's or section's counts follow from prefix sums over them, and an edited file rewrites
only the newest bucket. Ids are never used twice, so a deleted block's postings are ignored, and dropped when the index is compacted.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

BUCKET_BITS = 16  # ids in one row; the offset of an id in its bucket fits 16 bits
MOST = 255  # term frequencies are capped here; BM25 is flat long before

SCHEMA = "CREATE TABLE IF NOT EXISTS postings (term TEXT, bucket INTEGER, docs BLOB, PRIMARY KEY (term, bucket)) WITHOUT ROWID"


class Writer:
    """Collects the postings of new blocks and adds them in one go. Ids must rise from call to call."""

    def __init__(self) -> None:
        self._lists: defaultdict[str, array[int]] = defaultdict(partial(array, "Q"))  # term -> id << 8 | frequency

    def add(self, block: int, counts: Mapping[str, int]) -> None:
        for term, count in counts.items():
            self._lists[term].append(block << 8 | min(count, MOST))

    def flush(self, connection: sqlite3.Connection) -> None:
        """Append to what is stored; inside the caller's transaction."""
        # `||` on blobs yields text in SQLite, hence the cast back; both sides are blobs, so no byte is touched.
        connection.executemany(
            "INSERT INTO postings VALUES (?, ?, ?) ON CONFLICT (term, bucket) DO UPDATE SET docs = CAST(docs || excluded.docs AS BLOB)",
            self._rows(),
        )
        self._lists.clear()

    def _rows(self) -> Iterator[tuple[str, int, bytes]]:
        """All lists packed at once: a call of numpy for each term would cost more than the packing."""
        import numpy as np

        terms = sorted(self._lists)
        values = np.frombuffer(b"".join(self._lists[term].tobytes() for term in terms), dtype=np.uint64)
        ids = values >> np.uint64(8)
        packed = np.empty(values.size, dtype=[("low", "<u2"), ("count", "u1")])
        packed["low"], packed["count"] = ids & np.uint64(0xFFFF), values & np.uint64(0xFF)
        raw, buckets = packed.tobytes(), (ids >> np.uint64(BUCKET_BITS)).tolist()
        at = 0
        for term in terms:
            end = at + len(self._lists[term])
            while at < end:
                last = end if buckets[end - 1] == buckets[at] else bisect_right(buckets, buckets[at], at, end)
                yield term, buckets[at], raw[3 * at : 3 * last]
                at = last


def read(connection: sqlite3.Connection, term: str) -> Iterable[tuple[int, bytes]]:
    """(first id of the bucket, its packed records of 3 bytes: offset u16 little-endian, frequency u8), by rising id."""
    rows = connection.execute("SELECT bucket, docs FROM postings WHERE term = ? ORDER BY bucket", (term,))
    return [(bucket << BUCKET_BITS, docs) for bucket, docs in rows]
