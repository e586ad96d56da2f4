// One `pulse` stream for all tabs of a browser: HTTP/1.1 allows six connections to a server, and a
// stream in each tab would leave none for calls. The tab that holds a Web Lock reads the stream and
// passes it on by BroadcastChannel. Without these (plain HTTP from another host) each visible tab
// reads for itself.
import { events, get, refused, token, trouble } from "./api.js";
import { signal } from "./html.js";
import { readAnswer } from "./json.js";
import { skewMs, toMs } from "./time.js";

// The newest figures, and the server's time of them.
export const pulse = signal(undefined);
// Whether the reader wants live figures.
export const isLive = signal(true);
// Set for a moment after the stream had a gap: all figures are read again.
export const gap = signal(undefined);

const CHANNEL = "dormouse-pulse";
const RETRY_MS = 1000;
const SILENCE_MS = 5000;

let stop;
let lastAt = 0;

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
  const timer = setTimeout(resolve, ms);
  abort.addEventListener("abort", () => { clearTimeout(timer); resolve(); });
});

// Reads the stream until the abort, and begins again when it ends.
async function follow(abort, pass) {
  while (!abort.aborted) {
    try {
      for await (const event of events("v1/pulse", {}, abort)) {
        take(event.data);
        pass?.(event.data);
        if (abort.aborted) return;
      }
      // The stream ended: ask once, so that a server that is gone is noticed.
      if (!abort.aborted) take(JSON.stringify(await get("v1/pulse", { once: true }, abort)));
    } catch (problem) {
      if (problem.status === 401 || problem.status === 403) return;
    }
    await wait(RETRY_MS, abort);
  }
}

// Starts following; a second call replaces the first.
export function startLive() {
  stop?.abort();
  stop = new AbortController();
  const abort = stop.signal;
  if (navigator.locks && window.BroadcastChannel) {
    const channel = new BroadcastChannel(CHANNEL);
    channel.onmessage = ({ data }) => take(data);
    abort.addEventListener("abort", () => channel.close());
    const lead = () => follow(abort, (data) => channel.postMessage(data));
    navigator.locks.request(CHANNEL, { signal: abort }, lead).catch(() => {});
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
  token.follow(look);
  refused.follow(look);
  look();
}
