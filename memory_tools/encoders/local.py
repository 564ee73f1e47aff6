"""Texts in, unit vectors out through the sentence-transformers library: any model of a local folder or of the hub.

The library is imported when the first text is encoded (its import alone takes seconds). A model that is on this machine is opened without
asking the network; one that is not is fetched by the library, unless HF_HUB_OFFLINE forbids that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_tools.encoders import Cosines, Kind, probe, threads
from memory_tools.encoders.prefixes import VERSION, Prefixes, prefixes_of
from memory_tools.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_CHARS = 20_000  # models cut at 256 to 8,192 pieces by themselves; this bounds what is cut into pieces
_BATCH = 32
_UNREAD = 0.25  # all-MiniLM-L6-v2: Chinese notes .39 to .78, Japanese .29 (median), English at most .02, European languages 0
_INSTALL = 'pip install "markdown-memory-tools[sentence-transformers]"'


class SentenceTransformers:
    """`model`: a folder (an absolute path, or one that begins with `.` or `~`), else a name on the hub."""

    def __init__(self, model: str, cache_dir: Path | None = None) -> None:
        if not model.strip():
            raise InvalidInput("sentence-transformers: the model is missing", "use sentence-transformers:<path or name>")
        path = Path(model).expanduser()
        self._folder = path if path.is_absolute() or model.startswith((".", "~")) else None
        if self._folder is not None and not (self._folder / "config.json").is_file() and not (self._folder / "modules.json").is_file():
            raise Unavailable(f"{self._folder}: holds no sentence-transformers model", "name a folder with config.json or modules.json")
        self._source = model if self._folder is None else str(self._folder)
        known = model if self._folder is None else _identity(self._folder)
        self.name = f"sentence-transformers:{known}/{VERSION}"
        self._cache_dir = cache_dir
        self._model: Any = None
        self._prefixes = Prefixes()
        self._cosines: Cosines | None = None

    @property
    def dimension(self) -> int:
        """Loads the model. Unavailable as in `encode`."""
        model = self._loaded()
        # Renamed in version 5.4; the old name still works but warns.
        size = model.get_embedding_dimension() if hasattr(model, "get_embedding_dimension") else model.get_sentence_embedding_dimension()
        return int(size)

    @property
    def cosines(self) -> Cosines:
        self._cosines = self._cosines or probe.kept(self, self._cache_dir)
        return self._cosines

    def encode(self, texts: Sequence[str], kind: Kind) -> NDArray[np.float32]:
        """Unit rows float32 (len(texts), dimension). Unavailable: the library or the model is missing.

        Zero for a blank text, and for one of which the model does not know a quarter of the pieces: it cannot read that script, and all
        such texts would look alike (Chinese notes and questions in an English model: cosine .50 where they belong together, .48 where not).
        """
        import numpy as np

        model, size = self._loaded(), self.dimension
        out = np.zeros((len(texts), size), np.float32)
        clean = [text[:_MAX_CHARS].encode("utf-8", "replace").decode("utf-8") for text in texts]
        rows = self._readable(clean)
        if not rows:
            return out
        # Routed models have a way of their own for each kind; older versions of the library have `encode` alone.
        encode = getattr(model, "encode_query" if kind == "query" else "encode_document", model.encode)
        prefix = self._prefixes.query if kind == "query" else self._prefixes.passage
        vectors = encode(
            [clean[i] for i in rows],
            prompt=prefix,
            batch_size=1 if kind == "query" else _BATCH,  # a query's vector shall not depend on what is asked beside it
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        vectors = np.asarray(vectors, np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        out[rows] = vectors / np.where(lengths > 0, lengths, 1)
        return out

    def _readable(self, texts: Sequence[str]) -> list[int]:
        rows = [i for i, text in enumerate(texts) if text.strip()]
        tokenizer = getattr(self._loaded(), "tokenizer", None)
        unknown = getattr(tokenizer, "unk_token_id", None)
        if tokenizer is None or unknown is None or not rows:
            return rows
        found = tokenizer([texts[i] for i in rows], add_special_tokens=False, truncation=True, max_length=256)["input_ids"]
        return [i for i, ids in zip(rows, found, strict=True) if ids and sum(id == unknown for id in ids) <= _UNREAD * len(ids)]

    def _loaded(self) -> Any:
        if self._model is None:
            # Read when the libraries are loaded. Threads that wait without spinning: a busy machine shall not multiply the time.
            for variable, value in (("OMP_WAIT_POLICY", "PASSIVE"), ("TOKENIZERS_PARALLELISM", "false")):
                os.environ.setdefault(variable, value)
            try:
                torch = import_module("torch")
                library = import_module("sentence_transformers")
            except ImportError as error:
                raise Unavailable(f"encoder sentence-transformers: cannot import {error.name or error}", _INSTALL) from error
            torch.set_num_threads(threads.workers())
            with suppress(ImportError, AttributeError):
                import_module("transformers").utils.logging.disable_progress_bar()
            self._model = self._open(library)
            self._prefixes = _own_prefixes(getattr(self._model, "prompts", None)) or prefixes_of(self._source)
        return self._model

    def _open(self, library: Any) -> Any:
        problem: Exception | None = None
        for local in (True, False):
            try:
                return library.SentenceTransformer(self._source, local_files_only=local)
            except (OSError, ValueError, RuntimeError, ImportError) as error:
                problem = error
                if self._folder is not None:
                    break
        cause = str(problem).strip().partition("\n")[0] or type(problem).__name__
        raise Unavailable(
            f"encoder sentence-transformers: cannot open {self._source}: {cause}",
            "name a folder that holds the model, or a name on the hub that this machine has or can fetch",
        ) from problem


def _own_prefixes(prompts: object) -> Prefixes | None:
    """What the model's own configuration says, None where it says nothing."""
    if not isinstance(prompts, dict):
        return None
    passage = next((prompts[key] for key in ("document", "passage", "corpus") if prompts.get(key)), "")
    query = prompts.get("query") or ""
    return Prefixes(query, passage) if query or passage else None


def _identity(folder: Path) -> str:
    """The folder's name and a digest of what is in it (small files whole, large ones by size): a moved model stays the same one."""
    digest = blake2b(digest_size=6)
    for path in sorted(folder.rglob("*")):
        if path.suffix in {".json", ".txt", ".safetensors", ".bin", ".model"} and path.is_file():
            size = path.stat().st_size
            digest.update(f"{path.relative_to(folder).as_posix()} {size} ".encode())
            if size < 10_000 and path.suffix == ".json":
                digest.update(json.dumps(path.read_text("utf-8", "replace")).encode())
    return f"{folder.name}@{digest.hexdigest()}"
