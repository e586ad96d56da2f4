// The settings of a topic: what is set, what is the default, and a form to change them.
import { act, CommandLines, exactSpan, html, may, topics, useEffect, useRef, useState } from "../kit.js";

// Name in the request, how it is written, what it means if it is empty.
const FIELDS = [
  ["ttr", "span", "60s", "how long a lease lasts"], ["attempts_max", "number", "16", "attempts until a job is dead; 0 = no limit"],
  ["backoff", "json", "none", "the delays between attempts"], ["delay", "span", "0s", "of jobs put without one"],
  ["expires_after", "span", "never", "a job nobody takes dies so long after it was due"], ["jobs_max", "number", "no limit", "jobs it may hold"],
  ["bytes_max", "number", "no limit", "bytes it may hold"], ["dead_ttl", "span", "never", "how long dead jobs stay"],
  ["dead_max", "number", "no limit", "dead jobs it keeps"], ["dead_topic", "text", "none", "where jobs go that die"],
  ["keep_done", "span", "0s", "how long acked jobs can be looked at"], ["leased_max", "number", "no limit", "jobs leased at a time"],
  ["rate", "rate", "no limit", "jobs handed out in a time: 100/1m"], ["group_leased_max", "number", "no limit", "leased at a time, per group"],
  ["group_rate", "rate", "no limit", "handed out in a time, per group"],
];

// The text of a setting as the server has it, "" for a default.
function textOf(settings, [name, kind]) {
  const value = settings[kind === "span" ? `${name}_ms` : name];
  if (value === undefined || value === null) return "";
  if (kind === "span") return exactSpan(value);
  if (kind === "rate") return typeof value === "string" ? value : `${value.jobs}/${exactSpan(value.per)}${value.burst > 1 ? `:burst=${value.burst}` : ""}`;
  return kind === "json" ? JSON.stringify(value) : String(value);
}

function valueOf(text, kind) {
  if (kind === "json") return JSON.parse(text);
  return kind === "number" ? Number(text) : text;
}

// A backoff as the command line takes it.
const backoffFlag = ({ fixed, list, exponential: e }) =>
  (fixed !== undefined ? `fixed:${exactSpan(fixed)}` : list ? `list:${list.map(exactSpan).join(",")}` : `exponential:${exactSpan(e.base)}:${e.factor}:${exactSpan(e.cap)}`);

// {settings, flags, errors}: all that the form holds, since the server replaces all at once, and as
// flags what differs from `before`. Only a reset makes a setting a default again.
function readForm(texts, before) {
  const settings = {};
  const flags = [];
  const isReset = FIELDS.some(([name]) => before[name] !== "" && texts[name].trim() === "");
  if (isReset) flags.push("--reset");
  const errors = {};
  for (const [name, kind] of FIELDS) {
    const text = texts[name].trim();
    if (text === "") continue;
    try {
      settings[name] = valueOf(text, kind);
      if (kind === "number" && !Number.isSafeInteger(settings[name])) throw new Error("write a whole number");
      if (isReset || text !== before[name]) flags.push(`--${name.replaceAll("_", "-")}`, kind === "json" ? backoffFlag(settings[name]) : text);
    } catch (error) {
      errors[name] = error.message;
    }
  }
  return { settings, flags, errors };
}

export function Settings({ topic }) {
  const now = Object.fromEntries(FIELDS.map((field) => [field[0], textOf(topic.settings ?? {}, field)]));
  const [texts, setTexts] = useState(now);
  // What the form began with: what somebody else changed since is not taken back unseen.
  const [before, setBefore] = useState(now);
  const saved = useRef(undefined);
  const { settings, flags, errors } = readForm(texts, before);
  const isChanged = FIELDS.some(([name]) => texts[name] !== before[name]);
  const moved = FIELDS.map(([name]) => name).filter((name) => now[name] !== before[name]);
  const restart = () => {
    setBefore(now);
    setTexts(now);
  };
  useEffect(() => {
    const own = saved.current;
    saved.current = undefined;
    if (!own && isChanged) return;
    // What was written since the save stays.
    setBefore(now);
    setTexts(Object.fromEntries(FIELDS.map(([name]) => [name, !own || texts[name] === own[name] ? now[name] : texts[name]])));
  }, [JSON.stringify(now)]);
  const command = topics.set(topic.topic, settings, flags);
  const isBad = Object.keys(errors).length > 0;
  const save = (event) => {
    event.preventDefault();
    if (isBad || moved.length > 0) return;
    act(command).then((answer) => { if (answer) saved.current = texts; });
  };
  const canSet = may("set_topic", topic.topic);
  const field = ([name, , otherwise, what]) => html`<label class="field"><span><strong>${name}</strong>${texts[name] === "" ? " (default)" : " (set)"}</span>
    <input type="text" value=${texts[name]} placeholder=${otherwise} readonly=${!canSet} spellcheck="false"
      onInput=${(e) => setTexts({ ...texts, [name]: e.target.value })} />
    <span class=${`hint ${errors[name] ? "is-bad" : ""}`}>${errors[name] ?? what}</span></label>`;
  return html`<form class="sheet" onSubmit=${save}>
    <p class="quiet">An empty field is the default, which stands in it in grey. What a job brings itself comes before both.</p>
    <div class="fields">${FIELDS.map(field)}</div>
    ${isChanged && moved.length > 0 && html`<p class="note is-bad" role="alert">Somebody changed ${moved.join(", ")} meanwhile. Undo your changes to see it.</p>`}
    ${canSet && html`<div class="buttons"><button type="submit" class="primary" disabled=${isBad || !isChanged || moved.length > 0}>Save settings</button>
      <button type="button" disabled=${!isChanged} onClick=${restart}>Undo changes</button></div>
      ${isChanged && !isBad && html`<${CommandLines} command=${command} />`}`}</form>`;
}
