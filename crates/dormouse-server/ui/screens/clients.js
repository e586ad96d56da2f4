// Who holds what and who waits: locks, consumers, connections.
import {
  act, AsCommand, count, Empty, Exact, get, html, Instant, link, Loaded, locks as commands, many, may, path,
  reads, Table, Title, useLoad,
} from "../kit.js";
import { AddressField } from "../components/form.js";

const PAGE = 100;
const REFRESH_MS = 3000;

// A page by cursor: the next one has an address of its own.
function Paged({ name, query, relative, wanted, cli, deps, children }) {
  const cursor = query.get("cursor") ?? undefined;
  const asked = { ...wanted, cursor, limit: PAGE };
  const read = useLoad((abort) => get(relative, asked, abort), [relative, asked, ...(deps ?? [])], REFRESH_MS);
  return html`<${Loaded} of=${read}>${(data) => html`${children(data)}
      <div class="toolbar">${cursor && html`<a href=${link(name, wanted)}>first page</a>`}
        ${data.cursor && html`<a href=${link(name, { ...wanted, cursor: data.cursor })}>next page</a>`}</div>`}</${Loaded}>
    <${AsCommand} command=${reads(relative, asked, cli)} />`;
}

const Row = ({ lock }) => html`<tr data-row tabindex="-1">
  <th scope="row"><${Exact} text=${lock.name} /></th><td><${Exact} text=${lock.owner} /></td><td class="mono">${lock.fence}</td>
  <td class="number">${lock.depth}</td><td class="number"><${Instant} at=${lock.expires_at} /></td>
  <td class="actions">${may("break_lock", lock.name) && html`<button type="button" class="plain" aria-label=${`Break ${lock.name}`} onClick=${() => act(commands.free(lock))}>Break</button>`}</td></tr>`;

export function Locks({ query }) {
  const prefix = query.get("prefix") ?? "";
  const first = { method: "POST", path: path`/v1/locks/${"deploy"}/acquire`, json: { owner: "me", ttl: "30s" }, cli: ["lock", "deploy", "--", "make", "deploy"] };
  return html`<div class="head"><${Title} name="Locks" /><${AddressField} label="begins with" name="prefix" value=${prefix} /></div>
    <${Paged} name="locks" query=${query} relative="v1/locks" wanted=${{ prefix }} cli=${["lock", "ls"]}>${(data) => (data.locks.length === 0
      ? html`<${Empty} title=${prefix ? `No lock begins with "${prefix}".` : "No lock is held."} command=${prefix ? undefined : first}>A lock is held by one owner until it is released or its time is over.</${Empty}>`
      : html`<section class="sheet"><${Table} title="Locks" columns=${["name", "owner", "fence", "#depth", "#expires", ""]}>
        ${data.locks.map((lock) => html`<${Row} key=${lock.name} lock=${lock} />`)}</${Table}></section>`)}</${Paged}>`;
}

const Who = ({ of }) => html`<td>${of.protocol ?? html`<span class="none">unknown</span>`}</td><td class="mono">${of.peer ?? ""}</td><td>${of.token ?? ""}</td><td>${of.since && html`<${Instant} at=${of.since} />`}</td>`;
const WHO = ["protocol", "address", "token", "since"];

export function Connections({ query }) {
  return html`<div class="head"><${Title} name="Connections" /></div>
    <${Paged} name="connections" query=${query} relative="v1/connections" wanted=${{}}>${(data) => html`<section class="sheet">
      <p class="quiet">${many(data.count, "connection")} open, those first that were opened first.</p>
      <${Table} title="Connections" columns=${["id", ...WHO]}>${data.connections.map((one) => html`<tr data-row tabindex="-1"><th scope="row" class="mono">${one.id}</th><${Who} of=${one} /></tr>`)}</${Table}></section>`}</${Paged}>`;
}
