// One topic: what waits in it, when that comes due, how it is taken, and its settings.
import {
  act, AsCommand, bytes, count, Exact, get, go, html, Instant, link, Loaded, may, maySee, path, reads, Shape, span, State, Table, Title, topics,
  useLoad,
} from "../kit.js";
import { Forecast, jobsOf } from "../components/forecast.js";
import { Lateness } from "../components/lateness.js";
import { Menu } from "../components/menu.js";
import { Rates } from "../components/rates.js";
import { Dead } from "./dead.js";
import { Jobs } from "./jobs.js";
import { Push } from "./push.js";
import { SchedulesOf } from "./schedules.js";
import { Settings } from "./settings.js";
import { Events } from "./tail.js";

const REFRESH_MS = 2000;
const STATES = ["delayed", "ready", "leased", "dead", "done"];

function Counts({ topic, state }) {
  return html`<nav class="figures" aria-label="Jobs by state">${STATES.map((name) => html`
    <a href=${link("t", topic.topic, "jobs", { state: name })} aria-current=${state === name ? "page" : undefined}>
      <small><${Shape} of=${name} /> ${name}</small><strong>${count(topic[name] ?? 0)}</strong></a>`)}
    <div><small>oldest ready</small><strong>${topic.oldest_ready_ms ? span(topic.oldest_ready_ms) : "none"}</strong></div>
    <div><small>waiters</small><strong>${count(topic.waiters)}</strong></div>
    <div><small>bodies</small><strong>${bytes(topic.bytes)}</strong></div></nav>`;
}

// What concerns many jobs asks before it runs; the number it will hit stands on it.
function manyOf(topic) {
  const name = topic.topic;
  return [
    may("kick", name) && topic.delayed > 0 && [topics.kick(name, topic.delayed), `Make ${count(topic.delayed)} delayed ready`],
    may("kick", name) && topic.leased > 0 && [topics.release(name, topic.leased), `Give ${count(topic.leased)} leased back`],
    may("revive", name) && topic.dead > 0 && [topics.revive(name, topic.dead), `Revive ${count(topic.dead)} dead`],
    ...["delayed", "ready", "dead", "done"].map((state) => may("purge", name) && topic[state] > 0 && [topics.purge(name, state, topic[state], topic.leased), `Purge ${count(topic[state])} ${state}`]),
  ].filter(Boolean);
}

function Pause({ name }) {
  const spans = [[undefined, "until it is resumed"], ["10m", "for 10 minutes"], ["1h", "for an hour"], ["1d", "for a day"]];
  return html`<${Menu} label="Pause" items=${spans.map(([span, title]) => [topics.pause(name, span), title])} />`;
}

function Actions({ topic }) {
  const name = topic.topic;
  const items = manyOf(topic);
  return html`<div class="buttons">
    ${may("put", name) && html`<button type="button" onClick=${() => go("put", { topic: name })}>Put a job</button>`}
    ${may("pause", name) && !topic.paused && html`<${Pause} name=${name} />`}
    ${may("resume", name) && topic.paused && html`<button type="button" onClick=${() => act(topics.resume(name))}>Resume</button>`}
    ${items.length > 0 && html`<${Menu} label="Many jobs" items=${items} />`}
  </div>`;
}

function LatenessOf({ name }) {
  const read = useLoad((abort) => get(path`/v1/topics/${name}/lateness`, {}, abort), [name], REFRESH_MS);
  return html`<section class="sheet"><h2>Lateness</h2><${Loaded} of=${read}>${(data) => html`<${Lateness} of=${data} />`}</${Loaded}></section>`;
}

