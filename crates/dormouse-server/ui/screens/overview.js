// Is it well, what comes, and what needs a look: the first screen.
import {
  absolute, AsCommand, bytes, closeDialog, count, denied, Empty, get, go, html, Instant, jobs, link, Loaded, openDialog, pulse, reads, server, Shape, span, State,
  surveyed, Title, useLoad, useSignal,
} from "../kit.js";
import { Modal } from "../components/dialog.js";
import { Forecast, jobsOf } from "../components/forecast.js";
import { Lateness, quantile } from "../components/lateness.js";
import { Rates } from "../components/rates.js";

const REFRESH_MS = 5000;
const FORECAST_TOPICS_MAX = 20;

function Verdicts({ figures }) {
  const found = figures.verdicts ?? [];
  if (found.length === 0) {
    return html`<div class="note is-good verdict"><${State} of="good">Nothing needs a look</${State}>
      <span class="quiet">${count(figures.looked_at ?? 0)} topics were looked at</span></div>`;
  }
  const seeMore = (one) => one.topic && html`<a href=${link("t", one.topic)}>see the topic</a>`;
  return html`<ul class="verdicts">${found.map((one) => html`<li class=${`note verdict ${one.code === "paused" || one.code === "limited" ? "" : "is-bad"}`}>
    <strong>${one.text}</strong> ${seeMore(one)}</li>`)}</ul>`;
}

const Figure = ({ name, shape, of, note }) => html`<div>
  <small>${shape && html`<${Shape} of=${shape} />`} ${name}</small><strong>${count(of)}</strong>${note && html`<small>${note}</small>`}</div>`;

function Figures({ all, rates }) {
  const rate = (name) => (rates ? `${count(rates[name])} / s` : "");
  return html`<div class="figures">
    ${all.delayed === undefined ? html`<${Figure} name="waiting" shape="delayed" of=${all.waiting} />` : html`
      <${Figure} name="delayed" shape="delayed" of=${all.delayed} /><${Figure} name="ready" shape="ready" of=${all.ready} />`}
    <${Figure} name="leased" shape="leased" of=${all.leased} />
    <${Figure} name="dead" shape="dead" of=${all.dead} />
    <${Figure} name="puts" of=${all.totals?.puts} note=${rate("put")} />
    <${Figure} name="acks" of=${all.totals?.acks} note=${rate("ack")} />
    <${Figure} name="waiters" of=${all.waiters} note="reserves" />
    <div><small>bodies</small><strong>${bytes(all.bytes)}</strong><small>${count(all.topics)} topics</small></div>
  </div>`;
}

const WORST = [["oldest", "Longest overdue"], ["ready", "Most ready"], ["dead", "Most dead"]];
const isWorth = { oldest: (t) => t.oldest_ready_ms > 1000, ready: (t) => t.ready > 0, dead: (t) => t.dead > 0 };
const valueOf = { oldest: (t) => span(t.oldest_ready_ms), ready: (t) => count(t.ready), dead: (t) => count(t.dead) };

function Worst({ sort, title }) {
  const read = useLoad((abort) => get("v1/topics", { sort, limit: 6 }, abort), [sort], REFRESH_MS);
  return html`<section class="sheet"><h2>${title}</h2><${Loaded} of=${read}>${(data) => {
    const shown = data.topics.filter(isWorth[sort]);
    if (shown.length === 0) return html`<p class="none">none</p>`;
    return html`<table><tbody>${shown.map((topic) => html`<tr data-row tabindex="-1">
      <th scope="row"><a data-open href=${link("t", topic.topic)}>${topic.topic}</a>${topic.paused && html` <${State} of="paused" />`}</th>
      <td class="number">${valueOf[sort](topic)}</td></tr>`)}</tbody></table>
      <p class="quiet">${surveyed(data)} compared, <${Instant} at=${data.as_of} /></p>`;
  }}</${Loaded}></section>`;
}

