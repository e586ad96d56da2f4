/** The worker against a real server: how jobs end, what becomes of leases, how it stops. */

import assert from "node:assert/strict";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import {
  Client,
  currentTrace,
  DormouseError,
  JobTimeoutError,
  Kill,
  LeaseLostError,
  NotFoundError,
  Release,
  Retry,
  StoppingError,
  UnreachableError,
  Worker,
  type Handler,
  type LogEntry,
  type Tally,
  type WorkerOptions,
} from "../src/index.js";
import type { TestServer } from "../src/testing.js";
import { freePort, loggedClient, memoryServer, Proxy, until } from "./support.js";

let server: TestServer;
let queue: Client;
let count = 0;

before(async () => {
  server = await memoryServer();
  queue = server.client;
});
after(() => server.stop());

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs a worker on a topic of its own while `meanwhile` does. */
async function withWorker<T = unknown>(
  handler: Handler<T>,
  meanwhile: (topic: string, worker: Worker<T>) => Promise<void>,
  options: WorkerOptions<T> = {},
  client = queue,
): Promise<Tally> {
  const topic = `work-${count++}`;
  const worker = new Worker<T>(client, topic, handler, { signals: [], ...options });
  const running = worker.run();
  try {
    await meanwhile(topic, worker);
  } finally {
    await worker.stop();
  }
  return running;
}

/** Puts one job, runs it once, and returns what is left of it. */
async function endOf(
  handler: Handler<unknown>,
  options: WorkerOptions<unknown> = {},
): Promise<{ tally: Tally; job: Awaited<ReturnType<Client["get"]>> | undefined }> {
  let ref = { topic: "", key: "k" };
  const tally = await withWorker(
    handler,
    async (topic, worker) => {
      ref = { topic, key: "k" };
      await queue.put(topic, { n: 1 }, { key: "k", backoff: { fixed: "1h" } });
      await until("the job has ended", () => Object.values(worker.tally).some((total) => total > 0));
    },
    options,
  );
  return { tally, job: await queue.get(ref).catch(() => undefined) };
}

test("a handler that returns acks its job", async () => {
  const bodies: unknown[] = [];
  const { tally, job } = await endOf((job) => bodies.push(job.body));
  assert.deepEqual(bodies, [{ n: 1 }]);
  assert.deepEqual([tally.done, job], [1, undefined]);
});

test("an error nacks its job, and the text is kept", async () => {
  const { tally, job } = await endOf(() => Promise.reject(new TypeError("no such order")));
  assert.deepEqual(
    [tally.failed, job?.state, job?.error, job?.attempts],
    [1, "delayed", "TypeError: no such order", 1],
  );
  const odd = await endOf(() => Promise.reject(undefined));
  assert.equal(odd.job?.state, "delayed");
});

test("Retry sets the time of the next attempt", async () => {
  const { job } = await endOf(() => {
    throw new Retry("10m", "the gateway sleeps");
  });
  assert.equal(job?.error, "Retry: the gateway sleeps");
  const inMs = (job?.dueAt.getTime() ?? 0) - Date.now();
  assert.ok(inMs > 590_000 && inMs < 601_000, String(inMs));
  const byBackoff = await endOf(() => {
    throw new Retry();
  });
  assert.ok((byBackoff.job?.dueAt.getTime() ?? 0) - Date.now() > 3_500_000);
});

test("Kill makes the job dead, with its reason", async () => {
  const { tally, job } = await endOf(() => {
    throw new Kill("no such customer");
  });
  assert.deepEqual([tally.dead, job?.state, job?.error], [1, "dead", "Kill: no such customer"]);
});

test("Release gives the job back with no attempt spent", async () => {
  const { tally, job } = await endOf(() => {
    throw new Release("1h");
  });
  assert.deepEqual([tally.released, job?.state, job?.attempts, job?.releases], [1, "delayed", 0, 1]);
});

test("the last failed attempt is counted as dead", async () => {
  const tally = await withWorker(
    () => Promise.reject(new Error("again")),
    async (topic, worker) => {
      await queue.put(topic, 1, { attemptsMax: 2, backoff: { fixed: 1 } });
      await until("it is dead", () => worker.tally.dead === 1);
    },
  );
  assert.deepEqual([tally.failed, tally.dead], [1, 1]);
});

