/** Puts: a key for each, so that sending it again is harmless, and one request for those that come together. */

import { randomBytes } from "node:crypto";
import { Batcher } from "./batcher.js";
import { backoffMs, problemError, sleep, type Caller } from "./caller.js";
import { BatchError, DormouseError, InvalidError, UnconfirmedError } from "./errors.js";
import type { Done } from "./outcome.js";
import type { Span } from "./span.js";
import { currentTrace, type TraceContext } from "./trace.js";
import type { PutItem, PutOptions, PutResult } from "./types.js";
import { bodyFields, fromWire, segment, stringify, toWire } from "./wire.js";

/** Bounds of one request; those of the server are 4,096 items and 16 MiB. */
const ITEMS_MAX = 500;
const BYTES_MAX = 1 << 20;
/** Requests under way at once for one topic: 50 tasks measured 24,000 puts/s with one, 11,000 with four. */
const REQUESTS_MAX = 1;

/** How much longer than its put may be repeated a key that the client made stays taken. */
const KEY_TTL_MORE_MS = 5_000;

type Result = PutResult | DormouseError;

type PutFields = Omit<PutOptions, "keyTtl"> & { keyTtl?: Span | undefined };

/** A put as it is sent. */
interface Item {
  json: string;
  key: string | undefined;
  /** Whether the client made the key: then a duplicate is this very put. */
  isKeyMade: boolean;
}

export class Puts {
  readonly #caller: Caller;
  readonly #trace: () => TraceContext;
  readonly #batchers = new Map<string, Batcher<Item, Result>>();
  /** Keys of this process: 96 random bits and a count. */
  readonly #keyPrefix = `auto-${randomBytes(12).toString("base64url")}-`;
  #keyCount = 0;

  constructor(caller: Caller, trace: (() => TraceContext) | undefined) {
    this.#caller = caller;
    this.#trace = trace ?? currentTrace;
  }

