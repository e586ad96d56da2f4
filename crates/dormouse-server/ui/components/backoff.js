// What the server will wait after each of the next attempts, if they fail.
import { html } from "../html.js";
import { absolute, now, span, toMs } from "../time.js";
import { Table } from "./text.js";

const SHOWN = 5;
// Of jobs and topics without one; docs/limits.md, Defaults.
const DEFAULT = { exponential: { base: 1000, factor: 2, cap: 600_000 }, jitter: 0.5 };

// The full wait after an attempt, counted from 1, in ms.
export function waitAfter(backoff, attempt) {
  if (backoff.fixed !== undefined) return backoff.fixed;
  if (backoff.list) return backoff.list[Math.min(attempt, backoff.list.length) - 1] ?? 0;
  const { base, factor, cap } = backoff.exponential;
  return Math.min(cap, base * factor ** (attempt - 1));
}

const inWords = (backoff) => {
  if (backoff.fixed !== undefined) return `${span(backoff.fixed)} each time`;
  if (backoff.list) return backoff.list.map(span).join(", ");
  const { base, factor, cap } = backoff.exponential;
  return `${span(base)}, times ${factor} each time, at most ${span(cap)}`;
};

export function Backoff({ job }) {
  const backoff = job.backoff ?? DEFAULT;
  const jitter = backoff.jitter ?? 0;
  const isLeased = job.state === "leased";
  let at = Math.max(now(), toMs(job.due_at));
  // The attempt that fails next: the present one of a leased job, else the one to come.
  let attempt = isLeased ? job.attempts : job.attempts + 1;
  if (isLeased) at = now();
  const rows = [];
  for (let n = 0; n < SHOWN && (job.attempts_max === 0 || attempt <= job.attempts_max); n += 1) {
    const isLast = attempt === job.attempts_max;
    const wait = waitAfter(backoff, attempt);
    rows.push({ attempt, wait: isLast ? undefined : wait, at: isLast ? undefined : at + wait });
    at += wait;
    attempt += 1;
  }
  if (job.state === "dead" || job.state === "done") return html`<p class="quiet">${inWords(backoff)}. A ${job.state} job is not tried again by itself.</p>`;
  return html`<p class="quiet">${inWords(backoff)}${jitter > 0 ? `; chance takes away up to ${Math.round(jitter * 100)} %` : ""}${job.backoff ? "" : " (default)"}.
    ${" "}If each attempt is taken and fails at once:</p>
    <${Table} title="Attempts to come" columns=${["attempt fails", "#then waits", "next at the latest"]}>${rows.map((row) => html`<tr><th scope="row">${row.attempt}</th>
      <td class="number">${row.wait === undefined ? "" : jitter > 0 ? `${span(row.wait * (1 - jitter))} to ${span(row.wait)}` : span(row.wait)}</td>
      <td>${row.at === undefined ? "dead" : absolute(row.at)}</td></tr>`)}</${Table}>`;
}
