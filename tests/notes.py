"""Markdown texts in, what stage 1 works on out: Corpus, postings, exact texts and cosines, held in memory without an index."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memory_tools import calibration, dates, passages, search, traits
from memory_tools.encoders import Encoder, open_encoder
from memory_tools.searched import searched_text
from memory_tools.sections import parse
from memory_tools.tokens import tokenize

NOTES = Path(__file__).parent.parent / "benchmarks" / "notes"
SETS = ["en-work", "zh-work", "talk", "tongues"]
NOW = datetime(2026, 3, 20, 12, 0)
Encode = Callable[[Sequence[str]], NDArray[np.float32]]


class Notes:
    """`files`: path -> Markdown. `encoder` None: lexical only."""

    def __init__(self, files: Mapping[str, str], encoder: Encoder | None = None) -> None:
        self.files = dict(sorted(files.items()))
        self.encoder = encoder
        self.encoder_name = encoder.name if encoder else None
        self.place: list[tuple[str, int, int, int, int]] = []  # path, first line, last line, start, end
        self.searched: list[str] = []
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        columns: dict[str, list[int]] = {k: [] for k in ("file", "section", "length", "chars", "day", "heading", "flags")}
        section_count = 0
        for ordinal, (path, text) in enumerate(self.files.items()):
            for section in parse(path, text).sections:
                for block, found in zip(section.blocks, traits.of_section(section), strict=True):
                    position = len(self.place)
                    words = searched_text(block.kind, block.text, section.headings, section.triggers)
                    counts = Counter(tokenize(words))
                    row = (ordinal, section_count, sum(counts.values()), block.end - block.start, dates.note_day(path))
                    for column, value in zip(columns.values(), (*row, block.kind == "heading", found.flags), strict=True):
                        column.append(int(value))
                    for term in found.terms:
                        counts[term] = 1
                    for term, count in counts.items():
                        postings[term].append((position, count))
                    self.place.append((path, block.start_line, block.end_line, block.start, block.end))
                    self.searched.append(words)
                section_count += 1
        n = len(self.place)
        self.corpus = search.Corpus(
            file=np.array(columns["file"], np.int32),
            section=np.array(columns["section"], np.int32),
            length=np.array(columns["length"], np.int32),
            chars=np.array(columns["chars"], np.int32),
            day=np.array(columns["day"], np.int32),
            heading=np.array(columns["heading"], np.bool_),
            vector=np.arange(n, dtype=np.int32) if encoder else np.full(n, -1, np.int32),
            allowed=np.ones(n, np.bool_),
            flags=np.array(columns["flags"], np.uint8),
        )
        self._postings = {
            term: (np.array([p for p, _ in rows], np.int64), np.array([c for _, c in rows], np.float32)) for term, rows in postings.items()
        }

    def postings(self, term: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        return self._postings.get(term, (np.zeros(0, np.int64), np.zeros(0, np.float32)))

    def text(self, first: int, last: int) -> str:
        path, _, _, start, _ = self.place[first]
        return self.files[path][start : self.place[last][4]]

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        assert self.encoder is not None
        return self.encoder.encode(self.searched, "passage")

    def cosines(self, text: str) -> NDArray[np.float32] | None:
        if self.encoder is None:
            return None
        cosines: NDArray[np.float32] = self.vectors @ self.encoder.encode([text], "query")[0]
        return cosines

    def score(self, *phrasings: str, context: str = "", now: datetime = NOW) -> search.Scored:
        query = search.read(phrasings, context, now, self.corpus, self.postings)
        return search.score(
            self.corpus,
            self.postings,
            query,
            [self.cosines(w) for w in query.wordings],
            self.cosines(context) if context else None,
            calibration.for_encoder(self.encoder_name),
        )

    def search(
        self, *phrasings: str, limit: int = 10, min_score: float = 0.0, max_chars: int | None = None, context: str = "", now: datetime = NOW
    ) -> list[passages.Passage]:
        scored = self.score(*phrasings, context=context, now=now)
        return passages.pick(self.corpus, scored, limit=limit, min_score=min_score, text=self.text, max_chars=max_chars)

    def shown(self, passage: passages.Passage) -> str:
        text = self.text(passage.first, passage.last)
        return text if passage.cut is None else text[passage.cut[0] : passage.cut[1]]

    def answers(self, *phrasings: str, limit: int = 10, min_score: float = 0.0) -> list[str]:
        """The texts found, best first."""
        return [self.shown(p) for p in self.search(*phrasings, limit=limit, min_score=min_score)]


def open_set(name: str, encoder: str) -> tuple[Notes, list[tuple[str, list[int]]]]:
    """The notes of a set, and its questions with the positions of the blocks that answer them."""
    folder = NOTES / name
    notes = Notes({p.relative_to(folder).as_posix(): p.read_text(encoding="utf-8") for p in folder.rglob("*.md")}, open_encoder(encoder))
    questions = []
    for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        asked = json.loads(line)
        texts = [notes.text(i, i) for i in range(len(notes.corpus))]
        answers = [i for i, text in enumerate(texts) if not notes.corpus.heading[i] and any(part in text for part in asked["evidence"])]
        assert answers, asked
        questions.append((asked["q"], answers))
    return notes, questions
