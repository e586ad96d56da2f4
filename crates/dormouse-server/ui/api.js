// Calls of the public HTTP API. Every answer is JSON; everything else becomes a `Problem`.
import { signal } from "./html.js";
import { readAnswer } from "./json.js";
import { remember, remembered } from "./memory.js";

// The API lies beside `ui/`, below whatever path a proxy put before both.
export const base = new URL("..", document.baseURI);

// A path whose values are percent-encoded: path`/v1/topics/${topic}/jobs`. A browser takes `..` for
// a step up, however it is written, so it would call something else.
export function path(pieces, ...values) {
  if (values.some((value) => value === "." || value === "..")) {
    throw new Problem("invalid", "a browser cannot call what is named . or ..: use the command line");
  }
  return String.raw({ raw: pieces }, ...values.map(encodeURIComponent)).slice(1);
}

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

export function urlOf(relative, query = {}) {
  const url = new URL(relative, base);
  for (const [name, value] of Object.entries(query)) {
    const values = Array.isArray(value) ? value : [value];
    for (const one of values) {
      if (one !== undefined && one !== "") url.searchParams.append(name, one);
    }
  }
  return url;
}

// A response, or a `Problem` if there is none.
export async function send(method, relative, { query, json, signal: abort, accept } = {}) {
  const init = { method, headers: headers(accept ? { accept } : {}), signal: abort };
  // The server must be able to tell the console's changes from others: it may refuse these.
  if (method !== "GET") init.headers["x-dormouse-ui"] = "1";
  if (json !== undefined) {
    init.headers["content-type"] = "application/json";
    init.body = typeof json === "string" ? json : JSON.stringify(json);
  }
  try {
    return await fetch(urlOf(relative, query), { ...init, cache: "no-store", redirect: "error" });
  } catch (error) {
    if (abort?.aborted) throw new Problem("aborted", "the call was given up");
    report("The server does not answer.");
    throw new Problem("unreachable", "the server does not answer");
  }
}

// A list of one has the status of its item, which says what became of it.
const isList = (answer) => Array.isArray(answer.results);

async function read(response, abort) {
  let text;
  try {
    text = await response.text();
  } catch {
    if (abort?.aborted) throw new Problem("aborted", "the call was given up");
    report("The server broke off in the middle of an answer.");
    throw new Problem("unreachable", "the server broke off in the middle of its answer");
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

// Makes a call and returns its answer.
export async function call(method, relative, options = {}) {
  const response = await send(method, relative, options);
  const answer = await read(response, options.signal);
  if (trouble.value) trouble.value = undefined;
  if (response.ok || isList(answer)) return answer;
  if (response.status === 401) refused.value = answer.detail;
  throw new Problem(answer.code, answer.detail ?? answer.code, {
    status: response.status, id: answer.id, state: answer.state, retryable: answer.retryable,
  });
}

export const get = (relative, query, abort) => call("GET", relative, { query, signal: abort });

// The lines of an event stream as {event, id, data}; ends with the stream or the abort.
export async function* events(relative, query, abort) {
  const accept = "text/event-stream";
  const response = await send("GET", relative, { query, signal: abort, accept });
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
      return;
    }
    if (part.done) return;
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