test("a handler that hangs is given up after the timeout, and its job nacked", async () => {
  let reason: unknown;
  const { tally, job } = await endOf(
    (job) => new Promise(() => job.signal.addEventListener("abort", () => (reason = job.signal.reason))),
    { timeout: "100ms" },
  );
  assert.ok(reason instanceof JobTimeoutError);
  assert.deepEqual([tally.failed, job?.state], [1, "delayed"]);
  assert.match(job?.error ?? "", /the handler took longer than 100 ms/);
});

test("a body that is not JSON kills its job, unless raw bodies are asked for", async () => {
  const bodies: unknown[] = [];
  const put = async (topic: string) => {
    await queue.put(topic, undefined, { text: '{"n": 2}', priority: 1 });
    await queue.put(topic, undefined, { text: "{oh no", priority: 2, key: "bad" });
    await queue.put(topic, new Uint8Array([255]), { priority: 3 });
    await queue.put(topic, undefined, { priority: 4 });
  };
  let error: string | undefined;
  const handler: Handler<unknown> = (job) => bodies.push(job.body);
  const tally = await withWorker(
    handler,
    async (topic, worker) => {
      await put(topic);
      await until("all have ended", () => worker.tally.done + worker.tally.dead === 4);
      error = (await queue.get({ topic, key: "bad" })).error;
    },
    { concurrency: 1 },
  );
  assert.deepEqual([tally.done, tally.dead, bodies], [2, 2, [{ n: 2 }, undefined]]);
  assert.match(error ?? "", /Kill: the body cannot be read: .*JSON/);
  bodies.length = 0;
  await withWorker(
    handler,
    async (topic, worker) => {
      await put(topic);
      await until("all have ended", () => worker.tally.done === 4);
    },
    { concurrency: 1, body: "raw" },
  );
  assert.deepEqual(bodies, ['{"n": 2}', "{oh no", Buffer.from([255]), undefined]);
});

test("parse checks bodies before the handler sees them", async () => {
  const parse = (body: unknown): { order: number } => {
    if (typeof (body as { order?: unknown }).order !== "number") throw new Error("order must be a number");
    return body as { order: number };
  };
  const orders: number[] = [];
  const tally = await withWorker<{ order: number }>(
    (job) => orders.push(job.body.order),
    async (topic, worker) => {
      await queue.putMany(topic, [{ body: { order: 42 } }, { body: { order: "x" } }]);
      await until("both have ended", () => worker.tally.done + worker.tally.dead === 2);
    },
    { parse },
  );
  assert.deepEqual([orders, tally.dead], [[42], 1]);
});

test("leases are extended for as long as a handler runs", async () => {
  let runs = 0;
  const { tally } = await endOf(
    () => {
      runs++;
      return pause(2_500);
    },
    { ttr: "1s" },
  );
  assert.deepEqual([tally.done, runs], [1, 1]);
});

test("a job that is cancelled aborts its handler, and nothing is told", async () => {
  let reason: unknown;
  const tally = await withWorker(
    async (job) => {
      await queue.cancel(job.id);
      await new Promise<void>((resolve) => job.signal.addEventListener("abort", () => resolve()));
      reason = job.signal.reason;
    },
    async (topic, worker) => {
      await queue.put(topic, 1);
      await until("it is lost", () => worker.tally.lost === 1);
    },
    { ttr: "300ms" },
  );
  assert.ok(reason instanceof NotFoundError);
  assert.deepEqual([tally.lost, tally.done], [1, 0]);
});

test("a lease that another worker has got aborts the handler", async () => {
  let reason: unknown;
  const tally = await withWorker(
    async (job) => {
      await queue.release(job.token);
      const [other] = await queue.reserve(job.topic, { ttr: "1m" });
      assert.equal(other?.id, job.id);
      await new Promise<void>((resolve) => job.signal.addEventListener("abort", () => resolve()));
      reason = job.signal.reason;
    },
    async (topic, worker) => {
      await queue.put(topic, 1);
      await until("it is lost", () => worker.tally.lost === 1);
    },
    { ttr: "300ms", concurrency: 1 },
  );
  assert.ok(reason instanceof LeaseLostError);
  assert.equal(tally.lost, 1);
});

