// Reading data for a view: waiting, problems, and looking again without disturbing the reader.
import { changes, dialog } from "../actions.js";
import { html, useEffect, useRef, useSignal, useState } from "../html.js";
import { gap, isLive } from "../live.js";
import { Exact } from "./text.js";

// How many rows are checked: nothing changes under the hand.
export const checked = { count: 0 };

export function isHeld() {
  const selection = getSelection();
  return !isLive.value || document.hidden || dialog.value !== undefined || checked.count > 0 ||
    (selection !== null && !selection.isCollapsed);
}

// Calls `load(abort)` when `deps` change, after each change made here, and every `everyMs` while live.
// {data, problem, isLoading, reload}; the last data stay while new ones are read.
export function useLoad(load, deps, everyMs) {
  const [state, setState] = useState({ isLoading: true });
  const [round, setRound] = useState(0);
  const made = useSignal(changes);
  const isBusy = useRef(false);
  const shownFor = useRef(undefined);
  const key = JSON.stringify(deps);
  useEffect(() => {
    const abort = new AbortController();
    const isSame = shownFor.current === key;
    shownFor.current = key;
    if (!isSame) setState({ isLoading: true });
    isBusy.current = true;
    load(abort.signal).finally(() => { if (!abort.signal.aborted) isBusy.current = false; }).then(
      (data) => { if (!abort.signal.aborted) setState({ data, isLoading: false }); },
      (problem) => {
        if (!abort.signal.aborted) setState((before) => ({ data: before.data, problem, isLoading: false }));
      },
    );
    return () => abort.abort();
  }, [key, round, made]);
  useEffect(() => {
    // A slow answer is waited for: the next look begins after it.
    const look = () => { if (!isHeld() && !isBusy.current) setRound((n) => n + 1); };
    const timer = everyMs && setInterval(look, everyMs);
    const stop = gap.follow(look);
    return () => {
      clearInterval(timer);
      stop();
    };
  }, [everyMs]);
  return { ...state, reload: () => setRound((n) => n + 1) };
}

export const Trouble = ({ problem, children }) => html`
  <div class="note is-bad" role="alert"><strong>${problem.code ?? "error"}</strong> <${Exact} text=${problem.message} /> ${children}</div>`;

// What a view shows for what it reads: the data as soon as there are some, and a problem beside them.
export function Loaded({ of, children, quiet = false }) {
  const trouble = of.problem && of.problem.code !== "unreachable" && html`<${Trouble} problem=${of.problem} />`;
  if (of.data !== undefined) return html`${trouble}${children(of.data)}`;
  if (of.problem) return trouble || html`<p class="quiet">No figures: the server does not answer.</p>`;
  return quiet ? null : html`<p class="quiet" aria-busy="true">Reading…</p>`;
}
