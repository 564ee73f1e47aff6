#!/usr/bin/env bash
# Does the plugin work in the real OpenClaw? Installs it there, lets an agent with a scripted model work for a turn, and shows what was learned.
#
#   scripts/verify_openclaw_plugin.sh [VERSION]          OpenClaw's version on npm; 2026.9.6 was the one last checked
#
# The turn searches memory in the shell, a twin of the found heading is inserted above it, the note is read, and the turn ends well. No
# feedback is given by anyone. Then it searches with OpenClaw's own memory_search and quotes what that showed in its answer.
#
# Needs npm, python3 and `memory-tools` (extra `server`) on the PATH. OpenClaw is installed once, into
# ${OPENCLAW_VERIFY_ROOT:-~/.cache/memory-tools-openclaw}, with its own Node; your OpenClaw and your notes are not touched.
# Prints INSTALLED, RECORDED, CORPUS, LEARNED and GUIDELINE; exits 1 where one of them fails.
set -euo pipefail
version=${1:-2026.9.6} node=24.21.0
here=$(cd "$(dirname "$0")" && pwd)
root=${OPENCLAW_VERIFY_ROOT:-$HOME/.cache/memory-tools-openclaw}
command -v memory-tools >/dev/null || { echo "memory-tools is not on the PATH; activate the virtual environment that holds it" >&2; exit 1; }

install_once() { # FOLDER PACKAGE VERSION [OPTION]: npm's own folder for one package
    local there="$root/$1/node_modules/$2/package.json"
    if [ -f "$there" ] && grep -q "\"version\": \"$3\"" "$there"; then return; fi
    mkdir -p "$root/$1"
    (cd "$root/$1" && npm init -y >/dev/null && npm install "$2@$3" ${4:+"$4"} --no-audit --no-fund --loglevel=error >/dev/null)
}
install_once node node "$node"
install_once openclaw openclaw "$version" --ignore-scripts

home=$(mktemp -d "$root/home.XXXXXX")
started=()
finish() {
    for one in ${started[@]+"${started[@]}"}; do kill "$one" 2>/dev/null || true; done
    wait
    rm -rf "$home"
}
trap finish EXIT
export HOME=$home PATH="$root/node/node_modules/node/bin:$PATH" OPENCLAW_NO_AUTO_UPDATE=1 NO_COLOR=1
unset OPENCLAW_STATE_DIR OPENCLAW_CONFIG_PATH OPENCLAW_WORKSPACE_DIR MEMORY_TOOLS_WORKSPACE XDG_CONFIG_HOME
openclaw() { node "$root/openclaw/node_modules/openclaw/openclaw.mjs" "$@"; }
wait_for() { # FILE PATTERN
    for _ in $(seq 600); do
        if grep -qs "$2" "$1"; then return; fi
        sleep 0.1
    done
    echo "waited for $2 in $1 in vain" >&2
    cat "$1" >&2
    return 1
}

notes=$home/.openclaw/workspace
mkdir -p "$notes/memory"
cat >"$notes/MEMORY.md" <<'M'
# Memory

## Deploying the web shop

- deploy the web shop with make ship, never on Fridays after lunch
- the rollback is make unship, it takes four minutes

## The nightly report

- the nightly report is written at 02:00 and sent to the group of the analysts at seven
M
cat >"$home/twin.py" <<'P'
# A person edits the notes between the search and the end of the turn: a twin of the heading, above it.
import pathlib, sys
note = pathlib.Path(sys.argv[1])
twin = "## Deploying the web shop\n\n- the newsletter about it is written by the marketing people\n\n"
note.write_text(note.read_text("utf-8").replace("# Memory\n\n", "# Memory\n\n" + twin), "utf-8")
print("inserted")
P
python3 - "$home" "$notes" <<'P'
import json, pathlib, sys
home, notes = sys.argv[1:]
search = {"name": "tool_call", "arguments": {"id": "memory_search", "args": {"query": "when is the nightly report sent", "corpus": "all"}}}
calls = [
    {"name": "exec", "arguments": {"command": "memory-tools search 'how do we deploy the web shop' --max-results 1"}},
    {"name": "exec", "arguments": {"command": f"python3 {home}/twin.py {notes}/MEMORY.md"}},
    {"name": "read", "arguments": {"path": "MEMORY.md"}},
    {"name": "exec", "arguments": {"command": "ls /nowhere"}},
    # The plugin answers within 300 ms or not at all: a busy machine gets a second and a third try.
    search, search, search,
    {"say": "The nightly report is written at 02:00 and sent to the group of the analysts at seven."},
]
pathlib.Path(home, "calls.json").write_text(json.dumps(calls), encoding="utf-8")
P

