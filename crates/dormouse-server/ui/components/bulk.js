// One verb for many jobs: pages of ids, with progress, pause and stop, and an account at the end.
import { changes, closeDialog } from "../actions.js";
import { call, get, path } from "../api.js";
import { jobs } from "../commands.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { CommandLines } from "./commandline.js";
import { Modal } from "./dialog.js";
import { Table, count, many } from "./text.js";

const PAGE = 500;
const FAILED_SHOWN_MAX = 50;

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Yields lists of ids: those that were checked, or all that the query finds, at most `total`.
async function* pagesOf({ ids, topic, query, total }, abort) {
  if (ids) {
    for (let at = 0; at < ids.length; at += PAGE) yield ids.slice(at, at + PAGE);
    return;
  }
  let cursor;
  let left = total;
  do {
    const page = await get(path`/v1/topics/${topic}/jobs`, { ...query, cursor, limit: Math.min(PAGE, left), bodies: false }, abort);
    if (page.jobs.length > 0) yield page.jobs.map((job) => job.id);
    left -= page.jobs.length;
    cursor = page.cursor;
  } while (cursor && left > 0);
}

// Runs until the end or the stop. `control`: {isPaused, isStopped, perSecond}; `show(account)` each page.
async function run(work, control, show) {
  const account = { done: 0, failed: [] };
  for await (const ids of pagesOf(work, control.abort.signal)) {
    const size = control.perSecond ?? ids.length;
    for (let at = 0; at < ids.length; at += size) {
      while (control.isPaused && !control.isStopped) await wait(100);
      if (control.isStopped) return account;
      const part = ids.slice(at, at + size);
      const command = jobs.list(work.verb, part);
      const { results } = await call(command.method, command.path, command);
      for (const result of results) {
        if (result.detail === undefined) account.done += 1;
        else account.failed.push(result);
      }
      show({ ...account });
      if (control.perSecond) await wait(1000);
    }
  }
  return account;
}

function Account({ account, total, isEnded, problem }) {
  const left = Math.max(0, total - account.done - account.failed.length);
  return html`
    <progress max=${total} value=${account.done + account.failed.length} aria-label="Progress"></progress>
    <p role="status">${isEnded ? "Ended. " : ""}<strong>${count(account.done)} done</strong>, ${count(account.failed.length)} failed, ${count(left)} left.</p>
    ${problem && html`<p class="note is-bad" role="alert">${problem.message}</p>`}
    ${account.failed.length > 0 && html`<${Table} title="What failed" isShort columns=${["id", "code", "why"]}>
      ${account.failed.slice(0, FAILED_SHOWN_MAX).map((one) => html`<tr><th scope="row">${one.id}</th><td>${one.code}</td><td>${one.detail}</td></tr>`)}</${Table}>`}`;
}

// ids: those that were checked; otherwise all of `query` in `topic`, of which there were `total`.
export function Bulk({ verb, title, topic, ids, query, total, isCut = false, perSecond }) {
  const size = ids?.length ?? total;
  const [text, setText] = useState("");
  const [account, setAccount] = useState(undefined);
  const [end, setEnd] = useState(undefined);
  const [isPaused, setPaused] = useState(false);
  const control = useRef({ isPaused: false, isStopped: false, abort: new AbortController(), perSecond });
  // Closing the dialog stops it: nothing goes on unseen.
  useEffect(() => () => { control.current.isStopped = true; }, []);
  const isReady = text === topic;
  const start = async (event) => {
    event.preventDefault();
    if (!isReady || account) return;
    setAccount({ done: 0, failed: [] });
    try {
      await run({ verb, ids, topic, query, total }, control.current, setAccount);
      setEnd({});
    } catch (problem) {
      setEnd({ problem });
    }
    changes.value += 1;
  };
  // A stop waits for the page that is under way, so that the account is right.
  const stop = () => {
    if (!account || end) closeDialog();
    control.current.isStopped = true;
  };
  const pause = () => {
    control.current.isPaused = !isPaused;
    setPaused(!isPaused);
  };
  return html`<${Modal} title=${`${title}: ${isCut && !ids ? "all in this time" : many(size, "job")}`}><form onSubmit=${start}>
    <p>${ids ? `${many(size, "checked job")}` : `${isCut ? "Up to " : ""}${many(size, "job")} in state ${query.state}`} of <strong class="mono">${topic}</strong>,
      ${" "}${count(perSecond ?? PAGE)} at a time${perSecond ? ", once a second" : ""}. ${verb === "cancel" ? "They are removed for ever." : ""}</p>
    ${account ? html`<${Account} account=${account} total=${size} isEnded=${end !== undefined} problem=${end?.problem} />` : html`
      <label class="field">Type the topic's name to go on
        <input type="text" autocomplete="off" spellcheck="false" value=${text} onInput=${(e) => setText(e.target.value)} /></label>
      ${ids && html`<${CommandLines} command=${jobs.list(verb, ids.slice(0, PAGE))} />`}`}
    <div class="buttons">
      <button type="button" data-harmless onClick=${stop}>${end ? "Close" : account ? "Stop" : "Keep as they are"}</button>
      ${account && !end && html`<button type="button" onClick=${pause}>${isPaused ? "Go on" : "Pause"}</button>`}
      ${!account && html`<button type="submit" class=${verb === "cancel" || verb === "kill" ? "danger" : "primary"} disabled=${!isReady}>${title}</button>`}
    </div></form></${Modal}>`;
}
