/** What a handler throws to say how its job ends. Returning acks it, any other error nacks it. */

import type { Span } from "./span.js";

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
