// Small lines of the last puts per second of the topics on a page.
import { get } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { isHeld } from "./load.js";

const POINTS = 40;
const EVERY_MS = 2000;
const TOPICS_MAX = 50;

// Map of topic to {put: [..]}: one call for all of them, every two seconds.
export function useRates(names) {
  const seen = useRef(new Map());
  const [, setRound] = useState(0);
  const key = names.slice(0, TOPICS_MAX).join(",");
  useEffect(() => {
    if (key === "") return undefined;
    const abort = new AbortController();
    const look = async () => {
      if (isHeld()) return;
      const answer = await get("v1/pulse", { once: true, topics: key }, abort.signal).catch(() => undefined);
      for (const { topic, rates } of answer?.topics ?? []) {
        if (!rates) continue;
        const before = seen.current.get(topic)?.put ?? [];
        seen.current.set(topic, { put: [...before.slice(1 - POINTS), rates.put] });
      }
      if (!abort.signal.aborted) setRound((n) => n + 1);
    };
    look();
    const timer = setInterval(look, EVERY_MS);
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [key]);
  return seen.current;
}

export function Spark({ values = [], label }) {
  if (values.length < 2) return html`<svg class="spark" aria-hidden="true"></svg>`;
  const top = Math.max(1, ...values);
  const point = (n, index) => `${(84 * (index + POINTS - values.length)) / (POINTS - 1)},${18.5 - (17 * n) / top}`;
  return html`<svg class="spark" viewBox="0 0 84 20" role="img" aria-label=${`${label}: ${values.at(-1)} per second`}>
    <polyline points=${values.map(point).join(" ")} /></svg>`;
}