// A bar of several topics: which one shall be shown?
const Which = ({ names, from, to }) => html`<${Modal} title=${`Due from ${absolute(from)}`}>
  <p>In which topic?</p><ul class="buttons">${names.map((name) => html`<li><a href=${link(...jobsOf(name, from, to))} onClick=${() => closeDialog()}>${name}</a></li>`)}</ul>
  <div class="buttons"><button type="button" data-harmless onClick=${() => closeDialog()}>Close</button></div></${Modal}>`;

function NextHour() {
  const largest = useLoad((abort) => get("v1/topics", { sort: "waiting", limit: FORECAST_TOPICS_MAX }, abort), [], 60_000);
  return html`<section class="sheet"><${Loaded} of=${largest}>${(data) => {
    const names = data.topics.map((topic) => topic.topic);
    if (names.length === 0) return html`<p class="none">No topic has jobs.</p>`;
    const title = data.looked_at > names.length ? `Coming due (${names.length} topics with most jobs, of ${count(data.looked_at)})` : "Coming due";
    const pick = (from, to) => (names.length === 1 ? go(...jobsOf(names[0], from, to)) : openDialog(() => html`<${Which} names=${names} from=${from} to=${to} />`));
    return html`<${Forecast} topics=${names} title=${title} onPick=${pick} />`;
  }}</${Loaded}></section>`;
}

// Of all the figures of a store, those that tell whether it keeps up.
const unitOf = (name, value) => {
  if (/_bytes$/.test(name)) return bytes(value);
  if (/_seconds$/.test(name)) return span(value * 1000);
  if (/_ms$/.test(name)) return span(value);
  return count(value);
};

function valueOfMeter(meter) {
  if (meter.kind === "histogram") {
    const high = quantile({ bounds_ms: meter.bounds, counts: meter.counts }, 0.99, (bound) => unitOf(meter.name, bound));
    return high ? `p99 ${high}` : "none yet";
  }
  if (meter.values) return Object.entries(meter.values).map(([label, n]) => `${label}: ${unitOf(meter.name, n)}`).join(", ") || "none";
  return unitOf(meter.name, meter.value);
}

function Store({ meters }) {
  const { backend, durability } = server();
  return html`<section class="sheet"><h2>Store</h2>
    <dl class="facts"><dt>backend</dt><dd>${backend}${durability ? `, ${durability}` : ""}</dd>
    ${(meters ?? []).map((meter) => html`<dt>${meter.name.replaceAll("_", " ")}</dt><dd>${valueOfMeter(meter)}</dd>`)}</dl></section>`;
}

const First = () => html`<${Empty} title="No job yet." command=${jobs.put("orders", { body: { order: 42 }, delay: "30m" }, ['{"order":42}', "--delay", "30m"])}>
  A job is put into a topic and handed out at its time. Put the first one:</${Empty}>`;

export function Overview() {
  const figures = useSignal(pulse);
  const why = useSignal(denied);
  const { all } = figures ?? {};
  const isFresh = all && all.topics === 0 && !all.totals?.puts;
  return html`
    <div class="head"><${Title} name="Overview" />${figures && html`<span class="quiet"><${Instant} at=${figures.at} /></span>`}</div>
    ${why ? html`<p class="note" role="status">Figures of the server need the right <strong>stats</strong>, which your token does not have: ${why}.</p>`
      : !figures && html`<p class="quiet" aria-busy="true">Waiting for the first figures…</p>`}
    ${figures && html`<${Verdicts} figures=${figures} />`}
    ${all && html`<${Figures} all=${all} rates=${figures.rates} />`}
    ${isFresh && html`<${First} />`}
    <div class="pair"><section class="sheet"><${Rates} /></section><${NextHour} /></div>
    <div class="three">${WORST.map(([sort, title]) => html`<${Worst} sort=${sort} title=${title} />`)}</div>
    <div class="pair">
      ${figures?.lateness && html`<section class="sheet"><h2>Lateness</h2><${Lateness} of=${figures.lateness} /></section>`}
      ${figures?.meters && html`<${Store} meters=${figures.meters} />`}
    </div>
    <${AsCommand} command=${reads("v1/pulse", { once: true }, ["stats"])} />`;
}
