// What the tests stand on: a real `memory-tools serve` over a folder of its own, a server that misbehaves, and OpenClaw's side of the plugin API.

import { spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { after, before } from "node:test";
import plugin from "../index.js";

/** The command, as a JSON list of words: another interpreter than the one on the PATH may be under test. */
const COMMAND = JSON.parse(process.env.TEST_MEMORY_TOOLS ?? '["memory-tools"]');

export const NOTE = `# Memory

## Deploy

- deploy the web shop with make ship, never on Fridays after lunch
- the rollback is make unship, it takes four minutes

## 主动汇报约定

- 每天十八点汇报进度，出错的时候马上在群里说，不要等别人来问
`;

/** One workspace with a real server over it for a test file; `fresh` puts it back as it was at the start. */
export function stageOf(defaults) {
  const root = mkdtempSync(path.join(tmpdir(), "memory-tools-openclaw-"));
  const workspace = path.join(root, "notes");
  let server = null;
  reset(workspace);
  before(async () => {
    server = await serve(workspace);
  });
  after(async () => {
    await server?.end();
    rmSync(root, { recursive: true, force: true });
  });
  return {
    workspace,
    /** A search, as `memory-tools search --json` prints it. */
    async search(query) {
      const answer = await fetch(`${server.url}/memory_search`, { method: "POST", body: JSON.stringify({ query }) });
      return JSON.stringify(await answer.json());
    },
    fresh(t, config = {}) {
      reset(workspace);
      const host = openclaw({ baseUrl: server.url, ...defaults, ...config });
      t.after(() => host.stop()); // what still runs behind a turn belongs to this test
      return host;
    },
  };
}

function reset(workspace) {
  rmSync(path.join(workspace, "memory"), { recursive: true, force: true });
  mkdirSync(path.join(workspace, "memory"), { recursive: true });
  writeFileSync(path.join(workspace, "MEMORY.md"), NOTE);
}

function environment(workspace) {
  const plain = Object.entries(process.env).filter(([name]) => !/^(?:MEMORY_TOOLS_|OPENCLAW_)/.test(name));
  return { ...Object.fromEntries(plain), MEMORY_TOOLS_ENCODER: "none", XDG_CONFIG_HOME: path.dirname(workspace) };
}

async function serve(workspace) {
  const [program, ...first] = COMMAND;
  const child = spawn(program, [...first, "--workspace", workspace, "serve", "--port", "0"], {
    env: environment(workspace),
    stdio: ["ignore", "ignore", "pipe"],
  });
  const end = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  };
  let told = "";
  child.on("error", (error) => (told += `${error.message}; is it on the PATH?\n`));
  for await (const line of createInterface(child.stderr)) {
    told += `${line}\n`;
    const found = /listening on (http:\S+)/.exec(line);
    if (!found) continue;
    child.stderr.resume();
    return { url: found[1], end };
  }
  throw new Error(`memory-tools serve did not start: ${told}`);
}

/** Run the command as an agent's shell does; its standard output. */
export async function run(workspace, ...words) {
  const [program, ...first] = COMMAND;
  const child = spawn(program, [...first, "--workspace", workspace, ...words], { env: environment(workspace), stdio: ["ignore", "pipe", "inherit"] });
  let out = "";
  child.stdout.on("data", (chunk) => (out += chunk));
  await once(child, "close");
  return out.trimEnd();
}

/** A loopback server that answers as `handler(route, body)` says: [status, body], or nothing at all. */
export async function stub(t, handler) {
  const asked = [];
  const server = http.createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const body = JSON.parse(text);
    asked.push({ route: request.url, body, authorization: request.headers.authorization });
    const answer = await handler(request.url, body, asked.length);
    if (!answer) return; // never answers
    response.writeHead(answer[0], { "content-type": "application/json" });
    response.end(typeof answer[1] === "string" ? answer[1] : JSON.stringify(answer[1]));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, asked };
}

/** OpenClaw's side: the plugin registered on it, its hooks called with the events that 2026.9.6 sends. */
export function openclaw(pluginConfig) {
  const hooks = new Map();
  const log = [];
  let corpus = null;
  let calls = 0;
  plugin.register({
    registrationMode: "full",
    pluginConfig,
    logger: { info: () => {}, warn: (line) => log.push(line), error: (line) => log.push(line) },
    on: (name, handler) => hooks.set(name, handler),
    registerMemoryCorpusSupplement: (supplement) => (corpus = supplement),
  });
  const ctx = (session) => ({ agentId: "main", sessionKey: `agent:main:${session}`, sessionId: session });
  const fire = (name, event, session) => hooks.get(name)(event, { ...ctx(session), runId: event.runId });
  return {
    hooks,
    log,
    corpus,
    /** A finished tool call; `result` is text or what stands in `details`. */
    async call(toolName, params, result, { session = "s1", runId = "run-1", error, id = `call_${calls++}`, durationMs = 12 } = {}) {
      const text = typeof result === "string" ? result : JSON.stringify(result, null, 2);
      const whole = { content: [{ type: "text", text }], details: typeof result === "string" ? {} : result };
      await fire("after_tool_call", { toolName, params, runId, toolCallId: id, result: whole, error, durationMs }, session);
    },
    async end(said = "DONE", { session = "s1", runId = "run-1", success = true, error } = {}) {
      const messages = [
        { role: "user", content: [{ type: "text", text: "an earlier question" }] },
        { role: "assistant", content: [{ type: "text", text: "an earlier answer" }] },
        { role: "user", content: [{ type: "text", text: "how do we deploy" }] },
        { role: "assistant", content: [{ type: "text", text: said }] },
      ];
      await fire("agent_end", { runId, messages, success, error, durationMs: 100 }, session);
    },
    prompt: (session = "s1") => fire("before_prompt_build", { prompt: "hi", messages: [] }, session),
    stop: () => hooks.get("gateway_stop")({}, {}),
  };
}

export function scores(workspace) {
  try {
    return JSON.parse(readFileSync(path.join(workspace, "memory", "utility-scores.json"), "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return {};
    throw error;
  }
}

/** What `look` gives as soon as it gives anything: background work has no other sign of being done. */
export async function eventually(look, what = "it") {
  for (let tries = 0; tries < 600; tries += 1) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`waited for ${what} in vain`);
}
