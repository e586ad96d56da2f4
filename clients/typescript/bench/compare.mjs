/**
 * Measures this client beside BullMQ, both with a server of their own on this machine; not part of the tests.
 *
 *   cd target/clients/typescript && npm install --prefix bench bullmq ioredis && cd -
 *   DORMOUSE_BIN=target/release/dormouse node clients/typescript/bench/compare.mjs [rounds]
 *
 * Needs `redis-server` and a build of the package by check.sh. Contenders take turns; the median of all rounds is shown.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const BUILT = path.join(path.dirname(fileURLToPath(import.meta.url)), "../../../target/clients/typescript");
const { Client, Worker } = await import(pathToFileURL(path.join(BUILT, "dist/src/index.js")).href);
const { startServer } = await import(pathToFileURL(path.join(BUILT, "dist/src/testing.js")).href);
const bullmq = createRequire(path.join(BUILT, "bench/"))("bullmq");

const ROUNDS = Number(process.argv[2] ?? 3);
const ONE_BY_ONE = 10_000;
const IN_BATCHES = 20_000;
const BATCH = 500;
const TASKS = 50;
const CONCURRENCY = 50;

/** Runs `each` until it was called `count` times, by `tasks` loops. */
async function loops(tasks, count, each) {
  let left = count;
  const loop = async () => {
    while (left-- > 0) await each(left);
  };
  await Promise.all(Array.from({ length: tasks }, loop));
}

async function rate(count, work) {
  const startedAt = performance.now();
  await work();
  return count / ((performance.now() - startedAt) / 1_000);
}

async function dormouse(args) {
  const data = mkdtempSync(path.join(tmpdir(), "dormouse-bench-"));
  const server = await startServer({ args: args ?? ["--data", data] });
  const queue = new Client(server.url);
  const body = { order: 42, note: "a body of ordinary size, such as an order has" };
  const figures = {
    "put one by one, 50 tasks": await rate(ONE_BY_ONE, () =>
      loops(TASKS, ONE_BY_ONE, () => queue.put("one", body, { delay: "1h" })),
    ),
    "putMany of 500": await rate(IN_BATCHES, () =>
      loops(1, IN_BATCHES / BATCH, () =>
        queue.putMany(
          "many",
          Array.from({ length: BATCH }, () => ({ body })),
        ),
      ),
    ),
    "worker, no-op handler": await rate(IN_BATCHES, async () => {
      let left = IN_BATCHES;
      const worker = new Worker(queue, "many", () => void (--left === 0 && worker.stop()), {
        concurrency: CONCURRENCY,
      });
      const tally = await worker.run();
      if (tally.done !== IN_BATCHES) throw new Error(`${tally.done} jobs were done`);
    }),
  };
  queue.close();
  await server.stop();
  rmSync(data, { recursive: true });
  return figures;
}

async function bull(args) {
  const probe = net.createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  const data = mkdtempSync(path.join(tmpdir(), "redis-bench-"));
  const redis = spawn(
    "redis-server",
    ["--port", String(port), "--bind", "127.0.0.1", "--dir", data, "--save", "", ...args],
    { stdio: "ignore" },
  );
  const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };
  const body = { order: 42, note: "a body of ordinary size, such as an order has" };
  const done = { removeOnComplete: true };
  const [one, many] = ["one", "many"].map((name) => new bullmq.Queue(name, { connection }));
  await many.waitUntilReady();
  const figures = {
    "put one by one, 50 tasks": await rate(ONE_BY_ONE, () =>
      loops(TASKS, ONE_BY_ONE, () => one.add("job", body, { ...done, delay: 3_600_000 })),
    ),
    "putMany of 500": await rate(IN_BATCHES, () =>
      loops(1, IN_BATCHES / BATCH, () =>
        many.addBulk(Array.from({ length: BATCH }, () => ({ name: "job", data: body, opts: done }))),
      ),
    ),
    "worker, no-op handler": await rate(IN_BATCHES, async () => {
      let left = IN_BATCHES;
      const worker = new bullmq.Worker("many", async () => void 0, { connection, concurrency: CONCURRENCY });
      await new Promise((resolve) => worker.on("completed", () => --left === 0 && resolve()));
      await worker.close();
    }),
  };
  await Promise.all([one.close(), many.close()]);
  const exited = once(redis, "exit");
  redis.kill("SIGTERM");
  await exited;
  rmSync(data, { recursive: true });
  return figures;
}

const contenders = {
  "dormouse, disk, synced": () => dormouse(),
  "dormouse, memory": () => dormouse(["--backend", "memory"]),
  "BullMQ, Redis without files": () => bull([]),
  "BullMQ, Redis, appendfsync always": () => bull(["--appendonly", "yes", "--appendfsync", "always"]),
};
const seen = {};
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, run] of Object.entries(contenders)) {
    for (const [measure, figure] of Object.entries(await run())) ((seen[measure] ??= {})[name] ??= []).push(figure);
  }
}
const median = (figures) => Math.round(figures.sort((a, b) => a - b)[Math.floor(figures.length / 2)]);
const table = Object.fromEntries(
  Object.entries(seen).map(([measure, by]) => [
    measure,
    Object.fromEntries(Object.entries(by).map(([name, figures]) => [name, median(figures)])),
  ]),
);
console.log(`per second, median of ${ROUNDS}, node ${process.version}`);
console.table(table);
process.exit(0);
