// The frame around every screen: navigation, search, switches, banners, toasts.
import { act, closeDialog, dismiss, toasts } from "../actions.js";
import { trouble, token } from "../api.js";
import { html, useEffect, useRef, useSignal, useState } from "../html.js";
import { HELP, keysAreOn, nextTheme, switchKeys, switchLive, switchUtc, theme } from "../keys.js";
import { gap, isLive, pulse } from "../live.js";
import { go, link, route } from "../router.js";
import { may, place, signOut, who } from "../session.js";
import { clock, usesUtc } from "../time.js";
import { Modal } from "./dialog.js";
import { Exact } from "./text.js";

const PAGES = [
  ["", "Overview"], ["topics", "Topics"], ["schedules", "Schedules"], ["tail", "Events"],
  ["locks", "Locks"], ["connections", "Connections"], ["put", "Put a job"],
  ["server", "Server"],
];

function Navigation({ pages }) {
  const { steps } = useSignal(route);
  const here = { t: "topics", j: "topics", k: "topics" }[steps[0]] ?? steps[0] ?? "";
  const shown = PAGES.filter(([name]) => pages.has(name) && (name !== "put" || may("put")));
  return html`<nav class="side" aria-label="Screens">
    <a class="brand" href="#/" aria-label="Dormouse"><img src="icon.svg" alt="" /><span>Dormouse</span></a>
    <ul>${shown.map(([name, title]) => html`
      <li><a href=${link(...(name ? [name] : []))} aria-current=${here === name ? "page" : undefined}>${title}</a></li>`)}</ul>
  </nav>`;
}

// An id, "topic key", or the beginning of topics' names.
function find(text) {
  const words = text.trim();
  if (/^\d{1,20}$/.test(words)) return go("j", words);
  const keyed = /^(\S+)\s+(.+)$/s.exec(words);
  if (keyed) return go("k", keyed[1], keyed[2]);
  return go("topics", { prefix: words });
}

function Search() {
  const submit = (event) => {
    event.preventDefault();
    const input = event.target.elements.search;
    find(input.value);
    input.blur();
  };
  return html`<form role="search" onSubmit=${submit}>
    <input id="search" name="search" type="search" aria-label="Search: job id, topic and key, or topic"
      placeholder="id, topic key, or topic ( / )" autocomplete="off" spellcheck="false" />
  </form>`;
}

export function Help() {
  const isOn = useSignal(keysAreOn);
  return html`<${Modal} title="Keys">
    <div class="keys">${HELP.map(([key, what]) => html`<span><kbd>${key}</kbd></span><span>${what}</span>`)}</div>
    <label><input type="checkbox" checked=${isOn} onChange=${(e) => switchKeys(e.target.checked)} /> Keys of one letter are on</label>
    <p class="quiet">They are off while you write in a field. A letter that acts on a job clicks its button: the row's, or the page's.</p>
    <div class="buttons"><button type="button" data-harmless onClick=${() => closeDialog()}>Close</button></div>
  </${Modal}>`;
}

function Tools({ onHelp }) {
  const live = useSignal(isLive);
  const utc = useSignal(usesUtc);
  const name = useSignal(theme);
  const answer = useSignal(who);
  const hasToken = useSignal(token) !== undefined;
  return html`<div class="top-tools">
    <button type="button" class="plain" aria-pressed=${live} title="Live figures (p)" onClick=${switchLive}>${live ? "Live" : "Held"}</button>
    <button type="button" class="plain" title="UTC or local time (u)" onClick=${switchUtc}>${utc ? "UTC" : "Local"}</button>
    <button type="button" class="plain" title="Theme (t)" onClick=${nextTheme}>${{ auto: "Auto", light: "Light", dark: "Dark" }[name]}</button>
    <button type="button" class="plain" aria-label="Keys and help" title="Keys (?)" onClick=${onHelp}>?</button>
    ${hasToken && html`<button type="button" class="plain" title=${`Signed in as ${answer?.name}`} onClick=${signOut}>Sign out</button>`}
  </div>`;
}

// Tells what is wrong with the server, and for how long.
function Banner() {
  const problem = useSignal(trouble);
  const [, tick] = useState(0);
  useEffect(() => {
    if (!problem) return undefined;
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, [problem]);
  if (!problem) return null;
  const seconds = Math.round((Date.now() - problem.since) / 1000);
  return html`<div class="banner" role="alert">${problem.text} What you see is from before ${clock(problem.since)}
    ${" "}(${seconds} s ago); asking again every second.</div>`;
}

function Gap() {
  const at = useSignal(gap);
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    if (!at) return undefined;
    setShown(true);
    const timer = setTimeout(() => setShown(false), 10_000);
    return () => clearTimeout(timer);
  }, [at]);
  return isShown ? html`<p class="note">The stream of figures had a gap until ${clock(at)}; everything was read again.</p>` : null;
}

// A summary for those who hear the page, at most every ten seconds.
function Spoken() {
  const [text, setText] = useState("");
  useEffect(() => {
    const timer = setInterval(() => {
      const all = pulse.value?.all;
      if (all) setText(`${all.ready ?? all.waiting} jobs ${all.ready === undefined ? "wait" : "ready"}, ${all.leased} leased, ${all.dead} dead`);
    }, 10_000);
    return () => clearInterval(timer);
  }, []);
  return html`<div class="off-screen" aria-live="polite">${text}</div>`;
}

function Toasts() {
  const shown = useSignal(toasts);
  return html`<div class="toasts" role="status">${shown.map((toast) => html`
    <div key=${toast.key} class=${`toast ${toast.isError ? "is-bad" : ""}`}><span><${Exact} text=${toast.text} /></span>
      ${toast.undo && html`<button type="button" onClick=${() => { dismiss(toast); act(toast.undo); }}>Undo</button>`}
      <button type="button" aria-label="Dismiss" onClick=${() => dismiss(toast)}>×</button></div>`)}</div>`;
}

export function Shell({ pages, onHelp, children }) {
  useSignal(who);
  const where = place();
  const main = useRef(null);
  const { steps } = useSignal(route);
  const view = steps.join("/");
  // A screen reader hears the new title; the first screen of a visit keeps the browser's focus.
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isFirst.current) main.current.querySelector("h1")?.focus();
    isFirst.current = false;
    scrollTo(0, 0);
  }, [view]);
  return html`<${Banner} />
    <div class="shell">
      <${Navigation} pages=${pages} />
      <header class="top">
        ${where.name && html`<span class=${`place is-${where.color ?? "none"}`}>${where.name}</span>`}
        ${where.mode === "view" && html`<span class="quiet">view only</span>`}
        <${Search} /><${Tools} onHelp=${onHelp} />
      </header>
      <main ref=${main}><${Gap} />${children}</main>
    </div>
    <${Spoken} /><${Toasts} />`;
}

export const Title = ({ children, name }) => {
  useEffect(() => { document.title = `${name} – Dormouse`; }, [name]);
  return html`<h1 tabindex="-1">${children ?? html`<${Exact} text=${name} />`}</h1>`;
};
