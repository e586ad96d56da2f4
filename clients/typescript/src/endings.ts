/**
 * Tells the server how jobs ended, until it is heard. Those that end together share a request; an ack with puts
 * goes alone.
 */

import { backoffMs, sleep } from "./caller.js";
import { DormouseError } from "./errors.js";
import { tokenError, type Leases, type LeaseVerb } from "./leases.js";
import type { Log } from "./log.js";
import type { LeasedJob, TokenResult } from "./types.js";
import { toWire } from "./wire.js";

export interface Ending {
  verb: Exclude<LeaseVerb, "extend">;
  fields: Record<string, unknown>;
}

/** How a job ended at last, and what the server said to it. */
export interface Told {
  ending: Ending;
  result: TokenResult | DormouseError;
}

interface Telling {
  job: LeasedJob;
  ending: Ending;
  /** Endings with the same group can share a request; without one it goes alone. */
  group: string | undefined;
  giveUpAt: number;
  resolve: (told: Told) => void;
}

/** Why puts that an ack carries cannot be made. The handler asked for them, so its job has failed. */
const CHAIN_REFUSED = ["conflict", "forbidden", "full", "invalid", "not_found", "too_large"];

/** Tokens of one request. */
const TOKENS_MAX = 500;
const REQUESTS_MAX = 2;
/** The server keeps 1 KiB of an error's text. */
export const ERROR_CHARS_MAX = 1_000;

export class Endings {
  readonly #leases: Leases;
  readonly #log: Log;
  readonly #tellForMs: number;
  #waiting: Telling[] = [];
  #requests = 0;
  #isScheduled = false;
  #failures = 0;
  #closed: DormouseError | undefined;
  readonly #closing = new AbortController();

  constructor(leases: Leases, log: Log, tellForMs: number) {
    this.#leases = leases;
    this.#log = log;
    this.#tellForMs = tellForMs;
  }

  /** Resolves with what the server said, or with the error that ended the attempts. Never rejects. */
  tell(job: LeasedJob, ending: Ending): Promise<Told> {
    return new Promise((resolve) => {
      // The token stays good until another worker has the job, so it is worth telling beyond the lease.
      const giveUpAt = performance.now() + Math.max(this.#tellForMs, job.ttrMs);
      const fields = toWire(ending.fields);
      const group = groupOf({ verb: ending.verb, fields });
      this.#waiting.push({ job, ending: { verb: ending.verb, fields }, group, giveUpAt, resolve });
      this.#schedule();
    });
  }

  /** Ends all attempts: what is not heard by now is reported as untold. */
  close(reason: DormouseError): void {
    this.#closed = reason;
    this.#closing.abort();
    for (const telling of this.#waiting.splice(0)) this.#giveUp(telling, reason);
  }

  #schedule(): void {
    if (this.#isScheduled || this.#requests >= REQUESTS_MAX) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#sendNext();
    });
  }

  #take(): Telling[] {
    const first = this.#waiting[0];
    if (!first) return [];
    if (first.group === undefined) return this.#waiting.splice(0, 1);
    const taken: Telling[] = [];
    const left: Telling[] = [];
    for (const telling of this.#waiting) {
      const isTaken = telling.group === first.group && taken.length < TOKENS_MAX;
      (isTaken ? taken : left).push(telling);
    }
    this.#waiting = left;
    return taken;
  }

  async #sendNext(): Promise<void> {
    const taken = this.#take();
    const first = taken[0];
    if (!first) return;
    this.#requests++;
    if (this.#waiting.length > 0) this.#schedule();
    const again = await this.#send(first.ending, taken);
    if (again.length > 0) {
      this.#waiting.unshift(...again);
      await sleep(backoffMs(this.#failures++), this.#closing.signal).catch(() => undefined);
      if (this.#closed) this.close(this.#closed);
    } else {
      this.#failures = 0;
    }
    this.#requests--;
    if (this.#waiting.length > 0) this.#schedule();
  }

  /** Sends one request; returns what must be told again. */
  async #send(ending: Ending, tellings: Telling[]): Promise<Telling[]> {
    const tokens = tellings.map((telling) => telling.job.token);
    try {
      const named = "put" in ending.fields ? (tokens[0] as string) : tokens;
      const answer = await this.#leases.tell(ending.verb, named, ending.fields, { retryForMs: 0 });
      const results = [answer].flat();
      return tellings.filter((telling, index) => !this.#heard(telling, results[index] as TokenResult));
    } catch (error) {
      const failed =
        error instanceof DormouseError ? error : new DormouseError("internal", String(error), { cause: error });
      const isRefused = "put" in ending.fields && CHAIN_REFUSED.includes(failed.code);
      const isPassing = isRefused || failed.retryable || failed.code === "unconfirmed";
      this.#log.write(
        "warn",
        "retry",
        `${ending.verb} of ${tokens.length} jobs: ${failed.message}${isPassing ? "; told again" : ""}`,
        { error: failed },
      );
      if (isRefused) tellings.forEach((telling) => failChain(telling, failed));
      return tellings.filter((telling) => !this.#isOver(telling, failed, isPassing));
    }
  }

  #heard(telling: Telling, result: TokenResult): boolean {
    const error = tokenError(result);
    if (error?.retryable) return this.#isOver(telling, error, true);
    telling.resolve({ ending: telling.ending, result: error ?? result });
    return true;
  }

  #isOver(telling: Telling, error: DormouseError, isPassing: boolean): boolean {
    if (isPassing && !this.#closed && performance.now() < telling.giveUpAt) return false;
    this.#giveUp(telling, error);
    return true;
  }

  #giveUp(telling: Telling, error: DormouseError): void {
    const { job, ending, resolve } = telling;
    this.#log.write(
      "error",
      "untold",
      `the ${ending.verb} of job ${job.id} of ${job.topic} was not heard: ${error.message}; the job comes again when its lease ends`,
      { error, job },
    );
    resolve({ ending, result: error });
  }
}

function groupOf({ verb, fields }: Ending): string | undefined {
  if ("put" in fields) return undefined;
  return verb + (Object.keys(fields).length === 0 ? "" : JSON.stringify(fields));
}

/** The server did nothing of an ack with puts: the job is nacked, and its error says why. */
function failChain(telling: Telling, error: DormouseError): void {
  const text = `the ack and its puts are refused: ${error.message}`.slice(0, ERROR_CHARS_MAX);
  telling.ending = { verb: "nack", fields: { error: Buffer.from(text).toString() } };
  telling.group = groupOf(telling.ending);
}
