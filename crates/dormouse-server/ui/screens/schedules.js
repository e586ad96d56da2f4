// Rules that repeat: what they say, when they tick next, what became of their ticks.
import {
  absolute, act, AsCommand, call, CommandLines, count, Empty, exactSpan, get, go, html, Instant, link, Loaded, many,
  may, path, readInstant, reads, relative as distance, schedules as commands, State, Table, Title, useEffect,
  useLoad, useState,
} from "../kit.js";
import { Body } from "../components/body.js";
import { AddressField } from "../components/form.js";

const PAGE = 100;
const REFRESH_MS = 3000;
const BACKFILL_MAX = 1000;

const ruleOf = (schedule) => {
  if (schedule.cron) return `${schedule.cron}${schedule.zone ? `, ${schedule.zone}` : ""}`;
  const spanOf = (value) => (typeof value === "number" ? exactSpan(value) : value);
  const every = schedule.every ?? schedule.every_ms;
  return every !== undefined ? `every ${spanOf(every)}` : `${spanOf(schedule.gap ?? schedule.gap_ms)} after the last one`;
};

function Row({ schedule, showsTopic }) {
  const { topic, name, state } = schedule;
  const button = (command) => html`<button type="button" class="plain" aria-label=${`${command.title}, ${name}`} data-key=${command.title === "Run now" ? "r" : undefined}
    onClick=${() => act(command)}>${command.title}</button>`;
  return html`<tr data-row tabindex="-1">${showsTopic && html`<td><a href=${link("t", topic, "schedules")}>${topic}</a></td>`}<th scope="row"><a data-open href=${link("schedules", topic, name)}>${name}</a></th>
    <td>${schedule.words ?? ruleOf(schedule)}</td><td><${State} of=${state} /></td>
    <td><${Instant} at=${schedule.next?.[0] ?? schedule.next_at} /></td><td>${schedule.last ? html`<a class="mono" href=${link("j", schedule.last.id)}>${schedule.last.id}</a> <${Instant} at=${schedule.last.put_at} />` : html`<span class="none">none</span>`}</td>
    <td class="number">${count(schedule.counts?.given ?? 0)}</td><td class="number">${count((schedule.counts?.missed ?? 0) + (schedule.counts?.overlapped ?? 0))}</td>
    <td class="actions">${may("schedule", topic) && html`${button(commands.run(topic, name))}${button(state === "paused" ? commands.resume(topic, name) : commands.pause(topic, name))}`}</td></tr>`;
}

const first = (topic) => ({
  method: "PUT", path: path`/v1/topics/${topic}/schedules/${"nightly"}`, json: { cron: "0 3 * * *", zone: "Europe/Berlin", text: "make them" },
  cli: ["schedule", "put", topic, "nightly", "make them", "--cron", "0 3 * * *", "--zone", "Europe/Berlin"],
});

const Rows = ({ topic, list }) => html`<${Table} title=${`Schedules of ${topic ?? "all topics"}`} columns=${[...(topic ? [] : ["topic"]), "name", "rule", "state", "next", "last job", "#given", "#missed", ""]}>
  ${list.map((schedule) => html`<${Row} key=${`${schedule.topic}/${schedule.name}`} schedule=${schedule} showsTopic=${!topic} />`)}</${Table}>`;

// The schedules of one topic, those first that tick first.
export function SchedulesOf({ topic, query }) {
  const cursor = query.get("cursor") ?? undefined;
  const relative = path`/v1/topics/${topic}/schedules`;
  const read = useLoad((abort) => get(relative, { cursor, limit: PAGE }, abort), [topic, cursor], REFRESH_MS);
  return html`<${Loaded} of=${read}>${(data) => (data.schedules.length === 0 && !data.cursor
      ? html`<${Empty} title="No schedule." command=${first(topic)}>A schedule puts a job into the topic at each tick of a rule:</${Empty}>`
      : html`<section class="sheet"><${Rows} topic=${topic} list=${data.schedules} />
        ${data.cursor && html`<a href=${link("t", topic, "schedules", { cursor: data.cursor })}>next page</a>`}</section>`)}</${Loaded}>
    <${AsCommand} command=${reads(relative, { limit: PAGE }, ["schedule", "ls", topic])} />`;
}

