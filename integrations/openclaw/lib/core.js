// OpenClaw's events go in; recalls, credits, recorded calls and guidelines go to `memory-tools serve`. No event ever throws or waits for long.

import { callOf, keyOf } from "./calls.js";
import { Client, within } from "./client.js";
import { Guidelines } from "./guidelines.js";
import { Notices } from "./notices.js";
import { Outbox } from "./outbox.js";
import { hitId } from "./results.js";
import { Turns, outcomeOf } from "./turns.js";

export const TURN_WAITS_MS = 300; // whatever a turn waits for
const BEHIND_MS = 10_000; // what runs behind it
const SUMMARY_MS = 120_000; // a judge may be a model
const SUMMARY_EVERY_MS = 600_000; // for one tool: each call would pay a model to say nearly the same
const WEIGHT = 0.3; // that a turn ended well says less than a person or an agent who says so
const MAX_CALLS = 500;
const MAX_KEYS = 2_000;
const MAX_QUERY = 20_000;

export class Core {
  #settings;
  #client;
  #notices;
  #now;
  #turns = new Turns();
  #calls;
  #credits;
  #seen = new Set();
  #summarized = new Map();
  #guidelines;

  /** @param {import("./settings.js").Settings} settings @param {{warn: (line: string) => void}} log @param {() => number} now */
  constructor(settings, log, now = Date.now) {
    this.#settings = settings;
    this.#now = now;
    this.#client = new Client(settings);
    this.#notices = new Notices(log, now);
    const record = (calls) => this.#client.post("add_tool_call_result", { tool_call_results: calls }, BEHIND_MS);
    this.#calls = new Outbox(record, this.#notices, { most: MAX_CALLS, batch: 50, delayMs: 1_000 });
    const credit = ([one]) => this.#client.post("memory_feedback", one, BEHIND_MS);
    this.#credits = new Outbox(credit, this.#notices, { most: 100, batch: 1, delayMs: 5_000 });
    const retrieve = (names) => this.#client.post("retrieve_tool_memory", { tool_names: names }, TURN_WAITS_MS);
    this.#guidelines = new Guidelines(retrieve, settings, this.#notices, now);
  }

  // --- recall: OpenClaw's memory_search and memory_get with corpus `all` or `wiki` ---

  async search({ query, maxResults, agentId }) {
    if (!this.#concerns(agentId) || !query?.trim()) return [];
    const answer = await this.#asked("memory_search", { query: query.slice(0, MAX_QUERY), ...(maxResults ? { maxResults } : {}) });
    return (answer?.results ?? []).map((hit, index) => ({
      corpus: "wiki", // the one that OpenClaw asks supplements for
      kind: "memory",
      path: hit.path,
      title: hit.headings.join(" > ") || hit.path,
      score: hit.score,
      snippet: hit.snippet,
      startLine: hit.startLine,
      endLine: hit.endLine,
      citation: hit.citation,
      source: hit.source,
      // Comes back in the tool's result: what the agent was shown in the end is seen there, with position and recall.
      ...(answer.recall ? { id: hitId(answer.recall, index + 1) } : {}),
      address: hit.address,
    }));
  }

  async get({ lookup, fromLine, lineCount, agentId, agentSessionKey }) {
    if (!this.#concerns(agentId) || !lookup) return null;
    const shown = this.#turns.peek(agentSessionKey)?.find(lookup);
    const path = lookup.startsWith("memory-tools/") && shown ? shown.citation : lookup;
    const recall = shown ? { recall: shown.recall } : {};
    const place = { ...(fromLine ? { from: fromLine } : {}), ...(lineCount ? { lines: lineCount } : {}) };
    const read = await this.#asked("memory_get", { path, ...place, ...recall }, ["not_found", "forbidden", "invalid"]);
    if (!read) return null;
    return { corpus: "wiki", path: read.path, content: read.text, fromLine: read.startLine, lineCount: read.endLine - read.startLine + 1 };
  }

  // --- tool calls ---

  toolCalled(event, ctx) {
    if (!this.#concerns(ctx.agentId) || !this.#firstTime(event)) return;
    const call = callOf(event, this.#now());
    if (!call) return;
    const turn = this.#turns.of(ctx.sessionKey, event.runId ?? ctx.runId);
    if (this.#settings.learn) turn.take(event);
    if (!this.#settings.recordToolCalls || this.#settings.ignoreTools.has(call.tool_name)) return;
    turn.tools.add(call.tool_name);
    this.#calls.add(call);
  }

  /** Waits at most TURN_WAITS_MS; what is not done by then goes on behind the turn. */
  async turnEnded(event, ctx) {
    if (!this.#concerns(ctx.agentId)) return;
    const runId = event.runId ?? ctx.runId;
    const turn = this.#turns.of(ctx.sessionKey, runId);
    const outcome = outcomeOf(event);
    if (this.#settings.learn && outcome !== null) {
      for (const [recall, used] of turn.uses(event.messages)) {
        const eventId = `${runId ?? ctx.sessionId ?? ""}:${recall}`;
        this.#credits.add({ used, recall, outcome, weight: WEIGHT, eventId });
      }
    }
    const tools = [...turn.tools];
    turn.tools.clear();
    // A run that a provider failed may be tried again under the same id: what it recalled stays.
    if (outcome !== null) this.#turns.close(ctx.sessionKey, runId);
    await within(TURN_WAITS_MS, Promise.all([this.#credits.flush(), this.#recordedAndSummarized(tools)]));
  }

  async stopped() {
    await within(2_000, Promise.all([this.#credits.flush(), this.#calls.flush()]));
  }

  // --- guidelines ---

  async promptContext(ctx) {
    if (!this.#concerns(ctx.agentId)) return undefined;
    const text = await within(TURN_WAITS_MS, this.#guidelines.text());
    return text ? { prependContext: text } : undefined;
  }

  // ---

  #concerns(agentId) {
    return !this.#settings.agents || this.#settings.agents.has(agentId);
  }

  #firstTime(event) {
    const key = keyOf(event);
    if (key === null) return true;
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    if (this.#seen.size > MAX_KEYS) this.#seen.delete(this.#seen.values().next().value);
    return true;
  }

  /** The answer, or null: silent for the agent, told in the log. `expected`: kinds of errors that are no trouble. */
  async #asked(route, body, expected = []) {
    try {
      return await this.#client.post(route, body, TURN_WAITS_MS);
    } catch (failure) {
      if (!expected.includes(failure.kind)) this.#notices.tell(failure.kind ?? route, failure.message);
      return null;
    }
  }

  async #recordedAndSummarized(tools) {
    const recorded = await this.#calls.flush();
    const now = this.#now();
    const due = tools.filter((name) => now - (this.#summarized.get(name) ?? -Infinity) >= SUMMARY_EVERY_MS);
    if (!recorded || !this.#settings.summarize || !due.length) return;
    for (const name of due) this.#summarized.set(name, now);
    try {
      await this.#client.post("summary_tool_memory", { tool_names: due.join(",") }, SUMMARY_MS);
      this.#guidelines.renew();
    } catch (failure) {
      for (const name of due) this.#summarized.delete(name);
      this.#notices.tell(failure.kind ?? "summary", failure.message);
    }
  }
}
