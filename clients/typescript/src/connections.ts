/** Connections to one server at a time: a request and its answer, without any second try. */

import http from "node:http";
import https from "node:https";
import type { SecureContextOptions } from "node:tls";
import { InvalidError, ProtocolError, UnreachableError, type DormouseError } from "./errors.js";

/** Options of TLS: a private authority (`ca`), or a certificate of the client (`cert`, `key`). */
export type TlsOptions = SecureContextOptions & { servername?: string; rejectUnauthorized?: boolean };

/** One server, by its URL. */
export interface Server {
  url: string;
  secure: boolean;
  host: string;
  port: number;
  /** What comes before `/v1` in a path. */
  prefix: string;
}

export interface Exchange {
  method: string;
  path: string;
  body?: string | undefined;
  headers?: Record<string, string> | undefined;
  timeoutMs: number;
  /** Ends the request. The promise rejects with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /**
   * On the signal, tell the server that nothing more comes and take the answer that is already on its way:
   * jobs of a reserve must not get lost between the two.
   */
  gentle?: boolean | undefined;
}

export interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  text: string;
}

/** How long an ended reserve waits for an answer that is already on its way. */
const GENTLE_END_MS = 1_000;
/** Idle connections are closed before the server does it after 75 s, which could lose a request. */
const IDLE_MS = 50_000;

export function readServer(url: string): Server {
  let read: URL;
  try {
    read = new URL(url);
  } catch (cause) {
    throw new InvalidError(`${JSON.stringify(url)} is no URL; write it as http://127.0.0.1:7788`, { cause });
  }
  if (read.protocol !== "http:" && read.protocol !== "https:") {
    throw new InvalidError(
      `${url} begins with ${read.protocol}//; the HTTP address of the server is needed, such as http://127.0.0.1:7788`,
    );
  }
  if (read.username !== "" || read.password !== "" || read.search !== "" || read.hash !== "") {
    throw new InvalidError("the URL of a server has only host, port and path; give the token as the option `token`");
  }
  const secure = read.protocol === "https:";
  return {
    url: read.origin + read.pathname.replace(/\/+$/, ""),
    secure,
    host: read.hostname.replace(/^\[|\]$/g, ""),
    port: Number(read.port) || (secure ? 443 : 80),
    prefix: read.pathname.replace(/\/+$/, ""),
  };
}

/** A request that remembers whether it ended before it had a connection. */
type Request = http.ClientRequest & { destroyedWhileConnecting?: boolean };

/** A set of connections that are kept open. What waits long has a set of its own. */
export class Connections {
  readonly #plain: http.Agent;
  readonly #secure: https.Agent;
  readonly #headers: Record<string, string>;

  constructor(options: { token: string | undefined; tls: TlsOptions | undefined; connectionsMax: number }) {
    const shared = {
      keepAlive: true,
      timeout: IDLE_MS,
      maxSockets: options.connectionsMax,
      scheduling: "lifo" as const,
    };
    this.#plain = new http.Agent(shared);
    this.#secure = new https.Agent({ ...shared, ...options.tls });
    this.#headers = options.token === undefined ? {} : { authorization: `Bearer ${options.token}` };
  }

  /** Closes all connections; requests under way fail. */
  close(): void {
    this.#plain.destroy();
    this.#secure.destroy();
  }

