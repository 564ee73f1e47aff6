"""The matrix: int8 rows give the cosines of the vectors they were made from, and a torn file costs rows, not answers."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from memory_tools import seam
from memory_tools.errors import Busy
from memory_tools.vectors import CHUNK, Matrix


def _unit(count: int, dimension: int, seed: int = 0) -> np.ndarray:
    made = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


@pytest.mark.parametrize("in_memory", [True, False])
def test_cosines_are_those_of_the_vectors_within_the_quantisation(tmp_path: Path, in_memory: bool) -> None:
    vectors = _unit(CHUNK + 100, 64)
    matrix = Matrix(None if in_memory else tmp_path / "v.i8", 64)
    matrix.write(0, vectors[:1000])
    matrix.write(1000, vectors[1000:])
    assert matrix.load(len(vectors)) == len(vectors)
    query = _unit(1, 64, seed=1)[0]
    assert np.abs(matrix.cosines(query) - vectors @ query).max() < 0.01
    assert np.abs(matrix.cosines(vectors[7])[7] - 1) < 0.01


def test_a_cosine_does_not_depend_on_how_many_rows_stand_beside_it(tmp_path: Path) -> None:
    vectors = _unit(3 * CHUNK, 512)
    matrix = Matrix(tmp_path / "v.i8", 512)
    matrix.write(0, vectors)
    query = _unit(1, 512, seed=2)[0]
    matrix.load(3 * CHUNK)
    everything = matrix.cosines(query)
    matrix.load(CHUNK + 1)
    assert (matrix.cosines(query) == everything[: CHUNK + 1]).all()


def test_a_file_that_was_cut_off_or_deleted_holds_fewer_rows(tmp_path: Path) -> None:
    matrix = Matrix(tmp_path / "v.i8", 32)
    matrix.write(0, _unit(10, 32))
    with (tmp_path / "v.i8").open("r+b") as stream:
        stream.truncate(36 * 4 + 5)
    assert Matrix(tmp_path / "v.i8", 32).load(10) == 4
    (tmp_path / "v.i8").unlink()
    again = Matrix(tmp_path / "v.i8", 32)
    assert again.load(10) == 0
    assert again.cosines(_unit(1, 32)[0]).size == 0


def test_a_file_written_over_by_a_copy_that_keeps_size_and_time_is_lost(tmp_path: Path) -> None:
    """A restored backup: its vectors were taken for those that had been there, and the search by meaning found nothing more."""
    path = tmp_path / "v.i8"
    matrix = Matrix(path, 32)
    matrix.write(0, _unit(10, 32))
    matrix.load(10)
    assert not matrix.lost()
    state = path.stat()
    with path.open("r+b") as stream:
        stream.write(b"\xff" * state.st_size)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert matrix.lost()


def test_a_zero_vector_is_like_nothing(tmp_path: Path) -> None:
    matrix = Matrix(None, 16)
    matrix.write(0, np.zeros((1, 16), dtype=np.float32))
    matrix.load(1)
    assert matrix.cosines(_unit(1, 16)[0]).tolist() == [0.0]


def test_a_full_disk_is_told_as_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(kind: str, target: str) -> None:
        if kind == "write":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(seam, "on_step", full)
    with pytest.raises(Busy, match="No space left"):
        Matrix(tmp_path / "v.i8", 16).write(0, _unit(1, 16))
