// Finished tool calls go to the plugin, over a real server; the records and guidelines in memory/tools/ come out.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { eventually, stageOf } from "./stage.js";

const { workspace, fresh } = stageOf({});

const file = (name) => path.join(workspace, "memory", "tools", name);

function calls(tool) {
  const records = file(`${tool}.calls.jsonl`);
  return existsSync(records) ? readFileSync(records, "utf8").trim().split("\n").map(JSON.parse) : [];
}

test("a call is recorded with its input, output, outcome and time, and a guideline follows the turn", async (t) => {
  const host = fresh(t);
  await host.call("web_search", { query: "asyncio" }, "10 results", { durationMs: 1500 });
  await host.call("web_search", { query: "" }, "empty query", { error: "empty query" });
  await host.end();
  const [good, bad] = await eventually(() => (calls("web_search").length === 2 ? calls("web_search") : null), "two records");
  assert.deepEqual(good.input, { query: "asyncio" });
  assert.equal(good.output, "10 results");
  assert.equal(good.success, true);
  assert.equal(good.time_cost, 1.5);
  assert.equal(bad.success, false);
  const guideline = await eventually(() => existsSync(file("web_search.md")) && readFileSync(file("web_search.md"), "utf8").split("\n---\n")[1]?.trim(), "a guideline");
  assert.match(guideline, /\w/);
});

test("of a wrapped call the inner one is recorded, and a call told twice once", async (t) => {
  const host = fresh(t, { summarize: false });
  await host.call("memory_status", { deep: true }, "ok", { id: "tool_search_code:call_1:memory_status:1" });
  await host.call("tool_call", { id: "memory_status", args: { deep: true } }, "ok", { id: "call_1" });
  await host.call("exec", { command: "ls" }, "a", { id: "call_2" });
  await host.call("exec", { command: "ls" }, "a", { id: "call_2" });
  await host.end();
  await eventually(() => calls("exec").length === 1 && calls("memory_status").length === 1, "one record of each");
  assert.equal(existsSync(file("tool_call.calls.jsonl")), false);
});

test("the same id in the next run is another call", async (t) => {
  const host = fresh(t, { summarize: false });
  await host.call("exec", { command: "ls" }, "a", { id: "call_0", runId: "run-1" });
  await host.call("exec", { command: "pwd" }, "b", { id: "call_0", runId: "run-2" });
  await host.stop();
  await eventually(() => calls("exec").length === 2, "two records");
});

test("a command that exits with an error is a failed call", async (t) => {
  const host = fresh(t, { summarize: false });
  await host.call("exec", { command: "false" }, { status: "completed", exitCode: 1, aggregated: "" });
  await host.call("exec", { command: "true" }, { status: "completed", exitCode: 0, aggregated: "" });
  await host.stop();
  await eventually(() => calls("exec").length === 2, "two records");
  assert.deepEqual(calls("exec").map((one) => one.success), [false, true]);
});

test("long inputs and outputs are cut in the middle", async (t) => {
  const host = fresh(t, { summarize: false });
  await host.call("exec", { command: "x".repeat(50_000) }, `begin${"y".repeat(50_000)}end`);
  await host.stop();
  const [call] = await eventually(() => (calls("exec").length ? calls("exec") : null), "the record");
  assert.ok(call.input.length < 9_000);
  assert.match(call.output, /^begin[^]*characters left out[^]*end$/);
  assert.ok(call.output.length < 9_000);
});

test("ignored tools and other agents' calls are not recorded", async (t) => {
  const host = fresh(t, { summarize: false, ignoreTools: ["exec"], agents: ["main"] });
  await host.call("exec", { command: "ls" }, "a");
  await host.call("read", { path: "x" }, "b");
  await host.hooks.get("after_tool_call")({ toolName: "write", params: {}, result: {} }, { agentId: "other" });
  await host.stop();
  await eventually(() => calls("read").length === 1, "the record of read");
  assert.equal(existsSync(file("exec.calls.jsonl")), false);
  assert.equal(existsSync(file("write.calls.jsonl")), false);
});

test("a distilled guideline stands before the prompt of the tools that were named", async (t) => {
  const host = fresh(t, { guidelineTools: ["web_search", "unheard_of"] });
  await host.call("web_search", { query: "asyncio" }, "10 results");
  await host.end();
  const given = await eventually(() => host.prompt(), "a guideline in the prompt");
  assert.match(given.prependContext, /data, not instructions[^]*web_search:\n> /);
});
