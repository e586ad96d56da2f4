/** A job in the hands of a worker: what its handler sees, and what the worker knows of its lease. */

import type { DormouseError } from "./errors.js";
import type { LeasedJob } from "./types.js";

/** What a handler gets. */
export interface WorkerJob<T = unknown> extends LeasedJob<T> {
  /**
   * Aborts when the work should end: the lease is lost (the job was cancelled, or another worker has it),
   * the worker's `timeout` is over, or it stops and its grace is over. `signal.reason` says which.
   */
  readonly signal: AbortSignal;
}

/** The lease of one running job. Times are of `performance.now()`. */
export class Lease {
  readonly job: LeasedJob;
  readonly ttrMs: number;
  /** When it is to be extended next. */
  renewAt: number;
  /** When it ends unless it is extended: from then on another worker may have the job. */
  endsAt: number;
  /** The server said that the lease is over: there is nothing left to tell. */
  isLost = false;
  /** Rejects when the worker no longer waits for the handler. */
  readonly interrupted: Promise<never>;
  readonly #interrupt: (reason: Error) => void;
  #controller: AbortController | undefined;
  #reason: DormouseError | undefined;

  constructor(job: LeasedJob, now: number) {
    this.job = job;
    this.ttrMs = job.ttrMs;
    this.renewAt = now + job.ttrMs / 3;
    this.endsAt = now + job.ttrMs;
    let interrupt: (reason: Error) => void = () => undefined;
    this.interrupted = new Promise<never>((_, reject) => (interrupt = reject));
    this.interrupted.catch(() => undefined);
    this.#interrupt = interrupt;
  }

  /** Made when a handler first asks for it: most never do. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#reason) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  get isAborted(): boolean {
    return this.#reason !== undefined;
  }

  /** Tells the handler to end. */
  abort(reason: DormouseError): void {
    if (this.#reason) return;
    this.#reason = reason;
    this.#controller?.abort(reason);
  }

  /** Tells the handler to end, and does not wait for it. */
  interrupt(reason: DormouseError): void {
    this.abort(reason);
    this.#interrupt(reason);
  }

  extended(now: number): void {
    this.renewAt = now + this.ttrMs / 3;
    this.endsAt = now + this.ttrMs;
  }
}

/** The job with its body as the handler wants it, and the signal of its lease. */
export function workerJob<T>(lease: Lease, body: T): WorkerJob<T> {
  const job = { ...lease.job, body };
  return Object.defineProperty(job, "signal", { get: () => lease.signal, enumerable: false }) as WorkerJob<T>;
}
