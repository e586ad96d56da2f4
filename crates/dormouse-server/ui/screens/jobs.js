// The jobs of a topic in one state: by time, by cursor, with a bounded look for text.
import {
  amend, AsCommand, Copy, count, download, Empty, get, go, html, jobs as commands, link, Loaded, may, now, openDialog,
  path, reads, readTime, useEffect, useLoad, useMemo, useState,
} from "../kit.js";
import { Bulk } from "../components/bulk.js";
import { JobTable } from "../components/jobtable.js";
import { LookThrough } from "../components/lookthrough.js";
import { writeAnswer } from "../json.js";

const PAGE = 50;
const STATES = ["delayed", "ready", "leased", "dead", "done"];
// What can be done with many jobs of a state, and the right it needs.
const VERBS = {
  delayed: [["run", "Run now", "reschedule"], ["kill", "Kill", "kill"], ["cancel", "Cancel", "cancel"]],
  ready: [["kill", "Kill", "kill"], ["cancel", "Cancel", "cancel"]],
  leased: [["cancel", "Cancel", "cancel"]],
  dead: [["revive", "Revive", "revive"], ["cancel", "Cancel", "cancel"]],
  done: [],
};

// The instant of a filter in the address: a span counts from now, ahead for what is delayed, else back.
function instantOf(text, state) {
  const read = readTime(text);
  if (read.error) return read;
  const atMs = read.atMs ?? now() + (state === "delayed" ? 1 : -1) * read.delayMs;
  return { at: new Date(atMs).toISOString() };
}

// What the list asks for, from the address: {query, state, isCut} or {error}.
function readQuery(query) {
  const state = query.get("state") ?? "ready";
  if (!STATES.includes(state)) return { error: `There is no state "${state}": ${STATES.join(", ")}.` };
  const wanted = { state };
  for (const name of ["from", "to"]) {
    const text = query.get(name);
    if (!text) continue;
    if (state === "leased") return { state, error: "Leased jobs cannot be asked for by time." };
    const { at, error } = instantOf(text, state);
    if (error) return { state, error: `${name}: ${error}` };
    wanted[name] = at;
  }
  const isWaiting = state === "delayed" || state === "ready";
  const order = query.get("order");
  const newest = query.get("newest");
  if (order && (order !== "due" || !isWaiting)) return { state, error: `There is no order "${order}" of ${state} jobs.` };
  if (newest && (!/^(true|false)$/.test(newest) || isWaiting || state === "leased")) return { state, error: `"newest" is true or false, and for dead or done jobs.` };
  if (order) wanted.order = order;
  if (newest === "true") wanted.newest = true;
  return { query: wanted, state, isCut: wanted.from !== undefined || wanted.to !== undefined };
}

// The filter as fields; it becomes a part of the address.
function Filter({ query, state }) {
  const submit = (event) => {
    event.preventDefault();
    const { from, to } = event.target.elements;
    amend({ from: from.value.trim(), to: to.value.trim(), cursor: undefined });
  };
  const isWaiting = state === "delayed" || state === "ready";
  const [name, word, value] = isWaiting ? ["order", "by due time, whatever the priority", "due"] : ["newest", "newest first", "true"];
  const field = (which, hint) => html`<label>${which} <input type="text" name=${which} size="14" spellcheck="false" placeholder=${hint} value=${query.get(which) ?? ""} /></label>`;
  if (state === "leased") return null;
  return html`<form class="toolbar" key=${query.toString()} onSubmit=${submit}>
    ${field("from", "any time")}${field("to", state === "delayed" ? "10m" : "now")}<button type="submit">Show</button>
    ${(query.get("from") || query.get("to")) && html`<button type="button" class="plain" onClick=${() => amend({ from: undefined, to: undefined, cursor: undefined })}>any time</button>`}
    <label><input type="checkbox" checked=${query.get(name) === value} onChange=${(e) => amend({ [name]: e.target.checked ? value : undefined, cursor: undefined })} /> ${word}</label></form>`;
}

function FindKey({ topic }) {
  const submit = (event) => {
    event.preventDefault();
    const text = event.target.elements.key.value;
    if (text) go("k", topic, text);
  };
  return html`<form class="toolbar" onSubmit=${submit}><label>key is <input type="text" name="key" size="14" spellcheck="false" /></label>
    <button type="submit">Open</button></form>`;
}

function Nothing({ topic, state, isCut }) {
  if (isCut) return html`<${Empty} title=${`No ${state} job in this time.`}>Take "any time" to see all of them.</${Empty}>`;
  if (state === "delayed" || state === "ready") {
    const isDelayed = state === "delayed";
    const command = commands.put(topic, isDelayed ? { text: "hello", delay: "30m" } : { text: "hello" }, isDelayed ? ["hello", "--delay", "30m"] : ["hello"]);
    return html`<${Empty} title=${`No ${state} job.`} command=${command}>Put one:</${Empty}>`;
  }
  const why = {
    leased: "A job is leased while a consumer works on it.",
    dead: "A job is dead when its attempts are spent, when it is killed, or when nobody took it in time.",
    done: "Acked jobs are kept if the topic's setting keep_done says how long.",
  };
  return html`<${Empty} title=${`No ${state} job.`}>${why[state]}</${Empty}>`;
}

