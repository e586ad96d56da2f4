/**
 * Runs the examples against a real server: `node examples/test.mjs [java] [go]`, both unless one is named.
 * DORMOUSE_BIN names the server's program; else one of target/debug and target/release is taken.
 *
 * A consumer must extend leases, end jobs as their handler says, outlive a server that is killed with a job in hand, drop
 * a job that is cancelled, and finish its job on SIGTERM.
 */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const EXAMPLES = path.dirname(fileURLToPath(import.meta.url));
const ROOT = path.dirname(EXAMPLES);
const BUILT = ["debug", "release"].map((kind) => path.join(ROOT, "target", kind, "dormouse"));
const SERVER = process.env.DORMOUSE_BIN ?? BUILT.find((file) => existsSync(file));
assert.ok(SERVER, "no server to test against: run `cargo build`, or set DORMOUSE_BIN to the program `dormouse`");

/** Builds a Go program below target/ and returns its path. */
function goBuild(file) {
  const out = path.join(ROOT, "target/examples");
  mkdirSync(out, { recursive: true });
  const options = {
    cwd: path.join(EXAMPLES, "go"),
    env: { ...process.env, GOCACHE: path.join(out, "go-cache"), GO111MODULE: "off" },
    stdio: "inherit",
  };
  const program = path.join(out, path.basename(file, ".go"));
  assert.equal(execFileSync("gofmt", ["-l", file], { cwd: options.cwd, encoding: "utf8" }), "", "run gofmt -w");
  execFileSync("go", ["vet", file], options);
  execFileSync("go", ["build", "-o", program, file], options);
  return [program];
}

/** The programs of each language as commands, and the page that prints them. */
const LANGUAGES = {
  java: {
    page: "docs/clients/java.md",
    consumer: { file: "java/Consumer.java", command: (file) => ["java", file] },
    orders: { file: "java/Orders.java", command: (file) => ["java", file] },
  },
  go: {
    page: "docs/clients/go.md",
    consumer: { file: "go/consumer.go", command: goBuild },
    orders: { file: "go/orders/orders.go", command: goBuild },
  },
};

/** The page must print the programs as they are. */
function checkPage({ page, consumer, orders }) {
  const text = readFileSync(path.join(ROOT, page), "utf8");
  for (const { file } of [consumer, orders]) {
    const program = readFileSync(path.join(EXAMPLES, file), "utf8");
    assert.ok(text.includes(`\n${program}\`\`\`\n`), `${page} does not print examples/${file} as it is; copy it there`);
  }
}

const data = mkdtempSync(path.join(tmpdir(), "dormouse-examples-"));
let server;
let url;

