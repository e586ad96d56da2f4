/** The queue of a running server. */

import { Caller, type Call } from "./caller.js";
import type { TlsOptions } from "./connections.js";
import { InvalidError } from "./errors.js";
import { watch } from "./events.js";
import { Leases } from "./leases.js";
import { Locks } from "./locks.js";
import { Log, type LogHook } from "./log.js";
import { Done } from "./outcome.js";
import { Puts } from "./puts.js";
import { Schedules } from "./schedules.js";
import { spanMs, type Instant, type Span } from "./span.js";
import { Topics } from "./topics.js";
import type { TraceContext } from "./trace.js";
import type {
  Change,
  EventsOptions,
  Forecast,
  Job,
  JobRef,
  KillOptions,
  LeasedJob,
  ListOptions,
  NackOptions,
  PutItem,
  PutOptions,
  PutResult,
  QueueEvent,
  ReleaseOptions,
  ReserveOptions,
  Stats,
  TokenResult,
  TopicInfo,
} from "./types.js";
import { fromWire, query, readBody, segment, stringify, toWire } from "./wire.js";

export interface ClientOptions {
  /** The access token; `DORMOUSE_TOKEN` unless given. */
  token?: string;
  /** For `https://`: a private authority, a certificate of the client. */
  tls?: TlsOptions;
  /** How long a call is sent again while the server is away or busy; 15 s unless given, 0 for never. */
  retryFor?: Span;
  /** How long one request may take, without the time that it asks the server to wait; 30 s unless given. */
  timeout?: Span;
  /** Connections for calls; workers have others. 16 unless given. */
  connectionsMax?: number;
  /** Hears of every retry and of the life of jobs. Without it warnings go to stderr. */
  log?: LogHook;
  /** The trace context that puts carry, e.g. from OpenTelemetry; else that of the running handler. */
  trace?: () => TraceContext;
}

const PAGE_MAX = 1_000;

/**
 * Talks to a server. Several URLs are servers of one installation: one is used, the next when it fails.
 * `DORMOUSE_URL`, else `http://127.0.0.1:7788`, unless given.
 */
export class Client {
  readonly topics: Topics;
  readonly locks: Locks;
  readonly schedules: Schedules;
  /** For parts of this package. */
  readonly caller: Caller;
  readonly #leases: Leases;
  readonly #puts: Puts;

  constructor(url?: string | string[], options: ClientOptions = {}) {
    const urls = [url ?? process.env["DORMOUSE_URL"] ?? "http://127.0.0.1:7788"].flat();
    if (urls.length === 0) throw new InvalidError("the list of URLs is empty; give at least one");
    this.caller = new Caller({
      urls,
      token: options.token ?? process.env["DORMOUSE_TOKEN"],
      tls: options.tls,
      retryForMs: spanMs(options.retryFor ?? "15s", "retryFor"),
      timeoutMs: spanMs(options.timeout ?? "30s", "timeout"),
      connectionsMax: options.connectionsMax ?? 16,
      log: new Log(options.log),
    });
    this.#leases = new Leases(this.caller);
    this.#puts = new Puts(this.caller, options.trace);
    this.topics = new Topics(this.caller);
    this.locks = new Locks(this.caller);
    this.schedules = new Schedules(this.caller);
  }

  /** Closes the connections; calls under way fail. Idle connections alone do not keep a process alive. */
  close(): void {
    this.caller.close();
  }

  /** Adds a job. The body is any JSON value, or bytes; `options.text` for plain text. */
  put(topic: string, body?: unknown, options: PutOptions = {}): Promise<PutResult> {
    return this.#puts.put(topic, body, options);
  }

  /** Adds many jobs. If some fail, a `BatchError` has the result of each. */
  putMany(topic: string, items: PutItem[]): Promise<PutResult[]> {
    return this.#puts.putMany(topic, items);
  }

