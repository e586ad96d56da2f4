// Everything a component needs from the vendored libraries, and signals.
import { h, render, Component, Fragment } from "./vendor/preact.js";
import htm from "./vendor/htm.js";
import { useEffect, useState } from "./vendor/hooks.js";

export { h, render, Component, Fragment };
export { useEffect, useMemo, useRef, useState } from "./vendor/hooks.js";

// Templates with this tag become elements and text nodes; no markup is ever read from data.
export const html = htm.bind(h);

// A value that several parts of the page share: reading it is `value`, and who follows it is told.
class Signal {
  #value;
  #followers = new Set();

  constructor(value) {
    this.#value = value;
  }

  get value() {
    return this.#value;
  }

  set value(value) {
    if (value === this.#value) return;
    this.#value = value;
    for (const follower of [...this.#followers]) follower(value);
  }

  // Calls the follower at each change, until the function that is returned is called.
  follow(follower) {
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }
}

export const signal = (value) => new Signal(value);

// The value of a signal; the component draws again when it changes.
export function useSignal(source) {
  const [, setRound] = useState(0);
  const seen = source.value;
  useEffect(() => {
    const stop = source.follow(() => setRound((n) => n + 1));
    // It may have changed between the drawing and this.
    if (source.value !== seen) setRound((n) => n + 1);
    return stop;
  }, [source]);
  return seen;
}