python3 "$here/scripted_model.py" "$home" &
started+=($!)
memory-tools --workspace "$notes" serve --port 0 2>"$home/serve.txt" &
started+=($!)
wait_for "$home/port" .
wait_for "$home/serve.txt" "listening on"
url=$(sed -n 's/^listening on //p' "$home/serve.txt")
# What a server does once, at its first search, is done before the agent asks.
python3 - "$url" <<'P'
import sys, urllib.request
urllib.request.urlopen(urllib.request.Request(f"{sys.argv[1]}/memory_search", b'{"query": "warm"}'), timeout=60).read()
P
cat >"$home/.openclaw/openclaw.json" <<J
{"gateway": {"mode": "local", "bind": "loopback"}, "update": {"checkOnStart": false}, "memory": {"search": {"provider": "none"}},
 "models": {"providers": {"scripted": {"baseUrl": "http://127.0.0.1:$(cat "$home/port")/v1", "apiKey": "none", "api": "openai-completions",
   "models": [{"id": "scripted", "name": "scripted", "contextWindow": 128000, "maxTokens": 4096}]}}},
 "agents": {"defaults": {"model": {"primary": "scripted/scripted"}}}}
J

quietly() { "$@" >"$home/said.txt" 2>&1 || { cat "$home/said.txt" >&2; return 1; }; }
quietly openclaw plugins install --link "$here/../integrations/openclaw" --force --accept-capabilities
quietly openclaw plugins enable memory-tools
quietly openclaw config set plugins.entries.memory-tools.hooks.allowConversationAccess true
quietly openclaw config set plugins.entries.memory-tools.config.baseUrl "$url"
openclaw agent --local --agent main --session-id verify --message "How do we deploy, and when is the report sent?" --json \
    >"$home/agent.json" 2>"$home/agent.txt" || { cat "$home/agent.txt" >&2; exit 1; }
grep "memory-tools:" "$home/agent.txt" >&2 || true

python3 - "$home" "$notes" <<'P'
import json, pathlib, sys, time
home, notes = map(pathlib.Path, sys.argv[1:])

def eventually(what, look):
    """Outcomes are written behind the turn."""
    for _ in range(100):
        if found := look():
            return found
        time.sleep(0.2)
    raise SystemExit(f"{what}: not there\n" + "\n".join(str(p.relative_to(notes)) for p in sorted(notes.rglob("*")) if p.is_file()))

def text(path):
    return path.read_text("utf-8") if path.exists() else ""

print("INSTALLED:", json.dumps(json.loads(text(home / ".openclaw/openclaw.json"))["plugins"]["entries"]["memory-tools"]))
def calls(tool):
    return [json.loads(line) for line in text(notes / f"memory/tools/{tool}.calls.jsonl").split("\n") if line]
execs = eventually("memory/tools/exec.calls.jsonl", lambda: calls("exec"))
assert [c["success"] for c in execs] == [True, True, False], [(c["input"], c["success"]) for c in execs]
assert len(calls("read")) == 1 and len(calls("memory_search")) >= 1 and not calls("tool_call")
for call in [*execs, *calls("read")]:
    print("RECORDED:", call["tool_name"], json.dumps(call["input"])[:100], "success" if call["success"] else "failure", f"{call['time_cost']:.2f} s")

requests = [json.loads(line) for line in text(home / "requests.jsonl").split("\n") if line]
answers = [m["content"] if isinstance(m["content"], str) else json.dumps(m["content"]) for m in requests[-1]["messages"] if m["role"] == "tool"]
hits = [answer for answer in answers if "memory-tools/r" in answer]
assert hits, f"memory_search did not offer our recall within its time: {answers[-1][:2000]}"
shown = json.loads(hits[0])
for hit in (shown.get("result", {}).get("details") or shown)["results"]:
    print("CORPUS:", hit.get("id"), hit["citation"], f"{hit['score']:.2f}", hit["snippet"])

assert text(notes / "MEMORY.md").count("## Deploying the web shop") == 2, "the twin is missing"
ours, twin, report = "MEMORY.md#deploying-the-web-shop-1", "MEMORY.md#deploying-the-web-shop", "MEMORY.md#the-nightly-report"
def scores():
    found = json.loads(text(notes / "memory/utility-scores.json") or "{}")
    return found if {ours, report} <= set(found) else None
found = eventually("memory/utility-scores.json with both memories", scores)
assert twin not in found, "the twin took the credit"
for address in (ours, report):
    entry = found[address]
    assert entry["success_count"] == 0.3 and not entry.get("fail_count"), entry
    print("LEARNED:", address, {k: entry[k] for k in ("use_count", "success_count", "utility")})
assert "feedback" not in text(home / "calls.json")

guideline = eventually("a guideline in memory/tools/exec.md", lambda: text(notes / "memory/tools/exec.md").partition("\n---\n")[2].strip())
print("GUIDELINE:", guideline.split("\n")[0][:200])
P
