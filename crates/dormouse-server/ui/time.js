// Instants and spans as people read them. Instants come as RFC 3339 in UTC, or as ms since 1970.
import { signal } from "./html.js";
import { remembered } from "./memory.js";

export const usesUtc = signal(remembered("utc", "false") === "true");

// The server's clock minus ours, in ms: "in 5 min" must be right on a machine whose clock is not.
export const skewMs = signal(0);
export const now = () => Date.now() + skewMs.value;

// Changes every few seconds: "3m ago" must not stand still.
export const minuteHand = signal(0);
setInterval(() => { if (!document.hidden) minuteHand.value += 1; }, 5000);

export const toMs = (instant) => (typeof instant === "number" ? instant : Date.parse(instant));

const pad = (n, width = 2) => String(n).padStart(width, "0");

function parts(ms) {
  const date = new Date(ms);
  const utc = usesUtc.value;
  return {
    year: utc ? date.getUTCFullYear() : date.getFullYear(),
    month: (utc ? date.getUTCMonth() : date.getMonth()) + 1,
    day: utc ? date.getUTCDate() : date.getDate(),
    hour: utc ? date.getUTCHours() : date.getHours(),
    minute: utc ? date.getUTCMinutes() : date.getMinutes(),
    second: utc ? date.getUTCSeconds() : date.getSeconds(),
    ms: date.getUTCMilliseconds(),
  };
}

// "2027-01-01", "14:03:07.120", "2027-01-01 14:03:07.120".
export function day(ms) {
  const at = parts(ms);
  return `${at.year}-${pad(at.month)}-${pad(at.day)}`;
}

export function clock(ms, withMs = false) {
  const at = parts(ms);
  const seconds = `${pad(at.hour)}:${pad(at.minute)}:${pad(at.second)}`;
  return withMs ? `${seconds}.${pad(at.ms, 3)}` : seconds;
}

export const absolute = (instant) => {
  const ms = toMs(instant);
  return Number.isNaN(ms) ? String(instant) : `${day(ms)} ${clock(ms, true)}`;
};

// The label of an instant on an axis whose marks are `step_ms` apart.
export function mark(ms, stepMs) {
  const at = parts(ms);
  if (stepMs >= 30 * DAY) return `${at.year}-${pad(at.month)}`;
  if (stepMs >= DAY) return `${pad(at.month)}-${pad(at.day)}`;
  const time = `${pad(at.hour)}:${pad(at.minute)}`;
  if (stepMs < MINUTE) return `${time}:${pad(at.second)}`;
  return at.hour === 0 && at.minute === 0 ? `${pad(at.month)}-${pad(at.day)}` : time;
}

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const UNITS = [["d", DAY], ["h", HOUR], ["m", MINUTE], ["s", SECOND]];

// "2d 4h", "3m 20s", "1.25 s", "7 ms": two units at most.
export function span(ms) {
  if (ms === undefined || ms === null) return "";
  const size = Math.abs(ms);
  const sign = ms < 0 ? "-" : "";
  if (size < SECOND) return `${sign}${Math.round(size)} ms`;
  if (size < MINUTE) return `${sign}${Number((size / SECOND).toFixed(size < 10 * SECOND ? 2 : 1))} s`;
  const words = [];
  let rest = Math.round(size / SECOND) * SECOND;
  for (const [unit, unitMs] of UNITS) {
    const count = Math.floor(rest / unitMs);
    if (count > 0) words.push(`${count}${unit}`);
    else if (words.length > 0) break;
    rest -= count * unitMs;
    if (words.length === 2) break;
  }
  return sign + words.join(" ");
}

// A span as the server reads it, without loss: "90s", "1500ms".
export function exactSpan(ms) {
  if (ms === 0) return "0s";
  for (const [unit, unitMs] of UNITS) if (ms % unitMs === 0) return `${ms / unitMs}${unit}`;
  return `${ms}ms`;
}

// "in 5m", "3m ago", "now".
export function relative(instant, from = now()) {
  const ms = toMs(instant) - from;
  if (Number.isNaN(ms)) return "";
  if (Math.abs(ms) < SECOND) return "now";
  return ms > 0 ? `in ${span(ms)}` : `${span(-ms)} ago`;
}

const SPAN = /^(?:(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)\s*)+$/;
const ONE = /(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)/g;
const UNIT_MS = { ms: 1, s: SECOND, m: MINUTE, min: MINUTE, h: HOUR, d: DAY };

// Reads what a person writes for a time: a span ("1h 30m"), an instant ("2027-01-01T09:00+01:00",
// "2027-01-01 09:00" by the clock that is shown), or ms since 1970. {delayMs}, {atMs} or {error}.
export function readTime(text) {
  const read = readUnbounded(text);
  const atMs = read.atMs ?? now() + (read.delayMs ?? 0);
  // Beyond it a Date has no text, and the server no such time.
  return atMs >= 0 && atMs <= AT_MS_MAX ? read : { error: "that is not between the years 1970 and 3015" };
}

const AT_MS_MAX = 33e12;

function readUnbounded(text) {
  const trimmed = text.trim();
  if (trimmed === "" || trimmed === "now") return { delayMs: 0 };
  if (SPAN.test(trimmed)) {
    let ms = 0;
    for (const [, count, unit] of trimmed.matchAll(ONE)) ms += Number(count) * UNIT_MS[unit];
    return { delayMs: Math.round(ms) };
  }
  if (/^\d{12,}$/.test(trimmed)) return { atMs: Number(trimmed) };
  if (/^\d+$/.test(trimmed)) {
    return { error: `${trimmed} has no unit: write ${trimmed}s or ${trimmed}m, or an instant` };
  }
  const iso = trimmed.replace(" ", "T");
  const hasZone = /(?:Z|[+-]\d\d:?\d\d)$/i.test(iso);
  const atMs = Date.parse(hasZone || !usesUtc.value ? iso : `${iso}Z`);
  if (!/^\d{4}-\d\d-\d\d/.test(iso) || Number.isNaN(atMs)) {
    return { error: 'write a span ("30m", "1h 30m") or an instant ("2027-01-01 09:00")' };
  }
  return { atMs };
}

// The instant that a text names, in ms; a span counts from now.
export function readInstant(text) {
  const read = readTime(text);
  return read.delayMs === undefined ? read : { atMs: now() + read.delayMs };
}
