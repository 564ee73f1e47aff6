"""Texts in, unit vectors out through an OpenAI-compatible `POST {base_url}/embeddings`: Ollama, LM Studio, vLLM, OpenAI itself.

One route with one JSON document each way needs no client library: urllib comes with Python, so that a local server works right after the
base install, and how errors, time and the key are handled is in one place (posting.py). Nothing here is sent anywhere but to `base_url`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from memory_tools.encoders import Cosines, Kind, probe
from memory_tools.encoders.posting import Pace, Poster
from memory_tools.encoders.prefixes import VERSION, prefixes_of
from memory_tools.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_TEXTS = 96  # in one request
_MAX_BATCH_CHARS = 96_000
_MAX_CHARS = 6_000  # OpenAI refuses more than 8,192 tokens, and a Chinese character may take more than one
_EXAMPLE = "openai:http://localhost:11434/v1#nomic-embed-text"
_PATIENT = Pace(attempts=6, timeout_s=60.0, longest_wait_s=60.0)
_QUICK = Pace(attempts=3, timeout_s=15.0, longest_wait_s=3.0)  # somebody waits for the answer to a query


class Endpoint:
    """`address` is `<base_url>#<model>`. The key is sent as a bearer token and shown nowhere."""

    def __init__(
        self,
        address: str,
        api_key: str | None = None,
        cache_dir: Path | None = None,
        dimension: int | None = None,
        *,
        patient: Pace = _PATIENT,
        quick: Pace = _QUICK,
    ) -> None:
        base_url, _, model = address.partition("#")
        try:
            parts = urlsplit(base_url.strip())
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # a port that is no number, an unclosed bracket
            usable = False
        if not usable or not model.strip() or any(not "!" <= character <= "~" for character in base_url.strip()):
            raise InvalidInput("encoder openai: needs an http(s) address and a model", f"use openai:<base_url>#<model>, as {_EXAMPLE}")
        if "@" in parts.netloc:
            raise InvalidInput("encoder openai: the address must not hold a user or password", "put the key into encoder_api_key")
        self._model = model.strip()
        self._prefixes = prefixes_of(self._model)
        self._pace = {"query": quick, "passage": patient}
        path = parts.path.rstrip("/")
        self._post = Poster(urlunsplit(parts._replace(path=f"{path}/embeddings")), api_key)
        self._dimension = dimension
        self._cache_dir = cache_dir
        self._cosines: Cosines | None = None
        self.name = f"openai:{parts.netloc}{path}#{self._model}/{VERSION}"

    @property
    def dimension(self) -> int:
        """Where it was not given, asks the server once, with a short text. Unavailable as in `encode`."""
        if self._dimension is None:
            self.encode(["dimension"], "query")
        assert self._dimension is not None
        return self._dimension

    @property
    def cosines(self) -> Cosines:
        self._cosines = self._cosines or probe.kept(self, self._cache_dir)
        return self._cosines

    def encode(self, texts: Sequence[str], kind: Kind) -> NDArray[np.float32]:
        """Unit rows float32 (len(texts), dimension), zero for a blank text. Unavailable: no usable answer, with the server's own words."""
        import numpy as np

        prefix = self._prefixes.query if kind == "query" else self._prefixes.passage
        rows = [i for i, text in enumerate(texts) if text.strip()]
        ready = [prefix + texts[i][:_MAX_CHARS].encode("utf-8", "replace").decode("utf-8") for i in rows]
        found: list[list[float]] = []
        for batch in _batches(ready):
            found += self._vectors(batch, self._pace[kind])
        out = np.zeros((len(texts), self.dimension), np.float32)
        if found:
            vectors = np.array(found, np.float64)
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            out[rows] = vectors / np.where(lengths > 0, lengths, 1)
        return out

    def _vectors(self, batch: Sequence[str], pace: Pace) -> list[list[float]]:
        where = self._post.where
        answer = self._post({"model": self._model, "input": list(batch), "encoding_format": "float"}, pace)
        items = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise Unavailable(f"{where}: the answer has no list `data`", "is this an OpenAI-compatible /embeddings route?")
        if len(items) != len(batch):
            raise Unavailable(f"{where}: {len(items)} vectors for {len(batch)} texts")
        # The order is told by `index`; servers that leave it out keep the order of the texts.
        places = [item.get("index", i) for i, item in enumerate(items)]
        if not all(type(place) is int for place in places) or sorted(places) != list(range(len(batch))):
            raise Unavailable(f"{where}: the answer's `index` numbers are not 0 to {len(batch) - 1}")
        vectors: list[list[float]] = [[]] * len(batch)
        for place, item in zip(places, items, strict=True):
            vectors[place] = _numbers(item.get("embedding"), where)
        for size in sorted({len(vector) for vector in vectors}):
            if self._dimension is None:
                self._dimension = size
            if size != self._dimension:
                raise Unavailable(
                    f"{where}: a vector of {size} numbers after vectors of {self._dimension}",
                    "the model behind this name is another one now; `memory-tools rebuild` encodes everything anew",
                )
        return vectors


def _numbers(value: object, where: str) -> list[float]:
    if not isinstance(value, list) or not value:
        raise Unavailable(f"{where}: an `embedding` is not a list of numbers")
    for number in value:
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            raise Unavailable(f"{where}: an `embedding` holds {json.dumps(number)[:40]}")
    return value


def _batches(texts: Sequence[str]) -> list[list[str]]:
    """In order, at most 96 texts and 96,000 characters together, or one text alone."""
    batches: list[list[str]] = []
    chars = 0
    for text in texts:
        if not batches or len(batches[-1]) >= _MAX_TEXTS or chars + len(text) > _MAX_BATCH_CHARS:
            batches.append([])
            chars = 0
        batches[-1].append(text)
        chars += len(text)
    return batches