test("a handler whose lease cannot be extended hears of it when the ttr is over", async (t) => {
  const proxy = await Proxy.start(server.url);
  t.after(() => proxy.stop());
  const { client, entries } = loggedClient(proxy.url);
  let reason: unknown;
  const tally = await withWorker(
    async (job) => {
      proxy.lose = Infinity;
      await new Promise<void>((resolve) => job.signal.addEventListener("abort", () => resolve()));
      reason = job.signal.reason;
      proxy.lose = 0;
    },
    async (topic, worker) => {
      await queue.put(topic, 1);
      // Late is not wrong: the poll failed as well, so nobody else took the job.
      await until("it is told", () => worker.tally.done === 1);
    },
    { ttr: "400ms", concurrency: 1 },
    client,
  );
  assert.ok(reason instanceof LeaseLostError);
  assert.match(reason.message, /could not be extended for 400 ms/);
  assert.ok(entries.some((entry) => entry.event === "lease_lost"));
  assert.equal(tally.done, 1);
});

test("an ack is told until it is heard", async (t) => {
  const proxy = await Proxy.start(server.url);
  t.after(() => proxy.stop());
  const { client, entries } = loggedClient(proxy.url);
  let runs = 0;
  const tally = await withWorker(
    () => {
      runs++;
      proxy.lose = 3;
    },
    async (topic, worker) => {
      await queue.put(topic, 1);
      await until("it is done", () => worker.tally.done === 1);
    },
    {},
    client,
  );
  assert.deepEqual([runs, tally.done], [1, 1]);
  assert.ok(entries.some((entry) => entry.event === "retry"));
});

test("acks that end together share requests, and no more jobs run than allowed", async () => {
  let running = 0;
  let most = 0;
  const tally = await withWorker(
    async () => {
      most = Math.max(most, ++running);
      await pause(5);
      running--;
    },
    async (topic, worker) => {
      await queue.putMany(
        topic,
        Array.from({ length: 300 }, (_, body) => ({ body })),
      );
      await until("all are done", () => worker.tally.done === 300);
    },
    { concurrency: 20 },
  );
  assert.equal(tally.done, 300);
  assert.ok(most > 5 && most <= 20, `${most} ran at once`);
});

test("ends that come together share a request, and so do extends", async (t) => {
  const tokens: Record<string, number[]> = { "/v1/ack": [], "/v1/extend": [] };
  const front = http.createServer(async (request, answer) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    tokens[request.url ?? ""]?.push((JSON.parse(body) as { tokens: string[] }).tokens.length);
    const headers = { "content-type": "application/json" };
    const forwarded = await fetch(server.url + request.url, { method: "POST", body, headers });
    answer.writeHead(forwarded.status, headers).end(await forwarded.text());
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    front.closeAllConnections();
    front.close();
  });
  const client = new Client(`http://127.0.0.1:${(front.address() as AddressInfo).port}`, { log: () => undefined });
  const tally = await withWorker(
    () => pause(1_000),
    async (topic, worker) => {
      await queue.putMany(
        topic,
        Array.from({ length: 50 }, (_, body) => ({ body })),
      );
      await until("all are done", () => worker.tally.done === 50);
    },
    { concurrency: 50, ttr: "2s" },
    client,
  );
  assert.equal(tally.done, 50);
  const { "/v1/ack": acks = [], "/v1/extend": extends_ = [] } = tokens;
  assert.equal(acks.reduce((sum, count) => sum + count), 50);
  assert.ok(acks.length <= 10, `${acks.length} requests for 50 acks`);
  assert.ok(extends_.length >= 1 && extends_.length <= 6, `${extends_.length} requests for extends`);
});

test("a stop ends the poll at once", async () => {
  const worker = new Worker(queue, "empty-topic", () => undefined, { signals: [] });
  const running = worker.run();
  await until("it waits", async () => (await queue.stats("empty-topic").catch(() => undefined))?.waiters === 1);
  const startedAt = performance.now();
  await worker.stop();
  await running;
  assert.ok(performance.now() - startedAt < 1_000);
  await until("nobody waits", async () => (await queue.stats("empty-topic").catch(() => undefined))?.waiters !== 1);
});

