// How many jobs come due in each of the next steps, from minutes to a year.
import { get } from "../api.js";
import { reads } from "../commands.js";
import { html, useState } from "../html.js";
import { DAY, HOUR, MINUTE, SECOND, exactSpan, now } from "../time.js";
import { Chart } from "./chart.js";
import { AsCommand } from "./commandline.js";
import { Choice } from "./form.js";
import { Loaded, useLoad } from "./load.js";
import { count, many } from "./text.js";

// About 60 to 96 bars each: the server counts each bound.
const ZOOMS = [
  ["10 min", 10 * MINUTE, 10 * SECOND], ["hour", HOUR, MINUTE], ["day", DAY, 15 * MINUTE],
  ["week", 7 * DAY, 2 * HOUR], ["month", 30 * DAY, 8 * HOUR], ["year", 365 * DAY, 5 * DAY],
];
const REFRESH_MS = 5000;

const iso = (ms) => new Date(ms).toISOString();

// Where the jobs of a step are shown.
export const jobsOf = (topic, fromMs, toMs) => ["t", topic, "jobs", { state: "delayed", order: "due", from: iso(fromMs), to: iso(toMs) }];

// topics: one or more names. onPick(fromMs, toMs) is called with the step that was clicked.
export function Forecast({ topics, zoom = "hour", title, onPick }) {
  const [name, setName] = useState(zoom);
  const [, rangeMs, stepMs] = ZOOMS.find(([label]) => label === name);
  const relative = "v1/forecast";
  const queryAt = (ms) => {
    // Viewers whose bounds are the same share one count.
    const from = Math.floor(ms / REFRESH_MS) * REFRESH_MS;
    return { from: iso(from), to: iso(from + rangeMs), step: exactSpan(stepMs), topic: topics };
  };
  const read = useLoad((abort) => get(relative, queryAt(now()), abort), [name, topics], REFRESH_MS);
  const choose = html`<${Choice} label="How far the forecast looks" names=${ZOOMS.map(([label]) => label)} chosen=${name} choose=${setName} />`;
  return html`<${Loaded} of=${read}>${(data) => {
    const start = Date.parse(data.from);
    const x = data.counts.map((_, index) => start + index * data.step_ms);
    const total = data.counts.reduce((sum, n) => sum + n, 0);
    const pick = onPick && ((index) => onPick(x[index], x[index] + data.step_ms));
    return html`<${Chart} title=${title} label=${`Jobs that come due, per ${exactSpan(stepMs)}: ${count(total)} in all`} kind="bars" stepMs=${stepMs}
      x=${x} series=${[{ label: `due per ${exactSpan(stepMs)}`, colour: "dusk", values: data.counts }]} onPick=${pick}>${choose}</${Chart}>
      <p class="quiet">${total === 0 ? "Nothing comes due in this time." : `${many(total, "job")} ${total === 1 ? "comes" : "come"} due in this time.`}
        ${onPick && total > 0 ? " Click a bar to see its jobs." : ""}</p>
      <${AsCommand} command=${reads(relative, queryAt(now()), topics.length === 1 ? ["forecast", topics[0]] : undefined)} />`;
  }}</${Loaded}>`;
}
