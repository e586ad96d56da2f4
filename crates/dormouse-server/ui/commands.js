// Everything the console can change, as data: one command is a request, its command line, the right
// it needs, and how the reader is asked before it runs. Reading views have commands too, to copy.
import { base, path, token, urlOf } from "./api.js";

// guard: undefined = at once, "final" = a dialog with the facts, "many" = type the topic's name.
const command = (verb, title, method, path, rest = {}) => ({ verb, title, method, path, ...rest });

const pauseOf = (span) => (span ? { json: { for: span }, flags: ["--for", span] } : { json: {}, flags: [] });

export const topics = {
  pause(topic, span) {
    const { json, flags } = pauseOf(span);
    return command("pause", `Pause ${topic}`, "POST", path`/v1/topics/${topic}/pause`, {
      json, cli: ["pause", topic, ...flags], done: `${topic} is paused.`, undo: topics.resume(topic),
    });
  },
  resume: (topic) => command("resume", `Resume ${topic}`, "POST", path`/v1/topics/${topic}/resume`, {
    cli: ["resume", topic], done: `${topic} goes on.`,
  }),
  kick: (topic, count) => command("kick", "Make delayed jobs ready", "POST", path`/v1/topics/${topic}/kick`, {
    json: { max: count }, cli: ["kick", topic, "--max", String(count)], guard: "many", topic, count,
    facts: "Every delayed job becomes ready now, whatever its due time was.",
  }),
  revive: (topic, count) => command("revive", "Revive dead jobs", "POST", path`/v1/topics/${topic}/revive`, {
    json: { max: count }, cli: ["dead", "revive", topic, "--max", String(count)], guard: "many", topic, count,
    facts: "Every dead job becomes ready, with new attempts. Consumers get all of them.",
  }),
  release: (topic, count) => command("kick", "Give leased jobs back", "POST", path`/v1/topics/${topic}/release`, {
    json: { max: count }, cli: ["kick", topic, "--leased", "--max", String(count)], guard: "many", topic, count,
    facts: "Their consumers are not stopped; what they send for these leases is refused. No attempt is spent.",
  }),
  // Dead jobs by the beginning of their error: the verb is revive or cancel.
  dead: (verb, topic, prefix, count) => command(verb, `${verb} dead jobs`, "POST", path`/v1/topics/${topic}/${verb}`, {
    json: { max: count, error_prefix: prefix || undefined },
    cli: ["dead", verb === "cancel" ? "rm" : verb, topic, ...(prefix ? ["--error-prefix", prefix] : []), "--max", String(count)],
  }),
  purge: (topic, state, count, leased) => command("purge", `Purge ${state} jobs`, "DELETE", path`/v1/topics/${topic}`, {
    query: { state, at_most: count }, cli: ["purge", topic, "--state", state, "--at-most", String(count)], guard: "many", topic, count, isExact: true,
    facts: `They are removed for ever. ${leased > 0 ? `${leased} leased jobs stay.` : "Leased jobs stay."}`,
  }),
  set: (topic, settings, flags) => command("set_topic", `Settings of ${topic}`, "PUT", path`/v1/topics/${topic}`, {
    json: settings, cli: ["topic", "set", topic, ...flags], done: "The settings are stored.",
  }),
};

const keyed = (job) => (job.key === undefined ? "" : `, key ${job.key}`);

export const jobs = {
  run: (job) => command("reschedule", "Run now", "POST", path`/v1/jobs/${job.id}/run`, {
    cli: ["run", job.id], done: `Job ${job.id} is due now.`,
    undo: job.state === "delayed" ? jobs.reschedule(job, job.due_at) : undefined,
  }),
  reschedule: (job, at) => command("reschedule", "Reschedule", "PATCH", path`/v1/jobs/${job.id}`, {
    json: { at }, cli: ["reschedule", job.id, "--at", at], done: `Job ${job.id} has a new due time.`,
  }),
  revive: (job) => command("revive", "Revive", "POST", path`/v1/jobs/${job.id}/revive`, {
    cli: ["revive", job.id], done: `Job ${job.id} is ready, with new attempts.`,
  }),
  cancel: (job) => command("cancel", "Cancel", "DELETE", path`/v1/jobs/${job.id}`, {
    cli: ["cancel", job.id], guard: "final", job, full: "Cancel the job", done: `Job ${job.id} is removed.`,
    facts: `Job ${job.id}${keyed(job)} is removed for ever. It was ${job.state}.`,
  }),
  kill: (job) => command("kill", "Kill", "POST", path`/v1/jobs/${job.id}/kill`, {
    json: { error: "killed by hand" }, cli: ["kill", job.id, "--error", "killed by hand"], guard: "final", job, full: "Kill the job",
    done: `Job ${job.id} is dead.`,
    facts: `Job ${job.id}${keyed(job)} becomes dead. Nobody gets it until it is revived.`,
  }),
  // The verbs that take a list of ids: `verb` is cancel, revive, run or kill.
  list: (verb, ids) => command(verb === "run" ? "reschedule" : verb, verb, "POST", path`/v1/jobs/${verb}`, {
    json: verb === "kill" ? { ids, error: "killed by hand" } : { ids },
  }),
  put: (topic, fields, flags) => command("put", `Put into ${topic}`, "POST", path`/v1/topics/${topic}/jobs`, {
    json: fields, cli: ["put", topic, ...flags],
  }),
};

