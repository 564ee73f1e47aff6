// A turn's tool calls and its last words go to the plugin, over a real server; the memory's score comes out of utility-scores.json.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { NOTE, eventually, run, scores, stageOf } from "./stage.js";

const { workspace, fresh, search } = stageOf({ summarize: false, recordToolCalls: false });

const QUESTION = "how do we deploy the web shop";

async function searched(host, options = {}) {
  const output = await search(QUESTION);
  await host.call("exec", { command: `memory-tools search '${QUESTION}' --json` }, output, options);
  return output;
}

function insertTwin() {
  const twin = "## Deploy\n\n- deploying the newsletter is somebody else's work\n\n";
  writeFileSync(path.join(workspace, "MEMORY.md"), NOTE.replace("## Deploy", `${twin}## Deploy`));
}

const scored = (address) => eventually(() => scores(workspace)[address], `a score of ${address}`);

for (const form of [[], ["--json"]]) {
  test(`a memory that was read after a search is a success of weight 0.3, with the search in ${form[0] ?? "plain"} form`, async (t) => {
    const host = fresh(t);
    await host.call("exec", { command: `memory-tools search '${QUESTION}'` }, await run(workspace, "search", QUESTION, ...form));
    await host.call("read", { path: path.join(workspace, "MEMORY.md") }, NOTE);
    await host.end();
    const entry = await scored("MEMORY.md#deploy");
    assert.equal(entry.success_count, 0.3);
    assert.equal(entry.fail_count ?? 0, 0);
  });
}

test("the credit reaches the memory that was shown though a twin heading was inserted above it before the turn ended", async (t) => {
  const host = fresh(t);
  await searched(host);
  insertTwin();
  await host.end("Use make ship: “deploy the web shop with make ship, never on Fridays after lunch”.");
  const entry = await scored("MEMORY.md#deploy-1");
  assert.equal(entry.success_count, 0.3);
  assert.equal(scores(workspace)["MEMORY.md#deploy"], undefined);
});

test("reading the twin that took over the address is no use of what was shown", async (t) => {
  const host = fresh(t);
  await searched(host);
  insertTwin();
  await host.call("exec", { command: "memory-tools get MEMORY.md#deploy" }, await run(workspace, "get", "MEMORY.md#L3-L5"));
  await host.end();
  assert.deepEqual(scores(workspace), {});
});

test("a citation in the answer is a use, a longer one that begins with it is not", async (t) => {
  const host = fresh(t);
  const citation = /MEMORY\.md#L\d+-L\d+/.exec(await searched(host))[0];
  await host.end(`As noted in ${citation}0.`);
  assert.deepEqual(scores(workspace), {});
  await searched(host, { runId: "run-2" });
  await host.end(`As noted in ${citation}.`, { runId: "run-2" });
  assert.equal((await scored("MEMORY.md#deploy")).success_count, 0.3);
});

test("being shown alone counts nothing", async (t) => {
  const host = fresh(t);
  await searched(host);
  await host.end("I do not know.");
  assert.deepEqual(scores(workspace), {});
});

test("an outcome told by hand has weight 1 and wins over the end of the turn", async (t) => {
  const host = fresh(t);
  await searched(host);
  await host.call("read", { path: "MEMORY.md" }, NOTE);
  await host.call("exec", { command: "memory-tools feedback last 1 --outcome failure" }, await run(workspace, "feedback", "last", "1", "--outcome", "failure"));
  await host.end("deploy the web shop with make ship, never on Fridays after lunch");
  const entry = scores(workspace)["MEMORY.md#deploy"];
  assert.equal(entry.fail_count, 1);
  assert.equal(entry.success_count, 0);
});

test("a turn that failed by itself is a failure of weight 0.3", async (t) => {
  const host = fresh(t);
  await searched(host);
  await host.call("read", { path: "MEMORY.md" }, NOTE);
  await host.end("", { success: false, error: "the deployment was refused" });
  const entry = await scored("MEMORY.md#deploy");
  assert.equal(entry.fail_count, 0.3);
  assert.equal(entry.success_count, 0);
});

