/** Schedules: rules of a topic that put a job at each of their ticks. See `docs/schedules.md`. */

import { problemError, type Call, type Caller } from "./caller.js";
import type { DormouseError } from "./errors.js";
import type { Instant, Span } from "./span.js";
import type { Backoff, MoreFields, PutResult } from "./types.js";
import { bodyFields, fromWire, query, readBody, segment, stringify, toWire, type BodyKind } from "./wire.js";

/** Exactly one of them; `zone` belongs to `cron`. */
export type Rule = { cron: string; zone?: string } | { every: Span } | { gap: Span };

export type Schedule = Rule &
  MoreFields & {
    body?: unknown;
    text?: string;
    headers?: Record<string, string>;
    priority?: number;
    ttr?: Span;
    attemptsMax?: number;
    backoff?: Backoff;
    expiresAfter?: Span;
    group?: string;
    overlap?: "skip" | "wait" | "allow" | "replace";
    catchup?: "one" | "all";
    lateMax?: Span;
    jitter?: Span;
    startAt?: Instant;
    endAt?: Instant;
    ticksMax?: number;
    onConflict?: "replace" | "keep" | "reject";
    ifVersion?: number | string;
  };

export interface ScheduleResult {
  topic: string;
  name: string;
  code: "created" | "replaced" | "unchanged" | "duplicate" | (string & {});
  version: number;
  nextAt?: Date;
  words?: string;
  notes?: string[];
}

export interface ScheduleInfo {
  topic: string;
  name: string;
  version: number;
  state: "waiting" | "paused" | "busy" | "broken" | (string & {});
  next: Date[];
  last?: { id: string; tick: Date; putAt: Date };
  counts: { given: number; missed: number; overlapped: number; skipped: number };
  body: unknown;
  kind: BodyKind;
  [field: string]: unknown;
}

export interface Preview {
  ticks: Date[];
  local: string[];
  words: string;
  notes: string[];
}

export class Schedules {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Defines or replaces a schedule. The same definition again changes nothing. */
  put(topic: string, name: string, schedule: Schedule): Promise<ScheduleResult> {
    const { body, ...rest } = schedule;
    return this.#read("PUT", schedulePath(topic, name), { ...toWire(rest), ...bodyFields(body) });
  }

  async get(topic: string, name: string): Promise<ScheduleInfo> {
    return readBody(await this.#read<ScheduleInfo>("GET", schedulePath(topic, name)));
  }

  /** The schedules of a topic, those first that tick first. */
  async *list(
    topic: string,
    options: { state?: string; limit?: number } = {},
  ): AsyncGenerator<ScheduleInfo, void, undefined> {
    let cursor: string | undefined;
    do {
      const path = `/v1/topics/${segment(topic)}/schedules${query({ ...options, cursor })}`;
      const page = await this.#read<{ schedules: ScheduleInfo[]; cursor?: string }>("GET", path);
      for (const schedule of page.schedules) yield readBody(schedule);
      cursor = page.cursor;
    } while (cursor !== undefined);
  }

  /** Removes a schedule; its jobs stay unless `jobs` asks to cancel the living one. */
  async remove(topic: string, name: string, options: { jobs?: boolean } = {}): Promise<void> {
    const path = schedulePath(topic, name) + query(options);
    await this.#read("DELETE", path, undefined, { doubtful: ["not_found"] });
  }

  /** No ticks for a span, or until `resume`. */
  pause(topic: string, name: string, options: { for?: Span } = {}): Promise<ScheduleInfo> {
    return this.#read("POST", `${schedulePath(topic, name)}/pause`, options);
  }

  resume(topic: string, name: string): Promise<ScheduleInfo> {
    return this.#read("POST", `${schedulePath(topic, name)}/resume`);
  }

  /** Leaves out the next tick. */
  skip(topic: string, name: string): Promise<ScheduleInfo> {
    return this.#read("POST", `${schedulePath(topic, name)}/skip`, undefined, { repeats: false });
  }

  /** The next tick is the first after now. */
  replan(topic: string, name: string): Promise<ScheduleInfo> {
    return this.#read("POST", `${schedulePath(topic, name)}/replan`);
  }

  /** One more job now. */
  run(topic: string, name: string): Promise<PutResult> {
    return this.#read("POST", `${schedulePath(topic, name)}/run`, undefined, { repeats: false });
  }

  /** A job for each tick from one instant to before another; a result or an error for each. */
  async backfill(
    topic: string,
    name: string,
    time: { from: Instant; to: Instant },
  ): Promise<(PutResult | DormouseError)[]> {
    const path = `${schedulePath(topic, name)}/backfill`;
    const { results } = await this.#read<{ results: PutResult[] }>("POST", path, time, { repeats: false });
    return results.map((result) => problemError({ ...result }) ?? result);
  }

  /** Its ticks in a time, past or future. */
  async ticks(
    topic: string,
    name: string,
    time: { from?: Instant; to?: Instant; limit?: number } = {},
  ): Promise<Date[]> {
    return (await this.#read<{ ticks: Date[] }>("GET", `${schedulePath(topic, name)}/ticks${query(time)}`)).ticks;
  }

  /** What a rule would do; nothing is stored. */
  preview(rule: Rule & { from?: Instant; limit?: number }): Promise<Preview> {
    return this.#read("POST", "/v1/schedules/preview", rule);
  }

  async #read<T>(method: Call["method"], path: string, body?: object, how: Partial<Call> = {}): Promise<T> {
    const text = body === undefined ? undefined : stringify(body, "the request");
    return fromWire<T>((await this.#caller.call({ method, path, body: text, repeats: true, ...how })).value);
  }
}

function schedulePath(topic: string, name: string): string {
  return `/v1/topics/${segment(topic)}/schedules/${segment(name)}`;
}
