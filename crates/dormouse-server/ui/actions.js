// Running commands: the question before, the answer after.
import { call } from "./api.js";
import { signal } from "./html.js";

// The question on the screen: {command, resolve}; or another dialog: {view}.
export const dialog = signal(undefined);
// What happened last: {text, undo, isError, key}.
export const toasts = signal([]);
// Grows with each change made here, so that views look again.
export const changes = signal(0);

// What concerns many jobs may take its time.
const MANY_MS = 600_000;

let lastKey = 0;

export function tell(text, { undo, isError = false } = {}) {
  lastKey += 1;
  const toast = { text, undo, isError, key: lastKey };
  toasts.value = [...toasts.value.slice(-3), toast];
  setTimeout(() => dismiss(toast), isError ? 15_000 : 8_000);
}

export function dismiss(toast) {
  toasts.value = toasts.value.filter((other) => other !== toast);
}

// Asks if the command wants it; resolves to whether it may run.
function ask(command) {
  if (!command.guard) return Promise.resolve(true);
  return new Promise((resolve) => { dialog.value = { command, resolve }; });
}

export function openDialog(view) {
  dialog.value = { view };
}

export function closeDialog(answer = false) {
  const open = dialog.value;
  dialog.value = undefined;
  open?.resolve?.(answer);
}

const countOf = ({ count }) => (count === undefined ? "Done." : count === 1 ? "1 job." : `${count} jobs.`);

// Asks, runs, and tells. Resolves to the answer, or to undefined if it did not happen.
export async function act(command) {
  if (!(await ask(command))) return undefined;
  try {
    const answer = await call(command.method, command.path, command.guard === "many" ? { ...command, timeoutMs: MANY_MS } : command);
    changes.value += 1;
    tell(command.done ?? `${command.title}: ${countOf(answer)}`, { undo: command.undo });
    return answer;
  } catch (problem) {
    tell(`${command.title}: ${problem.message}`, { isError: true });
    return undefined;
  }
}