async function startServer() {
  const address = url === undefined ? "127.0.0.1:0" : new URL(url).host;
  server = spawn(SERVER, ["serve", "--data", data, "--http", address, "--resp", "off"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  for await (const line of createInterface(server.stdout)) {
    const found = /^http listening on (\S+)$/.exec(line);
    if (found) return (url = found[1]);
  }
  throw new Error("the server did not start");
}

async function end(child, signal) {
  const exited = once(child, "exit");
  child.kill(signal);
  return (await exited)[0];
}

async function ask(method, where, body) {
  const options =
    body === undefined
      ? { method }
      : { method, body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const answer = await fetch(url + where, options);
  return answer.json();
}

async function put(body, options = {}) {
  const content = typeof body === "string" ? { text: body } : { body };
  return (await ask("POST", "/v1/topics/orders/jobs", { ...content, backoff: { fixed: "1h" }, ...options })).id;
}

async function until(what, holds) {
  const giveUpAt = Date.now() + 30_000;
  while (!(await holds())) {
    assert.ok(Date.now() < giveUpAt, `waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A timeout is put once however often that is said, and cancelled unless a worker has it. */
async function runOrders(name, [program, ...args]) {
  const options = { env: { ...process.env, DORMOUSE_URL: url }, encoding: "utf8" };
  const say = (...words) => execFileSync(program, [...args, ...words], options).trim();
  assert.match(say("placed", "42", "30m"), /^placed 201 .*"delayed"/);
  assert.match(say("placed", "42", "30m"), /^placed 200 .*"duplicate"/);
  assert.equal(say("paid", "42"), "cancelled");
  say("placed", "43", "0s");
  const { jobs } = await ask("POST", "/v1/topics/timeouts/reserve", { wait: "5s" });
  assert.equal(Number(jobs[0].body.order), 43);
  assert.equal(say("paid", "43"), "in hand");
  await ask("POST", "/v1/ack", { token: jobs[0].token });
  assert.equal(say("paid", "43"), "not there");
  console.log(`${name}: the order that is not paid in time: ok`);
}

async function runConsumer(name, [program, ...args]) {
  const lines = [];
  const consumer = spawn(program, [...args, "orders"], {
    env: { ...process.env, DORMOUSE_URL: url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const chatter = [];
  createInterface(consumer.stdout).on("line", (line) => lines.push(line));
  createInterface(consumer.stderr).on("line", (line) => chatter.push(line));
  const about = (id) => lines.filter((line) => line.split(" ")[1] === id).join("; ");
  const seen = (id, text) => () => about(id) === text;
  try {
    await until("it waits for jobs", async () => (await ask("GET", "/v1/topics/orders")).waiters === 1);

    const plain = await put({ order: 1, note: 'quotes " and \\ and \u00e4 and \u{1f600}' });
    const [killed, broken, retried] = [await put({ order: 0 }), await put("{oh no"), await put({ order: 13 })];
    await until("a job is acked", seen(plain, `start ${plain} 1; ack ${plain} done`));
    await until("a job is killed", seen(killed, `start ${killed} 1; kill ${killed} done`));
    await until("a body that is not JSON is killed", seen(broken, `start ${broken} 1; kill ${broken} done`));
    await until(
      "a job is tried again",
      seen(retried, `start ${retried} 1; nack ${retried} retry; start ${retried} 2; ack ${retried} done`),
    );
    assert.equal((await ask("GET", `/v1/jobs/${killed}`)).error, "an order has a number");

    const many = await Promise.all(Array.from({ length: 100 }, (_, n) => put({ order: 100 + n, work_ms: 20 })));
    await until("all are acked", () => many.every((id) => about(id) === `start ${id} 1; ack ${id} done`));

    // Work of more than two ttrs, while the server is killed and away for a second.
    const long = await put({ order: 2, work_ms: 5_000 }, { ttr: "2s" });
    await until("it runs", seen(long, `start ${long} 1`));
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    await end(server, "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, 700));
    await startServer();
    await until("its lease outlives the crash", seen(long, `start ${long} 1; ack ${long} done`));

    // An ack that nobody hears is told until the server is back.
    const untold = await put({ order: 3, work_ms: 500 }, { ttr: "10s" });
    await until("it runs", seen(untold, `start ${untold} 1`));
    await new Promise((resolve) => setTimeout(resolve, 200));
    await end(server, "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await startServer();
    await until("its ack is heard", seen(untold, `start ${untold} 1; ack ${untold} done`));

    const cancelled = await put({ order: 4, work_ms: 60_000 }, { ttr: "600ms" });
    await until("it runs", seen(cancelled, `start ${cancelled} 1`));
    assert.equal((await ask("DELETE", `/v1/jobs/${cancelled}`)).was, "leased");
    await until("its handler ends", () => about(cancelled).startsWith(`start ${cancelled} 1; nack ${cancelled} gone`));

    const last = await put({ order: 5, work_ms: 1_000 });
    await until("it runs", seen(last, `start ${last} 1`));
    const stoppedAt = Date.now();
    const code = await end(consumer, "SIGTERM");
    assert.ok([0, 143].includes(code), `it ended with ${code}`);
    assert.ok(Date.now() - stoppedAt < 5_000, "the poll ended at once");
    assert.equal(about(last), `start ${last} 1; ack ${last} done`);
    const next = await put({ order: 6 });
    assert.equal((await ask("GET", `/v1/jobs/${next}`)).state, "ready");
    await ask("DELETE", "/v1/topics/orders");
    console.log(`${name}: the consumer: ok, ${lines.filter((line) => line.startsWith("start")).length} jobs`);
  } catch (error) {
    console.error(`${name} printed:\n${[...lines.slice(-20), ...chatter.slice(-20)].join("\n")}`);
    throw error;
  } finally {
    if (consumer.exitCode === null && consumer.signalCode === null) await end(consumer, "SIGKILL");
  }
}

try {
  await startServer();
  const named = process.argv.slice(2);
  for (const name of named.length > 0 ? named : Object.keys(LANGUAGES)) {
    const language = LANGUAGES[name];
    assert.ok(language, `${name} is none of ${Object.keys(LANGUAGES).join(", ")}`);
    checkPage(language);
    const [consumer, orders] = [language.consumer, language.orders].map(({ file, command }) =>
      command(path.join(EXAMPLES, file)),
    );
    await runOrders(name, orders);
    await runConsumer(name, consumer);
  }
} finally {
  await end(server, "SIGTERM");
  rmSync(data, { recursive: true, force: true });
}
