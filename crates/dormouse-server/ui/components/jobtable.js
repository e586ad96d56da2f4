// Jobs as rows, with a box to check and the actions of each.
import { act } from "../actions.js";
import { jobs } from "../commands.js";
import { html, useEffect } from "../html.js";
import { link } from "../router.js";
import { may } from "../session.js";
import { checked } from "./load.js";
import { Exact, Instant, Name, Table } from "./text.js";

// What `due_at` means in each state.
const WHEN = { delayed: "due", ready: "due since", leased: "lease ends", dead: "died", done: "done" };

// The actions that a job's state and the token allow: [command, key].
export function actionsOf(job) {
  const waits = job.state === "delayed" || job.state === "ready";
  const has = (verb) => may(verb, job.topic);
  return [
    job.state === "delayed" && has("reschedule") && [jobs.run(job), "r"],
    job.state === "dead" && has("revive") && [jobs.revive(job), "v"],
    waits && has("kill") && [jobs.kill(job), undefined],
    job.state !== "done" && has("cancel") && [jobs.cancel(job), "c"],
  ].filter(Boolean);
}

function Row({ job, isChecked, onCheck }) {
  return html`<tr data-row tabindex="-1" class=${isChecked ? "is-checked" : ""}>
    ${onCheck && html`<td><input type="checkbox" aria-label=${`Job ${job.id}`} checked=${isChecked} onChange=${() => onCheck(job.id)} /></td>`}
    <th scope="row"><a data-open class="mono" href=${link("j", job.id)}>${job.id}</a></th>
    <td><span class="cut"><${Name} of=${job} field="key" /></span></td>
    <td class="number"><${Instant} at=${job.due_at} /></td>
    <td class="number">${job.attempts}${job.attempts_max ? html`<span class="quiet"> / ${job.attempts_max}</span>` : ""}</td>
    <td>${job.error === undefined ? "" : html`<span class="cut" title=${job.error}><${Exact} text=${job.error} /></span>`}</td>
    <td class="actions">${actionsOf(job).map(([command, key]) => html`
      <button type="button" class="plain" data-key=${key} aria-label=${`${command.title}, job ${job.id}`} onClick=${() => act(command)}>${command.title}</button>`)}</td></tr>`;
}

// chosen: a Set of ids; onCheck(id) and onCheckAll() change it; without them there are no boxes.
export function JobTable({ list, state, chosen, onCheck, onCheckAll }) {
  useEffect(() => {
    checked.count = chosen?.size ?? 0;
    return () => { checked.count = 0; };
  }, [chosen]);
  const isAll = list.length > 0 && list.every((job) => chosen?.has(job.id));
  const all = html`<input type="checkbox" aria-label="All jobs of this page" checked=${isAll} onChange=${() => onCheckAll(!isAll)} />`;
  const columns = [...(onCheck ? [all] : []), "id", "key", `#${WHEN[state]}`, "#attempts", "last error", ""];
  return html`<${Table} title="Jobs" columns=${columns}>
    ${list.map((job) => html`<${Row} key=${job.id} job=${job} isChecked=${chosen?.has(job.id) ?? false} onCheck=${onCheck} />`)}</${Table}>`;
}
