// A finished tool call as OpenClaw tells it goes in, a call as /add_tool_call_result takes it comes out. Pure.

import { textOf } from "./results.js";

const MAX_INPUT = 8_000;
const MAX_OUTPUT = 8_000;
// They carry the call of another tool, for which OpenClaw fires too; that one has the real name and the real input.
const WRAPPERS = new Set(["tool_call", "tool_search_code"]);

/** null for what is not to be recorded. @param {number} now milliseconds */
export function callOf(event, now) {
  const name = event.toolName?.trim();
  if (!name || name.includes(",") || WRAPPERS.has(name)) return null;
  return {
    tool_name: name,
    input: inputOf(event.params),
    output: bounded(outputOf(event), MAX_OUTPUT),
    success: succeeded(event),
    time_cost: Math.max(0, event.durationMs ?? 0) / 1000,
    // A retry must send the same time: it is part of what makes a duplicate one.
    create_time: new Date(now).toISOString(),
  };
}

/** The same call may be told twice; ids alone repeat from turn to turn. */
export function keyOf(event) {
  return event.toolCallId ? [event.runId, event.toolCallId, event.toolName].join("\n") : null;
}

function inputOf(params) {
  let text;
  try {
    text = JSON.stringify(params ?? {});
  } catch {
    return bounded(String(params), MAX_INPUT); // a cycle, or a number that JSON does not have
  }
  const plain = params !== null && typeof params === "object" && !Array.isArray(params);
  return plain && text.length <= MAX_INPUT ? params : params === undefined ? {} : bounded(text, MAX_INPUT);
}

function outputOf(event) {
  const { result, error } = event;
  const text = textOf(result);
  if (text) return text;
  if (error) return String(error);
  return result === undefined || typeof result === "string" ? "" : (JSON.stringify(result) ?? "");
}

function succeeded(event) {
  const details = event.result?.details;
  if (event.error || event.result?.isError === true) return false;
  if (details?.status === "error" || details?.status === "failed" || details?.timedOut === true) return false;
  return !(Number.isInteger(details?.exitCode) && details.exitCode !== 0);
}

/** Beginning and end: an error is told in the last lines as often as in the first. */
function bounded(text, most) {
  if (text.length <= most) return text;
  const tail = Math.floor(most / 4);
  const head = most - tail;
  return `${text.slice(0, head)}\n[… ${text.length - most} characters left out …]\n${text.slice(-tail)}`;
}
