/** What a worker is told to do, and what it tells of its work. */

import type { Span } from "./span.js";
import type { WorkerJob } from "./worker_job.js";

/**
 * Returning acks the job, with `Done` together with puts; `Retry`, `Kill` and `Release`, thrown or returned, say
 * otherwise; any other error nacks it.
 */
export type Handler<T> = (job: WorkerJob<T>) => unknown;

export interface WorkerOptions<T> {
  /** How many jobs may run at once; 10 unless given. */
  concurrency?: number;
  /** The duration of leases instead of that of the jobs. They are extended at a third of it. */
  ttr?: Span;
  /** How long a handler may run; no limit unless given. Then its signal aborts and the job is nacked. */
  timeout?: Span;
  /** How long to wait for handlers when stopped; 30 s unless given. Then their jobs are given back. */
  grace?: Span;
  /** How long one poll waits for a job; 30 s unless given, at most 60 s. */
  wait?: Span;
  /** How long the server may be away before `run` gives up; no bound unless given. Each try is logged. */
  offlineMax?: Span;
  /** How long an ack or nack is told while nobody hears it; 10 min unless given, at least the ttr. */
  tellFor?: Span;
  /** `json` (unless given) reads text and bytes as JSON and kills jobs that are not; `raw` hands them over. */
  body?: "json" | "raw";
  /** Checks or converts a body, e.g. the `parse` of a schema. If it throws, the job is killed. */
  parse?: (body: unknown) => T;
  /** Signals that stop the worker while `run` runs; SIGTERM and SIGINT unless given. A second one ends the grace. */
  signals?: NodeJS.Signals[];
  /** Runs around each handler, e.g. in a span that continues `job.headers.traceparent`. */
  around?: (job: WorkerJob<T>, handle: () => Promise<void>) => Promise<void>;
}

/** Totals of the jobs a worker took, by how they ended. */
export interface Tally {
  /** Acked. */
  done: number;
  /** Nacked, to be tried again. */
  failed: number;
  /** Killed, or failed on their last attempt. */
  dead: number;
  /** Given back with no attempt spent. */
  released: number;
  /** Cancelled or taken by another worker meanwhile, or the end could not be told. */
  lost: number;
}
