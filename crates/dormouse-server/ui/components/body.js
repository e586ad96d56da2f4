// The body of a job: as it came, laid out, or byte by byte.
import { html, useState } from "../html.js";
import { pretty } from "../json.js";
import { Choice } from "./form.js";
import { Copy, Exact, bytes, download } from "./text.js";

const SHOWN_MAX = 64 * 1024;
const HEX_SHOWN_MAX = 4 * 1024;
const START_MAX = 300;

// {kind, text, bytes()} of a job or a template: `body`, `text`, `base64`, or nothing.
export function bodyOf(job) {
  const encode = (text) => new TextEncoder().encode(text);
  if (job.body !== undefined) return { kind: "json", text: job.body.text, bytes: () => encode(job.body.text) };
  if (job.text !== undefined) return { kind: "text", text: job.text, bytes: () => encode(job.text) };
  if (job.base64 !== undefined) {
    return { kind: "bytes", text: job.base64, bytes: () => Uint8Array.from(atob(job.base64), (c) => c.charCodeAt(0)) };
  }
  return { kind: "empty", text: "", bytes: () => new Uint8Array() };
}

// "00000010  7b 22 61 22 …  {"a"…": offset, bytes, and those that are printable ASCII.
function hexDump(data) {
  const lines = [];
  for (let at = 0; at < data.length; at += 16) {
    const row = [...data.subarray(at, at + 16)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ").padEnd(47);
    const text = row.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${hex}  ${text}`);
  }
  return lines.join("\n");
}

function textIn(view, body, data) {
  if (view === "hex") return hexDump(data.subarray(0, HEX_SHOWN_MAX));
  return view === "pretty" ? pretty(body.text) : body.text;
}

export function Body({ job }) {
  const body = bodyOf(job);
  const views = { json: ["pretty", "raw", "hex"], text: ["raw", "hex"], bytes: ["hex", "base64"], empty: [] }[body.kind];
  const [chosen, setView] = useState(undefined);
  const [isWhole, setWhole] = useState(false);
  const view = views.includes(chosen) ? chosen : views[0];
  if (body.kind === "empty") return html`<p class="none">This job has no body.</p>`;
  const data = body.bytes();
  const whole = textIn(view, body, data);
  const isCut = view === "hex" ? data.length > HEX_SHOWN_MAX : whole.length > SHOWN_MAX && !isWhole;
  const shown = isCut && view !== "hex" ? whole.slice(0, SHOWN_MAX) : whole;
  return html`
    <div class="toolbar">
      <span class="quiet">${body.kind}, ${bytes(data.length)}</span>
      <${Choice} label="How the body is shown" names=${views} chosen=${view} choose=${setView} />
      <${Copy} text=${body.text} label="Copy body" />
      <button type="button" class="plain" onClick=${() => download(`job-${job.id ?? "body"}`, [data])}>Download</button>
    </div>
    <pre class="body" tabindex="0" aria-label="Body"><${Exact} text=${shown} /></pre>
    ${isCut && html`<p class="quiet">
      ${view === "hex" ? `The first ${bytes(HEX_SHOWN_MAX)}; download shows all.` : `The first ${bytes(SHOWN_MAX)}.`}
      ${view !== "hex" && html` <button type="button" class="plain" onClick=${() => setWhole(true)}>Show all</button>`}
    </p>`}`;
}

// The first characters, for a list or a question.
export function BodyStart({ job }) {
  const body = bodyOf(job);
  if (body.kind === "empty") return null;
  const start = body.text.slice(0, START_MAX);
  return html`<pre class="body is-start" tabindex="0" aria-label="Start of the body"><${Exact} text=${start} />${body.text.length > START_MAX ? "…" : ""}</pre>`;
}
