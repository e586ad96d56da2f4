/** A worker: takes jobs as they become due and runs a handler for each. */

import { backoffMs, sleep, type Caller } from "./caller.js";
import type { Client } from "./client.js";
import {
  DormouseError,
  InvalidError,
  JobTimeoutError,
  LeaseLostError,
  StoppingError,
  UnreachableError,
} from "./errors.js";
import { Leases } from "./leases.js";
import type { Log } from "./log.js";
import { Done, Kill, Release, Retry } from "./outcome.js";
import { Renewer } from "./renewer.js";
import { spanMs } from "./span.js";
import { Endings, ERROR_CHARS_MAX, type Ending } from "./endings.js";
import { withTrace } from "./trace.js";
import type { LeasedJob } from "./types.js";
import { Lease, workerJob } from "./worker_job.js";
import type { Handler, Tally, WorkerOptions } from "./worker_options.js";

/** Jobs whose end is not heard yet; with more of them no others are taken. */
const UNTOLD_MAX = 1_000;
/** How long a stop waits for the last words after the grace. */
const LAST_WORDS_MS = 3_000;

type Puts = Record<string, unknown>[];

export class Worker<T = unknown> {
  readonly #client: Client;
  readonly #topics: string[];
  readonly #handler: Handler<T>;
  readonly #options: WorkerOptions<T>;
  readonly #concurrency: number;
  readonly #waitMs: number;
  readonly #timeoutMs: number | undefined;
  readonly #graceMs: number;
  readonly #offlineMaxMs: number;
  readonly #log: Log;
  readonly #pollCaller: Caller;
  readonly #tellCaller: Caller;
  readonly #polls: Leases;
  readonly #endings: Endings;
  readonly #renewer: Renewer;
  readonly #running = new Set<Lease>();
  readonly #stop = new AbortController();
  readonly #tally: Tally = { done: 0, failed: 0, dead: 0, released: 0, lost: 0 };
  #untold = 0;
  #wake: (() => void) | undefined;
  #ran: Promise<Tally> | undefined;
  #endGrace: () => void = () => undefined;

