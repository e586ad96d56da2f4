// Text that strangers wrote, shown exactly: it is never markup, and what cannot be seen is named.
import { html, useSignal, useState } from "../html.js";
import { absolute, minuteHand, relative, toMs, usesUtc } from "../time.js";

// Controls, marks that turn the direction of text, invisible and unpaired characters.
const HIDDEN = new RegExp(
  "([\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e" +
  "\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]|[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff])",
);

const codeOf = (c) => `U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

// The text with each hidden character as its number in a frame.
export function Exact({ text }) {
  const pieces = String(text).split(HIDDEN);
  const piece = (part, index) => (index % 2 === 0 ? part : html`<span class="hidden-char">${codeOf(part)}</span>`);
  return html`<bdi class="exact">${pieces.map(piece)}</bdi>`;
}

// A key or a group is text, or bytes that are no text.
export function Name({ of, field }) {
  if (of[field] !== undefined) return html`<${Exact} text=${of[field]} />`;
  const bytes = of[`${field}_base64`];
  return bytes === undefined ? html`<span class="none">none</span>` : html`<span class="mono">base64 ${bytes}</span>`;
}

// An instant: how far it is, with the exact time as its title, or both.
export function Instant({ at, both = false }) {
  useSignal(usesUtc);
  useSignal(minuteHand);
  if (at === undefined || at === null) return html`<span class="none">never</span>`;
  const exact = absolute(at);
  const distance = relative(at);
  const machine = new Date(toMs(at)).toJSON() ?? undefined;
  if (!both) return html`<time datetime=${machine} title=${exact}>${distance}</time>`;
  return html`<time datetime=${machine}>${exact} <span class="quiet">${distance}</span></time>`;
}

const numbers = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
export const count = (n) => (typeof n === "number" ? numbers.format(n) : "?");

// "1 job", "2 jobs".
export const many = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

// What a sorted page of topics was chosen from.
export const surveyed = ({ looked_at: looked, complete: isWhole }) => `${many(looked, "topic")}${isWhole === false ? " so far" : ""}`;

export function bytes(n) {
  if (typeof n !== "number") return "?";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (n >= 1024 && unit < 4) {
    n /= 1024;
    unit += 1;
  }
  return `${Number(n.toFixed(n < 10 && unit > 0 ? 1 : 0))} ${units[unit]}`;
}

// Copies text. Pages from another host over plain HTTP have no clipboard API: they copy a selection.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "off-screen";
  // Inside a dialog only what belongs to it can be selected.
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const worked = document.execCommand("copy");
  area.remove();
  if (!worked) throw new Error("the browser does not allow it");
  return undefined;
}

export function Copy({ text, label = "Copy" }) {
  const [shown, setShown] = useState(label);
  const onClick = async () => {
    try {
      await copy(typeof text === "function" ? text() : text);
      setShown("Copied");
    } catch {
      setShown("Select and copy by hand");
    }
    setTimeout(() => setShown(label), 2000);
  };
  return html`<button type="button" class="plain" onClick=${onClick} aria-live="polite">${shown}</button>`;
}

// Gives bytes or text to the browser as a file.
export function download(name, parts, type = "application/octet-stream") {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(new Blob(parts, { type }));
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10_000);
}

// A table with its title for those who hear it. A column that begins with # holds numbers; one without a
// name has a control, or nothing.
export function Table({ title, columns, children, isShort = false }) {
  const head = (name) => (name === "" || typeof name !== "string" ? html`<td>${name}</td>` : html`<th scope="col" class=${name[0] === "#" ? "number" : ""}>${name.replace("#", "")}</th>`);
  return html`<div class=${`scroll ${isShort ? "is-short" : ""}`} tabindex="0" role="region" aria-label=${title}><table><caption class="off-screen">${title}</caption><thead><tr>${columns.map(head)}</tr></thead><tbody>${children}</tbody></table></div>`;
}
