#!/usr/bin/env bash
# The lower bounds in pyproject.toml are promises: installs exactly those versions in a virtual environment and runs the fast tests.
# Takes pytest's own arguments, for example: scripts/lowest_dependencies.sh tests/test_sync.py
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
export PIP_DISABLE_PIP_VERSION_CHECK=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
unset MEMORY_TOOLS_WORKSPACE OPENCLAW_WORKSPACE_DIR
environment="${LOWEST_VENV:-.venv-lowest}"
python3 -m venv "$environment"
lowest="$environment/lowest.txt"
"$environment/bin/python" - > "$lowest" <<'PYTHON'
import re, tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"]
for bound in [*project["dependencies"], *(one for extra in ("openai", "mcp", "server") for one in extras[extra])]:
    name, least = re.fullmatch(r"([A-Za-z0-9._-]+)>=([\w.]+)", bound).groups()
    print(f"{name}=={least}")
PYTHON
cat "$lowest"
# What only the tests use may be new; what is below our own dependencies is the resolver's choice.
"$environment/bin/pip" install -q -r "$lowest" pytest pytest-timeout hypothesis httpx requests rank-bm25 ruff mypy
"$environment/bin/pip" install -q --no-deps -e .
# Pages that are generated are those of the newest versions.
"$environment/bin/python" -m pytest --deselect tests/test_readme.py::test_the_generated_parts_are_those_of_this_code "$@"
"$environment/bin/python" -m pip check
