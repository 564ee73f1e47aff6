// A route and a body go in, the JSON answer of `memory-tools serve` comes out, or a Failure that says whether to try again.

import http from "node:http";
import https from "node:https";

const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** `kind`: the server's own error type, or `unreachable`, `slow`, `garbled`. `again`: whether the same request may succeed later. */
export class Failure extends Error {
  constructor(kind, message, again) {
    super(message);
    this.kind = kind;
    this.again = again;
  }
}

export class Client {
  #settings;

  /** @param {import("./settings.js").Settings} settings */
  constructor(settings) {
    this.#settings = settings;
  }

  /** One POST within `timeoutMs`, from connecting to the last byte. Rejects with Failure only. */
  async post(route, body, timeoutMs) {
    const url = new URL(route, this.#settings.baseUrl);
    const { status, text } = await exchange(url, JSON.stringify(body), this.#settings.token, timeoutMs);
    let answer;
    try {
      answer = JSON.parse(text);
    } catch {
      throw new Failure("garbled", `${url}: HTTP ${status}, and the answer is not JSON; is another program listening there?`, status >= 500);
    }
    if (status >= 400) {
      const error = answer?.error ?? {};
      const hint = error.hint ? ` (${error.hint})` : "";
      throw new Failure(error.type ?? "internal", `${url}: ${error.message ?? answer?.answer ?? `HTTP ${status}`}${hint}`, status >= 500);
    }
    return answer;
  }
}

// node:http with an agent of its own and not fetch: a proxy that the gateway uses for the web must not see the text of memories.
function exchange(url, body, token, timeoutMs) {
  const { request, Agent } = url.protocol === "https:" ? https : http;
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  if (token) headers.authorization = `Bearer ${token}`;
  return new Promise((resolve, reject) => {
    const fail = (error) => {
      const slow = error.name === "AbortError" || error.name === "TimeoutError";
      if (error instanceof Failure) reject(error);
      else if (slow) reject(new Failure("slow", `${url}: no answer within ${timeoutMs} ms`, true));
      else reject(new Failure("unreachable", `${url}: ${error.code ?? error.message}; start it with: memory-tools serve`, true));
    };
    const options = { method: "POST", headers, agent: new Agent(), signal: AbortSignal.timeout(timeoutMs) };
    const sent = request(url, options, (answer) => {
      const parts = [];
      let size = 0;
      answer.on("data", (part) => {
        size += part.length;
        if (size <= MAX_ANSWER_BYTES) parts.push(part);
        else sent.destroy(new Failure("garbled", `${url}: the answer has more than ${MAX_ANSWER_BYTES} bytes`, false));
      });
      answer.on("end", () => resolve({ status: answer.statusCode, text: Buffer.concat(parts).toString("utf8") }));
      answer.on("error", fail);
    });
    sent.on("error", fail);
    sent.end(body);
  });
}

/** What `work` gives, or undefined after `ms`: a turn waits no longer, while `work` goes on. A rejection is passed on. */
export async function within(ms, work) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
