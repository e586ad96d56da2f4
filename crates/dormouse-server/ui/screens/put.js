// A form for one job, checked while it is written.
import {
  absolute, act, CommandLines, exactSpan, html, jobs, link, now, readTime, relative, Title, useState,
} from "../kit.js";
import { bodyOf } from "../components/body.js";
import { Choice } from "../components/form.js";
import { whatIsWrong } from "../json.js";
import { remember, remembered } from "../memory.js";

const LAST_MAX = 8;
const EMPTY = { topic: "", kind: "json", body: "", when: "", key: "", on_conflict: "keep", priority: "", ttr: "", attempts_max: "", group: "", headers: "" };

// The form that the next visit of this screen begins with.
let template;

export function rememberCopy(job) {
  const body = bodyOf(job);
  template = {
    ...EMPTY, topic: job.topic, kind: body.kind === "bytes" ? "base64" : body.kind === "json" ? "json" : "text", body: body.text,
    priority: job.priority === 1024 ? "" : String(job.priority), ttr: exactSpan(job.ttr_ms), group: job.group ?? "",
    headers: Object.entries(job.headers ?? {}).map(([name, value]) => `${name}: ${value}`).join("\n"),
  };
}

function lastPuts() {
  try {
    const list = JSON.parse(remembered("puts", "[]", "sessionStorage"));
    return Array.isArray(list) ? list : [];
  } catch {
    return [];
  }
}

const numberOf = (text, name) => {
  if (!/^\d{1,10}$/.test(text.trim())) throw new Error(`${name} is a whole number`);
  return Number(text);
};