// Whose reserves wait on the topic.
function Consumers({ name }) {
  const read = useLoad((abort) => get(path`/v1/topics/${name}/consumers`, {}, abort), [name], REFRESH_MS);
  if (read.problem?.status === 404) return null;
  return html`<section class="sheet"><h2>Consumers</h2><${Loaded} of=${read}>${({ consumers, cursor }) => html`
    ${consumers.length === 0 ? html`<p class="none">No reserve waits on this topic now.</p>` : html`<${Table} title="Consumers" isShort columns=${["address", "protocol", "token", "#waiting", "since"]}>
      ${consumers.map((one) => html`<tr><th scope="row" class="mono">${one.address}</th><td>${one.protocol}</td><td><${Exact} text=${one.name ?? ""} /></td>
        <td class="number">${count(one.waiting)}</td><td><${Instant} at=${one.since} /></td></tr>`)}</${Table}>`}
    ${cursor && html`<p class="quiet">There are more.</p>`}`}</${Loaded}></section>`;
}

function Totals({ totals }) {
  return html`<section class="sheet"><h2>Since the topic exists</h2><dl class="counts">
    ${Object.entries(totals).map(([name, n]) => html`<div><dt>${name}</dt><dd>${count(n)}</dd></div>`)}</dl></section>`;
}

function Summary({ topic }) {
  const name = topic.topic;
  return html`
    <section class="sheet"><${Forecast} topics=${[name]} title="Coming due" onPick=${(from, to) => go(...jobsOf(name, from, to))} /></section>
    <div class="pair"><section class="sheet"><${Rates} topic=${name} /></section><${LatenessOf} name=${name} />
      ${maySee("inspect", name) && html`<${Consumers} name=${name} />`}
      <${Totals} totals=${topic.totals} /></div>`;
}

const TopicSchedules = ({ topic, query }) => html`<${SchedulesOf} topic=${topic.topic} query=${query} />`;
const TopicEvents = ({ topic }) => html`<section class="sheet"><${Events} query=${{ topic: topic.topic }} showsTopic=${false} /></section>`;

// Name of the part, its title, and what it shows.
const PARTS = [
  ["", "Overview", Summary], ["jobs", "Jobs", Jobs], ["dead", "Dead", Dead], ["schedules", "Schedules", TopicSchedules],
  ["push", "Push", Push],
  ["events", "Events", TopicEvents], ["settings", "Settings", Settings],
];

function NoTopic({ name }) {
  return html`<p class="note">There is no topic <strong>${name}</strong>: it has no job, setting or consumer.
    ${" "}<a href=${link("put", { topic: name })}>Put its first job</a>, or <a href=${link("topics", { prefix: name })}>look for topics that begin so</a>.</p>`;
}

export function Topic({ steps, query }) {
  const [name = "", part = ""] = steps;
  const relative = path`/v1/topics/${name}`;
  const read = useLoad((abort) => get(relative, {}, abort), [name], REFRESH_MS);
  const found = PARTS.find(([id]) => id === part);
  const isGone = read.problem?.status === 404;
  return html`
    <div class="head"><${Title} name=${name}>${name}</${Title}>
      ${read.data?.paused && html`<${State} of="paused">paused${read.data.paused_ms ? `, ${span(read.data.paused_ms)} left` : ""}</${State}>`}
      ${read.data && !isGone && html`<${Actions} topic=${read.data} />`}</div>
    ${isGone ? html`<${NoTopic} name=${name} />` : html`<${Loaded} of=${read}>${(topic) => html`
      <${Counts} topic=${topic} state=${part === "jobs" ? query.get("state") ?? "ready" : undefined} />
      <nav class="tabs" aria-label="Parts of the topic">${PARTS.map(([id, title]) => html`
        <a href=${link("t", name, ...(id ? [id] : []))} aria-current=${id === part ? "page" : undefined}>${title}</a>`)}</nav>
      ${found ? html`<${found[2]} topic=${topic} query=${query} steps=${steps.slice(2)} />`
        : html`<p class="note is-bad" role="alert">A topic has no part "${part}".</p>`}`}</${Loaded}>`}
    ${part === "" && html`<${AsCommand} command=${reads(relative, {}, ["topic", "show", name])} />`}`;
}
