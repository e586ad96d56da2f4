/** Named locks: exclusive, expiring, each grant with a fence that only grows. */

import type { Caller } from "./caller.js";
import { spanMs, type Span } from "./span.js";
import type { Cancellable } from "./types.js";
import { fromWire, query, segment, stringify } from "./wire.js";

export interface LockGrant {
  /** Write it beside what the lock protects, and refuse smaller ones there. */
  fence: string;
  expiresAt: Date;
  /** How many times this owner holds it. */
  depth: number;
}

export interface LockInfo extends LockGrant {
  name: string;
  owner: string;
}

export class Locks {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Takes a lock, or waits for it; `ConflictError` if another owner keeps it. */
  acquire(name: string, owner: string, options: { ttl?: Span; wait?: Span } & Cancellable = {}): Promise<LockGrant> {
    const { signal, ...fields } = options;
    const waitMs = options.wait === undefined ? 0 : spanMs(options.wait, "wait");
    // The same owner may hold it several times, so a second try could hold it twice.
    return this.#post(name, "acquire", { owner, ...fields }, { repeats: false, waitMs, signal });
  }

  renew(name: string, owner: string, options: { ttl?: Span } = {}): Promise<LockGrant> {
    return this.#post(name, "renew", { owner, ...options }, { repeats: true });
  }

  /** `free`, or `held` if an outer acquire of this owner still holds it. */
  release(name: string, owner: string): Promise<{ code: "free" | "held" | (string & {}) }> {
    return this.#post(name, "release", { owner }, { repeats: false });
  }

  /** Held locks, those first that expire first. Needs `list` on all topics. */
  async *list(options: { prefix?: string } = {}): AsyncGenerator<LockInfo, void, undefined> {
    let cursor: string | undefined;
    do {
      const path = `/v1/locks${query({ ...options, cursor })}`;
      const { value } = await this.#caller.call({ method: "GET", path, repeats: true });
      const page = fromWire<{ locks: LockInfo[]; cursor?: string }>(value);
      yield* page.locks;
      cursor = page.cursor;
    } while (cursor !== undefined);
  }

  /** Frees a lock, whoever holds it; with `fence` only that grant. For operators. */
  async break(name: string, options: { fence?: string } = {}): Promise<void> {
    const path = `/v1/locks/${segment(name)}${query(options)}`;
    await this.#caller.call({ method: "DELETE", path, repeats: true, doubtful: ["not_found", "conflict"] });
  }

  async #post<T>(
    name: string,
    verb: string,
    body: object,
    how: { repeats: boolean; waitMs?: number; signal?: AbortSignal | undefined },
  ): Promise<T> {
    const path = `/v1/locks/${segment(name)}/${verb}`;
    const { value } = await this.#caller.call({ method: "POST", path, body: stringify(body, "the request"), ...how });
    return fromWire<T>(value);
  }
}
