/** The stream of events: server-sent events, resumed after a broken connection. */

import type { IncomingMessage } from "node:http";
import { backoffMs, readAnswer, sleep, type Caller } from "./caller.js";
import { readAll, type Answer } from "./connections.js";
import { DormouseError, UnreachableError } from "./errors.js";
import type { EventsOptions, QueueEvent } from "./types.js";
import { fromWire, query } from "./wire.js";

/** The server writes at least a comment every 15 s; a stream that is silent for longer is broken. */
const SILENCE_MAX_MS = 45_000;
const TIMEOUT_MS = 10_000;

/** Yields events until the signal comes. Throws if the server refuses, or stays away for too long. */
export async function* watch(caller: Caller, options: EventsOptions): AsyncGenerator<QueueEvent, void, undefined> {
  const { signal, after, ...filter } = options;
  const own = caller.separate(1);
  let lastId = after;
  let tries = 0;
  let reachedAt = performance.now();
  try {
    while (!signal?.aborted) {
      const server = own.servers.current;
      try {
        const response = await own.connections.stream(server, {
          method: "GET",
          path: `/v1/events${query(filter)}`,
          headers: { accept: "text/event-stream", ...(lastId === undefined ? {} : { "last-event-id": lastId }) },
          timeoutMs: TIMEOUT_MS,
          signal,
        });
        if (response.statusCode !== 200) throw await refusal(server, response);
        tries = 0;
        for await (const event of readEvents(response, signal)) {
          reachedAt = performance.now();
          lastId = event.eventId || lastId;
          if (event.event !== "") yield event;
        }
        if (signal?.aborted) return;
        throw new UnreachableError(`${server.url} has ended the stream of events`, { sent: true, retryable: true });
      } catch (error) {
        if (signal?.aborted) return;
        if (!(error instanceof DormouseError) || !error.retryable) throw error;
        own.servers.leave(server);
        const waitMs = error.retryAfterMs ?? backoffMs(tries++);
        if (performance.now() + waitMs - reachedAt > caller.retryForMs) throw error;
        caller.log.write("warn", "retry", `events: ${error.message}; again in ${Math.round(waitMs)} ms`, {
          error,
          waitMs,
        });
        await sleep(waitMs, signal).catch(() => undefined);
      }
    }
  } finally {
    own.close();
  }
}

async function refusal(server: Parameters<typeof readAnswer>[0], response: IncomingMessage): Promise<Error> {
  const answer = await new Promise<Answer>((resolve, reject) => readAll(response, resolve, reject));
  try {
    readAnswer(server, answer);
  } catch (error) {
    return error as Error;
  }
  return new UnreachableError(`${server.url} answered ${answer.status} instead of a stream`, { sent: true });
}

/** Events of one response; one with an empty name only moves the place to resume from. */
async function* readEvents(response: IncomingMessage, signal: AbortSignal | undefined): AsyncGenerator<QueueEvent> {
  const end = () => response.destroy();
  signal?.addEventListener("abort", end, { once: true });
  response.setTimeout(SILENCE_MAX_MS, end);
  response.setEncoding("utf8");
  let text = "";
  try {
    for await (const chunk of response as AsyncIterable<string>) {
      text += chunk;
      for (;;) {
        const end = text.indexOf("\n\n");
        if (end < 0) break;
        yield parseEvent(text.slice(0, end));
        text = text.slice(end + 2);
      }
    }
  } catch {
    // The connection broke: the caller resumes after the last event.
  } finally {
    signal?.removeEventListener("abort", end);
    response.destroy();
  }
}

function parseEvent(block: string): QueueEvent {
  let event = "";
  let eventId = "";
  let data = "";
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const value = line
      .slice(colon + 1)
      .replace(/^ /, "")
      .replace(/\r$/, "");
    const name = line.slice(0, colon);
    if (name === "event") event = value;
    else if (name === "id") eventId = value;
    else if (name === "data") data += value;
  }
  const fields = data === "" ? {} : fromWire<Record<string, unknown>>(JSON.parse(data));
  return { ...fields, event, eventId };
}
