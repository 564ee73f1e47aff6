"""Relevance means the same everywhere: obvious hits near 1, nonsense and other people's lives near 0. Measured on the open notes."""

from __future__ import annotations

import numpy as np
import pytest
from notes import NOTES, SETS, Notes, open_set
from numpy.typing import NDArray

from memory_tools.calibration import for_encoder
from memory_tools.encoders import Cosines, open_encoder

CHECK = NOTES.parent / "check"
MIN_SCORE = 0.5


@pytest.fixture(scope="module", params=["default", "none"])
def measured(request: pytest.FixtureRequest) -> dict[str, tuple[Notes, list[tuple[str, list[int]]]]]:
    return {name: open_set(name, request.param) for name in SETS}


def test_most_evidence_that_is_found_at_all_passes_the_default_threshold(
    measured: dict[str, tuple[Notes, list[tuple[str, list[int]]]]],
) -> None:
    found = kept = 0
    for notes, questions in measured.values():
        for question, answers in questions:
            scored = notes.score(question)
            order = [i for i in np.argsort(-scored.score, kind="stable")[:10] if np.isfinite(scored.score[i])]
            hits = [i for i in answers if i in order]
            found += len(hits)
            kept += sum(scored.relevance[i] >= MIN_SCORE for i in hits)
    assert found > 90
    assert kept >= 0.9 * found


def test_other_peoples_lives_general_knowledge_and_nonsense_find_nothing(
    measured: dict[str, tuple[Notes, list[tuple[str, list[int]]]]],
) -> None:
    absent = [line for line in (NOTES / "absent.txt").read_text(encoding="utf-8").splitlines() if line]
    best = [float(notes.score(question).relevance.max()) for notes, _ in measured.values() for question in absent]
    assert np.mean(np.array(best) < MIN_SCORE) >= 0.85
    assert np.mean(best) < 0.2
    nonsense = [
        float(notes.score(q).relevance.max())
        for notes, _ in measured.values()
        for q in ("qwrtz plomf zzyx", "xkcdvb nmqpw", "0x00ff 77777777")
    ]
    assert max(nonsense) < 0.25


def test_beside_a_note_that_holds_the_code_asked_for_no_other_passes_for_being_near_in_meaning() -> None:
    folders = [NOTES / name for name in ("en-work", "zh-work", "talk")] + [CHECK / name for name in ("zh-life", "zh-shop", "ko-life")]
    files = {f"{folder.name}/{p.relative_to(folder)}": p.read_text(encoding="utf-8") for folder in folders for p in folder.rglob("*.md")}
    notes = Notes(files, open_encoder("default"))
    for question, holder in (("E-2093", "错误码 E-2093"), ("E-4711", "no error E-4711"), ("E-2093 怎么处理", "错误码 E-2093")):
        found = notes.search(question, min_score=MIN_SCORE)
        assert holder in notes.shown(found[0])
        assert {notes.place[p.first][0] for p in found} == {notes.place[found[0].first][0]}


def test_a_code_in_the_first_line_of_a_note_without_headings_does_not_lift_all_its_other_lines() -> None:
    """Ten results, of which one was about the code: the first block of any section was taken for its heading."""
    folders = [NOTES / name for name in ("en-work", "zh-work", "talk")] + [CHECK / name for name in ("zh-life", "ko-life")]
    texts = [path.read_text(encoding="utf-8") for folder in folders for path in sorted(folder.rglob("*.md"))]
    lines = [line for text in texts for line in text.splitlines() if line.startswith("- ") and "E-4711" not in line]
    flat = "- E-4711 at the till means that the certificate has run out\n" + "\n".join(lines) + "\n"
    notes = Notes({"MEMORY.md": flat}, open_encoder("default"))
    for question in ("what does E-4711 mean", "E-4711 怎么处理"):
        found = notes.search(question, min_score=MIN_SCORE)
        assert [notes.place[p.first][1] for p in found][:1] == [1]
        assert {notes.place[p.first][1] for p in found} <= {1, 2}


def test_relevance_never_rises_where_the_score_falls(measured: dict[str, tuple[Notes, list[tuple[str, list[int]]]]]) -> None:
    for notes, questions in measured.values():
        for question, _ in questions[:5]:
            scored = notes.score(question)
            order = np.argsort(-scored.score, kind="stable")
            assert (np.diff(scored.relevance[order]) <= 1e-7).all()
            assert ((scored.relevance >= 0) & (scored.relevance <= 1)).all()


class Squeezed(Notes):
    """As if encoded by a model that puts unrelated texts at a cosine of .75."""

    def cosines(self, text: str) -> NDArray[np.float32] | None:
        cosines = super().cosines(text)
        return None if cosines is None else (0.75 + 0.2 * cosines).astype(np.float32)


def test_an_encoder_with_another_scale_gets_nearly_the_same_order() -> None:
    notes, questions = open_set("en-work", "default")
    squeezed = Squeezed(notes.files, notes.encoder)
    squeezed.encoder_name = "openai:http://localhost#squeezed"
    same = sum(int(np.argmax(notes.score(q).score)) == int(np.argmax(squeezed.score(q).score)) for q, _ in questions)
    assert same >= 0.85 * len(questions)


def test_an_encoders_scale_comes_from_its_name_its_measured_cosines_or_the_corpus() -> None:
    other = "sentence-transformers:all-MiniLM-L6-v2/1"
    assert for_encoder("universal-multilingual-v3/1").scale == 1.0
    assert for_encoder(other).scale is None
    measured = for_encoder(other, Cosines(answer_mean=0.9, answer_sd=0.03, other_mean=0.75, other_sd=0.02))
    assert measured.scale is not None
    assert measured.shift + measured.scale * 0.75 == pytest.approx(0.027)
    assert measured.shift + measured.scale * 0.9 == pytest.approx(0.278)
    assert for_encoder(None) == for_encoder("none")
