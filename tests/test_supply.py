"""What the project is built on: bounds that a script really installs, licences that are listed, and no network on the default path."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import httpx
from test_http_tools import serving

from memory_tools import http_serving

REPOSITORY = Path(__file__).parent.parent
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BOUND = re.compile(r"([A-Za-z0-9._-]+)>=(\d[\w.]*)")


def declared() -> list[str]:
    """What users install: the dependencies and those of the extras, without what only the tests need."""
    extras = (bound for extra, bounds in PROJECT["optional-dependencies"].items() if extra != "test" for bound in bounds)
    return [*PROJECT["dependencies"], *extras]


def test_every_dependency_has_a_lower_bound_that_the_script_can_install() -> None:
    assert [bound for bound in declared() if not BOUND.fullmatch(bound)] == []
    script = (REPOSITORY / "scripts" / "lowest_dependencies.sh").read_text(encoding="utf-8")
    assert 'f"{name}=={least}"' in script
    assert "-m pytest" in script


def test_every_dependency_is_listed_with_its_licence() -> None:
    listed = dict(
        re.findall(r"(?m)^\| `([A-Za-z0-9._-]+)` \| ([^|]+?) \|", (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8"))
    )
    names = {BOUND.fullmatch(bound)[1] for bound in declared()}  # type: ignore[index]
    assert names <= set(listed)
    for name in names - {"sentence-transformers"}:  # not in the environment of the tests
        about = metadata(name)
        said = " ".join([about.get("License-Expression") or "", about.get("License") or "", *(about.get_all("Classifier") or [])])
        assert any(word in said for word in listed[name].split(" or ")), f"{name}: {listed[name]} is listed, its metadata says {said[:200]}"


# Raised by the interpreter itself, whatever library asks: no socket is made, no name is looked up.
FORBID = """
import sys
def forbid(event, arguments):
    if event.startswith("socket.") or event.startswith("urllib."):
        raise RuntimeError(f"network: {event} {arguments!r}")
sys.addaudithook(forbid)
"""
USE = """
import json, sys
from pathlib import Path
from memory_tools import Memory, cli
root = sys.argv[1]
calls = json.dumps([{"tool_name": "web_search", "input": "q", "output": "Found 3 results"}] * 3)
for words in (
    ["init"], ["remember", "The harbour code is 4711."], ["sync"], ["search", "harbour code"], ["get", "MEMORY.md"],
    ["feedback", "last", "1", "--outcome", "success"], ["scores"], ["recalculate"], ["archive"], ["check"], ["status"], ["rebuild"],
    ["tool", "record", sys.argv[2]], ["tool", "summarize", "web_search"], ["tool", "retrieve", "web_search"], ["tool", "stats"],
    ["skill", "install"],
):
    code = cli.run(["--workspace", root, *words])
    assert code == 0, (words, code)
with Memory(root) as memory:
    report = memory.search("which number opens the port")
    assert "4711" in report[0].snippet and not report.degraded, report.degraded
    assert memory.status().vectors_ready
network = sorted({"requests", "httpx", "httpx2", "openai", "urllib3", "aiohttp", "http.client", "fastapi", "uvicorn"} & set(sys.modules))
print("loaded:", network)
"""


def test_nothing_on_the_default_path_opens_a_socket(tmp_path: Path) -> None:
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(FORBID, encoding="utf-8")
    calls = tmp_path / "calls.json"
    calls.write_text('[{"tool_name": "web_search", "input": "q", "output": "Found 3 results"}]', encoding="utf-8")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("MEMORY_TOOLS_", "OPENCLAW_", "OPENAI_"))}
    environ |= {
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "hook"), str(REPOSITORY)]),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    environ["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    asked = [sys.executable, "-c", "import socket; socket.socket()"]
    assert b"network: socket.__new__" in subprocess.run(asked, env=environ, capture_output=True, check=False).stderr  # the hook works
    done = subprocess.run(
        [sys.executable, "-c", USE, str(tmp_path / "ws"), str(calls)], env=environ, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("loaded: []\n"), done.stdout[-300:]


def test_the_token_is_compared_in_constant_time() -> None:
    source = inspect.getsource(http_serving.Guard)
    assert "hmac.compare_digest(" in source
    assert "== self._token" not in source


def test_a_token_is_in_no_reply_and_no_log_right_or_wrong(tmp_path: Path) -> None:
    token, wrong = "right-token-5d1f0c", "wrong-token-9b2e7a"
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "MEMORY.md").write_text("# Memory\n\nharbour\n", encoding="utf-8")
    with serving(tmp_path / "ws", TOKEN=token) as server:
        replies = []
        for given in (f"Bearer {token}", f"Bearer {wrong}", f"Bearer {token}x", f"Bearer {token[:-1]}", token, "Basic eDp5", "Bearer", ""):
            for route, body in (("memory_search", b'{"query": "harbour"}'), ("memory_search", b"{"), ("no_such_route", b"")):
                reply = httpx.post(f"{server.url}{route}", content=body, headers={"authorization": given}, timeout=30)
                assert (reply.status_code == 401) == (given != f"Bearer {token}"), (given, reply.status_code)
                replies.append(reply.text + str(reply.headers))
        said = "".join(replies) + server.log.read_text(encoding="utf-8")
    assert token[:-1] not in said
    assert wrong not in said
    assert "Traceback" not in said
