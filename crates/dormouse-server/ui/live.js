// One `pulse` stream for all tabs of a browser: HTTP/1.1 allows six connections to a server, and a
// stream in each tab would leave none for calls. The tab that holds a Web Lock reads the stream and
// passes it on by BroadcastChannel; the others tell it which topics they show. Without these (plain
// HTTP from another host) each visible tab reads for itself.
import { base, events, get, refused, token, trouble } from "./api.js";
import { signal } from "./html.js";
import { readAnswer } from "./json.js";
import { skewMs, toMs } from "./time.js";

// The newest figures, and the server's time of them.
export const pulse = signal(undefined);
// Why there are none, if the token may not see them.
export const denied = signal(undefined);
// Whether the reader wants live figures.
export const isLive = signal(true);
// Set for a moment after the stream had a gap: all figures are read again.
export const gap = signal(undefined);

const RETRY_MS = 1000;
const SILENCE_MS = 5000;
const TOPICS_MAX = 50;
// A tab says again what it shows; one that is silent for longer is gone.
const SAY_MS = 10_000;
const FORGET_MS = 3 * SAY_MS;

let stop;
let lastAt = 0;
// What each tab shows, by a name of its own: {names, at}.
const shown = new Map();
const self = String(Math.random());
let say = () => {};
// Ends the present stream, so that the next one has all topics.
let round = new AbortController();
let asked = [];

function wanted() {
  for (const [tab, { at }] of shown) if (tab !== self && Date.now() - at > FORGET_MS) shown.delete(tab);
  const all = new Set([self, ...shown.keys()].flatMap((tab) => shown.get(tab)?.names ?? []));
  return [...all].slice(0, TOPICS_MAX);
}

function note(tab, names) {
  shown.set(tab, { names, at: Date.now() });
  if (wanted().some((name) => !asked.includes(name))) round.abort();
}

// The topics whose figures this tab shows: they are in the next pulses.
export function showTopics(names) {
  note(self, names);
  say();
}

function take(data) {
  let figures;
  try {
    figures = readAnswer(data);
  } catch {
    return;
  }
  if (lastAt && Date.now() - lastAt > SILENCE_MS) gap.value = Date.now();
  lastAt = Date.now();
  const at = toMs(figures.at);
  if (!Number.isNaN(at)) skewMs.value = at - Date.now();
  if (trouble.value) trouble.value = undefined;
  if (isLive.value) pulse.value = figures;
}

const wait = (ms, abort) => new Promise((resolve) => {
  const end = () => {
    clearTimeout(timer);
    abort.removeEventListener("abort", end);
    resolve();
  };
  const timer = setTimeout(end, ms);
  abort.addEventListener("abort", end);
});

// Asks for one pulse, so that a server that is gone is noticed.
const askOnce = async (abort) => take(JSON.stringify(await get("v1/pulse", { once: true, topics: wanted().join(",") }, abort)));

// Reads the stream until the abort, and begins again when it ends.
async function follow(abort, pass) {
  while (!abort.aborted) {
    round = new AbortController();
    asked = wanted();
    const either = AbortSignal.any([abort, round.signal]);
    try {
      for await (const event of events("v1/pulse", { topics: asked.join(",") }, either, SILENCE_MS)) {
        take(event.data);
        pass?.(event.data);
        if (abort.aborted) return;
      }
      if (!either.aborted) await askOnce(abort);
    } catch (problem) {
      if (problem.status === 403) denied.value = problem.message;
      if (problem.status === 401 || problem.status === 403) return;
    }
    if (!round.signal.aborted) await wait(RETRY_MS, abort);
  }
}

// Tabs share a stream if they show the same server and see the same: by path and token. The token
// itself is nobody's business.
async function channelName() {
  const text = new TextEncoder().encode(`${base.pathname} ${token.value ?? ""}`);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", text));
  return `dormouse-pulse ${[...hash.subarray(0, 12)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

async function share(abort) {
  const name = await channelName();
  if (abort.aborted) return;
  const channel = new BroadcastChannel(name);
  const lead = () => follow(abort, (data) => channel.postMessage({ data }));
  say = () => channel.postMessage({ tab: self, names: shown.get(self)?.names ?? [] });
  channel.onmessage = ({ data }) => (data.tab ? note(data.tab, data.names) : take(data.data));
  const timer = setInterval(() => {
    say();
    // The tab that leads may be asleep: then this one asks for itself.
    if (!document.hidden && !denied.value && Date.now() - lastAt > SAY_MS) askOnce(abort).catch(() => {});
  }, SAY_MS);
  abort.addEventListener("abort", () => {
    clearInterval(timer);
    channel.close();
    say = () => {};
  });
  navigator.locks.request(name, { signal: abort }, lead).catch(() => {});
}

// Starts following; a second call replaces the first.
export function startLive() {
  stop?.abort();
  stop = new AbortController();
  const abort = stop.signal;
  if (navigator.locks && window.BroadcastChannel) {
    share(abort);
    return;
  }
  let current;
  const look = () => {
    current?.abort();
    if (document.hidden || abort.aborted) return;
    current = new AbortController();
    follow(current.signal);
  };
  document.addEventListener("visibilitychange", look);
  abort.addEventListener("abort", () => {
    document.removeEventListener("visibilitychange", look);
    current?.abort();
  });
  look();
}

// Another token sees other figures.
export function keepLive() {
  const look = () => (refused.value === undefined ? startLive() : stop?.abort());
  token.follow(() => {
    pulse.value = undefined;
    denied.value = undefined;
    look();
  });
  refused.follow(look);
  look();
}
