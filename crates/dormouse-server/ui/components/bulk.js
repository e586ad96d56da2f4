// One verb for many jobs: pages of ids, with progress, pause and stop, and an account at the end.
import { changes, closeDialog } from "../actions.js";
import { call, get, path } from "../api.js";
import { jobs, reads, topics } from "../commands.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { CommandLines } from "./commandline.js";
import { Modal } from "./dialog.js";
import { Table, count, many } from "./text.js";

const PAGE = 500;
const FAILED_SHOWN_MAX = 50;

const TRIES_MAX = 5;

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A server that is busy or being restarted is asked again, a little later each time.
async function patiently(control, work) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (problem) {
      if (!problem.retryable || tries === TRIES_MAX || control.isStopped) throw problem;
      await wait(500 * 2 ** tries);
    }
  }
}

// Yields lists of ids: those that were checked, or all that the query and `fits` find, at most `total`.
async function* pagesOf({ ids, topic, query, total, fits = () => true }, control) {
  if (ids) {
    for (let at = 0; at < ids.length; at += PAGE) yield ids.slice(at, at + PAGE);
    return;
  }
  let cursor;
  let left = total;
  do {
    const wanted = { ...query, cursor, limit: PAGE, bodies: false };
    const page = await patiently(control, () => get(path`/v1/topics/${topic}/jobs`, wanted, control.abort.signal));
    const found = page.jobs.filter(fits).slice(0, left);
    if (found.length > 0) yield found.map((job) => job.id);
    left -= found.length;
    cursor = page.cursor;
  } while (cursor && left > 0 && !control.isStopped);
}

// Runs until the end or the stop. `control`: {isPaused, isStopped, perSecond}; `show(account)` each page.
async function run(work, control, show) {
  const account = { done: 0, failed: [] };
  for await (const ids of pagesOf(work, control)) {
    const size = control.perSecond || ids.length;
    for (let at = 0; at < ids.length; at += size) {
      while (control.isPaused && !control.isStopped) await wait(100);
      if (control.isStopped) return;
      const command = jobs.list(work.verb, ids.slice(at, at + size));
      const { results } = await patiently(control, () => call(command.method, command.path, command));
      for (const result of results) {
        if (result.detail === undefined) account.done += 1;
        else account.failed.push(result);
      }
      show({ ...account });
      if (control.perSecond) await wait(1000);
    }
  }
}

// The same in one line, where there is one: what the topic's own calls can do, or else the list.
function commandOf({ verb, ids, topic, query, total }) {
  if (ids) return jobs.list(verb, ids.slice(0, PAGE));
  const isWhole = query.from === undefined && query.to === undefined;
  if (isWhole && query.state === "dead") return topics.dead(verb, topic, query.error_prefix, total);
  if (isWhole && verb === "run") return topics.kick(topic, total);
  return reads(path`/v1/topics/${topic}/jobs`, query, ["ls", topic, "--state", query.state, "--all"]);
}

function Account({ account, total, end }) {
  const left = Math.max(0, total - account.done - account.failed.length);
  return html`
    <progress max=${total} value=${account.done + account.failed.length} aria-label="Progress"></progress>
    <p role="status">${end ? (end.isStopped ? "Stopped. " : "Ended. ") : ""}<strong>${count(account.done)} done</strong>, ${count(account.failed.length)} failed, ${count(left)} left.</p>
    ${end?.problem && html`<p class="note is-bad" role="alert">${end.problem.message}</p>`}
    ${account.failed.length > 0 && html`<${Table} title="What failed" isShort columns=${["id", "code", "why"]}>
      ${account.failed.slice(0, FAILED_SHOWN_MAX).map((one) => html`<tr><th scope="row">${one.id}</th><td>${one.code}</td><td>${one.detail}</td></tr>`)}</${Table}>`}`;
}

// ids: those that were checked; otherwise all of `query` in `topic` that fit, of which there were `total`.
export function Bulk(work) {
  const { verb, title, topic, ids, query, total, isCut = false, note } = work;
  const size = ids?.length ?? total;
  const [text, setText] = useState("");
  const [rate, setRate] = useState("");
  const [account, setAccount] = useState(undefined);
  const [end, setEnd] = useState(undefined);
  const [isPaused, setPaused] = useState(false);
  const control = useRef({ isPaused: false, isStopped: false, abort: new AbortController() });
  // Leaving the page stops it: nothing goes on unseen.
  useEffect(() => () => { control.current.isStopped = true; }, []);
  const isRate = rate === "" || /^[1-9]\d{0,3}$/.test(rate);
  const isReady = text === topic && isRate;
  const start = async (event) => {
    event.preventDefault();
    if (!isReady || account) return;
    setAccount({ done: 0, failed: [] });
    control.current.perSecond = Number(rate);
    try {
      await run(work, control.current, setAccount);
      setEnd({ isStopped: control.current.isStopped });
    } catch (problem) {
      setEnd({ problem });
    }
    changes.value += 1;
  };
  // A stop waits for the page that is under way, and the account stays until it is read: a browser
  // closes a dialog by Escape whatever we say.
  const isRunning = account && !end;
  const stop = (event) => {
    control.current.isStopped = true;
    if (!isRunning) closeDialog();
    else if (event.type === "close") event.target.showModal();
  };
  const pause = () => {
    control.current.isPaused = !isPaused;
    setPaused(!isPaused);
  };
  return html`<${Modal} title=${`${title}: ${isCut && !ids ? "all in this time" : many(size, "job")}`} onClose=${stop}><form onSubmit=${start}>
    <p>${ids ? `${many(size, "checked job")}` : `${isCut ? "Up to " : ""}${many(size, "job")} in state ${query.state}`} of <strong class="mono">${topic}</strong>${note}.
      ${" "}${verb === "cancel" ? "They are removed for ever." : ""}</p>
    ${account ? html`<${Account} account=${account} total=${size} end=${end} />` : html`
      <label class="field">Type the topic's name to go on
        <input type="text" autocomplete="off" spellcheck="false" value=${text} onInput=${(e) => setText(e.target.value)} /></label>
      <label class="field">Jobs per second, at most; empty: as fast as it goes
        <input type="text" name="rate" inputmode="numeric" value=${rate} aria-invalid=${!isRate} onInput=${(e) => setRate(e.target.value.trim())} />
        ${!isRate && html`<span class="hint is-bad">a number from 1 to 9999</span>`}</label>
      <${CommandLines} command=${commandOf(work)} />`}
    <div class="buttons">
      <button type="button" data-harmless onClick=${stop}>${end ? "Close" : account ? "Stop" : "Keep as they are"}</button>
      ${isRunning && html`<button type="button" onClick=${pause}>${isPaused ? "Go on" : "Pause"}</button>`}
      ${!account && html`<button type="submit" class=${verb === "cancel" || verb === "kill" ? "danger" : "primary"} disabled=${!isReady}>${title}</button>`}
    </div></form></${Modal}>`;
}
