// All topics: by name with a prefix, or those with the most of something.
import {
  amend, AsCommand, count, Empty, get, html, Instant, isCallable, jobs, link, Loaded, may, reads, span, State, surveyed, Table,
  Title, topics, useEffect, useLoad, useRef, useState,
} from "../kit.js";
import { Menu } from "../components/menu.js";
import { Spark, useRates } from "../components/spark.js";

const PAGE = 50;
const REFRESH_MS = 3000;
const SORTS = [["name", "name"], ["ready", "most ready"], ["dead", "most dead"], ["waiting", "most waiting"], ["oldest", "longest overdue"]];

// The actions of a row; those for many jobs carry the number they will hit.
function itemsOf(topic) {
  const name = topic.topic;
  const has = (verb) => may(verb, name);
  return [
    has("pause") && !topic.paused && [topics.pause(name), "Pause"],
    has("pause") && !topic.paused && [topics.pause(name, "10m"), "Pause for 10 minutes"],
    has("resume") && topic.paused && [topics.resume(name), "Resume"],
    has("kick") && topic.delayed > 0 && [topics.kick(name, topic.delayed), `Make ${count(topic.delayed)} delayed ready`],
    has("revive") && topic.dead > 0 && [topics.revive(name, topic.dead), `Revive ${count(topic.dead)} dead`],
  ].filter(Boolean);
}

const number = (n, isLoud) => html`<td class="number">${n === 0 ? html`<span class="quiet">0</span>` : isLoud ? html`<strong>${count(n)}</strong>` : count(n)}</td>`;

function Row({ topic, rates }) {
  const name = topic.topic;
  const items = itemsOf(topic);
  return html`<tr data-row tabindex="-1">
    <th scope="row"><a data-open href=${link("t", name)}>${name}</a>
      ${topic.paused && html` <${State} of="paused">paused${topic.paused_ms ? `, ${span(topic.paused_ms)} left` : ""}</${State}>`}</th>
    ${number(topic.delayed)}${number(topic.ready)}${number(topic.leased)}${number(topic.dead, true)}
    <td class="number">${topic.oldest_ready_ms ? span(topic.oldest_ready_ms) : ""}</td>
    <td class="number">${topic.waiters || ""}</td>
    <td><${Spark} values=${rates?.put} label=${`puts of ${name}`} /></td>
    <td class="actions">${!isCallable(name) ? html`<span class="quiet">command line only</span>` : items.length > 0 && html`<${Menu} label="⋯" name=${`Actions of ${name}`} items=${items} isSmall=${true} />`}</td></tr>`;
}

const COLUMNS = ["topic", "#delayed", "#ready", "#leased", "#dead", "#oldest ready", "#waiters", "puts", ""];

function Filter({ prefix, sort }) {
  const [text, setText] = useState(prefix);
  const sent = useRef(prefix);
  useEffect(() => {
    const timer = setTimeout(() => {
      if (text === prefix) return;
      sent.current = text;
      amend({ prefix: text, after: undefined });
    }, 250);
    return () => clearTimeout(timer);
  }, [text]);
  // An address that came from elsewhere stands in the field, too.
  useEffect(() => {
    if (prefix !== sent.current) setText(prefix);
    sent.current = prefix;
  }, [prefix]);
  return html`<div class="toolbar">
    <label>begins with <input type="search" value=${text} spellcheck="false" onInput=${(e) => setText(e.target.value)} /></label>
    <label>order <select value=${sort} onChange=${(e) => amend({ sort: e.target.value, after: undefined })}>
      ${SORTS.map(([value, title]) => html`<option value=${value} selected=${value === sort}>${title}</option>`)}</select></label>
  </div>`;
}

function Nothing({ prefix }) {
  if (prefix) return html`<${Empty} title=${`No topic begins with "${prefix}".`}>Names are case sensitive. Clear the field to see all topics.</${Empty}>`;
  return html`<${Empty} title="No topic yet." command=${jobs.put("orders", { body: { order: 42 }, delay: "30m" }, ['{"order":42}', "--delay", "30m"])}>
    A topic exists as soon as it has a job, a setting or a consumer.</${Empty}>`;
}

export function Topics({ query }) {
  const prefix = query.get("prefix") ?? "";
  const sort = query.get("sort") ?? "name";
  const after = query.get("after") ?? undefined;
  const isSort = SORTS.some(([name]) => name === sort);
  const wanted = { prefix, sort: sort === "name" ? undefined : sort, after, limit: PAGE };
  const read = useLoad((abort) => get("v1/topics", isSort ? wanted : { ...wanted, sort: undefined }, abort), [prefix, sort, after], REFRESH_MS);
  const shown = read.data?.topics ?? [];
  const rates = useRates(shown.map((topic) => topic.topic));
  return html`
    <div class="head"><${Title} name="Topics" /><${Filter} key=${after} prefix=${prefix} sort=${sort} /></div>
    ${!isSort && html`<p class="note is-bad" role="alert">There is no order "${sort}"; this is by name.</p>`}
    <${Loaded} of=${read}>${(data) => (data.topics.length === 0 ? html`<${Nothing} prefix=${prefix} />` : html`
      <div class="sheet"><${Table} title="Topics" columns=${COLUMNS}>${data.topics.map((topic) => html`<${Row} key=${topic.topic} topic=${topic} rates=${rates.get(topic.topic)} />`)}</${Table}>
      <div class="toolbar spread">
        <span class="quiet">${data.as_of ? html`${surveyed(data)} compared, <${Instant} at=${data.as_of} />` : `${data.topics.length} topics`}</span>
        <span class="toolbar">${after && html`<a href=${link("topics", { prefix, sort })}>first page</a>`}
          ${data.next && html`<a href=${link("topics", { prefix, sort, after: data.next })}>next page</a>`}</span></div></div>`)}
    </${Loaded}>
    <${AsCommand} command=${reads("v1/topics", wanted, ["topics"])} />`;
}
