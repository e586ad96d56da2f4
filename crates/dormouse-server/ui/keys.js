// Keys. A letter clicks the control that says `data-key="letter"`: in the row that has the focus, or
// else the page's own. So a key can do nothing that a visible button does not do.
import { dialog, openDialog } from "./actions.js";
import { signal } from "./html.js";
import { isLive } from "./live.js";
import { remember, remembered } from "./memory.js";
import { go, route } from "./router.js";
import { usesUtc } from "./time.js";

export const keysAreOn = signal(remembered("keys", "true") === "true");

export function switchKeys(isOn) {
  keysAreOn.value = isOn;
  remember("keys", String(isOn));
}

const THEMES = ["auto", "light", "dark"];
export const theme = signal(remembered("theme", "auto"));

export function showTheme() {
  if (theme.value === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = theme.value;
  dispatchEvent(new Event("dormouse-theme"));
}

export function nextTheme() {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length];
  remember("theme", theme.value);
  showTheme();
}

export function switchUtc() {
  usesUtc.value = !usesUtc.value;
  remember("utc", String(usesUtc.value));
}

export const switchLive = () => { isLive.value = !isLive.value; };

// The keys of the help dialog, in its order.
export const HELP = [
  ["/", "search"], ["?", "this help"], ["g o", "overview"], ["g t", "topics"],
  ["g d", "dead jobs"], ["g e", "events"], ["g s", "schedules"], ["g p", "put a job"], ["j, k", "next, previous row"],
  ["Enter", "open the row"], ["x", "check the row"], ["Shift X", "check up to the row"], [".", "menu of the row"],
  ["r", "run now"], ["c", "cancel"], ["v", "revive"], ["Space", "load what changed"], ["p", "live figures on, off"],
  ["t", "light, dark, as the system"], ["u", "UTC or local time"], ["Esc", "close, or go back"],
];

// The dead jobs of the topic that is shown, or the topics with most of them.
const dead = ([screen, topic]) => (screen === "t" ? ["t", topic, "dead"] : ["topics", { sort: "dead" }]);
const PAGES = { o: [], t: ["topics"], d: dead, e: ["tail"], s: ["schedules"], p: ["put"] };

let awaitsPage = 0;

const rows = () => [...document.querySelectorAll("main tr[data-row]")];
const rowOf = (element) => element?.closest?.("tr[data-row]");

function step(by) {
  const all = rows();
  if (all.length === 0) return;
  const at = all.indexOf(rowOf(document.activeElement));
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
  all[next].focus();
  all[next].scrollIntoView({ block: "nearest" });
}

// Without a row that has the focus, the buttons of rows are nobody's.
function click(selector) {
  const row = rowOf(document.activeElement);
  const found = row ? row.querySelector(selector) : [...document.querySelectorAll(`main ${selector}`)].find((one) => !rowOf(one));
  found?.click();
  return Boolean(found);
}

// Checks all rows from the last checked one to this one.
function checkRange() {
  const all = rows();
  const here = all.indexOf(rowOf(document.activeElement));
  const boxes = all.map((row) => row.querySelector('input[type="checkbox"]'));
  const from = boxes.findLastIndex((box, index) => index < here && box?.checked);
  for (let at = Math.max(from, 0); at <= here; at += 1) if (boxes[at] && !boxes[at].checked) boxes[at].click();
}

const ACTIONS = {
  "/": () => document.querySelector("#search")?.focus(),
  "?": () => openHelp(),
  j: () => step(1),
  k: () => step(-1),
  x: () => rowOf(document.activeElement)?.querySelector('input[type="checkbox"]')?.click(),
  X: checkRange,
  ".": () => {
    const menu = rowOf(document.activeElement)?.querySelector("details.menu");
    if (!menu) return;
    menu.open = !menu.open;
    menu.querySelector(menu.open ? "button" : "summary")?.focus();
  },
  Enter: () => click("a[data-open]"),
  Escape: () => back(),
  p: switchLive,
  t: nextTheme,
  u: switchUtc,
  g: () => { awaitsPage = Date.now(); },
};

let openHelp = () => {};
export const onHelp = (view) => { openHelp = () => openDialog(view); };

function back() {
  const menu = document.querySelector("details.menu[open]");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  } else if (history.length > 1 && location.hash.length > 2) {
    history.back();
  }
}

const takesText = (element) => element?.matches?.("textarea, select, [contenteditable], input:not([type=checkbox], [type=radio])");
// Enter and space belong to the control that has the focus.
const isControl = (element) => element?.matches?.("button, a, summary, input, select");

export function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || dialog.value) return;
  const target = event.target;
  if (takesText(target)) {
    if (event.key === "Escape") target.blur();
    return;
  }
  if (!keysAreOn.value && !["Escape", "Enter", "?"].includes(event.key)) return;
  if ((event.key === "Enter" || event.key === " ") && isControl(target)) return;
  if (Date.now() - awaitsPage < 1500 && PAGES[event.key]) {
    awaitsPage = 0;
    const page = PAGES[event.key];
    go(...(typeof page === "function" ? page(route.value.steps) : page));
  } else if (Object.hasOwn(ACTIONS, event.key)) {
    ACTIONS[event.key]();
  } else if (/^[a-z ]$/.test(event.key)) {
    if (!click(`[data-key="${event.key}"]`)) return;
  } else {
    return;
  }
  event.preventDefault();
}
