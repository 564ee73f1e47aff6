#!/usr/bin/env bash
# Does the installed skill work in the real OpenClaw? Installs it there, lets an agent with a scripted model run a search, and shows what came back.
#
#   scripts/verify_openclaw.sh [VERSION]          OpenClaw's version on npm; 2026.9.6 was the one last checked
#
# Needs npm, python3 and `memory-tools` on the PATH (activate the virtual environment first). OpenClaw is installed once, into
# ${OPENCLAW_VERIFY_ROOT:-~/.cache/memory-tools-openclaw}, with its own Node; your OpenClaw and your notes are not touched.
# Prints ELIGIBLE, MODEL-VISIBLE, IN-PROMPT and EXEC; exits 1 where one of them fails.
set -euo pipefail
version=${1:-2026.9.6} node=24.21.0
here=$(cd "$(dirname "$0")" && pwd)
root=${OPENCLAW_VERIFY_ROOT:-$HOME/.cache/memory-tools-openclaw}
command -v memory-tools >/dev/null || { echo "memory-tools is not on the PATH; activate the virtual environment that holds it" >&2; exit 1; }

install_once() { # FOLDER PACKAGE [OPTION]: npm's own folder for one package
    [ -f "$root/$1/.done-$2" ] && return
    mkdir -p "$root/$1"
    (cd "$root/$1" && npm init -y >/dev/null && npm install "$2" ${3:+"$3"} --no-audit --no-fund --loglevel=error >/dev/null)
    touch "$root/$1/.done-$2"
}
install_once node "node@$node"
install_once openclaw "openclaw@$version" --ignore-scripts

home=$(mktemp -d "$root/home.XXXXXX")
model=
finish() { [ -z "$model" ] || kill "$model" 2>/dev/null || true; rm -rf "$home"; }
trap finish EXIT
export HOME=$home PATH="$root/node/node_modules/node/bin:$PATH" OPENCLAW_NO_AUTO_UPDATE=1 NO_COLOR=1
unset OPENCLAW_STATE_DIR OPENCLAW_CONFIG_PATH OPENCLAW_WORKSPACE_DIR MEMORY_TOOLS_WORKSPACE XDG_CONFIG_HOME
openclaw() { node "$root/openclaw/node_modules/openclaw/openclaw.mjs" "$@"; }

# The workspace is OpenClaw's own default place, which is memory-tools' default too: the commands below name none.
mkdir -p "$home/.openclaw/workspace"
cp -R "$here/../examples/workspace/." "$home/.openclaw/workspace/"
rm -rf "$home/.openclaw/workspace/.memory-tools"
memory-tools skill install

# The command lines that the skill itself teaches.
python3 - "$home" <<'P'
import json, pathlib, sys
lines = ["memory-tools search 'API 超时怎么处理' --variant 'timeout retry backoff' --max-chars 1500", "memory-tools feedback last 1 --outcome success"]
calls = [{"name": "exec", "arguments": {"command": line}} for line in lines]
pathlib.Path(sys.argv[1], "calls.json").write_text(json.dumps(calls, ensure_ascii=False), encoding="utf-8")
P
python3 "$here/scripted_model.py" "$home" &
model=$!
for _ in $(seq 100); do [ -s "$home/port" ] && break; sleep 0.1; done
cat >"$home/.openclaw/openclaw.json" <<J
{"gateway": {"mode": "local", "bind": "loopback"}, "update": {"checkOnStart": false}, "memory": {"search": {"provider": "none"}},
 "models": {"providers": {"scripted": {"baseUrl": "http://127.0.0.1:$(cat "$home/port")/v1", "apiKey": "none", "api": "openai-completions",
   "models": [{"id": "scripted", "name": "scripted", "contextWindow": 128000, "maxTokens": 4096}]}}},
 "agents": {"defaults": {"model": {"primary": "scripted/scripted"}}}}
J

openclaw skills info memory-retrieval --json >"$home/info.json"
openclaw skills check --json >"$home/check.json"
openclaw agent --local --agent main --session-id verify --message "API 超时怎么处理?" --json >"$home/agent.json" 2>"$home/agent.txt" ||
    { cat "$home/agent.txt" >&2; exit 1; }

python3 - "$home" "$here/../examples/workspace" <<'P'
import json, pathlib, sys
home, example = map(pathlib.Path, sys.argv[1:])
read = lambda path: json.loads(path.read_text(encoding="utf-8"))
successes = lambda workspace: sum(entry["success_count"] for entry in read(workspace / "memory/utility-scores.json").values() if "success_count" in entry)
info = read(home / "info.json")
assert info["eligible"] and info["modelVisible"] and info["commandVisible"], info
print("ELIGIBLE")
assert "memory-retrieval" in read(home / "check.json")["modelVisible"]
print("MODEL-VISIBLE")
requests = [json.loads(line) for line in (home / "requests.jsonl").read_text(encoding="utf-8").split("\n") if line]
prompt = json.dumps(requests[0]["messages"][0], ensure_ascii=False)
at = prompt.index("<name>memory-retrieval</name>")
print("IN-PROMPT:", prompt[at : at + 300])
told = [message["content"] for message in requests[-1]["messages"] if message["role"] == "tool"]
answers = [content if isinstance(content, str) else json.dumps(content, ensure_ascii=False) for content in told]
for answer in answers:
    print("EXEC:", answer)
assert len(answers) == 2, answers
assert "timeout-handling.md" in answers[0], "the search did not find the note on timeouts"
assert answers[1].startswith("success"), "the feedback was not taken"
assert successes(home / ".openclaw/workspace") == successes(example) + 1, "the success was not recorded"
print("LEARNED: one success more on record")
P
