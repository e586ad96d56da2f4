// The dead jobs of a topic by cause, newest first, and what can be done with all of one cause.
import {
  AsCommand, count, download, Empty, Exact, get, html, Instant, link, Loaded, many, may, openDialog, path, reads,
  Table, tell, useEffect, useLoad, useRef, useState,
} from "../kit.js";
import { Bulk } from "../components/bulk.js";
import { writeAnswer } from "../json.js";

const PAGE = 500;
const EXPORT_MAX = 10_000;
const TEXT_MAX = 200;

// An error text without what differs from one failure to the next, as the server groups by it.
export function causeOf(error) {
  let text = "";
  let rest = error;
  const eat = (part, shown) => {
    rest = rest.slice(part.length);
    text += shown;
  };
  while (rest !== "" && text.length < 2 * TEXT_MAX) {
    const quoted = /[\p{Alphabetic}\p{N}]$/u.test(text) ? undefined : /^(["'`])[^]*?\1/.exec(rest)?.[0];
    const word = /^[A-Za-z0-9-]+/.exec(rest)?.[0];
    if (quoted) eat(quoted, '"..."');
    else if (word) eat(word, /^[\da-f]*\d[\da-f]*$/i.test(word.replace(/^(0x)+/, "").replaceAll("-", "")) ? "#" : word.replace(/\d+/g, "#"));
    else eat(String.fromCodePoint(rest.codePointAt(0)), String.fromCodePoint(rest.codePointAt(0)));
  }
  return [...text].slice(0, TEXT_MAX).join("");
}

// What all error texts of a group begin with: the server looks for that first. A text that was cut may end within `"..."`.
const prefixOf = (error) => /^[^#\ufffd]*?(?=#|"\.\.\."|"\.{0,2}$|\ufffd|$)/.exec(error)[0];

// From the newest job of the group on: those of the pages before are not meant.
function queryOf(group) {
  const prefix = prefixOf(group.error);
  const to = new Date(Date.parse(group.last_at) + 1).toISOString();
  return { state: "dead", newest: true, to, ...(prefix ? { error_prefix: prefix } : {}) };
}

const isOf = (group) => (job) => causeOf(job.error ?? "") === group.error;

// All jobs of a group as lines of JSON, with their bodies; a file.
function Export({ topic, group }) {
  const [found, setFound] = useState(undefined);
  const abort = useRef(undefined);
  useEffect(() => () => abort.current?.abort(), []);
  const start = async () => {
    abort.current = new AbortController();
    const lines = [];
    let cursor;
    setFound(0);
    try {
      do {
        const page = await get(path`/v1/topics/${topic}/jobs`, { ...queryOf(group), cursor, limit: PAGE }, abort.current.signal);
        lines.push(...page.jobs.filter(isOf(group)).map((job) => `${writeAnswer(job)}\n`));
        setFound(lines.length);
        cursor = page.cursor;
      } while (cursor && lines.length < Math.min(group.count, EXPORT_MAX));
      download(`${topic.replaceAll("/", "_")}-dead.ndjson`, lines.slice(0, EXPORT_MAX), "application/x-ndjson");
      tell(`${many(Math.min(lines.length, EXPORT_MAX), "job")} written.`);
    } catch (problem) {
      if (problem.code !== "aborted") tell(`Export: ${problem.message}`, { isError: true });
    }
    setFound(undefined);
  };
  return html`<button type="button" class="plain" disabled=${found !== undefined} onClick=${start}>${found === undefined ? "Export" : `${count(found)} read…`}</button>`;
}

function Row({ topic, group }) {
  const act = (verb, title) => openDialog(() => html`<${Bulk} verb=${verb} title=${title} topic=${topic} query=${queryOf(group)} total=${group.count}
    fits=${isOf(group)} note=${html` with the error <${Exact} text=${group.error || "(none)"} />`} />`);
  const button = (verb, title, key) => may(verb, topic) && html`<button type="button" class="plain" data-key=${key} onClick=${() => act(verb, title)}>${title}</button>`;
  return html`<tr data-row tabindex="-1"><th scope="row" class="cause">${group.error ? html`<${Exact} text=${group.error} />` : html`<span class="none">no error text</span>`}
      <div class="quiet">${group.ids.map((id, index) => html`${index > 0 && ", "}<a class="mono" data-open=${index === 0} href=${link("j", id)}>${id}</a>`)}${group.count > group.ids.length ? ", …" : ""}</div></th>
    <td class="number"><strong>${count(group.count)}</strong></td>
    <td class="number"><${Instant} at=${group.first_at} /></td><td class="number"><${Instant} at=${group.last_at} /></td>
    <td class="actions">${button("revive", "Revive", "v")}${button("cancel", "Cancel", "c")}<${Export} topic=${topic} group=${group} /></td></tr>`;
}

export function Dead({ topic, query }) {
  const name = topic.topic;
  const cursor = query.get("cursor") ?? undefined;
  const relative = path`/v1/topics/${name}/dead/groups`;
  const read = useLoad((abort) => get(relative, { cursor }, abort), [name, cursor]);
  return html`<${Loaded} of=${read}>${(data) => (data.groups.length === 0 ? html`<${Empty} title="No dead job.">
      A job is dead when its attempts are spent, when it is killed, or when nobody took it in time.</${Empty}>` : html`<section class="sheet">
    <p class="quiet">Looked at ${count(data.looked_at)} of ${many(data.of, "dead job")}, newest first; numbers and quoted text of errors are cut.
      ${data.other > 0 ? ` ${many(data.other, "job")} of rarer causes are not listed.` : ""}</p>
    <${Table} title="Dead jobs by cause" columns=${["cause", "#jobs", "#first", "#last", ""]}>
      ${data.groups.map((group) => html`<${Row} key=${group.error} topic=${name} group=${group} />`)}</${Table}>
    <div class="toolbar spread"><a href=${link("t", name, "jobs", { state: "dead", newest: "true" })}>one by one</a>
      ${data.cursor && html`<a href=${link("t", name, "dead", { cursor: data.cursor })}>older</a>`}</div></section>`)}</${Loaded}>
    <${AsCommand} command=${reads(relative, { cursor }, ["dead", "ls", name])} />`;
}
