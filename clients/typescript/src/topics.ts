/** Topics: their settings and counts, and what concerns all their jobs. */

import type { Call, Caller } from "./caller.js";
import type { Span } from "./span.js";
import type { TopicInfo, TopicSettings } from "./types.js";
import { fromWire, query, segment, stringify, toWire } from "./wire.js";

export class Topics {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** All topics that the token may see, by name. */
  async *list(): AsyncGenerator<TopicInfo, void, undefined> {
    let after: string | undefined;
    do {
      const page = await this.#read<{ topics: TopicInfo[]; next?: string }>("GET", `/v1/topics${query({ after })}`);
      yield* page.topics;
      after = page.next;
    } while (after !== undefined);
  }

  /** One topic; `NotFoundError` if it has no job, setting or consumer. */
  get(topic: string): Promise<TopicInfo> {
    return this.#read("GET", topicPath(topic));
  }

  /** Sets all settings: one that is absent is reset to its default. */
  set(topic: string, settings: TopicSettings): Promise<{ topic: string; settings: Record<string, unknown> }> {
    return this.#read("PUT", topicPath(topic), toWire(settings));
  }

  /** Removes all jobs that are not leased. */
  async purge(topic: string): Promise<number> {
    return (await this.#read<{ count: number }>("DELETE", topicPath(topic))).count;
  }

  /** Workers get no more jobs of the topic, for a span or until `resume`. */
  pause(topic: string, options: { for?: Span } = {}): Promise<{ topic: string; paused: boolean; pausedMs?: number }> {
    return this.#read("POST", `${topicPath(topic)}/pause`, options);
  }

  resume(topic: string): Promise<{ topic: string; paused: boolean }> {
    return this.#read("POST", `${topicPath(topic)}/resume`);
  }

  /** Dead jobs to ready, oldest first; all of them unless `max` is given. */
  revive(topic: string, options: { max?: number } = {}): Promise<number> {
    return this.#move(topic, "revive", options);
  }

  /** Delayed jobs to ready, earliest first. */
  kick(topic: string, options: { max?: number } = {}): Promise<number> {
    return this.#move(topic, "kick", options);
  }

  /** Leased jobs to ready, whoever has them. For operators. */
  release(topic: string, options: { max?: number } = {}): Promise<number> {
    return this.#move(topic, "release", options);
  }

  /** With `max` a second try would move others: it is not made. */
  async #move(topic: string, verb: string, options: { max?: number }): Promise<number> {
    const repeats = options.max === undefined;
    const moved = await this.#read<{ count: number }>("POST", `${topicPath(topic)}/${verb}`, options, repeats);
    return moved.count;
  }

  async #read<T>(method: Call["method"], path: string, body?: object, repeats = true): Promise<T> {
    const text = body === undefined ? undefined : stringify(body, "the request");
    return fromWire<T>((await this.#caller.call({ method, path, body: text, repeats })).value);
  }
}

function topicPath(topic: string): string {
  return `/v1/topics/${segment(topic)}`;
}