export const locks = {
  free: (lock) => command("break_lock", "Break the lock", "DELETE", path`/v1/locks/${lock.name}`, {
    query: { fence: lock.fence }, cli: ["lock", "break", lock.name, "--fence", lock.fence], guard: "final",
    done: `${lock.name} is free.`,
    facts: `${lock.owner} loses ${lock.name} and hears of it when it renews. What the lock protects must check fences.`,
  }),
};

const pushOf = (verb, title, topic, rest) => command("push", title, "POST", path`/v1/topics/${topic}/push/${verb}`, {
  cli: ["push", verb, topic], ...rest,
});

export const pushes = {
  set: (topic, settings, flags) => command("push", `Push ${topic}`, "PUT", path`/v1/topics/${topic}/push`, {
    json: settings, cli: ["push", "set", topic, settings.url, ...flags], done: `${topic} is pushed to ${settings.url}.`,
  }),
  test: (topic) => pushOf("test", "Test", topic, { done: "A request was sent.", timeoutMs: 40_000 }),
  rotate: (topic) => pushOf("rotate", "New secret", topic, {
    guard: "final", done: "The push has a new secret.",
    facts: `Requests of ${topic} are signed with a new secret, for a day with the present one, too. It is shown once.`,
  }),
  resume: (topic) => pushOf("resume", "Resume", topic, { done: "The push goes on." }),
  remove: (topic) => command("push", "Push no more", "DELETE", path`/v1/topics/${topic}/push`, {
    cli: ["push", "rm", topic], guard: "final", done: `${topic} is pushed no more.`,
    facts: `The URL is called no more, and its secret is gone. The jobs of ${topic} stay.`,
  }),
};

const scheduleOf = (verb, title, topic, name, done, rest = {}) =>
  command("schedule", title, "POST", path`/v1/topics/${topic}/schedules/${name}/${verb}`, {
    cli: ["schedule", verb, topic, name], done, ...rest,
  });

export const schedules = {
  pause: (topic, name) => scheduleOf("pause", "Pause", topic, name, `${name} is paused.`, {
    json: {}, undo: schedules.resume(topic, name),
  }),
  resume: (topic, name) => scheduleOf("resume", "Resume", topic, name, `${name} goes on.`),
  skip: (topic, name) => scheduleOf("skip", "Skip the next tick", topic, name, "The next tick is left out.", {
    guard: "final", facts: `The next tick of ${name} gives no job. The one after it comes as planned.`,
  }),
  run: (topic, name) => scheduleOf("run", "Run now", topic, name, `${name} has put one more job.`),
  backfill: (topic, name, from, to, count) => scheduleOf("backfill", "Backfill", topic, name, `${count} jobs were put.`, {
    json: { from, to }, cli: ["schedule", "run", topic, name, "--from", from, "--to", to], guard: "many", topic, count,
    facts: `A job is put for each tick from ${from} to ${to}, also for ticks that had one.`,
  }),
  put: (topic, name, json) => command("schedule", "Define", "PUT", path`/v1/topics/${topic}/schedules/${name}`, {
    json, cli: ["schedule", "put", topic, name, json.text, "--cron", json.cron, "--zone", json.zone], done: `${name} is defined.`,
  }),
  remove: (topic, name) => command("schedule", "Remove", "DELETE", path`/v1/topics/${topic}/schedules/${name}`, {
    cli: ["schedule", "rm", topic, name], guard: "final", done: `${name} is removed.`,
    facts: `The schedule ${name} of ${topic} is removed. Jobs that it has put stay.`,
  }),
};

// A word as a POSIX shell reads it.
export function quote(word) {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export function asCurl(command) {
  const words = ["curl", "-s"];
  if (command.method !== "GET") words.push("-X", command.method);
  if (token.value) words.push("-H", "\0");
  const url = urlOf(command.path, command.query);
  // Names of dots must not be taken for steps.
  if (url.includes("%2E")) words.push("--path-as-is");
  words.push(url);
  if (command.json !== undefined) {
    words.push("--json", typeof command.json === "string" ? command.json : JSON.stringify(command.json));
  }
  // The token itself must not end up in a terminal's history.
  return words.map((word) => (word === "\0" ? '"Authorization: Bearer $DORMOUSE_TOKEN"' : quote(word))).join(" ");
}

export function asCli(command) {
  if (!command.cli) return undefined;
  const url = base.href.replace(/\/$/, "");
  const where = url === "http://127.0.0.1:7788" ? [] : ["--url", url];
  return ["dormouse", ...command.cli, ...where].map(quote).join(" ");
}

// What a view reads, so that the reader can repeat it.
export const reads = (path, query, cli) => ({ method: "GET", path, query, cli });