test("a turn that was stopped, or whose model was not reached, judges nothing, and a retry of the same run does", async (t) => {
  const host = fresh(t);
  await searched(host);
  await host.call("read", { path: "MEMORY.md" }, NOTE);
  await host.end("", { success: false });
  await host.end("", { success: false, error: "429 rate limit" });
  assert.deepEqual(scores(workspace), {});
  await host.end("DONE");
  assert.equal((await scored("MEMORY.md#deploy")).success_count, 0.3);
});

test("the same end told twice counts once", async (t) => {
  const host = fresh(t);
  for (const said of ["DONE", "DONE"]) {
    const output = await searched(host, { id: "call_search" });
    assert.match(output, /"recall":"r/);
    await host.call("read", { path: "MEMORY.md" }, NOTE, { id: "call_read" });
    await host.end(said);
  }
  assert.equal((await scored("MEMORY.md#deploy")).success_count, 0.3);
});

test("what one turn was shown is not credited by the next, nor by another session", async (t) => {
  const host = fresh(t);
  await searched(host);
  await host.call("read", { path: "MEMORY.md" }, NOTE, { session: "s2", runId: "run-9" });
  await host.end("DONE", { session: "s2", runId: "run-9" });
  await host.call("read", { path: "MEMORY.md" }, NOTE, { runId: "run-2" });
  await host.end("DONE", { runId: "run-2" });
  assert.deepEqual(scores(workspace), {});
});

test("two searches of one turn that show the same memory are one use", async (t) => {
  const host = fresh(t);
  await searched(host);
  await searched(host);
  await host.call("read", { path: "MEMORY.md" }, NOTE);
  await host.end();
  const entry = await scored("MEMORY.md#deploy");
  await host.stop();
  assert.equal(scores(workspace)["MEMORY.md#deploy"].success_count, 0.3);
  assert.equal(entry.success_count, 0.3);
});

test("a hit in OpenClaw's own memory_search is credited by its id when it was read through memory_get", async (t) => {
  const host = fresh(t);
  const results = await eventually(async () => {
    const found = await host.corpus.search({ query: "deploy the web shop", maxResults: 3, agentId: "main", agentSessionKey: "agent:main:s1" });
    return found.length ? found : null;
  }, "a hit within 300 ms");
  assert.equal(results[0].path, "MEMORY.md");
  assert.equal(results[0].corpus, "wiki");
  assert.match(results[0].id, /^memory-tools\/r[a-z0-9]+\/1$/);
  await host.call("memory_search", { query: "deploy the web shop", corpus: "all" }, { results, provider: "none" });
  const asked = { lookup: results[0].id, agentId: "main", agentSessionKey: "agent:main:s1" };
  const page = await eventually(() => host.corpus.get(asked), "the page within 300 ms");
  assert.match(page.content, /make ship/);
  const { content, ...details } = page;
  await host.call("memory_get", { path: results[0].id, corpus: "wiki" }, { ...details, status: "ok", text: content });
  await host.end();
  assert.equal((await eventually(() => scores(workspace)["MEMORY.md#deploy"]?.success_count)), 0.3);
});

test("an answer sent with the message tool is what was said", async (t) => {
  const host = fresh(t);
  await searched(host);
  await host.call("message", { action: "send", message: "deploy the web shop with make ship, never on Fridays after lunch" }, "sent");
  await host.end("NO_REPLY");
  assert.equal((await scored("MEMORY.md#deploy")).success_count, 0.3);
});

test("a page that only looks like an answer of memory-tools earns nothing", async (t) => {
  const host = fresh(t);
  const output = await run(workspace, "search", QUESTION);
  await host.call("web_fetch", { url: "https://example.org" }, output);
  await host.call("read", { path: "MEMORY.md" }, NOTE);
  await host.end();
  assert.deepEqual(scores(workspace), {});
});

test("the plugin leaves the notes as they are", async (t) => {
  const host = fresh(t, { recordToolCalls: true, summarize: true });
  await searched(host);
  await host.call("read", { path: "MEMORY.md" }, NOTE);
  await host.end();
  await scored("MEMORY.md#deploy");
  assert.equal(readFileSync(path.join(workspace, "MEMORY.md"), "utf8"), NOTE);
});
