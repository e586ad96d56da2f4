/** Taking jobs, and ending or prolonging their leases. */

import { problemError, type Caller } from "./caller.js";
import { spanMs, type Span } from "./span.js";
import type { LeasedJob, ReserveOptions, TokenResult } from "./types.js";
import { fromWire, readBody, stringify, toWire } from "./wire.js";

export type LeaseVerb = "ack" | "nack" | "release" | "extend" | "kill";

export interface ReserveCall extends ReserveOptions {
  /** As in `Exchange`: take an answer that is on its way when the signal comes. */
  gentle?: boolean;
  retryForMs?: number;
  timeoutMs?: number;
}

export class Leases {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async reserve<T>(topics: string[], options: ReserveCall): Promise<LeasedJob<T>[]> {
    const { signal, gentle, retryForMs, timeoutMs, ...fields } = options;
    const { value } = await this.#caller.call({
      method: "POST",
      path: "/v1/reserve",
      body: stringify({ topics, ...toWire(fields) }, "the reserve"),
      // Sent again it would take other jobs; those of a lost answer come back when their leases end.
      repeats: false,
      waitMs: fields.wait === undefined ? 0 : spanMs(fields.wait, "wait"),
      signal,
      ...(gentle === undefined ? {} : { gentle }),
      ...(retryForMs === undefined ? {} : { retryForMs }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
    const { jobs } = fromWire<{ jobs: LeasedJob<T>[] }>(value);
    return jobs.map((job) => readBody(job) as LeasedJob<T>);
  }

  async reserveJob<T>(id: string, options: { ttr?: Span }): Promise<LeasedJob<T>> {
    const { value } = await this.#caller.call({
      method: "POST",
      path: `/v1/jobs/${encodeURIComponent(id)}/reserve`,
      body: stringify(toWire(options), "the reserve"),
      repeats: false,
    });
    const { jobs } = fromWire<{ jobs: LeasedJob<T>[] }>(value);
    return readBody(jobs[0] as LeasedJob<T>) as LeasedJob<T>;
  }

  /** One token: its result, or an error. Several: a result for each. */
  async tell(
    verb: LeaseVerb,
    tokens: string | string[],
    fields: Record<string, unknown>,
    limits: { retryForMs?: number; timeoutMs?: number } = {},
  ): Promise<TokenResult | TokenResult[]> {
    const named = Array.isArray(tokens) ? { tokens } : { token: tokens };
    const { value } = await this.#caller.call({
      method: "POST",
      path: `/v1/${verb}`,
      body: stringify({ ...named, ...fields }, `the ${verb}`),
      repeats: true,
      ...limits,
    });
    if (!Array.isArray(tokens)) return fromWire<TokenResult>(value);
    return fromWire<{ results: TokenResult[] }>(value).results;
  }
}

/** Whether a result of a token is an error, and whether it may pass. */
export function tokenError(result: TokenResult): ReturnType<typeof problemError> {
  return problemError({ ...result });
}
