/**
 * Runs the receivers of docs/push.md, with the published libraries of Standard Webhooks, against a real server that
 * pushes to them. DORMOUSE_BIN names the server's program; else one of target/debug and target/release is taken.
 * Everything that is installed goes below target/.
 */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const BUILT = ["debug", "release"].map((kind) => path.join(ROOT, "target", kind, "dormouse"));
const SERVER = process.env.DORMOUSE_BIN ?? BUILT.find((file) => existsSync(file));
assert.ok(SERVER, "no server to test against: run `cargo build`, or set DORMOUSE_BIN to the program `dormouse`");

const PYTHON = "standardwebhooks==1.1.0";
const NODE = "standardwebhooks@1.1.1";
const OUT = path.join(ROOT, "target/push");
const MIB = 1 << 20;

/** Bodies of all kinds; the libraries read UTF-8 only. */
const BODIES = [
  { base64: Buffer.from("bytes \u0000 \u00e4\r\n").toString("base64") },
  { text: "text \u2603 with  spaces" },
  { body: { b: 1, a: [1.0, "\u00e4"] } },
  {},
  { text: "x".repeat(MIB) },
];

function install() {
  mkdirSync(OUT, { recursive: true });
  if (!existsSync(path.join(OUT, "python/standardwebhooks"))) {
    const words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action", "ignore"];
    execFileSync("python3", [...words, "--target", path.join(OUT, "python"), PYTHON], { stdio: "inherit" });
  }
  if (!existsSync(path.join(OUT, "node_modules/standardwebhooks"))) {
    writeFileSync(path.join(OUT, "package.json"), '{"private": true, "type": "module"}\n');
    execFileSync("npm", ["install", "--no-fund", "--no-audit", "--silent", NODE], { cwd: OUT, stdio: "inherit" });
  }
}

/** The receiver that the page prints in this language. */
function program(language) {
  const page = readFileSync(path.join(ROOT, "docs/push.md"), "utf8");
  const found = new RegExp(`\\n\`\`\`${language}\\n([^]*?)\`\`\`\\n`).exec(page);
  assert.ok(found, `docs/push.md has no receiver in ${language}`);
  return found[1];
}

async function freePort() {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address();
  listener.close();
  await once(listener, "close");
  return port;
}

async function until(what, holds) {
  const giveUpAt = Date.now() + 30_000;
  while (!(await holds())) {
    assert.ok(Date.now() < giveUpAt, `waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const listens = (port) =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.end());
  });

const data = mkdtempSync(path.join(tmpdir(), "dormouse-push-"));
const children = [];

async function startServer() {
  const words = ["serve", "--data", data, "--http", "127.0.0.1:0", "--resp", "off"];
  const push = ["--push", "--push-http", "--push-allow", "127.0.0.0/8"];
  const server = spawn(SERVER, [...words, ...push], { stdio: ["ignore", "pipe", "ignore"] });
  children.push(server);
  for await (const line of createInterface(server.stdout)) {
    const found = /^http listening on (\S+)$/.exec(line);
    if (found) return found[1];
  }
  throw new Error("the server did not start");
}

async function ask(url, method, where, body) {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(url + where, { method, body: body && JSON.stringify(body), headers });
  return answer.json();
}

async function check(url, language, command) {
  const file = path.join(OUT, language === "python" ? "receiver.py" : "receiver.mjs");
  writeFileSync(file, program(language));
  const port = await freePort();
  const receiver = `http://127.0.0.1:${port}/`;
  const { secret } = await ask(url, "PUT", `/v1/topics/${language}/push`, { url: receiver });
  assert.match(secret, /^whsec_/);
  const env = { ...process.env, PORT: String(port), SECRET: secret, PYTHONPATH: path.join(OUT, "python") };
  children.push(spawn(command, [file], { env, stdio: ["ignore", "ignore", "ignore"] }));
  await until(`the receiver in ${language} listens`, () => listens(port));
  for (const body of BODIES) {
    const { id } = await ask(url, "POST", `/v1/topics/${language}/jobs`, { ...body, attempts_max: 1 });
    const gone = async () => (await ask(url, "GET", `/v1/jobs/${id}`)).code === "not_found";
    await until(`${language} accepts ${JSON.stringify(body).slice(0, 60)}`, gone);
  }
  // While both secrets sign, the old one is good; then it is not, and the receiver says 401.
  await ask(url, "POST", `/v1/topics/${language}/push/rotate`, { keep: "1h" });
  const test = () => ask(url, "POST", `/v1/topics/${language}/push/test`);
  assert.equal((await test()).outcome, "2xx");
  await ask(url, "POST", `/v1/topics/${language}/push/rotate`, { keep: 0 });
  assert.equal((await test()).outcome, "4xx");
  console.log(`push: signatures as ${language} checks them: ok`);
}

install();
try {
  const url = await startServer();
  await check(url, "python", "python3");
  await check(url, "javascript", "node");
} finally {
  for (const child of children) child.kill("SIGKILL");
  rmSync(data, { recursive: true, force: true });
}
