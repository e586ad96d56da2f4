// The states of a job, each with a shape and a word of its own: colour only repeats them.
import { html } from "../html.js";

const SHAPES = {
  delayed: () => html`<circle cx="8" cy="8" r="6" /><path d="M8 4.5V8l2.5 1.5" />`,
  ready: () => html`<path class="full" d="M4 2.5 13 8l-9 5.5z" />`,
  leased: () => html`<circle cx="8" cy="8" r="6" /><path class="full" d="M8 2a6 6 0 0 1 0 12z" />`,
  dead: () => html`<path d="M3 3l10 10M13 3 3 13" />`,
  done: () => html`<path d="M2.5 8.5 6.5 12.5 13.5 4" />`,
  paused: () => html`<path d="M5.5 3v10M10.5 3v10" />`,
  waiting: () => html`<circle cx="8" cy="8" r="6" /><path d="M8 4.5V8l2.5 1.5" />`,
  busy: () => html`<circle cx="8" cy="8" r="6" /><path class="full" d="M8 2a6 6 0 0 1 0 12z" />`,
  broken: () => html`<path d="M8 2 14.5 13.5h-13z M8 6v4" />`,
  good: () => html`<path d="M2.5 8.5 6.5 12.5 13.5 4" />`,
};

export function Shape({ of }) {
  const draw = SHAPES[of] ?? SHAPES.waiting;
  return html`<svg class=${`shape is-${of}`} viewBox="0 0 16 16" aria-hidden="true">${draw()}</svg>`;
}

export const State = ({ of, children }) =>
  html`<span class=${`state is-${of}`}><${Shape} of=${of} />${children ?? of}</span>`;
