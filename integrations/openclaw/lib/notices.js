// What went wrong goes in; at most one log line a minute for each kind of trouble comes out.

const EVERY_MS = 60_000;

export class Notices {
  #log;
  #now;
  #kinds = new Map();

  /** @param {{warn: (line: string) => void}} log @param {() => number} now milliseconds */
  constructor(log, now = Date.now) {
    this.#log = log;
    this.#now = now;
  }

  /** A server that is down fails every call of every turn: the log shall say so, and stay readable. */
  tell(kind, message) {
    const now = this.#now();
    const one = this.#kinds.get(kind) ?? { at: -Infinity, held: 0 };
    this.#kinds.set(kind, one);
    if (now - one.at < EVERY_MS) {
      one.held += 1;
      return;
    }
    const more = one.held ? ` (${one.held} more like this since the last line)` : "";
    this.#log.warn(`memory-tools: ${message}${more}`);
    one.at = now;
    one.held = 0;
  }
}