  constructor(client: Client, topics: string | string[], handler: Handler<T>, options: WorkerOptions<T> = {}) {
    this.#client = client;
    this.#topics = [topics].flat();
    this.#handler = handler;
    this.#options = options;
    this.#concurrency = options.concurrency ?? 10;
    if (!Number.isInteger(this.#concurrency) || this.#concurrency < 1) {
      throw new InvalidError(`concurrency is ${this.#concurrency}; give a whole number from 1 on`);
    }
    if (this.#topics.length === 0) throw new InvalidError("a worker needs at least one topic");
    this.#waitMs = Math.min(60_000, spanMs(options.wait ?? "30s", "wait"));
    this.#timeoutMs = options.timeout === undefined ? undefined : spanMs(options.timeout, "timeout");
    this.#graceMs = spanMs(options.grace ?? "30s", "grace");
    this.#offlineMaxMs = options.offlineMax === undefined ? Infinity : spanMs(options.offlineMax, "offlineMax");
    this.#log = client.caller.log;
    // A poll occupies its connection; acks and extends must never wait behind it, nor behind puts.
    this.#pollCaller = client.caller.separate(1);
    this.#tellCaller = client.caller.separate(4);
    this.#polls = new Leases(this.#pollCaller);
    const tells = new Leases(this.#tellCaller);
    this.#endings = new Endings(tells, this.#log, spanMs(options.tellFor ?? "10m", "tellFor"));
    this.#renewer = new Renewer(tells, this.#log);
  }

  /** The totals so far. */
  get tally(): Tally {
    return { ...this.#tally };
  }

  /** Runs until it is stopped, or the server refuses it. Call it once. */
  run(): Promise<Tally> {
    this.#ran ??= this.#run();
    return this.#ran;
  }

  /** Takes no more jobs, waits for the handlers for the grace, and gives unfinished jobs back. */
  async stop(): Promise<Tally> {
    this.#stop.abort(new StoppingError("the worker stops"));
    this.#wake?.();
    return this.run();
  }

  async #run(): Promise<Tally> {
    const onSignal = (signal: NodeJS.Signals) => {
      if (this.#stop.signal.aborted) return this.#endGrace();
      this.#log.write("info", "stopping", `${signal}: the worker stops; ${this.#running.size} jobs run`);
      this.#stop.abort(new StoppingError(`the worker stops: ${signal}`));
      this.#wake?.();
    };
    const signals = this.#options.signals ?? ["SIGTERM", "SIGINT"];
    for (const signal of signals) process.on(signal, onSignal);
    try {
      await this.#fetch();
    } finally {
      await this.#drain();
      for (const signal of signals) process.off(signal, onSignal);
    }
    return this.tally;
  }

  /** The fetcher: one poll at a time, for as many jobs as there are free slots. */
  async #fetch(): Promise<void> {
    const stop = this.#stop.signal;
    let offlineSince: number | undefined;
    let failures = 0;
    while (!stop.aborted) {
      const free = this.#concurrency - this.#running.size;
      if (free <= 0 || this.#untold >= UNTOLD_MAX + this.#concurrency) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        continue;
      }
      try {
        const jobs = await this.#poll(free);
        if (offlineSince !== undefined) this.#log.write("info", "online", "the worker reaches its server again");
        offlineSince = undefined;
        failures = 0;
        for (const job of jobs) this.#start(job);
      } catch (error) {
        if (stop.aborted) return;
        if (!isPassing(error)) throw error;
        offlineSince ??= performance.now();
        const waitMs = error.retryAfterMs ?? backoffMs(failures++);
        const awayMs = performance.now() - offlineSince;
        if (awayMs + waitMs > this.#offlineMaxMs) throw error;
        this.#log.write(
          "warn",
          "offline",
          `reserve from ${this.#topics.join(", ")}: ${error.message}; again in ${Math.round(waitMs)} ms`,
          { error, waitMs, awayMs },
        );
        await sleep(waitMs, stop).catch(() => undefined);
      }
    }
  }

  #poll(max: number): Promise<LeasedJob[]> {
    const { ttr } = this.#options;
    return this.#polls.reserve(this.#topics, {
      max,
      wait: this.#waitMs,
      ...(ttr === undefined ? {} : { ttr }),
      signal: this.#stop.signal,
      gentle: true,
      retryForMs: 0,
      timeoutMs: 10_000,
    });
  }

  #start(job: LeasedJob): void {
    // It came while the worker was being stopped.
    if (this.#stop.signal.aborted)
      return this.#tell(new Lease(job, performance.now()), { verb: "release", fields: {} });
    const lease = new Lease(job, performance.now());
    this.#running.add(lease);
    this.#renewer.add(lease);
    void this.#handle(lease);
  }

  async #handle(lease: Lease): Promise<void> {
    const { job } = lease;
    const startedAt = performance.now();
    if (this.#log.wantsAll)
      this.#log.write("debug", "job_started", `job ${job.id} of ${job.topic} starts, attempt ${job.attempt}`, { job });
    let timer: NodeJS.Timeout | undefined;
    if (this.#timeoutMs !== undefined) {
      const timeoutMs = this.#timeoutMs;
      timer = setTimeout(
        () => lease.interrupt(new JobTimeoutError(`the handler took longer than ${timeoutMs} ms`)),
        timeoutMs,
      );
    }
    let failure: unknown;
    let puts: Puts | undefined;
    try {
      puts = await Promise.race([this.#callHandler(lease), lease.interrupted]);
    } catch (error) {
      failure = error ?? new Error("the handler threw nothing");
    }
    clearTimeout(timer);
    this.#running.delete(lease);
    this.#renewer.remove(lease);
    const ending = endingOf(failure, puts);
    if (this.#log.wantsAll) {
      const durationMs = performance.now() - startedAt;
      this.#log.write("debug", "job_ended", `job ${job.id} of ${job.topic} ended: ${ending.verb}`, {
        job,
        verb: ending.verb,
        durationMs,
        error: failure,
      });
    }
    this.#tell(lease, ending);
    this.#wake?.();
  }

