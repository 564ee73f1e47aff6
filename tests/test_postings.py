"""Posting lists: what was written in several goes is read back whole, by rising id."""

from __future__ import annotations

import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from memory_tools import postings

_blocks = st.lists(st.dictionaries(st.sampled_from(["a", "b", "超时", "\x1eann"]), st.integers(1, 400), max_size=4), max_size=30)


@given(_blocks, st.integers(1, 5), st.sampled_from([1, 3000, 65_530]))
def test_what_was_written_in_several_goes_is_read_back_whole(blocks: list[dict[str, int]], goes: int, stride: int) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute(postings.SCHEMA)
    expected: dict[str, list[tuple[int, int]]] = {}
    writer = postings.Writer()
    for n, counts in enumerate(blocks):
        writer.add(n * stride, counts)
        for term, count in counts.items():
            expected.setdefault(term, []).append((n * stride, min(count, postings.MOST)))
        if n % goes == 0:
            writer.flush(connection)
    writer.flush(connection)
    for term, pairs in expected.items():
        read = [
            (base + int.from_bytes(docs[i : i + 2], "little"), docs[i + 2])
            for base, docs in postings.read(connection, term)
            for i in range(0, len(docs), 3)
        ]
        assert read == pairs
    assert list(postings.read(connection, "never")) == []
