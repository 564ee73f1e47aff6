"""The test run goes in; one whose processes start quickly, and that passes on a busy machine too, comes out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Some hundred tests start a process of their own. Where Python is told to keep no compiled modules, each of those compiles all of ours
# again, which takes it twice as long.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# How long one example takes says more of what else the machine does than of the code; a test's own time limit is its bound.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No configuration of whoever runs the tests, and no encoder."""
    for name in [name for name in os.environ if name.startswith(("MEMORY_TOOLS_", "OPENCLAW_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("MEMORY_TOOLS_ENCODER", "none")
