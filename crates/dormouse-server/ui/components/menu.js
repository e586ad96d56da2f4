// A folded list of commands: [[command, title]].
import { act } from "../actions.js";
import { html } from "../html.js";

export function Menu({ label, name, items, isSmall = false }) {
  const run = (command, event) => {
    event.target.closest("details").open = false;
    act(command);
  };
  // A menu that loses the focus to something else closes.
  const onFocusOut = (event) => {
    const menu = event.currentTarget;
    if (event.relatedTarget && !menu.contains(event.relatedTarget)) menu.open = false;
  };
  return html`<details class=${`menu ${isSmall ? "" : "is-button"}`} onFocusOut=${onFocusOut}>
    <summary aria-label=${name}>${label}${isSmall ? "" : " ▾"}</summary><div>
    ${items.map(([command, title]) => html`<button type="button" class="plain" onClick=${(event) => run(command, event)}>${title}</button>`)}</div></details>`;
}
