/** Client of Dormouse, the durable delay queue. */

export { Client, type ClientOptions } from "./client.js";
export type { TlsOptions } from "./connections.js";
export * from "./errors.js";
export type { LockGrant, LockInfo, Locks } from "./locks.js";
export type { LogEntry, LogHook, LogLevel } from "./log.js";
export { Done, Kill, Release, Retry, type NextPut } from "./outcome.js";
export type { Preview, Rule, Schedule, ScheduleInfo, ScheduleResult, Schedules } from "./schedules.js";
export type { Instant, Span } from "./span.js";
export type { Topics } from "./topics.js";
export { currentTrace, type TraceContext } from "./trace.js";
export type * from "./types.js";
export { Worker } from "./worker.js";
export type { WorkerJob } from "./worker_job.js";
export type { Handler, Tally, WorkerOptions } from "./worker_options.js";