// What a rule would do, by the server's own clock and zones; nothing is stored.
function Preview() {
  const [cron, setCron] = useState("0 3 * * 1-5");
  const [zone, setZone] = useState("UTC");
  const [names, setNames] = useState({ topic: "", name: "", text: "" });
  const [answer, setAnswer] = useState({});
  const { topic, name, text } = names;
  const command = topic && name && commands.put(topic, name, { cron, zone, text });
  const define = async (event) => {
    event.preventDefault();
    if (command && (await act(command))) go("schedules", topic, name);
  };
  const field = (which) => html`<label class="field">${which === "text" ? "text of each job" : which}<input type="text" name=${which} value=${names[which]} spellcheck="false" onInput=${(e) => setNames({ ...names, [which]: e.target.value })} /></label>`;
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try {
        setAnswer({ data: await call("POST", "v1/schedules/preview", { json: { cron, zone, limit: 5 }, signal: abort.signal }) });
      } catch (problem) {
        if (problem.code !== "aborted") setAnswer({ problem });
      }
    }, 300);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [cron, zone]);
  return html`<section class="sheet"><h2>Try a rule</h2><div class="toolbar">
      <label>cron <input type="text" class="mono" value=${cron} spellcheck="false" onInput=${(e) => setCron(e.target.value)} /></label>
      <label>zone <input type="text" value=${zone} spellcheck="false" onInput=${(e) => setZone(e.target.value)} /></label></div>
    <div role="status">${answer.problem && html`<p class="note is-bad">${answer.problem.message}</p>`}
    ${answer.data && html`<p><strong>${answer.data.words}</strong></p><ul>${answer.data.ticks.map((tick, index) => html`<li class="mono">${answer.data.local?.[index] ?? tick} <span class="quiet">${distance(tick)}</span></li>`)}</ul>
      ${(answer.data.notes ?? []).map((note) => html`<p class="quiet">${note}</p>`)}`}</div>
    ${may("schedule") && html`<form class="stack" onSubmit=${define}><div class="fields">${field("topic")}${field("name")}${field("text")}</div>
      <div class="buttons"><button type="submit" disabled=${!command || answer.problem}>Define a schedule by this rule</button></div>${command && html`<${CommandLines} command=${command} />`}</form>`}</section>`;
}

function All({ query }) {
  const prefix = query.get("prefix") ?? "";
  const cursor = query.get("cursor") ?? undefined;
  const wanted = { prefix, cursor, limit: PAGE };
  const read = useLoad((abort) => get("v1/schedules", wanted, abort), [wanted], REFRESH_MS);
  return html`<div class="head"><${Title} name="Schedules" /><${AddressField} label="topics that begin with" name="prefix" value=${prefix} /></div>
    <${Loaded} of=${read}>${(data) => html`${data.schedules.length > 0 || cursor ? html`<section class="sheet"><${Rows} list=${data.schedules} />
        <div class="toolbar">${cursor && html`<a href=${link("schedules", { prefix })}>first page</a>`}
          ${data.cursor && html`<a href=${link("schedules", { prefix, cursor: data.cursor })}>next page</a>`}</div></section>`
      : html`<${Empty} title=${data.cursor ? "No schedule in the first topics." : "No schedule."} command=${data.cursor ? undefined : first("reports")}>
          ${data.cursor ? html`<a href=${link("schedules", { prefix, cursor: data.cursor })}>Look at the next topics</a>` : "A schedule puts a job into a topic at each tick of a rule:"}</${Empty}>`}`}</${Loaded}>
    <${Preview} />
    <${AsCommand} command=${reads("v1/schedules", wanted, ["schedule", "ls"])} />`;
}

