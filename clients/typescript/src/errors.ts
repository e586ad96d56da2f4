/** Errors of this client: one class for each code, so that `catch` can tell them apart. */

/** What an error says besides its text. */
export interface ErrorFacts {
  /** The status of the HTTP answer, if there was one. */
  status?: number | undefined;
  /** Whether the same request may succeed later. */
  retryable?: boolean | undefined;
  /** The job that stands in the way, and its state. */
  id?: string | undefined;
  state?: string | undefined;
  /** How long the server asks to wait before the next try. */
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** Every error of this client. `code` is the server's word for it, see `docs/http.md`. */
export class DormouseError extends Error {
  readonly code: string;
  readonly status: number | undefined;
  readonly retryable: boolean;
  readonly id: string | undefined;
  readonly state: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(code: string, detail: string, facts: ErrorFacts = {}) {
    super(detail, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = new.target.name;
    this.code = code;
    this.status = facts.status;
    this.retryable = facts.retryable ?? false;
    this.id = facts.id;
    this.state = facts.state;
    this.retryAfterMs = facts.retryAfterMs;
  }
}

/** Malformed, or beyond a limit: the text names the field, the limit and the fix. */
export class InvalidError extends DormouseError {
  constructor(detail: string, facts?: ErrorFacts) {
    super("invalid", detail, facts);
  }
}

/** No token, or one that the server does not know. */
export class UnauthorizedError extends DormouseError {
  constructor(detail: string, facts?: ErrorFacts) {
    super("unauthorized", detail, facts);
  }
}

/** The token does not allow this verb on this topic. */
export class ForbiddenError extends DormouseError {
  constructor(detail: string, facts?: ErrorFacts) {
    super("forbidden", detail, facts);
  }
}

/** No such job, topic, lock, schedule or path. */
export class NotFoundError extends DormouseError {
  constructor(detail: string, facts?: ErrorFacts) {
    super("not_found", detail, facts);
  }
}

/** The job's state, a taken key or a held lock forbids it; `id` and `state` name the job. */
export class ConflictError extends DormouseError {
  constructor(detail: string, facts?: ErrorFacts) {
    super("conflict", detail, facts);
  }
}

/** The lease of this token has ended, and another worker has, or had, the job. */
export class LeaseLostError extends DormouseError {
  constructor(detail: string, facts?: ErrorFacts) {
    super("lease_lost", detail, facts);
  }
}

/** A body, or a request, beyond its limit. */
export class TooLargeError extends DormouseError {
  constructor(detail: string, facts?: ErrorFacts) {
    super("too_large", detail, facts);
  }
}

/** Too much at once; the client has tried again until its time was over. */
export class BusyError extends DormouseError {
  constructor(detail: string, facts?: ErrorFacts) {
    super("busy", detail, facts);
  }
}

/** No room for more jobs; everything except put still works. */
export class FullError extends DormouseError {
  constructor(detail: string, facts?: ErrorFacts) {
    super("full", detail, facts);
  }
}

/** The server is stopping, or its store has stopped. */
export class UnavailableError extends DormouseError {
  constructor(detail: string, facts?: ErrorFacts) {
    super("unavailable", detail, facts);
  }
}

/** The answer was lost: it may or may not have happened. */
export class UnconfirmedError extends DormouseError {
  constructor(detail: string, facts?: ErrorFacts) {
    super("unconfirmed", detail, facts);
  }
}

/** No server could be asked, or it closed the connection before its answer. */
export class UnreachableError extends DormouseError {
  /** Whether the request may have reached the server. */
  readonly sent: boolean;

  constructor(detail: string, facts: ErrorFacts & { sent: boolean }) {
    super("unreachable", detail, facts);
    this.sent = facts.sent;
  }
}

/** Something answered that is no Dormouse: usually a wrong URL. */
export class ProtocolError extends DormouseError {
  constructor(detail: string, facts?: ErrorFacts) {
    super("protocol", detail, facts);
  }
}

/** A handler took longer than the worker's `timeout`: the reason of its signal. */
export class JobTimeoutError extends DormouseError {
  constructor(detail: string, facts?: ErrorFacts) {
    super("job_timeout", detail, facts);
  }
}

/** The worker stops and its grace is over: the reason of a signal. */
export class StoppingError extends DormouseError {
  constructor(detail: string, facts?: ErrorFacts) {
    super("stopping", detail, facts);
  }
}

/** Some items of a batch failed. `results` has, in the order of the items, a result or an error. */
export class BatchError<T> extends DormouseError {
  readonly results: (T | DormouseError)[];

  constructor(results: (T | DormouseError)[], what: string) {
    const failed = results.filter((result) => result instanceof DormouseError);
    const first = failed[0];
    super(
      first?.code ?? "invalid",
      `${failed.length} of ${results.length} ${what} failed, the others are done; the first: ${first?.message}`,
      { retryable: failed.every((error) => error.retryable), cause: first },
    );
    this.results = results;
  }
}

type ErrorClass = new (detail: string, facts?: ErrorFacts) => DormouseError;

const CLASSES: Record<string, ErrorClass> = {
  invalid: InvalidError,
  unauthorized: UnauthorizedError,
  forbidden: ForbiddenError,
  not_found: NotFoundError,
  conflict: ConflictError,
  lease_lost: LeaseLostError,
  too_large: TooLargeError,
  busy: BusyError,
  full: FullError,
  unavailable: UnavailableError,
  unconfirmed: UnconfirmedError,
};

/** The error of a code. A code of a newer server gives a plain `DormouseError`. */
export function errorOf(code: string, detail: string, facts: ErrorFacts = {}): DormouseError {
  const known = CLASSES[code];
  if (code === "unauthorized") {
    detail += " (give the client a token: new Client(url, { token }), or set DORMOUSE_TOKEN)";
  }
  return known ? new known(detail, facts) : new DormouseError(code, detail, facts);
}
