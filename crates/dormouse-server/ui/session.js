// Who we are for the server, and what it is.
import { call, refused, useToken } from "./api.js";
import { signal } from "./html.js";
import { skewMs, toMs } from "./time.js";

// The answer of `whoami`; undefined until there is one.
export const who = signal(undefined);

export const server = () => who.value?.server ?? {};

// How the operator wants the console: its mode, and the name and colour of the place it runs at.
export const place = () => server().ui ?? {};

// What the roles of scopes have, as far as the console asks for it by topic.
const ROLES = {
  producer: ["put", "cancel", "reschedule", "schedule"], consumer: ["kill"],
  operator: ["set_topic", "pause", "resume", "purge", "revive", "kick", "kill", "cancel", "reschedule", "schedule", "break_lock", "inspect", "push"],
};

// Whether a scope as it is written, "pause,producer:orders.*", has a verb on a topic.
function allows(scope, verb, topic) {
  const [, words, topics] = /^([^:]*):(.*)$/s.exec(scope) ?? [];
  const isThere = topics?.endsWith("*") ? topic.startsWith(topics.slice(0, -1)) : topic === topics;
  return isThere && words.split(",").some((word) => ["*", "admin", verb].includes(word.trim()) || ROLES[word.trim()]?.includes(verb));
}

// Whether the token allows a verb: on a topic, or on some.
export function maySee(verb, topic) {
  const { everywhere = [], somewhere = [] } = who.value?.verbs ?? {};
  if (everywhere.includes(verb)) return true;
  return somewhere.includes(verb) && (topic === undefined || (who.value.scopes ?? []).some((scope) => allows(scope, verb, topic)));
}

// Whether the console shows a button for a verb that changes something. The server decides in any case.
export const may = (verb, topic) => place().mode !== "view" && maySee(verb, topic);

export async function signIn() {
  const before = Date.now();
  const answer = await call("GET", "v1/whoami");
  const now = toMs(answer.server?.now);
  // Half of the round trip has passed since the server wrote its time.
  if (!Number.isNaN(now)) skewMs.value = now - (before + Date.now()) / 2;
  refused.value = undefined;
  who.value = answer;
}

export function signOut() {
  who.value = undefined;
  refused.value = "You signed out. Paste a token to go on.";
  useToken(undefined);
}
