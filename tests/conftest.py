"""The test run goes in; its child processes come out quicker."""

from __future__ import annotations

import os

# Some hundred tests start a process of their own. Where Python is told to keep no compiled modules, each of those compiles all of ours
# again, which takes it twice as long.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
