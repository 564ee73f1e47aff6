"""Many clients at once get no error, and neither a server nor a watcher grows."""

from __future__ import annotations

import sys
from pathlib import Path

import loading
import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="growth is read from /proc")
pytest.importorskip("uvicorn")

GROWN_MB = 25  # what a longer run may add beside noise: caches of rows and receipts that have a bound


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("seconds", "encoder"), [(6, "none"), pytest.param(60, "default", marks=pytest.mark.slow)], ids=["short", "a minute"]
)
def test_fifty_clients_get_no_error_and_the_server_does_not_grow(tmp_path: Path, seconds: int, encoder: str) -> None:
    load = loading.serve(tmp_path, seconds, encoder=encoder)
    print(load)
    assert not load.errors, load.errors[:5]
    assert {"search", "feedback", "record"} <= set(load.latencies_ms)
    before, after = load.growth.settled(load.growth.descriptors)
    assert after <= before + 5
    before, after = load.growth.settled(load.growth.resident_mb)
    assert after <= before + GROWN_MB


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    ("edits", "encoder"), [(150, "none"), pytest.param(10_000, "default", marks=pytest.mark.slow)], ids=["short", "a day and a night"]
)
def test_a_watcher_over_many_edits_sees_each_and_does_not_grow(tmp_path: Path, edits: int, encoder: str) -> None:
    watched = loading.watch(tmp_path, edits, encoder)
    print(watched)
    assert (watched.unseen, watched.clean) == (0, True)
    for counted in (watched.growth.descriptors, watched.growth.threads):
        before, after = watched.growth.settled(counted)
        assert after <= before + 2
    before, after = watched.growth.settled(watched.growth.resident_mb)
    assert after <= before + GROWN_MB
    assert not list((tmp_path / "ws").rglob("*.tmp"))
