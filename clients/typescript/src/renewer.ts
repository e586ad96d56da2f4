/** Extends the leases of running jobs at a third of their ttr, many in one request. */

import { DormouseError, LeaseLostError } from "./errors.js";
import { tokenError, type Leases } from "./leases.js";
import type { Log } from "./log.js";
import type { TokenResult } from "./types.js";
import type { Lease } from "./worker_job.js";

/** Tokens of one request. */
const TOKENS_MAX = 1_000;
const AGAIN_MIN_MS = 20;
const AGAIN_MAX_MS = 2_000;

export class Renewer {
  readonly #leases: Leases;
  readonly #log: Log;
  readonly #running = new Set<Lease>();
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Infinity;
  #isBusy = false;

  constructor(leases: Leases, log: Log) {
    this.#leases = leases;
    this.#log = log;
  }

  add(lease: Lease): void {
    this.#running.add(lease);
    if (lease.renewAt < this.#timerAt) this.#arm(lease.renewAt);
  }

  remove(lease: Lease): void {
    this.#running.delete(lease);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#running.clear();
  }

  #arm(at: number): void {
    clearTimeout(this.#timer);
    this.#timerAt = at;
    if (at === Infinity) return;
    this.#timer = setTimeout(() => void this.#round(), Math.max(0, at - performance.now()));
  }

  async #round(): Promise<void> {
    this.#timerAt = Infinity;
    // A second round beside a slow one would only extend the same leases twice.
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      this.#endOverdue();
      for (const [ttrMs, leases] of this.#due()) await this.#extend(ttrMs, leases);
    } finally {
      this.#isBusy = false;
      let next = Infinity;
      for (const lease of this.#running) next = Math.min(next, wakeAt(lease));
      this.#arm(next);
    }
  }

  /** Leases that are due soon go along with those that are due now. */
  #due(): Map<number, Lease[]> {
    const now = performance.now();
    const byTtr = new Map<number, Lease[]>();
    for (const lease of this.#running) {
      if (lease.isLost || lease.renewAt > now + lease.ttrMs / 12) continue;
      const group = byTtr.get(lease.ttrMs);
      if (!group) byTtr.set(lease.ttrMs, [lease]);
      else if (group.length < TOKENS_MAX) group.push(lease);
    }
    return byTtr;
  }

  async #extend(ttrMs: number, leases: Lease[]): Promise<void> {
    const sentAt = performance.now();
    const againMs = Math.min(AGAIN_MAX_MS, Math.max(AGAIN_MIN_MS, ttrMs / 12));
    try {
      const tokens = leases.map((lease) => lease.job.token);
      const limits = { retryForMs: 0, timeoutMs: Math.max(1_000, ttrMs / 3) };
      const results = (await this.#leases.tell("extend", tokens, { ttr: ttrMs }, limits)) as TokenResult[];
      leases.forEach((lease, index) => this.#heard(lease, results[index] as TokenResult, sentAt, againMs));
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#log.write(
        "warn",
        "retry",
        `extend of ${leases.length} leases: ${message}; again in ${Math.round(againMs)} ms`,
        { error },
      );
      for (const lease of leases) lease.renewAt = performance.now() + againMs;
    }
    this.#endOverdue();
  }

  #heard(lease: Lease, result: TokenResult, sentAt: number, againMs: number): void {
    if (!this.#running.has(lease)) return;
    const error = tokenError(result);
    if (!error) return lease.extended(sentAt);
    if (error.code === "lease_lost" || error.code === "not_found") {
      lease.isLost = true;
      lease.renewAt = Infinity;
      this.#lose(lease, error);
      return;
    }
    this.#log.write("warn", "retry", `extend of job ${lease.job.id}: ${error.message}`, { error, job: lease.job });
    lease.renewAt = performance.now() + againMs;
  }

  /** Nobody could be asked for a whole ttr: another worker may have the job by now. */
  #endOverdue(): void {
    const now = performance.now();
    for (const lease of this.#running) {
      if (lease.isAborted || lease.endsAt > now) continue;
      this.#lose(
        lease,
        new LeaseLostError(
          `the lease of job ${lease.job.id} could not be extended for ${lease.ttrMs} ms; another worker may have the job`,
        ),
      );
    }
  }

  #lose(lease: Lease, error: DormouseError): void {
    if (lease.isAborted) return;
    lease.abort(error);
    this.#log.write("warn", "lease_lost", `job ${lease.job.id} of ${lease.job.topic}: ${error.message}`, {
      error,
      job: lease.job,
    });
  }
}

/** When a lease needs a look: to extend it, or to tell its handler that it ran out. */
function wakeAt(lease: Lease): number {
  if (lease.isLost) return Infinity;
  return lease.isAborted ? lease.renewAt : Math.min(lease.renewAt, lease.endsAt);
}
