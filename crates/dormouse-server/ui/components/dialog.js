// The question before a change that cannot be taken back.
import { closeDialog, dialog } from "../actions.js";
import { html, useEffect, useRef, useSignal, useState } from "../html.js";
import { place } from "../session.js";
import { CommandLines } from "./commandline.js";
import { BodyStart } from "./body.js";
import { Exact, count } from "./text.js";

// A modal with its title; focus is on the first harmless control, marked `data-harmless`.
export function Modal({ title, children, onClose = () => closeDialog() }) {
  const ref = useRef(null);
  useEffect(() => {
    const element = ref.current;
    const opener = document.activeElement;
    element.showModal();
    element.querySelector("[data-harmless]")?.focus();
    return () => opener?.focus?.();
  }, []);
  const where = place();
  return html`
    <dialog ref=${ref} aria-labelledby="dialog-title" onClose=${onClose}>
      ${where.name && html`<div class=${`place is-${where.color ?? "none"}`}>${where.name}</div>`}
      <h2 id="dialog-title">${title}</h2>
      ${children}
    </dialog>`;
}

function Many({ command, text, setText }) {
  return html`
    <p><strong>${count(command.count)} jobs</strong> of <strong class="mono">${command.topic}</strong>.
      ${" "}${command.isExact ? "If there are more by then, nothing is done." : "If there are more by then, the rest is left alone."}</p>
    <label class="field">Type the topic's name to go on
      <input type="text" autocomplete="off" spellcheck="false" value=${text} onInput=${(e) => setText(e.target.value)} />
    </label>`;
}

function Question({ command }) {
  const [text, setText] = useState("");
  const isMany = command.guard === "many";
  const isReady = !isMany || text === command.topic;
  const submit = (event) => {
    event.preventDefault();
    if (isReady) closeDialog(true);
  };
  return html`
    <${Modal} title=${`${command.full ?? command.title}?`}>
      <form onSubmit=${submit}>
        <p><${Exact} text=${command.facts} /></p>
        ${isMany && html`<${Many} command=${command} text=${text} setText=${setText} />`}
        ${command.job && html`<${BodyStart} job=${command.job} />`}
        <${CommandLines} command=${command} />
        <div class="buttons">
          <button type="button" data-harmless onClick=${() => closeDialog()}>Keep as it is</button>
          <button type="submit" class="danger" disabled=${!isReady}>${command.full ?? command.title}</button>
        </div>
      </form>
    </${Modal}>`;
}

export function Dialogs() {
  const open = useSignal(dialog);
  if (!open) return null;
  return open.command ? html`<${Question} command=${open.command} />` : open.view();
}
