"""A section's body text in; its normalised form, hash and sketch out, and how alike two sketches are. Pure; numpy is imported when used.

A sketch is a bottom-k MinHash of the body's NFKC character 3-grams: the K smallest distinct 24-bit hashes. Of a short body it is the
whole set, so a Chinese line of twenty characters is compared exactly; of two longer ones the hashes below the lower of the two maxima are
an unbiased sample of either, from which both the Jaccard similarity and the containment of one in the other are read.

Bytes: size in characters (3, little endian), then the hashes in ascending order (3 each, little endian). They are kept in data of record
(utility-scores.json), so the hash function is part of the format and never changes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

K = 48
WIDTH = 24  # bits of a hash
_LARGEST = (1 << WIDTH) - 1
_MARK_RUN = 32  # canonical ordering of a run of combining marks is quadratic in its length
_ARCHIVED = re.compile(r"^<!-- archived .*-->$", re.MULTILINE)  # our own line between archived sections is nobody's text


def normalised(body: str) -> str:
    """White space folded to single spaces, NFKC. Line endings, indentation and full-width forms make no difference."""
    if "<!-- archived " in body:
        body = _ARCHIVED.sub("", body)
    text = " ".join(body.split())
    if text.isascii():
        return text
    marks = sorted(c for c in set(text) if unicodedata.combining(c))
    if marks:
        anyone = "[" + "".join(re.escape(c) for c in marks) + "]"
        text = re.sub(f"({anyone}{{{_MARK_RUN}}}){anyone}+", r"\1", text)
    if unicodedata.is_normalized("NFKC", text):
        return text
    # NFKC makes spaces of its own (of U+00A8, U+FDFA), so fold once more.
    return " ".join(unicodedata.normalize("NFKC", text).split())


def trace_parts(body: str) -> tuple[str, bytes, int]:
    """(hash in hex, sketch, size in characters) of the text under a heading. A section without text has the hash ""."""
    import hashlib

    text = normalised(body)
    if not text:
        return "", pack([], 0), 0
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return digest, _sketch(text), len(text)


def _sketch(text: str) -> bytes:
    import numpy as np

    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    if len(points) < 3:
        points = np.concatenate([points, np.zeros(3 - len(points), dtype=np.uint64)])
    # Code points have 21 bits, so three of them fit one word without loss; then the finaliser of splitmix64 spreads them.
    gram = points[:-2] | (points[1:-1] << np.uint64(21)) | (points[2:] << np.uint64(42))
    gram = (gram ^ (gram >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    gram = (gram ^ (gram >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    hashes = (gram ^ (gram >> np.uint64(31))) >> np.uint64(64 - WIDTH)
    if len(hashes) > 16 * K:  # sorting all of a long body costs more than hashing it; repeats make up to 8 times K necessary
        low = np.unique(np.partition(hashes, 8 * K)[: 8 * K])
        if len(low) >= K:
            return pack(low[:K].tolist(), len(text))
    return pack(np.unique(hashes)[:K].tolist(), len(text))


def pack(hashes: list[int], size: int) -> bytes:
    return b"".join(n.to_bytes(3, "little") for n in (min(size, _LARGEST), *hashes))


def unpack(sketch: bytes) -> tuple[int, list[int]]:
    """(size, hashes ascending). What is not a sketch (written by hand) is read as an empty one."""
    if len(sketch) < 3 or len(sketch) % 3:
        return 0, []
    size, *hashes = (int.from_bytes(sketch[i : i + 3], "little") for i in range(0, len(sketch), 3))
    return size, sorted(set(hashes))[:K]


class Likeness:
    """Two lists of hashes in; for each pair how alike they are, out.

    A 3-gram that few sections have says more than one that all have, so each counts log(1 + sections / sections with it).
    `background`: the sections that tell how common a 3-gram is; more may be known than are compared.
    """

    def __init__(self, old: Sequence[Sequence[int]], new: Sequence[Sequence[int]], background: Sequence[Sequence[int]]) -> None:
        import numpy as np

        everything = np.array([h for hashes in background for h in hashes], dtype=np.int64)
        known, counts = np.unique(everything, return_counts=True)
        weight = dict(zip(known.tolist(), np.log1p(len(background) / counts).tolist(), strict=True))
        self._rare = float(np.log1p(max(len(background), 1)))
        self._weight = weight
        self._old, self._new = old, new
        self._tops = np.array([_top(h) for h in new], dtype=np.int64)
        wanted = {h for hashes in old for h in hashes}
        columns: dict[int, list[int]] = {}
        for j, hashes in enumerate(new):
            for h in hashes:
                if h in wanted:
                    columns.setdefault(h, []).append(j)
        self._columns = {h: np.array(js) for h, js in columns.items()}

    def _sums(self, hashes: Sequence[int]) -> NDArray[np.float64]:
        import numpy as np

        return np.concatenate([[0.0], np.cumsum([self._weight.get(h, self._rare) for h in hashes])])

    def rows(self, start: int, stop: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """(shared / both, shared / old, shared / new) of old[start:stop] with all new, each of shape (stop - start, new) in [0, 1]."""
        import numpy as np

        old = self._old[start:stop]
        tops = np.array([_top(h) for h in old], dtype=np.int64)
        shared, old_part, new_part = (np.zeros((len(old), len(self._new))) for _ in range(3))
        for i, hashes in enumerate(old):
            old_part[i] = self._sums(hashes)[np.searchsorted(hashes, np.minimum(self._tops, tops[i]), side="right")]
            for h in hashes:
                columns = self._columns.get(h)
                if columns is not None:
                    shared[i, columns] += self._weight.get(h, self._rare)
        for j, hashes in enumerate(self._new):
            new_part[:, j] = self._sums(hashes)[np.searchsorted(hashes, np.minimum(tops, self._tops[j]), side="right")]
        return _ratio(shared, old_part + new_part - shared), _ratio(shared, old_part), _ratio(shared, new_part)


def _top(hashes: Sequence[int]) -> int:
    """Up to here a sketch knows every hash of its body."""
    return hashes[-1] if len(hashes) >= K else _LARGEST


def _ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 1e-9).clip(0.0, 1.0)