test("jobs that come while a worker stops are neither lost nor held", async () => {
  // Puts and stops race; whatever the order, each job is done or ready, and none stays leased.
  for (let round = 0; round < 30; round++) {
    const topic = `stops-${round}`;
    let isStopped = false;
    const worker = new Worker(queue, topic, () => assert.equal(isStopped, false), { signals: [] });
    const running = worker.run();
    await until("it waits", async () => (await queue.stats(topic).catch(() => undefined))?.waiters === 1);
    const put = queue.put(topic, 1);
    if (round % 2 === 0) await pause(round % 3);
    isStopped = true;
    await worker.stop();
    assert.equal(worker.tally.failed, 0, "no handler starts after the stop");
    await Promise.all([put, running]);
    await until(
      "the job is not leased",
      async () => ((await queue.stats(topic).catch(() => undefined))?.leased ?? 0) === 0,
    );
    const left = (await queue.stats(topic).catch(() => undefined))?.ready ?? 0;
    assert.equal(left + worker.tally.done, 1, `round ${round}: ${left} ready, ${worker.tally.done} done`);
  }
});

test("a stop waits for handlers, and gives back what outlives the grace", async () => {
  let reason: unknown;
  let isStarted = false;
  const topic = `work-${count++}`;
  const worker = new Worker(
    queue,
    topic,
    async (job) => {
      isStarted = true;
      if (job.body === "short") return pause(150);
      return new Promise(() => job.signal.addEventListener("abort", () => (reason = job.signal.reason)));
    },
    { grace: "400ms", signals: [] },
  );
  const running = worker.run();
  await queue.putMany(topic, [{ body: "short" }, { body: "endless", key: "endless" }]);
  await until("they run", () => isStarted);
  await worker.stop();
  const tally = await running;
  assert.deepEqual([tally.done, tally.released], [1, 1]);
  assert.ok(reason instanceof StoppingError);
  const job = await queue.get({ topic, key: "endless" });
  assert.deepEqual([job.state, job.attempts], ["ready", 0]);
});

test("a worker waits for its server, and gives up after offlineMax", async () => {
  const { client, entries } = loggedClient(`http://127.0.0.1:${await freePort()}`);
  const worker = new Worker(client, "orders", () => undefined, { offlineMax: "300ms", signals: [] });
  await assert.rejects(worker.run(), UnreachableError);
  assert.ok(entries.filter((entry) => entry.event === "offline").length >= 2);
  assert.throws(() => new Worker(client, [], () => undefined), /at least one topic/);
  assert.throws(() => new Worker(client, "a", () => undefined, { concurrency: 0 }), /concurrency is 0/);
});

test("a topic that cannot be is refused at once", async () => {
  const worker = new Worker(queue, "no spaces please", () => undefined, { signals: [] });
  await assert.rejects(worker.run(), (error: DormouseError) => error.code === "invalid");
});

test("the trace of a put reaches the handler, and its own puts", async () => {
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const producer = new Client(server.url, { trace: () => ({ traceparent, tracestate: "a=1" }) });
  const seen: unknown[] = [];
  await withWorker(
    async (job) => {
      await pause(1);
      seen.push(job.headers, currentTrace());
      const next = await queue.put("traced", 1, { delay: "1h", headers: { own: "x" } });
      seen.push((await queue.get(next.id)).headers);
    },
    async (topic, worker) => {
      await producer.put(topic, 1);
      await until("it is done", () => worker.tally.done === 1);
    },
  );
  const trace = { traceparent, tracestate: "a=1" };
  assert.deepEqual(seen, [trace, trace, { ...trace, own: "x" }]);
  assert.deepEqual(currentTrace(), {});
});

test("hooks see the life of a job, and run around its handler", async () => {
  const entries: LogEntry[] = [];
  const { client } = { client: new Client(server.url, { log: (entry) => entries.push(entry) }) };
  const order: string[] = [];
  await withWorker(
    () => order.push("handler"),
    async (topic, worker) => {
      await queue.put(topic, 1);
      await until("it is done", () => worker.tally.done === 1);
    },
    {
      around: async (job, handle) => {
        order.push(`before ${job.attempt}`);
        await handle();
        order.push("after");
      },
    },
    client,
  );
  assert.deepEqual(order, ["before 1", "handler", "after"]);
  assert.deepEqual(
    entries.map((entry) => entry.event),
    ["job_started", "job_ended", "job_told"],
  );
  assert.equal(entries[1]?.["verb"], "ack");
});
