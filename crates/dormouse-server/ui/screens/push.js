// Where the jobs of a topic are pushed to, how that goes, and a form to set it.
import {
  act, AsCommand, CommandLines, Copy, count, Exact, exactSpan, get, html, Instant, Loaded, may, maySee, path, pushes,
  readTime, reads, span, State, useLoad, useState,
} from "../kit.js";

const REFRESH_MS = 3000;
const EMPTY = { url: "", timeout: "", concurrency: "", fatal: "", headers: "", job_urls: "" };
const HINTS = {
  url: "of the receiver, by https, in its normal form", timeout: "for a whole delivery, 1 to 30 s; empty: 15s", concurrency: "jobs leased at a time, 1 to 1000; empty: 16",
  fatal: "statuses that kill a job: 400, 422", headers: 'one "name: value" per line; *** keeps the stored value', job_urls: "patterns of URLs that jobs may bring, one per line",
};

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

// {settings, flags, errors} of what the form holds.
function readForm(form, keepReply) {
  const settings = { url: form.url.trim() };
  const flags = [];
  const errors = {};
  const number = (text) => (/^\d{1,4}$/.test(text.trim()) ? Number(text) : NaN);
  if (settings.url === "") errors.url = "";
  if (form.timeout) {
    const { delayMs, error } = readTime(form.timeout);
    if (!delayMs) errors.timeout = error ?? 'write a span, as in "15s"';
    else flags.push("--timeout", settings.timeout = exactSpan(delayMs));
  }
  if (form.concurrency) {
    settings.concurrency = number(form.concurrency);
    if (!settings.concurrency) errors.concurrency = "write a whole number";
    flags.push("--concurrency", form.concurrency.trim());
  }
  if (form.fatal) {
    settings.fatal = form.fatal.split(",").map(number);
    if (settings.fatal.some(Number.isNaN)) errors.fatal = "write numbers with commas between";
    flags.push("--fatal", settings.fatal.join(","));
  }
  for (const line of lines(form.headers)) {
    const at = line.indexOf(":");
    if (at < 1) errors.headers = `write "name: value", not "${line}"`;
    const [name, value] = [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    settings.headers = { ...settings.headers, [name]: value };
    flags.push("--header", `${name}=${value}`);
  }
  if (form.job_urls) settings.job_urls = lines(form.job_urls);
  for (const pattern of settings.job_urls ?? []) flags.push("--job-url", pattern);
  if (!keepReply) {
    settings.keep_reply = false;
    flags.push("--no-reply");
  }
  return { settings, flags, errors };
}

const formOf = (push) => (push ? {
  url: push.url, timeout: exactSpan(push.timeout_ms), concurrency: String(push.concurrency), fatal: push.fatal.join(", "),
  headers: Object.entries(push.headers).map(([name, value]) => `${name}: ${value}`).join("\n"), job_urls: push.job_urls.join("\n"),
} : EMPTY);

function Form({ topic, push, onSecret }) {
  const [form, setForm] = useState(() => formOf(push));
  const [keepReply, setKeepReply] = useState(push?.keep_reply ?? true);
  const { settings, flags, errors } = readForm(form, keepReply);
  const isBad = Object.keys(errors).length > 0;
  const command = pushes.set(topic, settings, flags);
  const save = async (event) => {
    event.preventDefault();
    if (!isBad) onSecret(await act(command));
  };
  const field = (name) => {
    const props = { value: form[name], spellcheck: false, name, onInput: (e) => setForm({ ...form, [name]: e.target.value }) };
    return html`<label class=${`field ${["url", "headers", "job_urls"].includes(name) ? "wide" : ""}`}>${name}
      ${name === "headers" || name === "job_urls" ? html`<textarea class="is-low" ...${props}></textarea>` : html`<input type="text" ...${props} />`}
      <span class=${`hint ${errors[name] ? "is-bad" : ""}`}>${errors[name] || HINTS[name]}</span></label>`;
  };
  return html`<details class="sheet" open=${!push}><summary>${push ? "Change the settings" : "Push the jobs of this topic"}</summary>
    <form class="fields" onSubmit=${save}>${Object.keys(EMPTY).map(field)}
      <label class="wide"><input type="checkbox" checked=${keepReply} onChange=${(e) => setKeepReply(e.target.checked)} /> keep the beginning of a failed reply as the error of the job</label>
      <div class="buttons wide"><button type="submit" class="primary" disabled=${isBad}>Save the push</button></div></form>
    ${!isBad && html`<${CommandLines} command=${command} />`}</details>`;
}

function Facts({ push }) {
  const shape = { on: "good", open: "broken", disabled: "paused" }[push.state];
  const words = { on: "on", open: "open: the receiver fails, only probes are sent", disabled: `disabled: ${push.disabled ?? "until it is resumed"}` };
  return html`<dl class="facts"><dt>state</dt><dd><${State} of=${shape}><${Exact} text=${words[push.state] ?? push.state} /></${State}></dd>
    <dt>URL</dt><dd class="mono"><${Exact} text=${push.url} /></dd>
    <dt>delivered</dt><dd>${count(push.counts.delivered)}, ${count(push.counts.failed)} failed, since this server started</dd>
    ${push.last_error !== undefined && html`<dt>last error</dt><dd><${Exact} text=${push.last_error} /></dd>`}
    <dt>time</dt><dd>${span(push.timeout_ms)} for a delivery, ${push.concurrency} at a time</dd>
    ${push.retiring_until && html`<dt>old secret</dt><dd>signs until <${Instant} at=${push.retiring_until} both=${true} /></dd>`}</dl>`;
}

// Shown once: the server cannot tell it again.
const Secret = ({ text }) => html`<div class="note" role="status"><strong>The secret, shown once:</strong> <code class="secret">${text}</code> <${Copy} text=${text} /></div>`;

function Pushed({ topic, push }) {
  const [told, setTold] = useState({});
  const onSecret = (answer) => setTold(answer?.secret ? { secret: answer.secret } : {});
  const test = async () => setTold({ test: await act(pushes.test(topic)) });
  const button = (command, then) => html`<button type="button" class=${command.guard ? "danger" : ""} onClick=${() => act(command).then(then)}>${command.title}</button>`;
  return html`${told.secret && html`<${Secret} text=${told.secret} />`}
    ${told.test && html`<p class=${`note ${told.test.outcome === "2xx" ? "is-good" : "is-bad"}`} role="status">${told.test.outcome} after ${span(told.test.ms)}
      ${told.test.address ? ` from ${told.test.address}` : ""}${told.test.error !== undefined && html`: <${Exact} text=${told.test.error} />`}</p>`}
    ${push ? html`<section class="sheet"><${Facts} push=${push} />
      ${may("push", topic) && html`<div class="buttons"><button type="button" onClick=${test}>Test</button>${push.state !== "on" && button(pushes.resume(topic))}
        ${button(pushes.rotate(topic), onSecret)}${button(pushes.remove(topic))}</div>`}</section>`
    : html`<p class="none">This topic is not pushed: consumers take its jobs.</p>`}
    ${may("push", topic) && html`<${Form} key=${push?.url} topic=${topic} push=${push} onSecret=${onSecret} />`}`;
}

export function Push({ topic }) {
  const name = topic.topic;
  const relative = path`/v1/topics/${name}/push`;
  if (!maySee("push", name)) return html`<p class="note">Pushes need the right <strong>push</strong>, which your token does not have.</p>`;
  const read = useLoad(async (abort) => {
    try {
      return { push: await get(relative, {}, abort) };
    } catch (problem) {
      if (problem.status === 404) return {};
      if (problem.status === 403) return { why: problem.message };
      throw problem;
    }
  }, [name], REFRESH_MS);
  return html`<${Loaded} of=${read}>${({ push, why }) => (why ? html`<p class="note">There is nothing to see or set here: ${why}.</p>` : html`<${Pushed} topic=${name} push=${push} />`)}</${Loaded}>
    <${AsCommand} command=${reads(relative, {}, ["push", "get", name])} />`;
}
