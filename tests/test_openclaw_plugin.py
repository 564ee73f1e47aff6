"""The OpenClaw plugin's own tests go in, run by Node against a real server; its manifest and its page are held to each other here."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = ROOT / "integrations" / "openclaw"
MANIFEST = json.loads((PLUGIN / "openclaw.plugin.json").read_text(encoding="utf-8"))
PACKAGE = json.loads((PLUGIN / "package.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "openclaw.md").read_text(encoding="utf-8")
OLDEST_NODE = (18, 17)


def node() -> str:
    """Node's path; skips the test where there is none that is new enough."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("the plugin's tests need Node, and there is no `node` on the PATH")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    major, minor = (int(part) for part in version.removeprefix("v").split(".")[:2])
    if (major, minor) < OLDEST_NODE:
        pytest.skip(f"the plugin's tests need Node {'.'.join(map(str, OLDEST_NODE))} or later, not {version}")
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", sorted((PLUGIN / "test").glob("*.test.js")), ids=lambda path: path.name)
def test_the_plugin_passes_its_own_tests(path: Path) -> None:
    if importlib.util.find_spec("uvicorn") is None:
        pytest.skip("the plugin's tests need a server: pip install 'markdown-memory-tools[server]'")
    command = json.dumps([sys.executable, "-m", "memory_tools"])
    environment = {**os.environ, "TEST_MEMORY_TOOLS": command, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([node(), "--test", str(path)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    passed = re.search(r"^(?:#|ℹ) pass (\d+)$", done.stdout, re.MULTILINE)
    assert passed is not None
    assert int(passed.group(1)) > 0


def test_the_plugin_needs_no_build_and_no_dependencies() -> None:
    assert not {"dependencies", "devDependencies", "peerDependencies", "optionalDependencies"} & set(PACKAGE)
    assert PACKAGE["type"] == "module"
    for entry in PACKAGE["openclaw"]["extensions"]:
        assert (PLUGIN / entry).is_file()
    for name in PACKAGE["files"]:
        assert (PLUGIN / name).exists()


def test_the_plugin_has_the_version_of_the_program() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert MANIFEST["version"] == PACKAGE["version"] == project["version"]


def test_its_page_names_every_setting_and_no_other() -> None:
    section = PAGE.partition("## Configuration")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert named == list(MANIFEST["configSchema"]["properties"])


def test_every_setting_of_the_manifest_is_read() -> None:
    settings = (PLUGIN / "lib" / "settings.js").read_text(encoding="utf-8")
    assert set(re.findall(r"config\.(\w+)", settings)) == set(MANIFEST["configSchema"]["properties"])


def test_the_plugin_writes_no_file() -> None:
    for path in [PLUGIN / "index.js", *(PLUGIN / "lib").glob("*.js")]:
        assert not re.search(r"node:fs|child_process", path.read_text(encoding="utf-8")), path.name


@pytest.mark.openclaw
@pytest.mark.timeout(1800)
def test_the_plugin_learns_in_the_real_openclaw() -> None:
    """Needs npm and the network for the first time; see scripts/verify_openclaw_plugin.sh."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    script = ROOT / "scripts" / "verify_openclaw_plugin.sh"
    done = subprocess.run([str(script)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    for word in ("INSTALLED", "RECORDED", "CORPUS", "LEARNED", "GUIDELINE"):
        assert f"{word}:" in done.stdout
