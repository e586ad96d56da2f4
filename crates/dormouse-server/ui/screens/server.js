// The server itself: what it is, how it is configured, who we are, and what operators changed.
import {
  act, AsCommand, Exact, get, html, Instant, link, Loaded, may, maySee, reads, Table, Title, useLoad, useSignal, who,
} from "../kit.js";

const PAGE = 50;
const REFRESH_MS = 5000;

const backup = { method: "POST", path: "v1/backups", json: {}, cli: ["backup"], title: "Back up", timeoutMs: 3_600_000 };

function About() {
  const { server, name, open: isOpen, scopes = [], verbs = {}, read_only: isReadOnly } = useSignal(who);
  const only = (verbs.somewhere ?? []).filter((verb) => !(verbs.everywhere ?? []).includes(verb));
  return html`<div class="pair"><section class="sheet"><h2>Server</h2><dl class="facts">
      <dt>version</dt><dd>${server.version}</dd><dt>backend</dt><dd>${server.backend}</dd>
      ${server.durability && html`<dt>durability</dt><dd>${server.durability}</dd>`}
      <dt>started</dt><dd><${Instant} at=${server.started_at} both=${true} /></dd>
      <dt>console</dt><dd>${server.ui.mode === "view" ? "view only" : server.ui.mode}</dd></dl>
      ${may("backup") && html`<div class="buttons"><button type="button" onClick=${() => act({ ...backup, done: "The backup is written." })}>Back up</button></div><${AsCommand} command=${backup} />`}
    </section><section class="sheet"><h2>You</h2><dl class="facts">
      <dt>name</dt><dd><${Exact} text=${name} /></dd>
      <dt>access</dt><dd>${isOpen ? "no token is configured: everybody may do everything" : isReadOnly ? "read only" : "read and change"}</dd>
      ${scopes.length > 0 && html`<dt>scopes</dt><dd class="mono">${scopes.join(", ")}</dd>`}
      <dt>on all topics</dt><dd>${(verbs.everywhere ?? []).join(", ") || "nothing"}</dd>
      ${only.length > 0 && html`<dt>on some topics</dt><dd>${only.join(", ")}</dd>`}</dl></section></div>`;
}

function Configuration() {
  const read = useLoad((abort) => get("v1/config", {}, abort), []);
  return html`<section class="sheet"><h2>Configuration</h2><${Loaded} of=${read}>${(data) => html`<${Table} title="Options in effect" isShort columns=${["option", "value", "from"]}>
    ${data.options.map((option) => html`<tr><th scope="row">${option.name}</th><td class="mono"><${Exact} text=${option.value} /></td><td>${option.source}</td></tr>`)}</${Table}>`}</${Loaded}>
    <${AsCommand} command=${reads("v1/config")} /></section>`;
}

function Audit({ query }) {
  const cursor = query.get("cursor") ?? undefined;
  const read = useLoad((abort) => get("v1/audit", { cursor, limit: PAGE }, abort), [cursor], REFRESH_MS);
  return html`<section class="sheet"><h2>Changes by operators</h2><${Loaded} of=${read}>${(data) => (data.entries.length === 0 ? html`<p class="none">None since this server started.</p>` : html`
    <${Table} title="Changes by operators, newest first" columns=${["when", "who", "from", "what", "#status"]}>${data.entries.map((entry) => html`<tr><td><${Instant} at=${entry.at} /></td><td>${entry.token ?? "everybody"}</td><td>${entry.peer}${entry.ui ? ", console" : ""}</td>
      <td class="mono">${entry.call.split(" ")[0]} <${Exact} text=${entry.target} /></td><td class="number">${entry.status}</td></tr>`)}</${Table}>
    <div class="toolbar">${cursor && html`<a href=${link("server")}>newest</a>`}${data.cursor && html`<a href=${link("server", { cursor: data.cursor })}>older</a>`}</div>`)}</${Loaded}>
    <p class="quiet">The last 1,000 since the start.</p><${AsCommand} command=${reads("v1/audit", { limit: PAGE })} /></section>`;
}

export function Server({ query }) {
  return html`<div class="head"><${Title} name="Server" /></div><${About} />
    ${maySee("inspect") ? html`<${Configuration} /><${Audit} query=${query} />` : html`<p class="note">Configuration and changes need the right <strong>inspect</strong>, which your token does not have.</p>`}`;
}