  async put(topic: string, body: unknown, options: PutOptions): Promise<PutResult> {
    const item = this.#item(body, options);
    let result = await this.#sendOne(topic, item);
    const giveUpAt = performance.now() + this.#caller.retryForMs;
    // The server took the request and refused this item for now, for example because a topic is busy.
    for (let tries = 0; result instanceof DormouseError; tries++) {
      const waitMs = backoffMs(tries);
      if (!result.retryable || performance.now() + waitMs > giveUpAt) throw result;
      this.#caller.log.write(
        "warn",
        "retry",
        `put into ${topic}: ${result.message}; again in ${Math.round(waitMs)} ms`,
        { error: result },
      );
      await sleep(waitMs);
      result = await this.#sendOne(topic, item);
    }
    return result;
  }

  async putMany(topic: string, puts: PutItem[]): Promise<PutResult[]> {
    const items = puts.map(({ body, ...options }) => this.#item(body, options));
    const results: Result[] = [];
    for (let at = 0; at < items.length;) {
      const chunk = takeChunk(items, at);
      results.push(...(await this.#sendChunk(topic, chunk, results, items.length)));
      at += chunk.length;
    }
    if (results.some((result) => result instanceof DormouseError)) throw new BatchError(results, "puts");
    return results as PutResult[];
  }

  #item(body: unknown, options: PutOptions): Item {
    const given = options.key;
    const isKeyMade = given === undefined && this.#caller.retryForMs > 0;
    const key = isKeyMade ? `${this.#keyPrefix}${(this.#keyCount++).toString(36)}` : (given ?? undefined);
    // It is kept for a while after the ack, because the put may be sent again when its job is already done.
    const keyTtl = isKeyMade ? this.#caller.retryForMs + KEY_TTL_MORE_MS : options.keyTtl;
    const fields = this.#fields(body, { ...options, keyTtl }, key);
    return { json: stringify(fields, `the put into its topic`), key, isKeyMade };
  }

  /** The puts of an ack as the API has them. No key is made: a second ack finds the job gone and puts nothing. */
  chain(done: Done): Record<string, unknown>[] {
    return done.puts.map(({ topic, body, options }) => ({
      topic,
      ...this.#fields(body, options, options.key ?? undefined),
    }));
  }

  #fields(body: unknown, options: PutFields, key: string | undefined): Record<string, unknown> {
    const { text, ...rest } = options;
    if (text !== undefined && body !== undefined) {
      throw new InvalidError("a put has a body or a `text`, not both; leave the body undefined");
    }
    const trace = this.#trace();
    const headers = trace.traceparent === undefined ? options.headers : { ...trace, ...options.headers };
    const content = text === undefined ? bodyFields(body) : { text };
    return { ...toWire({ ...rest, headers, key }), ...content };
  }

  #sendOne(topic: string, item: Item): Promise<Result> {
    if (item.key === undefined) return this.#send(topic, [item]).then((results) => results[0] as Result);
    let batcher = this.#batchers.get(topic);
    if (!batcher) {
      batcher = this.#newBatcher(topic);
      this.#batchers.set(topic, batcher);
    }
    return batcher.add(item);
  }

  #newBatcher(topic: string): Batcher<Item, Result> {
    // Topics can be many: those without a put under way are forgotten now and then.
    if (this.#batchers.size >= 1_000) {
      for (const [name, batcher] of this.#batchers) if (batcher.isIdle) this.#batchers.delete(name);
    }
    return new Batcher<Item, Result>({
      send: (items) => this.#sendOrSplit(topic, items),
      bytes: (item) => item.json.length,
      itemsMax: ITEMS_MAX,
      bytesMax: BYTES_MAX,
      requestsMax: REQUESTS_MAX,
    });
  }

  /** A put that cannot be read fails its whole request: the others must not suffer for it. */
  async #sendOrSplit(topic: string, items: Item[]): Promise<Result[]> {
    try {
      return await this.#send(topic, items);
    } catch (error) {
      if (items.length === 1 || !(error instanceof InvalidError)) throw error;
      const alone = items.map((item) =>
        this.#send(topic, [item]).then(
          (results) => results[0] as Result,
          (failed: unknown) => failed as DormouseError,
        ),
      );
      return Promise.all(alone);
    }
  }

  /** A chunk of a long list. If a later one fails as a whole, the results before it are not lost. */
  async #sendChunk(topic: string, chunk: Item[], before: Result[], total: number): Promise<Result[]> {
    try {
      return await this.#send(topic, chunk);
    } catch (error) {
      if (before.length === 0 || !(error instanceof DormouseError)) throw error;
      const rest = Array.from({ length: total - before.length }, () => error);
      throw new BatchError([...before, ...rest], "puts");
    }
  }

  async #send(topic: string, items: Item[]): Promise<Result[]> {
    const { value, answerLost } = await this.#caller.call({
      method: "POST",
      path: `/v1/topics/${segment(topic)}/jobs`,
      body: `[${items.map((item) => item.json).join(",")}]`,
      repeats: items.every((item) => item.key !== undefined),
    });
    const { results } = value as { results: Record<string, unknown>[] };
    return results.map((result, index) => readResult(result, items[index] as Item, answerLost));
  }
}

function readResult(result: Record<string, unknown>, item: Item, answerLost: boolean): Result {
  const error = problemError(result);
  if (error?.code === "conflict" && answerLost) {
    return new UnconfirmedError(
      `the key is taken, perhaps by this very put, whose first answer was lost: ${error.message}`,
      { cause: error, id: error.id, state: error.state },
    );
  }
  if (error) return error;
  const made = fromWire<PutResult>(result);
  if (item.key !== undefined) made.key = item.key;
  if (item.isKeyMade && made.code === "duplicate") made.code = "created";
  return made;
}

function takeChunk(items: Item[], from: number): Item[] {
  let bytes = 0;
  let to = from;
  while (to < items.length && to - from < ITEMS_MAX) {
    bytes += (items[to] as Item).json.length;
    if (to > from && bytes > BYTES_MAX) break;
    to++;
  }
  return items.slice(from, to);
}
