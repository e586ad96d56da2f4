// How late jobs were handed out, as counts per bucket.
import { html } from "../html.js";
import { span } from "../time.js";
import { Table, count } from "./text.js";

// The bound below which this part of all jobs was: "at most 5 ms".
export function quantile({ bounds_ms: bounds, counts }, part, write = span) {
  const total = counts.reduce((sum, n) => sum + n, 0);
  if (total === 0) return undefined;
  let seen = 0;
  for (let index = 0; index < counts.length; index += 1) {
    seen += counts[index];
    if (seen >= total * part) return index < bounds.length ? `≤ ${write(bounds[index])}` : `> ${write(bounds.at(-1))}`;
  }
  return undefined;
}

export function Lateness({ of }) {
  const { bounds_ms: bounds, counts } = of;
  const total = counts.reduce((sum, n) => sum + n, 0);
  if (total === 0) return html`<p class="none">No job was handed out since this server started.</p>`;
  const last = counts.findLastIndex((n) => n > 0);
  const most = Math.max(...counts);
  const row = (n, index) => html`<tr>
    <th scope="row">${index < bounds.length ? `≤ ${span(bounds[index])}` : `> ${span(bounds.at(-1))}`}</th>
    <td class="bar-cell">${n > 0 && html`<i style=${{ width: `${(100 * n) / most}%` }}></i>`}</td>
    <td class="number">${count(n)}</td><td class="number quiet">${((100 * n) / total).toFixed(1)} %</td></tr>`;
  return html`<div class="histogram"><${Table} title="How late jobs were handed out" columns=${["late", "", "#jobs", "#part"]}>${counts.slice(0, last + 1).map(row)}</${Table}></div>
    <p class="quiet">Half of them ${quantile(of, 0.5)}, 99 of 100 ${quantile(of, 0.99)}, mean ${span(of.sum_ms / total)}.</p>`;
}
