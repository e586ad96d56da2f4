// Puts, reserves, acks, nacks and deaths over time.
import { get } from "../api.js";
import { reads } from "../commands.js";
import { html, useState } from "../html.js";
import { Chart } from "./chart.js";
import { AsCommand } from "./commandline.js";
import { Choice } from "./form.js";
import { Loaded, useLoad } from "./load.js";

const LINES = [["put", "dusk"], ["reserve", "quiet", "4 4"], ["ack", "moss"], ["nack", "hazel", "6 3"], ["dead", "rust", "2 3"]];
const STEPS = [["5 min", "1s", 1000, 300], ["1 hour", "10s", 5000, 360], ["24 hours", "1m", 10_000, 1440]];

// Of all topics, or of one: then the server keeps only the hour.
export function Rates({ topic, first = "5 min" }) {
  const [name, setName] = useState(topic ? "1 hour" : first);
  const [, step, everyMs, points] = STEPS.find(([label]) => label === name);
  const read = useLoad((abort) => get("v1/history", { topic, step }, abort), [topic, step], everyMs);
  const choose = !topic && html`<${Choice} label="How far the rates look back" names=${STEPS.map(([label]) => label)} chosen=${name} choose=${setName} />`;
  return html`<${Loaded} of=${read}>${(data) => {
    const known = data.counts.put?.length ?? 0;
    // The axis is whole from the start: a new server has a line at its right end.
    const before = known === 0 ? [] : Array(Math.max(0, points - known)).fill(null);
    const start = Date.parse(data.from) - before.length * data.step_ms;
    const x = Array.from({ length: before.length + known }, (_, index) => start + index * data.step_ms);
    const perSecond = (n) => (n === null ? null : (n * 1000) / data.step_ms);
    const series = LINES.map(([label, colour, dash]) => ({ label, colour, dash, values: [...before, ...(data.counts[label] ?? []).map(perSecond)] }));
    return html`<${Chart} title="Rates per second" label=${`Changes per second, ${name}`} kind="lines" stepMs=${data.step_ms} x=${x}
      series=${series}>${choose}</${Chart}><${AsCommand} command=${reads("v1/history", { topic, step })} />`;
  }}</${Loaded}>`;
}