  /** Sends a request and reads the whole answer, whatever its status. */
  async send(server: Server, exchange: Exchange): Promise<Answer> {
    const { signal } = exchange;
    signal?.throwIfAborted();
    let end: (() => void) | undefined;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<Answer>((resolve, reject) => {
        const request = this.#request(server, exchange);
        const fail = failure(server, request, (error) => reject(signal?.aborted ? signal.reason : error));
        request.on("error", fail);
        request.on("response", (response) => readAll(response, resolve, fail));
        timer = setTimeout(() => timeOut(request, exchange.timeoutMs), exchange.timeoutMs);
        end = () => endRequest(request, exchange.gentle === true);
        signal?.addEventListener("abort", end, { once: true });
        request.end(exchange.body);
      });
    } finally {
      clearTimeout(timer);
      if (end) signal?.removeEventListener("abort", end);
    }
  }

  /** Sends a request whose answer has no end. The caller destroys the response. */
  async stream(server: Server, exchange: Exchange): Promise<http.IncomingMessage> {
    exchange.signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const request = this.#request(server, exchange);
      const timer = setTimeout(() => timeOut(request, exchange.timeoutMs), exchange.timeoutMs);
      request.on("close", () => clearTimeout(timer));
      request.on("error", failure(server, request, reject));
      request.on("response", (response) => {
        clearTimeout(timer);
        resolve(response);
      });
      request.end();
    });
  }

  #request(server: Server, exchange: Exchange): Request {
    const headers: Record<string, string | number> = { ...this.#headers, ...exchange.headers };
    if (exchange.body !== undefined) {
      headers["content-type"] = "application/json";
      headers["content-length"] = Buffer.byteLength(exchange.body);
    } else if (exchange.method !== "GET") {
      headers["content-length"] = 0;
    }
    const options = {
      host: server.host,
      port: server.port,
      method: exchange.method,
      path: server.prefix + exchange.path,
      headers,
    };
    return server.secure
      ? https.request({ ...options, agent: this.#secure })
      : http.request({ ...options, agent: this.#plain });
  }
}

export function readAll(
  response: http.IncomingMessage,
  resolve: (answer: Answer) => void,
  fail: (error: Error) => void,
): void {
  let text = "";
  response.setEncoding("utf8");
  response.on("data", (chunk: string) => (text += chunk));
  response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
  response.on("error", fail);
  response.on("aborted", () => fail(new Error("the connection was closed in the middle of the answer")));
}

function endRequest(request: http.ClientRequest, gentle: boolean): void {
  const socket = request.socket;
  if (!gentle || !socket || socket.connecting) {
    request.destroy();
    return;
  }
  socket.end();
  setTimeout(() => request.destroy(), GENTLE_END_MS).unref();
}

/** Turns an error of the connection into one of ours, which knows whether the request may have arrived. */
function failure(
  server: Server,
  request: Request,
  reject: (error: DormouseError) => void,
): (error: NodeJS.ErrnoException) => void {
  return (error) => {
    const isConnecting =
      error.syscall === "connect" || error.syscall === "getaddrinfo" || error.code === "ECONNREFUSED";
    reject(connectionError(server, error, !isConnecting && request.destroyedWhileConnecting !== true));
  };
}

/** Ends a request that took too long. One that has no connection yet was certainly not carried out. */
function timeOut(request: Request, ms: number): void {
  request.destroyedWhileConnecting = !request.socket || request.socket.connecting;
  request.destroy(Object.assign(new Error(`no answer within ${ms} ms`), { code: "ETIMEDOUT" }));
}

function connectionError(server: Server, cause: Error, sent: boolean): DormouseError {
  const { url } = server;
  const code = (cause as NodeJS.ErrnoException).code ?? "";
  if (code.startsWith("HPE_")) {
    return new ProtocolError(
      `${url} does not answer in HTTP; is it the port of another protocol? dormouse serve prints its HTTP address`,
      { cause },
    );
  }
  if (code === "EPROTO" || code === "ERR_SSL_WRONG_VERSION_NUMBER") {
    return new ProtocolError(`${url} does not answer in TLS; write http:// if the server has no certificate`, {
      cause,
    });
  }
  if (code.startsWith("ERR_TLS") || /CERT|SELF_SIGNED|UNABLE_TO/.test(code)) {
    return new UnreachableError(
      `the certificate of ${url} is not trusted (${cause.message}); give its authority as tls: { ca }`,
      { cause, sent: false },
    );
  }
  const facts = { cause, sent, retryable: true };
  switch (code) {
    case "ECONNREFUSED":
      return new UnreachableError(
        `no server at ${url}: connection refused; start one with \`dormouse serve\`, or correct the URL`,
        facts,
      );
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return new UnreachableError(`the host name of ${url} is not known; correct the URL`, facts);
    default:
      return new UnreachableError(`no answer from ${url}: ${cause.message}`, facts);
  }
}
