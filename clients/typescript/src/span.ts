/** Spans and instants as the server reads them. */

import { InvalidError } from "./errors.js";

/** `"30m"`, `"1h 30m"`, `"PT30M"`, or a number of milliseconds. */
export type Span = string | number;

/** A `Date`, RFC 3339 text, or milliseconds since 1970. */
export type Instant = Date | string | number;

const UNIT_MS: Record<string, number> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

const PART = /(\d+(?:\.\d+)?)\s*(ms|[smhdw])/y;
const ISO = /^P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;

/** The milliseconds of a span, for what the client itself waits for. */
export function spanMs(span: Span, name: string): number {
  const ms = typeof span === "number" ? span : readSpan(span.trim());
  if (ms === undefined || !Number.isFinite(ms) || ms < 0) {
    throw new InvalidError(
      `${name} is ${JSON.stringify(span)}; write it as "30s", "1h 30m", "PT30M", or a number of ms`,
    );
  }
  return ms;
}

function readSpan(text: string): number | undefined {
  const iso = ISO.exec(text);
  if (iso && /\d/.test(text)) {
    const [weeks, days, hours, minutes, seconds] = iso.slice(1).map((part) => Number(part ?? 0));
    const day = (weeks ?? 0) * 7 + (days ?? 0);
    return (((day * 24 + (hours ?? 0)) * 60 + (minutes ?? 0)) * 60 + (seconds ?? 0)) * 1_000;
  }
  if (/^\d+$/.test(text)) return Number(text);
  let total = 0;
  let at = 0;
  while (at < text.length) {
    PART.lastIndex = at;
    const part = PART.exec(text);
    if (!part) return undefined;
    total += Number(part[1]) * (UNIT_MS[part[2] ?? ""] ?? 0);
    at = PART.lastIndex;
    while (text[at] === " ") at++;
  }
  return text === "" ? undefined : total;
}
