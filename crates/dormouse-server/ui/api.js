// Calls of the public HTTP API. Every answer is JSON; everything else becomes a `Problem`.
import { signal } from "./html.js";
import { readAnswer } from "./json.js";
import { home as base, remember, remembered } from "./memory.js";

// The API lies beside `ui/`, below whatever path a proxy put before both.
export { base };

// A browser takes `..` for a step up, however it is written, so it would call something else.
export const isCallable = (name) => name !== "." && name !== "..";
const NOT_CALLABLE = "a browser cannot call what is named . or ..: use the command line";

// A path whose values are percent-encoded: path`/v1/topics/${topic}/jobs`.
export const path = (pieces, ...values) =>
  String.raw({ raw: pieces }, ...values.map((value) => (isCallable(value) ? encodeURIComponent(value) : value.replaceAll(".", "%2E")))).slice(1);

// Why a call has no answer: an error of the server, or no sensible server at all.
export class Problem extends Error {
  constructor(code, detail, more = {}) {
    super(detail);
    this.code = code;
    Object.assign(this, more);
  }
}

// Set while the server cannot be reached or answers nonsense: {text, since}.
export const trouble = signal(undefined);
// Set when the server wants a token: the text that says why.
export const refused = signal(undefined);

export const token = signal(
  remembered("token", undefined, "sessionStorage") ?? remembered("token", undefined),
);

// Sends this token from now on; undefined forgets it. `keeps`: also after the browser is closed.
export function useToken(text, keeps = false) {
  token.value = text;
  remember("token", text, "sessionStorage");
  remember("token", keeps ? text : undefined);
}

function report(text) {
  trouble.value = { text, since: trouble.value?.since ?? Date.now() };
}

export function headers(more = {}) {
  const bearer = token.value;
  return bearer ? { ...more, authorization: `Bearer ${bearer}` } : more;
}

// The address as it is written, also if a browser would read it otherwise.
export function urlOf(relative, query = {}) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    const values = Array.isArray(value) ? value : [value];
    for (const one of values) {
      if (one !== undefined && one !== "") search.append(name, one);
    }
  }
  return `${base.href}${relative}${search.size > 0 ? `?${search}` : ""}`;
}

// Nothing that is asked takes that long, unless the caller says so.
const SILENCE_MS = 20_000;

// A signal that ends with the caller's, or when `again` was not called for so long.
function watched(abort, ms = SILENCE_MS) {
  const own = new AbortController();
  let timer;
  const end = () => clearTimeout(timer);
  const again = () => {
    end();
    timer = setTimeout(() => own.abort(), ms);
  };
  again();
  return { signal: abort ? AbortSignal.any([abort, own.signal]) : own.signal, again, end };
}

// The problem of a call that broke off, by us or by silence.
function broken(abort, text) {
  if (abort?.aborted) return new Problem("aborted", "the call was given up");
  report(`The server ${text}.`);
  return new Problem("unreachable", `the server ${text}`, { retryable: true });
}

// A response, or a `Problem` if there is none. `watch` ends what is not answered.
async function send(method, relative, { query, json, signal: abort, accept }, watch) {
  if (/(^|\/)(%2E){1,2}(\/|$)/.test(relative)) throw new Problem("invalid", NOT_CALLABLE);
  const init = { method, headers: headers(accept ? { accept } : {}), signal: watch.signal };
  // The server must be able to tell the console's changes from others: it may refuse these.
  if (method !== "GET") init.headers["x-dormouse-ui"] = "1";
  if (json !== undefined) {
    init.headers["content-type"] = "application/json";
    init.body = typeof json === "string" ? json : JSON.stringify(json);
  }
  try {
    return await fetch(urlOf(relative, query), { ...init, cache: "no-store", redirect: "error" });
  } catch {
    throw broken(abort, "does not answer");
  }
}

// A list of one has the status of its item, which says what became of it.
const isList = (answer) => Array.isArray(answer.results);

async function read(response, abort) {
  let text;
  try {
    text = await response.text();
  } catch {
    throw broken(abort, "broke off in the middle of its answer");
  }
  let answer;
  try {
    answer = text === "" ? {} : readAnswer(text);
    if (answer === null || typeof answer !== "object") throw new SyntaxError("no object");
    const isAnswer = response.ok || typeof answer.code === "string" || isList(answer);
    if (!isAnswer) throw new SyntaxError("no problem");
  } catch (error) {
    const detail = `status ${response.status}, but no JSON of Dormouse (${error.message})`;
    report(`Something answers that is not Dormouse: ${detail}.`);
    throw new Problem("garbage", `the answer makes no sense: ${detail}`);
  }
  return answer;
}

// Makes a call and returns its answer. `timeoutMs`: what it may take, if that is long.
export async function call(method, relative, options = {}) {
  const watch = watched(options.signal, options.timeoutMs);
  let response;
  let answer;
  try {
    response = await send(method, relative, options, watch);
    answer = await read(response, options.signal);
  } finally {
    watch.end();
  }
  if (trouble.value) trouble.value = undefined;
  if (response.ok || isList(answer)) return answer;
  if (response.status === 401) refused.value = answer.detail;
  throw new Problem(answer.code, answer.detail ?? answer.code, {
    status: response.status, id: answer.id, state: answer.state, retryable: answer.retryable,
  });
}

export const get = (relative, query, abort) => call("GET", relative, { query, signal: abort });

// The lines of an event stream as {event, id, data}; ends with the stream or the abort, and with a
// problem if nothing came for `silenceMs`, not even a comment.
export async function* events(relative, query, abort, silenceMs) {
  const watch = watched(abort, silenceMs);
  try {
    yield* streamed(relative, query, abort, watch);
  } finally {
    watch.end();
  }
}

async function* streamed(relative, query, abort, watch) {
  const response = await send("GET", relative, { query, signal: abort, accept: "text/event-stream" }, watch);
  if (!response.ok) {
    const answer = await read(response, abort);
    if (response.status === 401) refused.value = answer.detail;
    throw new Problem(answer.code, answer.detail, { status: response.status });
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = {};
  for (;;) {
    let part;
    try {
      part = await reader.read();
    } catch {
      if (watch.signal.aborted) throw broken(abort, "is silent");
      return;
    }
    if (part.done) return;
    watch.again();
    const lines = (rest + part.value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (event.data !== undefined) yield event;
        event = {};
        continue;
      }
      const at = line.indexOf(":");
      if (at > 0) event[line.slice(0, at)] = line.slice(at + 1).replace(/^ /, "").trimEnd();
    }
  }
}
