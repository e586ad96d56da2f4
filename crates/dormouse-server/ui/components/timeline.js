// The life of a job drawn to scale: put, due, leases, now, and what is known to come.
import { html, useRef } from "../html.js";
import { absolute, now, span, toMs } from "../time.js";
import { Table } from "./text.js";
import { useWidth } from "./width.js";

const MARGIN = 12;
const LABEL_GAP = 130;
const ROWS = 4;

// The points of a job: {at, name, kind}.
export function pointsOf(job, explained) {
  const due = toMs(job.due_at);
  const points = [{ at: toMs(job.put_at), name: "put" }];
  const name = { delayed: "due", ready: "due", leased: "lease ends", dead: "died", done: "done" }[job.state];
  points.push({ at: due, name, kind: job.state === "dead" ? "is-bad" : "" });
  const next = explained?.next;
  if (next?.at && toMs(next.at) !== due) points.push({ at: toMs(next.at), name: next.code });
  if (explained?.dies_at) points.push({ at: toMs(explained.dies_at), name: "dies", kind: "is-bad" });
  points.push({ at: now(), name: "now", kind: "is-now" });
  return points.filter((point) => Number.isFinite(point.at)).sort((a, b) => a.at - b.at);
}

// Labels that would lie over each other go to the next row: above the line, below it, then farther off.
function placed(points, width) {
  const first = points[0].at;
  const length = Math.max(1, points.at(-1).at - first);
  const ends = Array(ROWS).fill(-LABEL_GAP);
  return points.map((point) => {
    const x = MARGIN + ((width - 2 * MARGIN) * (point.at - first)) / length;
    let row = ends.findIndex((end) => x - end >= LABEL_GAP);
    if (row < 0) row = ends.indexOf(Math.min(...ends));
    ends[row] = x;
    return { ...point, x, row };
  });
}

const anchor = (x, width) => (x < 60 ? "start" : x > width - 60 ? "end" : "middle");

// Where a label stands, from the line: rows 0 and 2 above it, 1 and 3 below.
const offset = (row) => (row % 2 === 0 ? -30 - 16 * row : 26 + 16 * (row - 1));

export function Timeline({ points }) {
  const ref = useRef(null);
  const width = useWidth(ref);
  return html`<div ref=${ref}>${width > 0 && html`<${Drawing} points=${points} width=${width} />`}</div>`;
}

function Drawing({ points, width }) {
  const shown = placed(points, width);
  const nowX = shown.find((point) => point.kind === "is-now").x;
  const start = points[0].at;
  const text = points.map((point) => `${point.name} ${absolute(point.at)}`).join(", ");
  const top = Math.min(...shown.map((point) => offset(point.row))) - 16;
  const bottom = Math.max(10, ...shown.map((point) => offset(point.row) + 20));
  const label = (point) => html`<g>
    ${point.row > 1 && html`<line class="axis future" x1=${point.x} x2=${point.x} y1="0" y2=${offset(point.row)} />`}
    <circle class=${`dot ${point.kind ?? ""}`} cx=${point.x} cy="0" r="5.5"><title>${point.name}: ${absolute(point.at)}</title></circle>
    <text x=${point.x} y=${offset(point.row)} text-anchor=${anchor(point.x, width)}>${point.name}
      <tspan class="quiet" x=${point.x} dy="14">${point.at === start ? absolute(point.at).slice(0, 16) : `+${span(point.at - start)}`}</tspan></text></g>`;
  return html`<svg class="timeline" viewBox=${`0 ${top} ${width} ${bottom - top}`} width=${width} height=${bottom - top} role="img" aria-label=${`Timeline: ${text}`}>
    <line class="axis" x1=${MARGIN} x2=${nowX} y1="0" y2="0" />
    <line class="axis future" x1=${nowX} x2=${width - MARGIN} y1="0" y2="0" />
    ${shown.map(label)}</svg>`;
}

export const TimelineTable = ({ points }) => html`<${Table} title="Timeline" columns=${["what", "when", "#after the put"]}>
  ${points.map((point) => html`<tr><th scope="row">${point.name}</th><td>${absolute(point.at)}</td><td class="number">${span(point.at - points[0].at)}</td></tr>`)}</${Table}>`;
