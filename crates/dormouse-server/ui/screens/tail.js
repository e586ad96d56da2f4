// What happens, as it happens; at most fifty rows a second are drawn.
import {
  amend, AsCommand, clock, count, events, Exact, html, isHeld, isLive, link, Name, reads, Table, Title, toMs,
  useEffect, useRef, useSignal, useState,
} from "../kit.js";
import { AddressField } from "../components/form.js";
import { readAnswer } from "../json.js";

const ROWS_MAX = 200;
const PER_SECOND = 50;
const RETRY_MS = 1000;
const RETRY_MS_MAX = 30_000;
// The server sends a comment before that if nothing happens.
const SILENCE_MS = 60_000;
const KINDS = ["put", "reserved", "acked", "nacked", "released", "expired", "died", "killed", "cancelled", "rescheduled", "revived", "replaced",
  "extended", "trimmed", "tick", "tick_missed", "scheduled", "unscheduled", "paused", "resumed", "purged", "topic_set"];

// Follows the events; {rows, hidden, problem}. A gap of the stream is a row of its own.
function useEvents(query, kind) {
  const [shown, setShown] = useState({ rows: [], hidden: 0 });
  const isWanted = useRef(() => true);
  isWanted.current = (name) => !kind || name === kind;
  useEffect(() => {
    let fresh = [];
    let hidden = 0;
    let number = 0;
    let after;
    const take = (event) => {
      if (event.id) after = event.id;
      const isGap = event.event === "lost";
      if (!isGap && (!isLive.value || !isWanted.current(event.event))) return;
      if (fresh.length >= PER_SECOND && !isGap) {
        hidden += 1;
        return;
      }
      number += 1;
      try {
        fresh.push({ ...readAnswer(event.data), event: event.event, isGap, number });
      } catch {
        fresh.push({ isGap: true, number });
      }
    };
    const timer = setInterval(() => {
      if (fresh.length === 0 || isHeld()) return;
      const rows = fresh.reverse();
      const more = hidden;
      fresh = [];
      hidden = 0;
      setShown((before) => ({ rows: [...rows, ...before.rows].slice(0, ROWS_MAX), hidden: before.hidden + more }));
    }, 1000);
    let current = new AbortController();
    const follow = async (own) => {
      for (let pauseMs = RETRY_MS; !own.aborted; pauseMs = Math.min(2 * pauseMs, RETRY_MS_MAX)) {
        try {
          for await (const event of events("v1/events", { ...query, after }, own, SILENCE_MS)) {
            take(event);
            pauseMs = RETRY_MS;
            setShown((before) => (before.problem ? { ...before, problem: undefined } : before));
          }
        } catch (problem) {
          if (problem.code !== "unreachable" && problem.code !== "aborted") setShown((before) => ({ ...before, problem }));
          // What is wrong with the question stays wrong.
          if (["invalid", "malformed", "forbidden", "unauthorized"].includes(problem.code)) return;
        }
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    };
    // Nobody looks at a hidden tab, and streams are few; it goes on where it was.
    const look = () => {
      current.abort();
      current = new AbortController();
      if (!document.hidden) follow(current.signal);
    };
    document.addEventListener("visibilitychange", look);
    look();
    return () => {
      current.abort();
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [JSON.stringify(query)]);
  return shown;
}

const Row = ({ row, showsTopic }) => (row.isGap
  ? html`<tr class="gap"><td colspan="6">${row.count === undefined ? "some events are missing here" : `${count(row.count)} events are missing here`}</td></tr>`
  : html`<tr data-row tabindex="-1"><td class="mono">${clock(toMs(row.at), true)}</td><th scope="row">${row.event}</th>
    ${showsTopic && html`<td><a href=${link("t", row.topic)}>${row.topic}</a></td>`}
    <td>${row.id && html`<a data-open class="mono" href=${link("j", row.id)}>${row.id}</a>`}</td>
    <td><span class="cut">${(row.key ?? row.key_base64) !== undefined && html`<${Name} of=${row} field="key" />`}</span></td>
    <td>${row.error !== undefined ? html`<span class="cut"><${Exact} text=${row.error} /></span>` : row.attempt ? `attempt ${row.attempt}` : row.schedule ?? ""}</td></tr>`);

export function Events({ query, kind, showsTopic = true }) {
  const live = useSignal(isLive);
  const { rows, hidden, problem } = useEvents(query, kind);
  return html`
    ${problem && html`<p class="note is-bad" role="alert">${problem.message}</p>`}
    <p class="quiet">${live ? "Following; p holds it." : "Held; p goes on."}${hidden > 0 ? ` ${count(hidden)} not shown: more than ${PER_SECOND} a second.` : ""}</p>
    ${rows.length === 0 ? html`<p class="none">Nothing has happened since you came.</p>` : html`
    <${Table} title="Events" columns=${["time", "event", ...(showsTopic ? ["topic"] : []), "id", "key", "more"]}>
      ${rows.map((row) => html`<${Row} key=${row.number} row=${row} showsTopic=${showsTopic} />`)}</${Table}>`}`;
}

export function Tail({ query }) {
  const prefix = query.get("prefix") ?? "";
  const kind = query.get("kind") ?? "";
  const wanted = prefix ? { prefix } : {};
  const isKind = kind === "" || KINDS.includes(kind);
  return html`<div class="head"><${Title} name="Events" />
    <${AddressField} label="topics that begin with" name="prefix" value=${prefix}>
      <label>kind <select onChange=${(e) => amend({ kind: e.target.value })}><option value="">all</option>
        ${KINDS.map((name) => html`<option value=${name} selected=${name === kind}>${name}</option>`)}</select></label></${AddressField}></div>
    ${!isKind && html`<p class="note is-bad" role="alert">There is no event "${kind}".</p>`}
    ${isKind && html`<section class="sheet"><${Events} key=${JSON.stringify(wanted)} query=${wanted} kind=${kind} /></section>`}
    <${AsCommand} command=${reads("v1/events", wanted, ["tail"])} />`;
}
