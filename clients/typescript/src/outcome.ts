/** How a handler ends its job: it returns nothing or `Done`, or throws one of the others. Any other error nacks it. */

import type { Span } from "./span.js";
import type { PutOptions } from "./types.js";

/** A put that an ack carries. */
export interface NextPut {
  topic: string;
  body: unknown;
  options: PutOptions;
}

/**
 * Ack, and put the jobs that come next: all of it happens, or nothing. `return new Done().put("mails", { to })`.
 * The puts need no key of their own, because an ack happens once.
 */
export class Done {
  readonly puts: NextPut[] = [];

  /** Adds a job, as `client.put` does; at most 100 of them. */
  put(topic: string, body?: unknown, options: PutOptions = {}): this {
    this.puts.push({ topic, body, options });
    return this;
  }
}

/** Nack: try again `after` a span, or after the job's backoff if none is given. */
export class Retry extends Error {
  readonly after: Span | undefined;

  constructor(after?: Span, reason = "the handler asked for another attempt", options?: ErrorOptions) {
    super(reason, options);
    this.name = "Retry";
    this.after = after;
  }
}

/** Kill: the job is dead at once, with this reason. For work that no attempt can save. */
export class Kill extends Error {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = "Kill";
  }
}

/** Release: give the job back with no attempt spent, ready now or after `delay`. */
export class Release extends Error {
  readonly delay: Span | undefined;

  constructor(delay?: Span, reason = "the handler gave the job back", options?: ErrorOptions) {
    super(reason, options);
    this.name = "Release";
    this.delay = delay;
  }
}
