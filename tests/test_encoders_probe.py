"""The two distributions of cosines: measured for any model, kept for the next process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memory_tools.encoders import Cosines, Kind, probe
from memory_tools.encoders.universal import Universal


class Drawn:
    """A model that was made up: each pair has a direction of its own, and every text leans to one that all share."""

    dimension = 40
    cosines = Cosines(0, 0, 0, 0)

    def __init__(self, name: str, shared: float, own: float = 1.0, unread: str | None = None) -> None:
        self.name, self.shared, self.own, self.unread = name, shared, own, unread
        self.calls = 0

    def encode(self, texts: Sequence[str], kind: Kind) -> NDArray[np.float32]:
        self.calls += 1
        vectors = np.zeros((len(texts), 40), np.float32)
        vectors[:, 0] = self.shared
        for row, text in enumerate(texts):
            place = next(i for i, pair in enumerate(probe.PAIRS) if text in pair)
            vectors[row, 1 + place] = self.own
            vectors[row, 33] = 0.5 if kind == "query" else -0.5
            if self.unread is not None and self.unread in text:
                vectors[row] = 0
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


@pytest.fixture(scope="module")
def universal(tmp_path_factory: pytest.TempPathFactory) -> Universal:
    return Universal(tmp_path_factory.mktemp("cache"))


def test_the_default_encoders_figures_are_those_that_the_pairs_give(universal: Universal) -> None:
    assert probe.measure(universal) == universal.cosines


def test_a_model_that_puts_everything_close_is_measured_as_such() -> None:
    near, far = probe.measure(Drawn("near", shared=3.0)), probe.measure(Drawn("far", shared=0.0))
    assert near.other_mean > 0.8
    assert near.answer_mean > near.other_mean
    assert far.other_mean < 0
    assert far.answer_mean > 0.5


def test_scripts_that_a_model_does_not_read_do_not_count() -> None:
    assert probe.measure(Drawn("all", shared=1.0)) == probe.measure(Drawn("some", shared=1.0, unread="的"))


@pytest.mark.parametrize("model", [Drawn("alike", shared=1.0, own=0.0), Drawn("mute", shared=0.0, unread="")])
def test_a_model_that_tells_nothing_apart_gets_cosines_that_hardly_count(model: Drawn) -> None:
    found = probe.measure(model)
    assert found.answer_mean - found.other_mean >= 0.9


def test_a_model_is_measured_once_and_another_one_for_itself(tmp_path: Path) -> None:
    model = Drawn("one", shared=1.0)
    first = probe.kept(model, tmp_path)
    calls = model.calls
    assert probe.kept(model, tmp_path) == first
    assert model.calls == calls
    assert probe.kept(Drawn("two", shared=2.0), tmp_path) != first
    assert len(list(tmp_path.glob("cosines-*.json"))) == 2


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", '["a", 1, 2, 3]', "[NaN, 1, 1, 1]", "[0.1, 0, 0.5, 0]", "null", "[[]]"])
def test_a_damaged_file_is_measured_anew(tmp_path: Path, content: str) -> None:
    first = probe.kept(Drawn("one", shared=1.0), tmp_path)
    path = next(tmp_path.glob("cosines-*.json"))
    path.write_text(content)
    assert probe.kept(Drawn("one", shared=1.0), tmp_path) == first
    assert json.loads(path.read_text())[0] == first.answer_mean


def test_without_a_folder_to_write_to_it_is_measured_each_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    first = probe.kept(Drawn("one", shared=1.0), None)
    assert probe.kept(Drawn("one", shared=1.0), tmp_path / "file" / "cache") == first
