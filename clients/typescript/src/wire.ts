/** Between the names of the API (`due_at`) and those of this language (`dueAt`). */

import { InvalidError } from "./errors.js";

/** How a body came: as a JSON value, as text, as bytes, or not at all. */
export type BodyKind = "json" | "text" | "bytes" | "none";

const camelNames = new Map<string, string>();

function camel(name: string): string {
  let known = camelNames.get(name);
  if (known === undefined) {
    known = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    // Names of fields are few, unless a server answers with a map of users' names.
    if (camelNames.size < 1_000) camelNames.set(name, known);
  }
  return known;
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => "_" + letter.toLowerCase());
}

/** Fields that belong to the user: they are handed over as they are. */
const OPAQUE = new Set(["body", "text", "base64", "headers", "key", "token", "id", "error", "zone"]);
const INSTANT = /(^|_)at$|^(tick|now|from|to|ticks|next)$/;
const RFC_3339 = /^\d{4}-\d\d-\d\dT/;

/** An answer with the names of this language and with `Date`s. Unknown fields are kept. */
export function fromWire<T>(value: unknown): T {
  return convert(value) as T;
}

function convert(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(convert);
  if (value === null || typeof value !== "object") return value;
  const made: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(value)) {
    if (OPAQUE.has(name)) made[name] = field;
    else if (INSTANT.test(name)) made[camel(name)] = convertInstant(field);
    else made[camel(name)] = typeof field === "object" ? convert(field) : field;
  }
  return made;
}

function convertInstant(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(convertInstant);
  return typeof value === "string" && RFC_3339.test(value) ? new Date(value) : convert(value);
}

/** Options with the names of the API. What is `undefined` is left out; `fields` are added as they are. */
export function toWire(options: object): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    if (name === "fields") Object.assign(made, value);
    else made[snake(name)] = value;
  }
  return made;
}

/** The field that carries a body: bytes as `base64`, everything else as JSON. */
export function bodyFields(body: unknown): Record<string, unknown> {
  if (body === undefined) return {};
  if (body instanceof Uint8Array) {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    return { base64: bytes.toString("base64") };
  }
  return { body };
}

/** JSON text of a request, or an error that says which part has none. */
export function stringify(value: unknown, what: string): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new InvalidError(`${what} cannot be written as JSON: ${reason}; send text or bytes instead`, { cause });
  }
  if (text === undefined) throw new InvalidError(`${what} cannot be written as JSON: it is a ${typeof value}`);
  return text;
}

/** The body of a job that came in one of three fields; sets `body` and `kind`, drops the fields. */
export function readBody<T extends object>(job: T): T & { body: unknown; kind: BodyKind } {
  const from = job as Record<string, unknown>;
  if ("body" in from) from["kind"] = "json";
  // An empty body comes as empty text.
  else if (typeof from["text"] === "string" && from["text"] !== "") {
    from["body"] = from["text"];
    from["kind"] = "text";
  } else if (typeof from["base64"] === "string") {
    from["body"] = Buffer.from(from["base64"], "base64");
    from["kind"] = "bytes";
  } else {
    from["body"] = undefined;
    from["kind"] = "none";
  }
  delete from["text"];
  delete from["base64"];
  from["headers"] ??= {};
  return from as T & { body: unknown; kind: BodyKind };
}

/** A part of a path: topics, keys and names are percent-encoded. */
export function segment(name: string): string {
  return encodeURIComponent(name);
}

/** `?a=1&b=2` of the options that are given, with the names of the API. */
export function query(options: object): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(toWire(options))) {
    search.set(name, value instanceof Date ? value.toISOString() : String(value));
  }
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}
