/** Acks with puts: all of it happens, or nothing, and once. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client, Done, InvalidError, Retry, Worker, type Handler, type Job, type Tally } from "../src/index.js";
import type { TestServer } from "../src/testing.js";
import { all, loggedClient, memoryServer, Proxy, until } from "./support.js";

const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

let server: TestServer;
let queue: Client;
let count = 0;

before(async () => {
  server = await memoryServer();
  queue = server.client;
});
after(() => server.stop());

/** Puts one job and runs it once: its topic, the totals, and what is left of it. */
async function endOf(
  handler: Handler<unknown>,
  client = queue,
): Promise<{ topic: string; tally: Tally; job: Job | undefined }> {
  const topic = `chain-${count++}`;
  await queue.put(topic, { topic }, { key: "k", backoff: { fixed: "1h" }, headers: { traceparent: TRACE } });
  const worker = new Worker(client, topic, handler, { signals: [] });
  void worker.run();
  await until("the job has ended", () => Object.values(worker.tally).some((total) => total > 0));
  const tally = await worker.stop();
  return { topic, tally, job: await queue.get({ topic, key: "k" }).catch(() => undefined) };
}

const ready = async (topic: string) => all(queue.list(topic, { state: "ready" }));

test("a handler acks with puts, which carry its trace on", async () => {
  const { topic, tally, job } = await endOf((job) =>
    new Done().put(`${job.topic}-a`, { n: 1 }).put(`${job.topic}-b`, undefined, {
      text: "later",
      delay: "1h",
      key: "k",
      headers: { of: "mine" },
    }),
  );
  assert.deepEqual([tally.done, job], [1, undefined]);
  const [first] = await ready(`${topic}-a`);
  assert.deepEqual([first?.body, first?.key, first?.headers], [{ n: 1 }, undefined, { traceparent: TRACE }]);
  const second = await queue.get({ topic: `${topic}-b`, key: "k" });
  assert.deepEqual([second.state, second.body, second.headers["of"]], ["delayed", "later", "mine"]);
});

test("many chains are told, each with its own puts", async () => {
  const topic = `chain-${count++}`;
  await queue.putMany(
    topic,
    Array.from({ length: 100 }, (_, n) => ({ body: n })),
  );
  const worker = new Worker<number>(queue, topic, (job) => new Done().put(`${topic}-next`, job.body), {
    signals: [],
    concurrency: 20,
  });
  void worker.run();
  await until("all are done", () => worker.tally.done === 100);
  assert.equal((await worker.stop()).lost, 0);
  const bodies = (await ready(`${topic}-next`)).map((job) => Number(job.body));
  assert.deepEqual(
    bodies.sort((a, b) => a - b),
    Array.from({ length: 100 }, (_, n) => n),
  );
});

test("a lost answer puts nothing twice", async () => {
  const proxy = await Proxy.start(server.url);
  const { client, entries } = loggedClient(proxy.url);
  const { topic, tally } = await endOf((job) => {
    proxy.lose = 1;
    return new Done().put(`${job.topic}-next`, "x");
  }, client);
  assert.equal(tally.done, 1);
  assert.ok(entries.some((entry) => /ack of 1 jobs: .*told again/.test(entry.message)));
  assert.equal((await ready(`${topic}-next`)).length, 1);
  client.close();
  await proxy.stop();
});

test("a refused put fails the job, and nothing is put", async () => {
  const { topic, tally, job } = await endOf((job) =>
    new Done().put(`${job.topic}-next`, "x").put("no such name", "y"),
  );
  assert.deepEqual([tally.failed, tally.done, job?.state], [1, 0, "delayed"]);
  assert.match(job?.error ?? "", /the ack and its puts are refused: .*put 2 of the chain/);
  assert.equal((await ready(`${topic}-next`)).length, 0);
});

test("what cannot be meant is no ack", async () => {
  const retry = await endOf(() => new Retry("2h", "later"));
  assert.deepEqual([retry.tally.failed, retry.job?.error], [1, "Retry: later"]);
  const both = await endOf(() => new Done().put("t", {}, { text: "x" }));
  assert.match(both.job?.error ?? "", /a body or a `text`, not both/);
  const big = await endOf(() => new Done().put("t", 7n));
  assert.match(big.job?.error ?? "", /cannot be written as JSON/);
});

test("a client acks with puts", async () => {
  const topic = `chain-${count++}`;
  await queue.putMany(topic, [{ body: 1 }, { body: 2 }]);
  const [one = "", two = ""] = (await queue.reserve(topic, { max: 2 })).map((job) => job.token);
  const done = new Done().put(`${topic}-next`, "x");
  const told = await queue.ack(one, done);
  assert.deepEqual([told.code, told.put?.map((put) => put.code)], ["done", ["created"]]);
  assert.ok(told.put?.[0]?.dueAt instanceof Date);
  assert.deepEqual((await queue.ack(one, done)).put, []);
  await assert.rejects(
    queue.ack(two, new Done().put("no such name")),
    (error) => error instanceof InvalidError && /put 1 of the chain/.test(error.message),
  );
  assert.ok((await queue.extend(two)).expiresAt);
  assert.equal((await ready(`${topic}-next`)).length, 1);
});
