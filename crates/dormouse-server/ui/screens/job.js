// One job: why it is where it is, its life to scale, its body exactly, and what can be done with it.
import {
  absolute, act, AsCommand, call, closeDialog, CommandLines, Copy, count, Exact, get, go, html, Instant, jobs, link,
  Loaded, may, Name, openDialog, path, Problem, readInstant, reads, relative, span, State, Title, useLoad, useRef, useState,
} from "../kit.js";
import { Backoff } from "../components/backoff.js";
import { Body } from "../components/body.js";
import { Modal } from "../components/dialog.js";
import { actionsOf } from "../components/jobtable.js";
import { Timeline, TimelineTable, pointsOf } from "../components/timeline.js";
import { rememberCopy } from "./put.js";

const REFRESH_MS = 2000;

function Reschedule({ job }) {
  const [text, setText] = useState("10m");
  const read = readInstant(text);
  const at = read.error ? undefined : new Date(read.atMs).toISOString();
  const command = at && jobs.reschedule(job, at);
  const submit = async (event) => {
    event.preventDefault();
    if (!command) return;
    closeDialog();
    act(command);
  };
  return html`<${Modal} title=${`Reschedule job ${job.id}`}><form onSubmit=${submit}>
    <label class="field">When: a span from now, or an instant
      <input type="text" data-harmless value=${text} onInput=${(e) => setText(e.target.value)} />
      <span class=${`hint ${read.error ? "is-bad" : ""}`} role="status">${read.error ?? `due ${absolute(read.atMs)}, ${relative(read.atMs)}`}</span></label>
    ${command && html`<${CommandLines} command=${command} />`}
    <div class="buttons"><button type="button" onClick=${() => closeDialog()}>Keep as it is</button>
      <button type="submit" class="primary" disabled=${!command}>Reschedule</button></div></form></${Modal}>`;
}

function Actions({ job }) {
  const mayMove = may("reschedule", job.topic) && (job.state === "delayed" || job.state === "ready");
  const copyOf = () => {
    rememberCopy(job);
    go("put", { topic: job.topic });
  };
  return html`<div class="buttons">
    ${actionsOf(job).map(([command, key]) => html`<button type="button" data-key=${key} class=${command.guard ? "danger" : ""} onClick=${() => act(command)}>${command.title}</button>`)}
    ${mayMove && html`<button type="button" onClick=${() => openDialog(() => html`<${Reschedule} job=${job} />`)}>Reschedule</button>`}
    ${may("put", job.topic) && html`<button type="button" onClick=${copyOf}>Put a copy</button>`}
  </div>`;
}

function Explained({ of }) {
  if (!of) return null;
  const text = of.because.map((one) => one.text).join("; ");
  const reasons = text.charAt(0).toUpperCase() + text.slice(1);
  const next = of.next && html` Next: ${of.next.text}${of.next.at ? html`, <${Instant} at=${of.next.at} />` : ""}.`;
  return html`<p class="note"><strong><${Exact} text=${reasons} />.</strong>${next}
    ${of.dies_at && html` It dies <${Instant} at=${of.dies_at} /> if nobody takes it.`}</p>`;
}

const row = (name, value) => html`<dt>${name}</dt><dd>${value}</dd>`;

function Facts({ job }) {
  const when = { leased: "lease ends", dead: "died", done: "acked" }[job.state] ?? "due";
  return html`<dl class="facts">
    ${row("topic", html`<a href=${link("t", job.topic)}>${job.topic}</a>`)}
    ${row("key", html`<${Name} of=${job} field="key" />`)}
    ${(job.group ?? job.group_base64) !== undefined && row("group", html`<${Name} of=${job} field="group" />`)}
    ${row(when, html`<${Instant} at=${job.due_at} both=${true} />`)}
    ${row("put", html`<${Instant} at=${job.put_at} both=${true} />`)}
    ${row("attempts", `${job.attempts} of ${job.attempts_max === 0 ? "any number" : job.attempts_max}`)}
    ${row("priority", job.priority)}
    ${row("ttr", span(job.ttr_ms))}
    ${job.key_ttl_ms > 0 && row("key stays taken", span(job.key_ttl_ms))}
    ${job.expires_after_ms > 0 && row("expires after", span(job.expires_after_ms))}
    ${job.held_by && row("held by", job.held_by)}
    ${job.schedule && row("schedule", html`<a href=${link("schedules", job.topic, job.schedule)}>${job.schedule}</a>, tick ${job.tick}`)}
  </dl>`;
}

const COUNTERS = ["reserves", "expiries", "releases", "kills", "kicks"];

