// The JavaScript of docs/resp.md as it is printed, against an idle queue and a server that pauses.
"use strict";

const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
const Redis = require("ioredis");

const PAUSE_MS = 13000;
const docs = path.join(__dirname, "..", "..", "docs", "resp.md");
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The block with the worker. Waits are shorter, so that several of them end.
function snippet() {
  const blocks = [...fs.readFileSync(docs, "utf8").matchAll(/^```js\n(.*?)^```/gms)].map(([, text]) => text);
  const [block] = blocks.filter((text) => text.includes("RESERVE"));
  return block.replace('"30s"', '"1s"').replace('"DELAY", "30m"', '"DELAY", "3s"');
}

const AsyncFunction = (async () => {}).constructor;

async function main() {
  const client = new Redis(7789);
  await client.call("PURGE", "mails");
  const lines = [];
  let wake = () => {};
  const log = { log: (...words) => (lines.push(words.join(" ")), wake()) };
  const loop = new AsyncFunction("require", "console", snippet())(require, log);
  loop.catch((error) => {
    console.error(error);
    process.exit(1);
  });
  const next = async () => {
    while (lines.length === 0) await new Promise((resolve) => (wake = resolve));
    return lines.shift();
  };
  // Its own job is due after three empty answers.
  assert.match(await next(), /^attempt 1 of .* hello$/);
  console.log("ok: the loop survives quiet times and works");
  const started = Date.now();
  await client.call("PUT", "mails", "at once");
  assert.match(await next(), /at once$/);
  assert(Date.now() - started < 900);
  console.log("ok: another connection puts while the worker waits");

  // Its ack is answered: one under way while the server stands still may be told as unconfirmed.
  for (let leased = 1; leased > 0; ) [, { length: leased }] = await client.call("LIST", "mails", "leased");
  const server = Number(process.env.DORMOUSE_PID);
  process.kill(server, "SIGSTOP");
  const put = client.call("PUT", "mails", "hello", "KEY", "mail-43", "DELAY", "1h");
  await sleep(PAUSE_MS);
  process.kill(server, "SIGCONT");
  // What the server had sent to Redis when it stood still may be told as unconfirmed: a put with a key is sent again.
  await put.catch((error) => {
    if (!error.message.startsWith("UNCONFIRMED")) throw error;
    return client.call("PUT", "mails", "hello", "KEY", "mail-43", "DELAY", "1h");
  });
  const [, outcome] = await client.call("PUT", "mails", "hello", "KEY", "mail-43", "DELAY", "1h");
  assert.strictEqual(outcome, "duplicate");
  await client.call("PUT", "mails", "after the pause");
  assert.match(await next(), /after the pause$/);
  console.log("ok: a pause of the server loses and doubles nothing");
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
