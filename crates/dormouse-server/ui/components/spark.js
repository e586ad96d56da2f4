// Small lines of the last puts per second of the topics on a page.
import { html, useEffect, useRef, useSignal } from "../html.js";
import { pulse, showTopics } from "../live.js";

const POINTS = 40;

// Map of topic to {put: [..]}: the pulses bring the figures of these topics while they are shown.
export function useRates(names) {
  const seen = useRef({ at: undefined, rates: new Map() });
  const figures = useSignal(pulse);
  const key = names.join(",");
  useEffect(() => {
    showTopics(names);
    return () => showTopics([]);
  }, [key]);
  const { current } = seen;
  if (figures && figures.at !== current.at) {
    current.at = figures.at;
    for (const { topic, rates } of figures.topics ?? []) {
      if (rates) current.rates.set(topic, { put: [...(current.rates.get(topic)?.put ?? []).slice(1 - POINTS), rates.put] });
    }
  }
  return current.rates;
}

export function Spark({ values = [], label }) {
  if (values.length < 2) return html`<svg class="spark" viewBox="0 0 84 20" aria-hidden="true"><line x2="84" y1="18.5" y2="18.5" /></svg>`;
  const top = Math.max(1, ...values);
  const point = (n, index) => `${(84 * (index + POINTS - values.length)) / (POINTS - 1)},${18.5 - (17 * n) / top}`;
  return html`<svg class="spark" viewBox="0 0 84 20" role="img" aria-label=${`${label}: ${values.at(-1)} per second`}>
    <polyline points=${values.map(point).join(" ")} /></svg>`;
}
