// Charts of counts over time, as SVG. Each can be shown as a table, which is also how a keyboard
// reaches its points.
import { html, useRef, useState } from "../html.js";
import { DAY, HOUR, MINUTE, SECOND, absolute, mark } from "../time.js";
import { Table, count } from "./text.js";
import { useWidth } from "./width.js";

const HEIGHT = 170;
const LEFT = 44;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 26;
const MARK_GAP = 64;

const TIMES = [SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 60 * DAY];

const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

// The smallest of 1, 2, 5, 10, ... that gives at most four lines; whole numbers where jobs are counted.
function lineStep(top, isWhole) {
  let step = isWhole ? 1 : 0.1;
  for (let turn = 0; top / step > 4; turn += 1) step *= turn % 3 === 1 ? 2.5 : 2;
  return step;
}

// What is where: from times and counts to pixels.
function scaleOf({ x, series, kind, stepMs }, width) {
  const isBars = kind === "bars";
  const from = x[0];
  const to = Math.max(from + 1, x.at(-1) + (isBars ? stepMs : 0));
  const top = Math.max(1, ...series.flatMap((one) => one.values)) * 1.05;
  const inner = width - LEFT - RIGHT;
  return {
    from, to, top, width,
    xOf: (ms) => LEFT + (inner * (ms - from)) / (to - from),
    yOf: (n) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - n / top),
    indexAt: (px) => Math.min(x.length - 1, Math.max(0, Math.floor((px - LEFT) / inner * (to - from) / stepMs + (isBars ? 0 : 0.5)))),
  };
}

function Axes({ scale, isBars }) {
  const { from, to, top, xOf, yOf, width } = scale;
  const lines = [];
  const step = lineStep(top, isBars);
  for (let n = 0; n <= top; n += step) {
    lines.push(html`<line x1=${LEFT} x2=${width - RIGHT} y1=${yOf(n)} y2=${yOf(n)} /><text x=${LEFT - 8} y=${yOf(n) + 4} text-anchor="end">${short.format(n)}</text>`);
  }
  const distance = TIMES.find((ms) => ((width - LEFT - RIGHT) * ms) / (to - from) >= MARK_GAP) ?? TIMES.at(-1);
  for (let ms = Math.ceil(from / distance) * distance; ms <= to; ms += distance) {
    if (xOf(ms) < width - 24) lines.push(html`<text x=${xOf(ms)} y=${HEIGHT - 6} text-anchor="middle">${mark(ms, distance)}</text>`);
  }
  return html`<g class="axes">${lines}</g>`;
}

function Bars({ x, values, colour, scale, stepMs }) {
  const width = Math.max(1, (scale.xOf(x[0] + stepMs) - scale.xOf(x[0])) * 0.8);
  const bar = (n, index) => n > 0 && html`<rect x=${scale.xOf(x[index])} width=${width} y=${scale.yOf(n)} height=${scale.yOf(0) - scale.yOf(n)} />`;
  return html`<g class=${`bars ink-${colour}`}>${values.map(bar)}</g>`;
}

// An unknown value is a gap in the line.
function Line({ x, values, colour, dash, scale }) {
  let isUp = true;
  const step = (n, index) => {
    if (n === null || n === undefined) {
      isUp = true;
      return "";
    }
    const [letter, dot] = isUp ? ["M", "h0"] : ["L", ""];
    isUp = false;
    return `${letter}${scale.xOf(x[index]).toFixed(1)} ${scale.yOf(n).toFixed(1)}${dot}`;
  };
  return html`<path class=${`line ink-${colour}`} stroke-dasharray=${dash} d=${values.map(step).join("")} />`;
}

function Drawing(props) {
  const ref = useRef(null);
  const width = useWidth(ref);
  const { x, series, kind, onPick, onPoint, point } = props;
  const scale = width > 0 && scaleOf(props, width);
  const indexOf = (event) => scale.indexAt(event.clientX - ref.current.getBoundingClientRect().left);
  return html`<div ref=${ref} class="drawing">${scale && html`
    <svg class=${onPick ? "is-pickable" : ""} viewBox=${`0 0 ${width} ${HEIGHT}`} height=${HEIGHT} width=${width} role="img" aria-label=${props.label}
      onPointerMove=${(event) => onPoint(indexOf(event))} onPointerLeave=${() => onPoint(undefined)} onClick=${(event) => onPick?.(indexOf(event))}>
      <${Axes} scale=${scale} isBars=${kind === "bars"} />
      ${point < x.length && html`<rect class="here" x=${scale.xOf(x[point])} y=${TOP} height=${HEIGHT - TOP - BOTTOM}
        width=${kind === "bars" ? scale.xOf(x[0] + props.stepMs) - scale.xOf(x[0]) : 1} />`}
      ${series.map((one) => html`<${kind === "bars" ? Bars : Line} ...${one} x=${x} scale=${scale} stepMs=${props.stepMs} />`)}
    </svg>`}</div>`;
}

function AsTable({ x, series, onPick, label }) {
  const shown = x.map((_, index) => index).filter((index) => series.some((one) => one.values[index]));
  const name = (index) => (onPick ? html`<button type="button" class="plain" onClick=${() => onPick(index)}>${absolute(x[index])}</button>` : absolute(x[index]));
  return html`<${Table} title=${label} isShort columns=${["from", ...series.map((one) => `#${one.label}`)]}>
    ${shown.map((index) => html`<tr><th scope="row">${name(index)}</th>${series.map((one) => html`<td class="number">${count(one.values[index] ?? 0)}</td>`)}</tr>`)}
    ${shown.length === 0 && html`<tr><td colspan=${series.length + 1} class="none">nothing in this time</td></tr>`}</${Table}>`;
}

// props: title, label, x (ms), series [{label, colour, values, dash}], kind "bars" or "lines", stepMs,
// onPick(index), children (controls).
export function Chart(props) {
  const [asTable, setAsTable] = useState(false);
  const [point, setPoint] = useState(undefined);
  const { series, x } = props;
  const isAt = point < x.length;
  return html`<figure class="chart">
    <figcaption>
      <span class="chart-title">${props.title}</span>
      <span class="toolbar">${props.children}
        <button type="button" class="plain" aria-pressed=${asTable} onClick=${() => setAsTable(!asTable)}>as table</button></span>
      ${x.length > 0 && html`<span class="legend">${series.map((one) => html`
        <span><i class=${`ink-${one.colour} ${one.dash ? "is-dashed" : ""}`}></i>${one.label}${isAt ? ` ${count(one.values[point] ?? 0)}` : ""}</span>`)}
        <span class="quiet chart-point">${isAt && absolute(x[point])}</span></span>`}
    </figcaption>
    ${x.length === 0 ? html`<p class="drawing is-empty none">No figures yet; they come within seconds.</p>` : asTable ? html`<${AsTable} ...${props} />`
      : html`<${Drawing} ...${props} point=${point} onPoint=${setPoint} />`}
  </figure>`;
}
