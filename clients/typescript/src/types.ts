/** What goes in and comes out. Names are those of the API in this language's spelling. */

import type { Instant, Span } from "./span.js";
import type { BodyKind } from "./wire.js";

export type { BodyKind };

export type State = "delayed" | "ready" | "leased" | "dead" | "done" | (string & {});

/** A job by its id, or by its topic and key. */
export type JobRef = string | { topic: string; key: string };

/** Waits after failed attempts. `jitter` is the part of a wait that chance may take away, 0 to 1. */
export type Backoff = (
  { fixed: Span } | { exponential: { base: Span; factor?: number; cap?: Span } } | { list: Span[] }
) & { jitter?: number };

/** Fields of a newer server, with the names of the API; they are sent as they are. */
export interface MoreFields {
  fields?: Record<string, unknown>;
}

/** Ends a call from outside. */
export interface Cancellable {
  signal?: AbortSignal;
}

export interface PutOptions extends MoreFields {
  /** When it is due: after a span, or at an instant; neither means now. */
  delay?: Span;
  at?: Instant;
  /**
   * Your own id, unique in the topic while the job lives. Without one the client makes one, so that
   * sending a put again adds no second job; `null` means none, and a put is not sent again.
   */
  key?: string | null;
  onConflict?: "keep" | "reject" | "replace" | "earliest" | "latest";
  keyTtl?: Span;
  /** Lower is first; 1024 unless given. */
  priority?: number;
  ttr?: Span;
  attemptsMax?: number;
  backoff?: Backoff;
  headers?: Record<string, string>;
  /** How long after it is due it may still be taken. */
  expiresAfter?: Span;
  /** What the topic's limits of groups are counted by. */
  group?: string;
  /** A body that is text rather than JSON. */
  text?: string;
}

/** A put of several: its options and its body. */
export interface PutItem extends PutOptions {
  body?: unknown;
}

export interface PutResult {
  id: string;
  code: "created" | "duplicate" | "replaced" | (string & {});
  /** Absent if only the key is held. */
  state?: State;
  dueAt?: Date;
  /** The key it was put with, also one that the client made. */
  key?: string;
}

interface JobFields<T> {
  topic: string;
  id: string;
  key?: string;
  /** A key that is not UTF-8, put through another protocol. */
  keyBase64?: string;
  dueAt: Date;
  putAt: Date;
  priority: number;
  ttrMs: number;
  headers: Record<string, string>;
  /** What the topic's limits of groups are counted by. */
  group?: string;
  /** A JSON value, a string, bytes, or `undefined`: see `kind`. */
  body: T;
  kind: BodyKind;
  /** Of a job that a schedule has put. */
  schedule?: string;
  tick?: Date;
  ticksMissed?: number;
}

/** A job as `get` and `list` show it. */
export interface Job<T = unknown> extends JobFields<T> {
  state: State;
  /** The limit of the topic that keeps a ready job from being taken now. */
  heldBy?: string;
  attempts: number;
  attemptsMax: number;
  keyTtlMs: number;
  backoff?: Backoff;
  reserves: number;
  expiries: number;
  releases: number;
  kills: number;
  kicks: number;
  error?: string;
}

/** A job that was reserved: `token` proves it until the lease ends. */
export interface LeasedJob<T = unknown> extends JobFields<T> {
  token: string;
  attempt: number;
  lateMs: number;
  expiresAt: Date;
}

export interface ReserveOptions extends MoreFields, Cancellable {
  max?: number;
  /** How long to wait for a job; at most 60 s. */
  wait?: Span;
  /** The duration of the leases instead of that of the jobs. */
  ttr?: Span;
}

/** How one token was answered. `code` is `done`, `gone`, `retry`, `dead`, or that of an error. */
export interface TokenResult {
  token: string;
  code: string;
  /** Of a nack: the time of the next attempt. */
  dueAt?: Date;
  /** Of an extend. */
  expiresAt?: Date;
  /** Of an ack with puts: what became of each; empty if the job was gone. */
  put?: PutResult[];
  /** Of an error. */
  detail?: string;
}

export interface NackOptions extends MoreFields {
  delay?: Span;
  priority?: number;
  error?: string;
}

export interface ReleaseOptions extends MoreFields {
  delay?: Span;
  priority?: number;
}

export interface KillOptions extends MoreFields {
  error?: string;
  priority?: number;
}

/** What became of one job. `was` is the state it was in. */
export interface Change {
  id: string;
  code: string;
  was: State;
  dueAt?: Date;
}

export interface ListOptions extends Cancellable {
  state: State;
  /** Jobs of a page; the iterator fetches the next one by itself. */
  limit?: number;
  /** `false` leaves out the bodies. */
  bodies?: boolean;
}

/** Settings of a topic. One that is absent is reset to its default. */
export interface TopicSettings extends MoreFields {
  ttr?: Span;
  attemptsMax?: number;
  backoff?: Backoff;
  jobsMax?: number;
  bytesMax?: number;
  deadTtl?: Span;
  deadMax?: number;
  delay?: Span;
  expiresAfter?: Span;
  deadTopic?: string;
  keepDone?: Span;
  /** Most jobs leased at once, and how fast they are taken. */
  leasedMax?: number;
  rate?: Rate;
  /** The same for each group of jobs. */
  groupLeasedMax?: number;
  groupRate?: Rate;
}

/** `"100/1m"`, or the same as an object; `burst` jobs, 1 unless given, may come at once. */
export type Rate = string | { jobs: number; per: Span; burst?: number };

export interface Counts {
  waiting: number;
  delayed: number;
  ready: number;
  urgent: number;
  leased: number;
  dead: number;
  bytes: number;
  waiters: number;
  oldestReadyMs?: number;
  totals: Record<string, number>;
}

export interface TopicInfo extends Counts {
  topic: string;
  paused: boolean;
  pausedMs?: number;
  settings: Record<string, unknown>;
}

export interface Stats extends Counts {
  topics: number;
  locks: number;
}

export interface Forecast {
  from: Date;
  to: Date;
  stepMs: number;
  counts: number[];
}

/** A change of a job or a topic. Fields depend on the event. */
export interface QueueEvent {
  /** `put`, `reserved`, `acked`, ...; `lost` says that events were missed. */
  event: string;
  /** Where to resume after this event. */
  eventId: string;
  topic?: string;
  id?: string;
  at?: Date;
  dueAt?: Date;
  attempt?: number;
  /** Of `lost`: how many, if that is known. */
  count?: number;
  [field: string]: unknown;
}

export interface EventsOptions extends Cancellable {
  topic?: string;
  /** Topics whose names begin so. */
  prefix?: string;
  /** The `eventId` to resume after. */
  after?: string;
}