// What begins like a formula gets an apostrophe, or a spreadsheet would compute it.
const csvCell = (value) => `"${String(value ?? "").replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;
const COLUMNS = ["id", "key", "state", "due_at", "put_at", "attempts", "priority", "error"];
const asCsv = (list) => [COLUMNS.join(","), ...list.map((job) => COLUMNS.map((name) => csvCell(job[name])).join(","))].join("\r\n");

function Changed({ topic, state, at, reload }) {
  const difference = (topic[state] ?? 0) - at;
  if (difference === 0) return null;
  return html`<button type="button" data-key=" " onClick=${reload}>${difference > 0 ? `${count(difference)} more` : `${count(-difference)} less`} now: press space to load</button>`;
}

function Listed({ data, reload, topic, asked, chosen, setChosen }) {
  const { state } = asked;
  const { isCut } = asked;
  const [at, setAt] = useState(topic[state] ?? 0);
  useEffect(() => setAt(topic[state] ?? 0), [data]);
  // Several boxes may change at once, before this is drawn again.
  const onCheck = (id) => setChosen((before) => {
    const next = new Set(before);
    if (!next.delete(id)) next.add(id);
    return next;
  });
  const onCheckAll = (isOn) => setChosen(new Set(isOn ? data.jobs.map((job) => job.id) : []));
  const verbs = VERBS[state].filter(([, , right]) => may(right, topic.topic));
  const start = (verb, title, ids) => openDialog(() => html`<${Bulk} verb=${verb} title=${title} topic=${topic.topic} ids=${ids} query=${asked.query} total=${topic[state]} isCut=${isCut} />`);
  if (data.jobs.length === 0) return html`<${Changed} topic=${topic} state=${state} at=${at} reload=${reload} /><${Nothing} topic=${topic.topic} state=${state} isCut=${isCut} />`;
  const isSome = chosen.size > 0;
  return html`<section class="sheet">
    <div class="toolbar">
      ${verbs.map(([verb, title]) => html`<button type="button" onClick=${() => start(verb, title, isSome ? [...chosen] : undefined)}>
        ${title}: ${isSome ? `${chosen.size} checked` : isCut ? `all ${state} in this time` : `all ${count(topic[state])} ${state}`}</button>`)}
      <${Changed} topic=${topic} state=${state} at=${at} reload=${reload} />
    </div>
    <${JobTable} list=${data.jobs} state=${state} chosen=${chosen} onCheck=${verbs.length > 0 ? onCheck : undefined} onCheckAll=${onCheckAll} />
    <div class="toolbar spread">
      <span class="toolbar"><${Copy} label="Copy as CSV" text=${() => asCsv(data.jobs)} /><${Copy} label="Copy as JSON" text=${() => writeAnswer(data.jobs)} />
        <button type="button" class="plain" onClick=${() => download(`${topic.topic.replaceAll("/", "_")}-${state}.csv`, [asCsv(data.jobs)], "text/csv")}>Download CSV</button></span>
      ${data.cursor && html`<a href=${link("t", topic.topic, "jobs", { ...asked.address, cursor: data.cursor })}>next page</a>`}</div>
  </section>`;
}

export function Jobs({ topic, query }) {
  // Read once for each address: "from 30m" must not move with every drawing.
  const asked = useMemo(() => ({ ...readQuery(query), address: Object.fromEntries(query) }), [query.toString()]);
  const cursor = query.get("cursor") ?? undefined;
  const [chosen, setChosen] = useState(new Set());
  const relative = path`/v1/topics/${topic.topic}/jobs`;
  const wanted = { ...asked.query, cursor, limit: PAGE, bodies: false };
  const read = useLoad((abort) => (asked.error ? Promise.resolve({ jobs: [] }) : get(relative, wanted, abort)), [topic.topic, wanted, asked.error]);
  useEffect(() => setChosen(new Set()), [read.data]);
  return html`
    <div class="toolbar spread"><${Filter} query=${query} state=${asked.state} /><${FindKey} topic=${topic.topic} /></div>
    ${asked.error ? html`<p class="note is-bad" role="alert">${asked.error}</p>` : html`
      <${Loaded} of=${read}>${(data) => html`<${Listed} data=${data} reload=${read.reload} topic=${topic} asked=${asked} chosen=${chosen} setChosen=${setChosen} />`}</${Loaded}>
      <${LookThrough} key=${JSON.stringify([topic.topic, asked.query])} topic=${topic.topic} query=${asked.query} />
      <${AsCommand} command=${reads(relative, wanted, asked.isCut || wanted.order || wanted.newest ? undefined : ["ls", topic.topic, "--state", asked.state])} />`}`;
}
