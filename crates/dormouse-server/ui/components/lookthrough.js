// An explicit, bounded look for text in bodies, keys and errors: page by page, with progress and stop.
import { get, path } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { bodyOf } from "./body.js";
import { JobTable } from "./jobtable.js";
import { count } from "./text.js";

const PAGE = 100;
const FOUND_MAX = 200;

function has(job, text) {
  const body = bodyOf(job);
  return body.text.includes(text) || (job.key ?? "").includes(text) || (job.error ?? "").includes(text) ||
    Object.entries(job.headers ?? {}).some(([name, value]) => name.includes(text) || value.includes(text));
}

export function LookThrough({ topic, query }) {
  const [text, setText] = useState("");
  const [max, setMax] = useState(1000);
  const [state, setState] = useState(undefined);
  const abort = useRef(undefined);
  // Nothing goes on unseen.
  useEffect(() => () => abort.current?.abort(), []);
  const look = async (event) => {
    event.preventDefault();
    if (text === "") return;
    abort.current?.abort();
    const own = new AbortController();
    abort.current = own;
    const found = [];
    let looked = 0;
    let cursor;
    const show = (more) => { if (abort.current === own) setState({ found: [...found], looked, ...more }); };
    show({ isRunning: true });
    try {
      do {
        const page = await get(path`/v1/topics/${topic}/jobs`, { ...query, cursor, limit: PAGE }, own.signal);
        found.push(...page.jobs.filter((job) => has(job, text)));
        looked += page.jobs.length;
        cursor = page.cursor;
        show({ isRunning: true });
      } while (cursor && looked < max && found.length < FOUND_MAX);
      show({ isWhole: !cursor });
    } catch (problem) {
      show({ problem: problem.code === "aborted" ? undefined : problem });
    }
  };
  const summary = (s) => `${count(s.found.length)} found, ${count(s.looked)} looked at${s.isRunning ? "…" : s.isWhole ? ", that is all" : ", there are more"}`;
  return html`<details class="sheet"><summary>Look through jobs for text</summary>
    <form class="toolbar" onSubmit=${look}>
      <label>text <input type="text" value=${text} spellcheck="false" onInput=${(e) => setText(e.target.value)} /></label>
      <label>in up to <select onChange=${(e) => setMax(Number(e.target.value))}>
        ${[1000, 10_000, 100_000].map((n) => html`<option value=${n} selected=${n === max}>${count(n)}</option>`)}</select> jobs</label>
      <button type="submit">Look</button>
      ${state?.isRunning && html`<button type="button" onClick=${() => { abort.current.abort(); setState({ ...state, isRunning: false }); }}>Stop</button>`}
      ${state && html`<span class="quiet" role="status">${summary(state)}</span>`}
    </form>
    ${state?.isRunning && html`<progress max=${max} value=${state.looked}></progress>`}
    ${state?.problem && html`<p class="note is-bad" role="alert">${state.problem.message}</p>`}
    ${state?.found.length > 0 && html`<${JobTable} list=${state.found} state=${query.state} />`}
  </details>`;
}