function Backfill({ topic, name }) {
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const [found, setFound] = useState(undefined);
  const look = async (event) => {
    event.preventDefault();
    const start = readInstant(from);
    const end = readInstant(to);
    if (start.error || end.error) {
      setFound({ error: start.error ?? end.error });
      return;
    }
    const range = { from: new Date(start.atMs).toISOString(), to: new Date(end.atMs).toISOString() };
    try {
      const { ticks } = await get(path`/v1/topics/${topic}/schedules/${name}/ticks`, { ...range, limit: BACKFILL_MAX });
      setFound({ ...range, ticks });
    } catch (problem) {
      setFound({ error: problem.message });
    }
  };
  return html`<section class="sheet"><h2>Backfill</h2><form class="toolbar" onSubmit=${look}>
    <label>from <input type="text" value=${from} placeholder="2027-01-01" onInput=${(e) => setFrom(e.target.value)} /></label>
    <label>to <input type="text" value=${to} placeholder="now" onInput=${(e) => setTo(e.target.value)} /></label><button type="submit">Count the ticks</button></form>
    ${found?.error && html`<p class="note is-bad" role="alert">${found.error}</p>`}
    ${found?.ticks && html`<div class="toolbar"><span>${many(found.ticks.length, "tick")}</span>
      <button type="button" disabled=${found.ticks.length === 0} onClick=${() => act(commands.backfill(topic, name, found.from, found.to, found.ticks.length))}>Put a job for each</button></div>`}</section>`;
}

function One({ topic, name }) {
  const relative = path`/v1/topics/${topic}/schedules/${name}`;
  const read = useLoad((abort) => get(relative, {}, abort), [topic, name], REFRESH_MS);
  const isGone = read.problem?.status === 404;
  const button = (command, key) => html`<button type="button" data-key=${key} class=${command.guard ? "danger" : ""} onClick=${() => act(command)}>${command.title}</button>`;
  const remove = async () => {
    if (await act(commands.remove(topic, name))) go("t", topic, "schedules");
  };
  if (isGone) return html`<${Title} name=${name} /><p class="note is-bad" role="alert">${read.problem.message}</p>`;
  return html`<div class="head"><${Title} name=${name} />${read.data && html`<${State} of=${read.data.state} />`}
      ${read.data && may("schedule", topic) && html`<div class="buttons">${button(commands.run(topic, name), "r")}${button(read.data.state === "paused" ? commands.resume(topic, name) : commands.pause(topic, name))}
        ${button(commands.skip(topic, name))}<button type="button" class="danger" onClick=${remove}>Remove</button></div>`}</div>
    <${Loaded} of=${read}>${(data) => html`
      <p class="note">${data.words ?? ruleOf(data)}. ${data.next?.length ? html`Next tick <${Instant} at=${data.next[0]} both=${true} />.` : "No tick comes."}</p>
      <div class="pair"><section class="sheet"><h2>Next ticks</h2><ul>${(data.next ?? []).map((tick) => html`<li>${absolute(tick)} <span class="quiet">${distance(tick)}</span></li>`)}</ul></section>
        <section class="sheet"><h2>What became of ticks</h2><dl class="facts">${Object.entries(data.counts ?? {}).map(([word, n]) => html`<dt>${word}</dt><dd>${count(n)}</dd>`)}
          ${data.last && html`<dt>last job</dt><dd><a class="mono" href=${link("j", data.last.id)}>${data.last.id}</a>, <${Instant} at=${data.last.put_at} both=${true} /></dd>`}</dl></section>
        <section class="sheet"><h2>Rule</h2><dl class="facts"><dt>topic</dt><dd><a href=${link("t", topic)}>${topic}</a></dd><dt>rule</dt><dd class="mono">${ruleOf(data)}</dd>
          ${["overlap", "catchup", "late_max", "jitter", "start_at", "end_at", "ticks_max", "version"].filter((field) => data[field] !== undefined).map((field) => html`<dt>${field}</dt><dd>${String(data[field])}</dd>`)}</dl></section>
        <section class="sheet"><h2>Job of each tick</h2><${Body} job=${data} /></section>
        ${may("schedule", topic) && html`<${Backfill} topic=${topic} name=${name} />`}</div>`}</${Loaded}>
    <${AsCommand} command=${reads(relative, {}, ["schedule", "get", topic, name])} />`;
}

export function Schedules({ steps, query }) {
  const [topic, name] = steps;
  return topic && name ? html`<${One} key=${`${topic}/${name}`} topic=${topic} name=${name} />` : html`<${All} query=${query} />`;
}
