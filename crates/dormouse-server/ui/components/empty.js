// What a view shows when there is nothing yet: how to make the first one.
import { html } from "../html.js";
import { CommandLines } from "./commandline.js";

export const Empty = ({ title, children, command }) => html`<div class="empty">
  <strong>${title}</strong>
  ${children && html`<p>${children}</p>`}
  ${command && html`<${CommandLines} command=${command} />`}
</div>`;
