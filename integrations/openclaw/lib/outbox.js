// Things to send go in, one at a time and at once; they come out in batches, in order, and again after the server was away.

/** @template T */
export class Outbox {
  #send;
  #notices;
  #limits;
  #waiting = [];
  #running = null;
  #timer = null;

  /**
   * @param {(items: T[]) => Promise<unknown>} send rejects with Failure
   * @param {import("./notices.js").Notices} notices
   * @param {{most: number, batch: number, delayMs: number}} limits
   */
  constructor(send, notices, limits) {
    this.#send = send;
    this.#notices = notices;
    this.#limits = limits;
  }

  get size() {
    return this.#waiting.length;
  }

  /** Never waits and never throws. @param {T} item */
  add(item) {
    this.#waiting.push(item);
    const over = this.#waiting.length - this.#limits.most;
    if (over > 0) {
      this.#waiting.splice(0, over);
      this.#notices.tell("outbox", `the server is away for too long; the oldest of ${this.#limits.most} waiting records are dropped`);
    }
    this.#timer ??= setTimeout(() => this.flush(), this.#limits.delayMs);
    this.#timer.unref(); // a program that is done must not wait for it
  }

  /** Send what waits. Resolves to whether all was sent; never rejects. */
  flush() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#running ??= this.#drain().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #drain() {
    while (this.#waiting.length) {
      const items = this.#waiting.splice(0, this.#limits.batch);
      if (!(await this.#sent(items))) return false;
    }
    return true;
  }

  async #sent(items) {
    try {
      await this.#send(items);
      return true;
    } catch (failure) {
      if (failure.again) {
        this.#waiting.unshift(...items);
        this.#notices.tell(failure.kind, `${failure.message}; ${this.#waiting.length} records wait`);
        return false;
      }
      if (items.length > 1) {
        // One that the server refuses must not take the others with it.
        for (const item of items) if (!(await this.#sent([item]))) return false;
        return true;
      }
      this.#notices.tell(`refused:${failure.kind}`, `${failure.message}; it is dropped`);
      return true;
    }
  }
}
