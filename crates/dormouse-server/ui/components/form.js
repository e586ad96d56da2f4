// Small forms that several screens have.
import { html, useEffect, useState } from "../html.js";
import { amend } from "../router.js";

// Buttons of which one is chosen.
export const Choice = ({ label, names, chosen, choose }) => html`<div class="choice" role="group" aria-label=${label}>
  ${names.map((name) => html`<button type="button" aria-pressed=${name === chosen} onClick=${() => choose(name)}>${name}</button>`)}</div>`;

// One field that becomes a part of the address when it is sent; the page then begins anew.
export function AddressField({ label, name, value, children }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const submit = (event) => {
    event.preventDefault();
    amend({ [name]: text, cursor: undefined, after: undefined });
  };
  return html`<form class="toolbar" onSubmit=${submit}>
    <label>${label} <input type="search" value=${text} spellcheck="false" onInput=${(e) => setText(e.target.value)} /></label>${children}<button type="submit">Show</button></form>`;
}