  /** Resolves with the puts that the ack carries, if any. */
  async #callHandler(lease: Lease): Promise<Puts | undefined> {
    const job = workerJob(lease, this.#readBody(lease.job));
    let puts: Puts | undefined;
    const handle = async () => {
      const result = await this.#handler(job);
      // Whoever returns one of these instead of throwing it does not mean an ack.
      if (result instanceof Retry || result instanceof Kill || result instanceof Release) throw result;
      if (result instanceof Done && result.puts.length > 0) puts = this.#client.chain(result);
    };
    const { around } = this.#options;
    await withTrace(job.headers, () => (around ? around(job, handle) : handle()));
    return puts;
  }

  #readBody(job: LeasedJob): T {
    try {
      let body = job.body;
      if (this.#options.body !== "raw" && (job.kind === "text" || job.kind === "bytes")) {
        body = JSON.parse(String(body));
      }
      return this.#options.parse ? this.#options.parse(body) : (body as T);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Kill(`the body cannot be read: ${reason}`, { cause });
    }
  }

  #tell(lease: Lease, ending: Ending): void {
    if (lease.isLost) {
      this.#tally.lost++;
      return;
    }
    this.#untold++;
    void this.#endings.tell(lease.job, ending).then((told) => {
      this.#untold--;
      this.#count(lease.job, told.ending, told.result);
      this.#wake?.();
    });
  }

  #count(job: LeasedJob, ending: Ending, result: { code: string } | DormouseError): void {
    if (this.#log.wantsAll) {
      this.#log.write(
        "debug",
        "job_told",
        `the ${ending.verb} of job ${job.id} of ${job.topic} was answered: ${result.code}`,
        { job, verb: ending.verb, code: result.code },
      );
    }
    if (result instanceof LeaseLostError) {
      this.#log.write("warn", "lease_lost", `${ending.verb} of job ${job.id} of ${job.topic}: ${result.message}`, {
        error: result,
        job,
      });
    }
    if (result instanceof DormouseError) this.#tally.lost++;
    else if (ending.verb === "ack") this.#tally.done++;
    else if (ending.verb === "release") this.#tally.released++;
    else if (ending.verb === "kill" || result.code === "dead") this.#tally.dead++;
    else this.#tally.failed++;
  }

  /** Waits until all handlers have ended and all is told, at most for the grace. */
  async #drain(): Promise<void> {
    this.#stop.abort(new StoppingError("the worker stops"));
    const grace = new AbortController();
    this.#endGrace = () => grace.abort();
    const timer = setTimeout(() => grace.abort(), this.#graceMs);
    await this.#settled(grace.signal);
    clearTimeout(timer);
    for (const lease of this.#running) lease.interrupt(new StoppingError("the worker stops, and its grace is over"));
    await this.#settled(AbortSignal.timeout(LAST_WORDS_MS));
    this.#endings.close(new UnreachableError("the worker has stopped", { sent: true }));
    this.#renewer.close();
    this.#pollCaller.close();
    this.#tellCaller.close();
  }

  async #settled(until: AbortSignal): Promise<void> {
    until.addEventListener("abort", () => this.#wake?.(), { once: true });
    while ((this.#running.size > 0 || this.#untold > 0) && !until.aborted) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** What is told of a job, by how its handler ended. */
function endingOf(failure: unknown, puts: Puts | undefined): Ending {
  if (failure === undefined) return { verb: "ack", fields: puts ? { put: puts } : {} };
  if (failure instanceof Kill) return { verb: "kill", fields: { error: errorText(failure) } };
  if (failure instanceof Release) return { verb: "release", fields: { delay: failure.delay } };
  if (failure instanceof StoppingError) return { verb: "release", fields: {} };
  if (failure instanceof Retry) return { verb: "nack", fields: { delay: failure.after, error: errorText(failure) } };
  return { verb: "nack", fields: { error: errorText(failure) } };
}

function errorText(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  // By way of bytes, because half of a character would be refused.
  return Buffer.from(text.slice(0, ERROR_CHARS_MAX)).toString();
}

/** Whether a failed poll may succeed later. */
function isPassing(error: unknown): error is DormouseError {
  return error instanceof DormouseError && (error.retryable || error.code === "unconfirmed");
}
