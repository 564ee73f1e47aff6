"""A section's body text in; its normalised form, hash and sketch out, and how alike two sketches are. Pure; numpy is imported when used.

A sketch is a bottom-k MinHash of the body's NFKC character 3-grams: the K smallest distinct 24-bit hashes. Of a short body it is the
whole set, so a Chinese line of twenty characters is compared exactly; of two longer ones the hashes below the lower of the two maxima are
an unbiased sample of either, from which both the Jaccard similarity and the containment of one in the other are read.

Bytes: size in characters (3, little endian), share of ideographs, kana and Hangul (1, of 255), then the hashes in ascending order (3 each,
little endian). They are kept in data of record (utility-scores.json), so the hash function is part of the format and never changes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

K = 48
WIDTH = 24  # bits of a hash
_DENSE = 0x2E80  # from here on: CJK, kana, Hangul
_LARGEST = (1 << WIDTH) - 1
_MARK_RUN = 32  # canonical ordering of a run of combining marks is quadratic in its length
_ARCHIVED = re.compile(r"^<!-- archived .*-->$", re.MULTILINE)  # our own line between archived sections is nobody's text


_HEADER = 4
_CHANCE = 0.12  # what two unrelated English bodies have in common; two Chinese ones have nothing
_CHANCE_INSIDE = 0.24  # the same of the share of one that is in the other


@dataclass(frozen=True, slots=True)
class Sketch:
    """`size` in characters of the normalised body, `dense`: share of scripts with thousands of letters, `hashes` ascending."""

    size: int = 0
    dense: float = 0.0
    hashes: tuple[int, ...] = ()

    @property
    def top(self) -> int:
        """Up to here every hash of the body is known."""
        return self.hashes[-1] if len(self.hashes) >= K else _LARGEST


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
        return "", b"", 0
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
    dense = float(np.count_nonzero(points >= _DENSE) / len(text))
    if len(hashes) > 16 * K:  # sorting all of a long body costs more than hashing it; repeats make up to 8 times K necessary
        low = np.unique(np.partition(hashes, 8 * K)[: 8 * K])
        if len(low) >= K:
            return pack(Sketch(len(text), dense, tuple(low[:K].tolist())))
    return pack(Sketch(len(text), dense, tuple(np.unique(hashes)[:K].tolist())))


def pack(sketch: Sketch) -> bytes:
    head = min(sketch.size, _LARGEST).to_bytes(3, "little") + bytes([round(255 * min(sketch.dense, 1.0))])
    return head + b"".join(h.to_bytes(3, "little") for h in sketch.hashes)


def unpack(packed: bytes) -> Sketch:
    """What is not a sketch (written by hand) is read as an empty one."""
    if len(packed) <= _HEADER or (len(packed) - _HEADER) % 3:
        return Sketch()
    hashes = {int.from_bytes(packed[i : i + 3], "little") for i in range(_HEADER, len(packed), 3)}
    return Sketch(int.from_bytes(packed[:3], "little"), packed[3] / 255, tuple(sorted(hashes)[:K]))


def size_of(packed: bytes) -> int:
    """Characters of the body that was sketched."""
    return int.from_bytes(packed[:3], "little") if len(packed) > _HEADER else 0


class Likeness:
    """Two lists of sketches in; for each pair how alike they are beyond chance, out.

    A 3-gram that few sections have says more than one that all have, so each counts log(1 + sections / sections with it).
    `background`: the sections that tell how common a 3-gram is; more may be known than are compared.
    """

    def __init__(self, old: Sequence[Sketch], new: Sequence[Sketch], background: Sequence[Sketch]) -> None:
        import numpy as np

        everything = np.array([h for sketch in background for h in sketch.hashes], dtype=np.int64)
        known, counts = np.unique(everything, return_counts=True)
        self._weight: dict[int, float] = dict(zip(known.tolist(), np.log1p(len(background) / counts).tolist(), strict=True))
        self._rare = float(np.log1p(max(len(background), 1)))
        self._old, self._new = old, new
        self._tops = np.array([s.top for s in new], dtype=np.int64)
        self._sums_new = [self._sums(s) for s in new]
        wanted = {h for sketch in old for h in sketch.hashes}
        columns: dict[int, list[int]] = {}
        for j, sketch in enumerate(new):
            for h in sketch.hashes:
                if h in wanted:
                    columns.setdefault(h, []).append(j)
        self._columns = {h: np.array(js) for h, js in columns.items()}

    def _sums(self, sketch: Sketch) -> NDArray[np.float64]:
        import numpy as np

        return np.concatenate([[0.0], np.cumsum([self._weight.get(h, self._rare) for h in sketch.hashes])])

    def rows(self, start: int, stop: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """(shared / both, shared / old, shared / new) of old[start:stop] with all new, each of shape (stop - start, new) in [0, 1]."""
        import numpy as np

        old = self._old[start:stop]
        tops = np.array([s.top for s in old], dtype=np.int64)
        shared, old_part, new_part = (np.zeros((len(old), len(self._new))) for _ in range(3))
        for i, sketch in enumerate(old):
            old_part[i] = self._sums(sketch)[np.searchsorted(sketch.hashes, np.minimum(self._tops, tops[i]), side="right")]
            for h in sketch.hashes:
                columns = self._columns.get(h)
                if columns is not None:
                    shared[i, columns] += self._weight.get(h, self._rare)
        for j, sketch in enumerate(self._new):
            new_part[:, j] = self._sums_new[j][np.searchsorted(sketch.hashes, np.minimum(tops, self._tops[j]), side="right")]
        sparse = np.outer([1.0 - s.dense for s in old], [1.0 - s.dense for s in self._new])
        both, inside = _CHANCE * sparse, _CHANCE_INSIDE * sparse
        return (
            _beyond(shared, old_part + new_part - shared, both),
            _beyond(shared, old_part, inside),
            _beyond(shared, new_part, inside),
        )


def _beyond(part: NDArray[np.float64], whole: NDArray[np.float64], chance: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    ratio = np.divide(part, whole, out=np.zeros_like(part), where=whole > 1e-9)
    return np.asarray(((ratio - chance) / (1.0 - chance)).clip(0.0, 1.0))
