// Tool results and the last words of a turn go in; which positions of which recalls the turn used comes out.

import { wasQuoted, wasRead } from "./evidence.js";
import { readingsIn, resolvedIn, shownIn } from "./results.js";

const MAX_SESSIONS = 200;
const MAX_SHOWN = 300; // a turn
const SPEAKING_TOOL = "message"; // in a channel the answer may be sent by this tool and not be the turn's last text

/** One turn of one session: what searches showed, and which of it was used. */
export class Turn {
  #shown = new Map(); // in the order of the searches
  #used = new Set();
  #resolved = new Set();
  #said = [];
  tools = new Set();

  constructor(runId) {
    this.runId = runId;
  }

  /** A finished tool call of this turn. */
  take(event) {
    for (const one of shownIn(event)) this.#remember(one);
    for (const reading of readingsIn(event)) {
      for (const one of this.#shown.values()) if (wasRead(one, reading)) this.#used.add(one);
    }
    for (const address of resolvedIn(event)) this.#resolved.add(address);
    if (event.toolName === SPEAKING_TOOL && !event.error) {
      const { message, text, content } = event.params ?? {};
      this.#said.push(...[message, text, content].filter((one) => typeof one === "string"));
    }
  }

  /** The newest recall that showed this path, address, citation or id. @returns {import("./results.js").Shown | undefined} */
  find(name) {
    return [...this.#shown].reverse().find(([id, one]) => [id, one.path, one.address, one.citation].includes(name))?.[1];
  }

  /** By recall, newest first; what was resolved by hand is left out. @returns {Map<string, number[]>} */
  uses(messages) {
    const said = [...this.#said, lastWords(messages)].join("\n\n");
    const counted = new Map();
    const uses = new Map();
    for (const one of [...this.#shown.values()].reverse()) {
      if (this.#resolved.has(one.address) || !(this.#used.has(one) || wasQuoted(one, said))) continue;
      // Two searches of one turn that show the same memory are one use. The address alone could be another section's by now.
      const memory = `${one.address}\n${one.snippet}`;
      if ((counted.get(memory) ?? one.recall) !== one.recall) continue;
      counted.set(memory, one.recall);
      uses.set(one.recall, [one.position, ...(uses.get(one.recall) ?? [])]);
    }
    return uses;
  }

  #remember(one) {
    const id = `memory-tools/${one.recall}/${one.position}`;
    if (!this.#shown.has(id)) this.#shown.set(id, one);
    if (this.#shown.size > MAX_SHOWN) this.#shown.delete(this.#shown.keys().next().value);
  }
}

/** The open turn of each session. */
export class Turns {
  #open = new Map();

  /** Another run in the same session is another turn. */
  of(sessionKey, runId) {
    const key = sessionKey ?? runId ?? "";
    let turn = this.#open.get(key);
    if (!turn || (runId && turn.runId && turn.runId !== runId)) turn = new Turn(runId);
    this.#open.delete(key);
    this.#open.set(key, turn);
    if (this.#open.size > MAX_SESSIONS) this.#open.delete(this.#open.keys().next().value);
    return turn;
  }

  peek(sessionKey) {
    return this.#open.get(sessionKey);
  }

  close(sessionKey, runId) {
    this.#open.delete(sessionKey ?? runId ?? "");
  }
}

// That a model could not be reached, or that a person pressed stop, says nothing about a memory.
const NOT_ITS_FAULT = new RegExp(
  [
    "abort|cancel|interrupt|timed? ?out|rate.?limit|too many requests|overloaded|unavailable|quota|billing|credits?\\b|api.?key",
    "unauthori[sz]ed|forbidden|\\b(?:40[1-9]|429|5\\d\\d)\\b|network|connection|fetch failed|socket|ECONN|ENOTFOUND|EAI_AGAIN",
    "context (?:length|window|overflow)|too many tokens|model|provider",
  ].join("|"),
  "i",
);

/** "success", "failure", or null where the end of the turn is no judgement. */
export function outcomeOf(event) {
  if (event.success) return "success";
  return !event.error || NOT_ITS_FAULT.test(String(event.error)) ? null : "failure";
}

/** What the assistant said since the last message of the user. */
function lastWords(messages) {
  const words = [];
  for (const message of [...(messages ?? [])].reverse()) {
    if (message?.role === "user") break;
    if (message?.role !== "assistant") continue;
    const { content } = message;
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : Array.isArray(content) ? content : [];
    words.unshift(...blocks.filter((block) => block?.type === "text" && typeof block.text === "string").map((block) => block.text));
  }
  return words.join("\n\n");
}
