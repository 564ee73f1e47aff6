"""A specification ("default", "none", "sentence-transformers:<path or name>", "openai:<base_url>#<model>") in, an `Encoder` out.

Nothing heavy is imported here: a backend is imported by `open_encoder` when it is the one asked for.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from memory_tools.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Kind = Literal["query", "passage"]


@dataclass(frozen=True, slots=True)
class Cosines:
    """Two distributions of the cosine between a question and a block: mean and standard deviation each.

    `answer_*`: the block answers the question. `other_*`: question and block have nothing to do with each other.
    """

    answer_mean: float
    answer_sd: float
    other_mean: float
    other_sd: float


class Encoder(Protocol):
    """Texts to unit vectors. `name` (model and version of the preparation) is stored in the index: another name re-embeds."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def cosines(self) -> Cosines:
        """Measured when first asked for, once a model and user. Unavailable as in `encode`."""
        ...

    def encode(self, texts: Sequence[str], kind: Kind) -> NDArray[np.float32]:
        """Unit rows, shape (len(texts), dimension), float32; a blank text gets a zero row. Unavailable: cannot encode now."""
        ...


def user_cache() -> Path | None:
    """`$XDG_CACHE_HOME/memory-tools`, else `~/.cache/memory-tools` (Windows: in `%LOCALAPPDATA%`); None where the user has no home."""
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        folder = Path(os.environ.get(variable, ""))
        if folder.is_absolute():
            return folder / "memory-tools"
    try:
        return Path.home() / ".cache" / "memory-tools"
    except RuntimeError:  # a service without HOME and without an entry in the user database
        return None


def open_encoder(spec: str, *, api_key: str | None = None, cache_dir: Path | None = None, dimension: int | None = None) -> Encoder | None:
    """The encoder that `spec` names, None for "none". InvalidInput: no such kind. Unavailable: it cannot be used, with what to install.

    `api_key` is for `openai:`. `cache_dir`: where derived files are kept, None: `user_cache()`. `dimension`: what it was when the index was
    made, where that is known; a server need not be asked for it then, and is refused when its vectors differ.
    """
    kind, _, rest = spec.strip().partition(":")
    if kind == "none" and not rest:
        return None
    if kind == "default" and not rest:
        from memory_tools.encoders.universal import Universal

        return Universal(cache_dir if cache_dir is not None else user_cache())
    if kind == "sentence-transformers":
        from memory_tools.encoders.local import SentenceTransformers

        return SentenceTransformers(rest, cache_dir if cache_dir is not None else user_cache())
    if kind == "openai":
        from memory_tools.encoders.endpoint import Endpoint

        return Endpoint(rest, api_key, cache_dir if cache_dir is not None else user_cache(), dimension)
    raise InvalidInput(
        f"unknown encoder {spec!r}",
        'use "default", "none", "sentence-transformers:<path or name>" or "openai:<base_url>#<model>"',
    )
