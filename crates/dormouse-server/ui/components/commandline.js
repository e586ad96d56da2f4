// A command as the reader can run it elsewhere.
import { asCli, asCurl } from "../commands.js";
import { html } from "../html.js";
import { Copy, Exact } from "./text.js";

const Line = ({ name, text }) => html`
  <div class="commandline">
    <span class="quiet">${name}</span>
    <code tabindex="0"><${Exact} text=${text} /></code>
    <${Copy} text=${text} />
  </div>`;

export function CommandLines({ command }) {
  const cli = asCli(command);
  return html`<div class="commandlines">
    <${Line} name="curl" text=${asCurl(command)} />
    ${cli && html`<${Line} name="dormouse" text=${cli} />`}
  </div>`;
}

// Folded away until it is wanted.
export const AsCommand = ({ command, label = "as curl and dormouse" }) => html`
  <details class="as-command"><summary>${label}</summary><${CommandLines} command=${command} /></details>`;
