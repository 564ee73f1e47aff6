"""Writers, a watcher, a server and searches on one workspace, killed at random: nothing acknowledged is lost or counted twice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from killing import KillLoop

from memory_tools import Memory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
pytest.importorskip("uvicorn")


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("rounds", [5, pytest.param(200, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost_or_doubled_when_everything_is_killed_at_random(tmp_path: Path, rounds: int) -> None:
    loop = KillLoop(tmp_path)
    figures = loop.run(rounds)
    print(figures)
    assert not figures.died, "\n".join(figures.died)
    assert (figures.lost.total(), figures.doubled.total(), figures.missed) == (0, 0, 0)
    assert figures.acknowledged["feedback"]
    assert figures.acknowledged["call"]
    with Memory(loop.root, encoder="none") as memory:
        assert memory.search("which port do the metrics listen on", policy="relevance")[0].address == "MEMORY.md#ports"
        if not memory.check().ok:
            memory.check(fix=True)
        assert memory.check().ok