  async get<T = unknown>(job: JobRef): Promise<Job<T>> {
    return readBody(await this.#job<Job<T>>("GET", job)) as Job<T>;
  }

  /**
   * Removes a job, whatever its state; `was` tells in which one it was. A leased job is taken from its
   * worker, unless `unlessLeased` asks for a `ConflictError` instead. `NotFoundError`: it is done, or never was.
   */
  cancel(job: JobRef, options: { unlessLeased?: boolean } = {}): Promise<Change> {
    return this.#job("DELETE", job, query(options), undefined, ["not_found"]);
  }

  /** Moves the due time of a delayed or ready job. */
  reschedule(job: JobRef, when: { delay: Span } | { at: Instant }): Promise<Change> {
    return this.#job("PATCH", job, "", when);
  }

  /** Makes a delayed job due now. */
  run(job: JobRef): Promise<Change> {
    return this.#job("POST", job, "/run");
  }

  /** Brings a dead job back, with new attempts. */
  revive(job: JobRef): Promise<Change> {
    return this.#job("POST", job, "/revive", undefined, ["conflict", "not_found"]);
  }

  /** Makes a delayed or ready job dead. For a leased one there is `killLease`. */
  kill(job: JobRef, options: KillOptions = {}): Promise<{ id?: string; code: string }> {
    return this.#job("POST", job, "/kill", toWire(options), ["conflict"]);
  }

  /** The jobs of a topic in one state, page by page as they are read. */
  async *list<T = unknown>(topic: string, options: ListOptions): AsyncGenerator<Job<T>, void, undefined> {
    const { signal, ...rest } = options;
    let cursor: string | undefined;
    do {
      const path = `/v1/topics/${segment(topic)}/jobs${query({ limit: PAGE_MAX, ...rest, cursor })}`;
      const page = await this.#read<{ jobs: Job<T>[]; cursor?: string }>({
        method: "GET",
        path,
        repeats: true,
        signal,
      });
      for (const job of page.jobs) yield readBody(job) as Job<T>;
      cursor = page.cursor;
    } while (cursor !== undefined);
  }

  /** Takes jobs that are due, or waits for them. A `Worker` does this better. */
  reserve<T = unknown>(topics: string | string[], options: ReserveOptions = {}): Promise<LeasedJob<T>[]> {
    return this.#leases.reserve<T>([topics].flat(), options);
  }

  /** Takes one job now, even before it is due. */
  reserveJob<T = unknown>(id: string, options: { ttr?: Span } = {}): Promise<LeasedJob<T>> {
    return this.#leases.reserveJob<T>(id, options);
  }

  /**
   * The work is done. With several tokens: one result for each, and no error for a lost lease. With
   * `new Done().put(...)` the ack and the puts happen together; if a put is refused, the lease goes on.
   */
  ack(token: string, done?: Done | Record<string, unknown>): Promise<TokenResult>;
  ack(tokens: string[], fields?: Record<string, unknown>): Promise<TokenResult[]>;
  async ack(
    tokens: string | string[],
    done: Done | Record<string, unknown> = {},
  ): Promise<TokenResult | TokenResult[]> {
    const fields = done instanceof Done ? { put: this.chain(done) } : done;
    return this.#leases.tell("ack", tokens, fields);
  }

  /** For parts of this package: the puts of an ack, with the trace context of here and now. */
  chain(done: Done): Record<string, unknown>[] {
    return this.#puts.chain(done);
  }

  /** The work failed: again after `delay`, or after the job's backoff. */
  nack(token: string, options?: NackOptions): Promise<TokenResult>;
  nack(tokens: string[], options?: NackOptions): Promise<TokenResult[]>;
  nack(tokens: string | string[], options: NackOptions = {}): Promise<TokenResult | TokenResult[]> {
    return this.#leases.tell("nack", tokens, toWire(options));
  }

  /** Gives jobs back with no attempt spent. */
  release(token: string, options?: ReleaseOptions): Promise<TokenResult>;
  release(tokens: string[], options?: ReleaseOptions): Promise<TokenResult[]>;
  release(tokens: string | string[], options: ReleaseOptions = {}): Promise<TokenResult | TokenResult[]> {
    return this.#leases.tell("release", tokens, toWire(options));
  }

  /** Prolongs leases by their ttr, or by another one, from now. */
  extend(token: string, options?: { ttr?: Span }): Promise<TokenResult>;
  extend(tokens: string[], options?: { ttr?: Span }): Promise<TokenResult[]>;
  extend(tokens: string | string[], options: { ttr?: Span } = {}): Promise<TokenResult | TokenResult[]> {
    return this.#leases.tell("extend", tokens, toWire(options));
  }

  /** Makes leased jobs dead. */
  killLease(token: string, options?: KillOptions): Promise<TokenResult>;
  killLease(tokens: string[], options?: KillOptions): Promise<TokenResult[]>;
  killLease(tokens: string | string[], options: KillOptions = {}): Promise<TokenResult | TokenResult[]> {
    return this.#leases.tell("kill", tokens, toWire(options));
  }

  /** The counts of one topic, or of all together. */
  stats(): Promise<Stats>;
  stats(topic: string): Promise<TopicInfo>;
  stats(topic?: string): Promise<Stats | TopicInfo> {
    if (topic !== undefined) return this.topics.get(topic);
    return this.#read({ method: "GET", path: "/v1/stats", repeats: true });
  }

  /** How many jobs come due per step; a day from now in hours unless given. */
  forecast(topic: string, options: { from?: Instant; to?: Instant; step?: Span } = {}): Promise<Forecast> {
    const path = `/v1/topics/${segment(topic)}/forecast${query(options)}`;
    return this.#read({ method: "GET", path, repeats: true });
  }

  /** What happens, as it happens. Goes on after a broken connection; what was missed comes as `lost`. */
  events(options: EventsOptions = {}): AsyncGenerator<QueueEvent, void, undefined> {
    return watch(this.caller, options);
  }

  /** Only on a server with `--test-clock`: moves its clock. */
  async advance(by: Span): Promise<Date> {
    const call: Call = {
      method: "POST",
      path: "/v1/test/advance",
      body: stringify({ by }, "the span"),
      repeats: false,
    };
    return (await this.#read<{ now: Date }>(call)).now;
  }

  async #job<T>(method: Call["method"], job: JobRef, suffix = "", body?: object, doubtful: string[] = []): Promise<T> {
    return this.#read<T>({
      method,
      path: jobPath(job) + suffix,
      body: body === undefined ? undefined : stringify(body, "the request"),
      repeats: true,
      doubtful,
    });
  }

  async #read<T>(call: Call): Promise<T> {
    return fromWire<T>((await this.caller.call(call)).value);
  }
}

function jobPath(job: JobRef): string {
  if (typeof job !== "string") return `/v1/topics/${segment(job.topic)}/keys/${segment(job.key)}`;
  if (!/^\d+$/.test(job)) {
    throw new InvalidError(`${JSON.stringify(job)} is no id of a job; a key is given as { topic, key }`);
  }
  return `/v1/jobs/${job}`;
}