function Headers({ headers }) {
  const names = Object.keys(headers ?? {});
  if (names.length === 0) return html`<p class="none">no headers</p>`;
  return html`<dl class="facts">${names.map((name) => html`<dt><${Exact} text=${name} /></dt><dd class="mono"><${Exact} text=${headers[name]} /></dd>`)}</dl>`;
}

function Life({ job, explained }) {
  const [asTable, setAsTable] = useState(false);
  const points = pointsOf(job, explained);
  return html`<section class="sheet"><div class="toolbar spread"><h2>Life</h2>
    <button type="button" class="plain" aria-pressed=${asTable} onClick=${() => setAsTable(!asTable)}>as table</button></div>
    ${asTable ? html`<${TimelineTable} points=${points} />` : html`<${Timeline} points=${points} />`}</section>`;
}

function View({ job, explained }) {
  return html`
    <div class="head"><${Title} name=${`Job ${job.id}`}>Job <span class="mono">${job.id}</span></${Title}><${State} of=${job.state} /><${Actions} job=${job} /></div>
    <${Explained} of=${explained} />
    ${job.error !== undefined && html`<div class="note is-bad"><strong>Last error</strong> <${Exact} text=${job.error} /> <${Copy} text=${job.error} /></div>`}
    <${Life} job=${job} explained=${explained} />
    <section class="sheet"><h2>Body</h2><${Body} job=${job} /></section>
    <div class="three">
      <section class="sheet"><h2>Facts</h2><${Facts} job=${job} /></section>
      <section class="sheet"><h2>Headers</h2><${Headers} headers=${job.headers} /><h2>Counters</h2>
        <dl class="facts">${COUNTERS.map((name) => row(name, count(job[name])))}</dl></section>
      <section class="sheet"><h2>Backoff</h2><${Backoff} job=${job} /></section>
    </div>`;
}

function Gone({ title, problem, children }) {
  return html`<${Title} name=${title} /><p class="note is-bad" role="alert"><${Exact} text=${problem.message} /></p><p>${children}</p>`;
}

async function withoutBody(id, abort) {
  const { results: [found] } = await call("POST", "v1/jobs/get", { json: { ids: [id], bodies: false }, signal: abort });
  if (!found.job) throw new Problem(found.code, found.detail, { status: found.code === "not_found" ? 404 : undefined });
  return found.job;
}

// Both ways to name a job end here: by id, or by topic and key.
function Shown({ relative, cli, title, children }) {
  const whole = useRef(undefined);
  const read = useLoad(async (abort) => {
    const explained = await get(`${relative}/explain`, {}, abort);
    let job = await withoutBody(explained.id, abort);
    // A body may have a megabyte: it is read once for each put.
    const version = `${relative} ${job.id} ${job.put_at}`;
    if (whole.current?.version !== version) {
      job = await get(relative, {}, abort);
      whole.current = { version, job };
    }
    const { body, text, base64 } = whole.current.job;
    return { job: { ...job, body, text, base64 }, explained };
  }, [relative], REFRESH_MS);
  // A job that is gone must not look as if it were still there.
  if (read.problem && read.problem.status === 404) {
    return html`${read.data && html`<p class="note">It was here until a moment ago: acked, cancelled or purged.</p>`}
      <${Gone} title=${title} problem=${read.problem}>${children}</${Gone}>`;
  }
  return html`${!read.data && html`<${Title} name=${title} />`}
    <${Loaded} of=${read}>${(data) => html`<${View} job=${data.job} explained=${data.explained} />`}</${Loaded}>
    <${AsCommand} command=${reads(relative, {}, cli)} />`;
}

export function Job({ steps }) {
  const [id = ""] = steps;
  if (!/^\d{1,20}$/.test(id)) {
    return html`<${Title} name="Job" /><p class="note is-bad" role="alert">"${id}" is no id of a job: ids are numbers.</p>`;
  }
  return html`<${Shown} relative=${path`/v1/jobs/${id}`} cli=${["get", id]} title=${`Job ${id}`}>
    Is it a topic? <a href=${link("topics", { prefix: id })}>Look for topics that begin with ${id}</a>.</${Shown}>`;
}

export function JobByKey({ steps }) {
  const [topic = "", key = ""] = steps;
  return html`<${Shown} relative=${path`/v1/topics/${topic}/keys/${key}`} cli=${["get", topic, key]} title=${`${key} in ${topic}`}>
    <a href=${link("t", topic, "jobs")}>See the jobs of ${topic}</a>.</${Shown}>`;
}
