/** Requests that are sent until they are answered, or until their time is over. */

import { Connections, readServer, type Answer, type Server, type TlsOptions } from "./connections.js";
import {
  DormouseError,
  errorOf,
  ProtocolError,
  UnavailableError,
  UnconfirmedError,
  UnreachableError,
} from "./errors.js";
import type { Log } from "./log.js";

/** One request of the API. */
export interface Call {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  /** JSON text. */
  body?: string | undefined;
  /**
   * Whether it may be sent again after its answer was lost. What does not repeat safely ends in an
   * `UnconfirmedError` then; it is still sent again if it certainly did not arrive.
   */
  repeats: boolean;
  /** Codes that, after a lost answer, may be the echo of the first try: told as `UnconfirmedError`. */
  doubtful?: readonly string[];
  /** How long the server itself may wait before it answers. */
  waitMs?: number;
  /** Overrides of the client's options. */
  retryForMs?: number;
  timeoutMs?: number;
  signal?: AbortSignal | undefined;
  gentle?: boolean;
}

export interface Reply {
  value: unknown;
  /** Whether the answer to an earlier try was lost, so that this one may be about its own echo. */
  answerLost: boolean;
}

export interface CallerOptions {
  urls: string[];
  token: string | undefined;
  tls: TlsOptions | undefined;
  retryForMs: number;
  timeoutMs: number;
  connectionsMax: number;
  log: Log;
}

const BACKOFF_FIRST_MS = 50;
const BACKOFF_MAX_MS = 2_000;

/** The wait before try number `tries` (from 0): doubling, capped, half of it by chance. */
export function backoffMs(tries: number): number {
  const full = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.min(tries, 10));
  return full * (0.5 + Math.random() / 2);
}

/** Sleeps, or rejects with the reason of the signal. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}

/** Which of several servers is used: the next one when it fails. Shared by all connections of a client. */
export class Servers {
  readonly #all: Server[];
  #current = 0;

  constructor(urls: string[]) {
    this.#all = urls.map(readServer);
  }

  get count(): number {
    return this.#all.length;
  }

  get current(): Server {
    return this.#all[this.#current] as Server;
  }

  /** Goes on to the next server, unless somebody else has done so already. */
  leave(server: Server): void {
    if (this.current === server) this.#current = (this.#current + 1) % this.#all.length;
  }
}

export class Caller {
  readonly servers: Servers;
  readonly connections: Connections;
  readonly #options: CallerOptions;

  constructor(options: CallerOptions, servers = new Servers(options.urls)) {
    this.#options = options;
    this.servers = servers;
    this.connections = new Connections(options);
  }

  /** The same servers and options with connections of their own, for what waits long. */
  separate(connectionsMax: number): Caller {
    return new Caller({ ...this.#options, connectionsMax }, this.servers);
  }

  get log(): Log {
    return this.#options.log;
  }

  get retryForMs(): number {
    return this.#options.retryForMs;
  }

  close(): void {
    this.connections.close();
  }

  /** Sends a call until it is answered. Rejects with a `DormouseError`, or the reason of its signal. */
  async call(call: Call): Promise<Reply> {
    const giveUpAt = performance.now() + (call.retryForMs ?? this.#options.retryForMs);
    let answerLost = false;
    for (let tries = 0; ; tries++) {
      const server = this.servers.current;
      try {
        return { value: await this.#once(server, call), answerLost };
      } catch (error) {
        if (!(error instanceof DormouseError)) throw error;
        if (answerLost && call.doubtful?.includes(error.code)) throw doubt(call, error);
        const isRepeatable = error.retryable || isLost(error);
        if (isLost(error)) {
          answerLost = true;
          if (!call.repeats) throw doubt(call, error);
        }
        if (error.code === "unreachable" || error.code === "unavailable") this.servers.leave(server);
        // All servers are asked once before the first wait.
        const round = Math.floor(tries / this.servers.count);
        const isNextServer = tries % this.servers.count !== this.servers.count - 1;
        const waitMs = isNextServer ? 0 : (error.retryAfterMs ?? backoffMs(round));
        const isOver = performance.now() + waitMs > giveUpAt;
        if (!isRepeatable) throw error;
        if (isOver) throw answerLost ? doubt(call, error) : error;
        this.log.write(
          "warn",
          "retry",
          `${call.method} ${call.path}: ${error.message}; again in ${Math.round(waitMs)} ms`,
          {
            error,
            tries: tries + 1,
            waitMs,
            url: server.url,
          },
        );
        await sleep(waitMs, call.signal);
      }
    }
  }

  async #once(server: Server, call: Call): Promise<unknown> {
    const answer = await this.connections.send(server, {
      method: call.method,
      path: call.path,
      body: call.body,
      timeoutMs: (call.timeoutMs ?? this.#options.timeoutMs) + (call.waitMs ?? 0),
      signal: call.signal,
      gentle: call.gentle,
    });
    return readAnswer(server, answer);
  }
}

/** The value of an answer, or the error that it tells. */
export function readAnswer(server: Server, answer: Answer): unknown {
  let value: unknown;
  try {
    value = JSON.parse(answer.text);
  } catch {
    throw foreign(server, answer);
  }
  if (value === null || typeof value !== "object") throw foreign(server, answer);
  // A list of one item answers with the status of that item, and still with a list.
  if (answer.status < 300 || Array.isArray((value as { results?: unknown }).results)) return value;
  const error = problemError(value as Record<string, unknown>, answer);
  if (!error) throw foreign(server, answer);
  throw error;
}

/** The error of a problem document or of a failed item; `undefined` if it is neither. */
export function problemError(problem: Record<string, unknown>, answer?: Answer): DormouseError | undefined {
  const { code, detail, retryable, id, state } = problem;
  if (typeof code !== "string" || typeof detail !== "string") return undefined;
  const after = Number(answer?.headers["retry-after"]);
  return errorOf(code, detail, {
    status: answer?.status,
    retryable: retryable === true,
    id: typeof id === "string" ? id : undefined,
    state: typeof state === "string" ? state : undefined,
    retryAfterMs: after > 0 ? after * 1_000 : undefined,
  });
}

/** Something between us and the server, or something else at its address, has answered. */
function foreign(server: Server, answer: Answer): DormouseError {
  const facts = { status: answer.status };
  if ([502, 503, 504].includes(answer.status)) {
    return new UnavailableError(
      `a proxy in front of ${server.url} answered ${answer.status}: it does not reach the server`,
      { ...facts, retryable: true },
    );
  }
  return new ProtocolError(
    `${server.url} answered ${answer.status} with something that is not the API of Dormouse; correct the host, port or path of the URL`,
    facts,
  );
}

/** Whether the request may have been carried out though we got no answer. */
function isLost(error: DormouseError): boolean {
  return (
    (error instanceof UnreachableError && error.sent) ||
    error instanceof UnconfirmedError ||
    error.status === 504 ||
    error.status === 502
  );
}

function doubt(call: Call, cause: DormouseError): DormouseError {
  if (cause instanceof UnconfirmedError) return cause;
  const text = `${call.method} ${call.path} was sent and its answer was lost: it may or may not have happened; look before you repeat it (last error: ${cause.message})`;
  return new UnconfirmedError(text, { cause, id: cause.id, state: cause.state });
}