function headersOf(text) {
  const found = {};
  for (const line of text.split("\n").filter((one) => one.trim() !== "")) {
    const at = line.indexOf(":");
    if (at < 1) throw new Error(`write "name: value", not "${line}"`);
    found[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return found;
}

// {text, flags, errors}: the request as JSON text, so that numbers of the body stay as they were written.
function readForm(form) {
  const errors = {};
  const fields = {};
  const flags = [];
  let raw;
  const set = (name, value, flag = String(value)) => {
    fields[name] = value;
    flags.push(`--${name.replaceAll("_", "-")}`, flag);
  };
  const attempt = (name, work) => {
    try {
      work();
    } catch (error) {
      errors[name] = error.message;
    }
  };
  if (!/^[A-Za-z0-9+/;.$_():][A-Za-z0-9+/;.$_():-]{0,199}$/.test(form.topic)) errors.topic = "1 to 200 of A-Z a-z 0-9 - + / ; . $ _ ( ) :, not - first";
  if (form.kind === "json" && form.body.trim() !== "") {
    const wrong = whatIsWrong(form.body);
    if (wrong) errors.body = wrong;
    raw = form.body.trim();
    flags.unshift(raw, "--json");
  } else if (form.body !== "") {
    fields[form.kind === "json" ? "text" : form.kind] = form.body;
    if (form.kind === "text") flags.unshift(form.body);
  }
  const time = readTime(form.when);
  if (time.error) errors.when = time.error;
  else if (time.atMs !== undefined) set("at", new Date(time.atMs).toISOString());
  else if (time.delayMs > 0) set("delay", exactSpan(time.delayMs));
  if (form.key) set("key", form.key);
  if (form.key && form.on_conflict !== "keep") set("on_conflict", form.on_conflict);
  if (form.priority) attempt("priority", () => set("priority", numberOf(form.priority, "priority")));
  if (form.attempts_max) attempt("attempts_max", () => set("attempts_max", numberOf(form.attempts_max, "attempts_max")));
  if (form.ttr) {
    const ttr = readTime(form.ttr);
    if (!ttr.delayMs) errors.ttr = ttr.error ?? "a span of at least 1 ms";
    else set("ttr", exactSpan(ttr.delayMs));
  }
  if (form.group) set("group", form.group);
  attempt("headers", () => {
    const headers = headersOf(form.headers);
    if (Object.keys(headers).length > 0) fields.headers = headers;
    for (const [name, value] of Object.entries(headers)) flags.push("--header", `${name}=${value}`);
  });
  const rest = JSON.stringify(fields);
  const text = raw === undefined ? rest : `{"body":${raw}${rest === "{}" ? "" : `,${rest.slice(1, -1)}`}}`;
  return { text, flags, errors, time, isCli: form.kind !== "base64" };
}

function Field({ name, label, form, set, error, hint, ...rest }) {
  return html`<label class="field">${label ?? name}
    <input type="text" autocomplete="off" spellcheck="false" value=${form[name]} aria-invalid=${error !== undefined} onInput=${(e) => set(name, e.target.value)} ...${rest} />
    <span class=${`hint ${error ? "is-bad" : ""}`}>${error ?? hint}</span></label>`;
}

function When({ form, set, read }) {
  const at = read.time.atMs ?? now() + (read.time.delayMs ?? 0);
  const words = form.when.trim() === "" ? "ready at once" : `due ${absolute(at)}, ${relative(at)}`;
  return html`<${Field} name="when" label="due: a span, or an instant" form=${form} set=${set} error=${read.errors.when} hint=${words} placeholder="now" />`;
}

function LastPuts({ last, choose }) {
  if (last.length === 0) return null;
  return html`<section class="sheet"><h2>Last puts of this tab</h2><ul class="buttons">${last.map((form) => html`
    <li><button type="button" onClick=${() => choose(form)}>${form.topic}${form.key ? `, ${form.key}` : ""}${form.when ? `, ${form.when}` : ""}</button></li>`)}</ul></section>`;
}

export function Put({ query }) {
  const [form, setForm] = useState(() => {
    const start = template ?? { ...EMPTY, topic: query.get("topic") ?? "" };
    template = undefined;
    return start;
  });
  const [last, setLast] = useState(lastPuts);
  const [result, setResult] = useState(undefined);
  const set = (name, value) => setForm({ ...form, [name]: value });
  const read = readForm(form);
  const isBad = Object.keys(read.errors).length > 0;
  const command = jobs.put(form.topic || "TOPIC", read.text, read.flags);
  const submit = async (event) => {
    event.preventDefault();
    if (isBad) return;
    const answer = await act({ ...command, done: `Put into ${form.topic}.` });
    setResult(answer);
    if (!answer) return;
    const next = [form, ...last.filter((other) => JSON.stringify(other) !== JSON.stringify(form))].slice(0, LAST_MAX);
    setLast(next);
    remember("puts", JSON.stringify(next.map((one) => ({ ...one, body: one.body.slice(0, 4096) }))), "sessionStorage");
  };
  const shared = { form, set };
  return html`<div class="head"><${Title} name="Put a job" /></div>
    <form class="sheet" onSubmit=${submit}>
      <div class="fields">
        <${Field} name="topic" ...${shared} error=${form.topic === "" ? undefined : read.errors.topic} hint="made with its first job" required />
        <${When} ...${shared} read=${read} />
        <${Field} name="key" ...${shared} hint="your own id of the job; optional" />
        <label class="field">if the key is taken<select value=${form.on_conflict} disabled=${!form.key} onChange=${(e) => set("on_conflict", e.target.value)}>
          ${["keep", "reject", "replace", "earliest", "latest"].map((mode) => html`<option value=${mode} selected=${mode === form.on_conflict}>${mode}</option>`)}</select></label>
      </div>
      <div class="field"><div class="toolbar"><label for="put-body">body</label>
        <${Choice} label="Kind of the body" names=${["json", "text", "base64"]} chosen=${form.kind} choose=${(kind) => set("kind", kind)} /></div>
        <textarea id="put-body" spellcheck="false" value=${form.body} aria-invalid=${read.errors.body !== undefined}
          placeholder=${{ json: '{"order": 42}', text: "hello", base64: "aGVsbG8=" }[form.kind]} onInput=${(e) => set("body", e.target.value)}></textarea>
        <span class=${`hint ${read.errors.body ? "is-bad" : ""}`} role="status">${read.errors.body ?? "stored as it is written; at most 1 MiB"}</span></div>
      <details><summary>More fields</summary><div class="fields">
        <${Field} name="priority" ...${shared} error=${read.errors.priority} hint="lower is first" placeholder="1024" />
        <${Field} name="ttr" ...${shared} error=${read.errors.ttr} hint="how long a lease lasts" placeholder="60s" />
        <${Field} name="attempts_max" ...${shared} error=${read.errors.attempts_max} hint="0 = no limit" placeholder="16" />
        <${Field} name="group" ...${shared} hint="what limits are counted by" />
        <label class="field wide">headers, one "name: value" per line
          <textarea value=${form.headers} spellcheck="false" onInput=${(e) => set("headers", e.target.value)}></textarea>
          <span class=${`hint ${read.errors.headers ? "is-bad" : ""}`}>${read.errors.headers ?? ""}</span></label></div></details>
      <div class="buttons"><button type="submit" class="primary" disabled=${isBad}>Put the job</button></div>
      ${result && html`<p class="note is-good" role="status">${result.code}: job <a href=${link("j", result.id)}>${result.id}</a>, ${result.state}, due ${absolute(result.due_at)}.</p>`}
      ${!isBad && html`<${CommandLines} command=${{ ...command, cli: read.isCli ? command.cli : undefined }} />`}
    </form>
    <${LastPuts} last=${last} choose=${setForm} />`;
}
