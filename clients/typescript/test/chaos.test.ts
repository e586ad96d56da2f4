/**
 * The server is killed every two seconds and workers get SIGTERM, while jobs are put and done. No job is lost, and
 * none comes a second time unless its lease ended or an answer was lost. DORMOUSE_CHAOS_SECONDS makes it longer.
 */

import assert from "node:assert/strict";
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { Client, DormouseError, UnconfirmedError, UnreachableError } from "../src/index.js";
import { diskServer, memoryServer, until } from "./support.js";

const SECONDS = Number(process.env["DORMOUSE_CHAOS_SECONDS"] ?? 12);
const TTR_MS = 5_000;
/** How long after its answer a reserve may still be unsynced, on a busy machine. */
const UNSYNCED_MS = 500;
const PROGRAM = fileURLToPath(new URL("worker_process.js", import.meta.url));

interface Message {
  what: "ready" | "started" | "aborted" | "ended" | "told" | "stopped" | "error";
  id: string;
  token: string;
  body: number;
  at: number;
  /** By the server's clock, which is that of this machine. */
  reservedAt?: number;
  verb?: string;
  code?: string;
  message?: string;
}

/** What is known of one delivery of a job. */
interface Delivery {
  token: string;
  startedAt: number;
  reservedAt: number;
  /** The handler was told that its lease is lost. */
  abortedAt?: number;
  /** The ack was heard. */
  heardAt?: number;
  verb?: string;
}

/** Checks the history of all jobs as it is told by the workers. */
class History {
  readonly deliveries = new Map<string, Delivery[]>();
  readonly idsOfBody = new Map<number, Set<string>>();
  readonly violations: string[] = [];
  readonly killedAt: number[] = [];
  second = 0;

  hear(message: Message): void {
    if (message.what === "error") this.violations.push(`a worker logged: ${message.message}`);
    if (message.what === "started") this.#start(message);
    const delivery = this.deliveries.get(message.id)?.find((known) => known.token === message.token);
    if (!delivery) return;
    if (message.what === "aborted") delivery.abortedAt = message.at;
    if (message.what === "told" && (message.code === "done" || message.code === "gone")) {
      delivery.heardAt = message.at;
      if (message.verb !== undefined) delivery.verb = message.verb;
    }
  }

  #start({ id, token, body, at, reservedAt = at }: Message): void {
    const before = this.deliveries.get(id) ?? [];
    if (before.length > 0) this.second++;
    for (const known of before) {
      if (known.heardAt !== undefined && known.heardAt < at && known.verb === "ack") {
        this.violations.push(`job ${id} came again ${at - known.heardAt} ms after its ack was heard`);
      }
      const isRunning = known.heardAt === undefined && known.abortedAt === undefined;
      if (isRunning && at - known.reservedAt < TTR_MS - 100 && !this.#isForgotten(known)) {
        const kills = this.killedAt
          .map((killedAt) => killedAt - known.reservedAt)
          .filter((ms) => Math.abs(ms) < TTR_MS);
        this.violations.push(
          `job ${id} came again ${at - known.reservedAt} ms after its reserve, with a good lease; killed at ${kills.join()} ms`,
        );
      }
    }
    this.deliveries.set(id, [...before, { token, startedAt: at, reservedAt }]);
    const ids = this.idsOfBody.get(body) ?? new Set();
    this.idsOfBody.set(body, ids.add(id));
  }

  /** A reserve is answered before it is synced: a crash right after it ends the lease (P8 in docs/design.md). */
  #isForgotten(delivery: Delivery): boolean {
    return this.killedAt.some((at) => at > delivery.reservedAt - 20 && at < delivery.reservedAt + UNSYNCED_MS);
  }
}

async function startWorker(url: string, history: History): Promise<ChildProcess> {
  const child = fork(PROGRAM, [url, "chaos", "60"], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  child.on("message", (message) => history.hear(message as Message));
  await once(child, "message");
  return child;
}

async function stopWorker(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const [code] = await exited;
  assert.equal(code, 0, "a worker ends well after SIGTERM");
}

test(`0 lost while the server is killed every 2 s for ${SECONDS} s`, { timeout: (SECONDS + 60) * 1_000 }, async () => {
  const { server, clean } = await diskServer();
  const history = new History();
  const workers = await Promise.all([startWorker(server.url, history), startWorker(server.url, history)]);
  const endsAt = Date.now() + SECONDS * 1_000;
  const confirmed = new Map<number, string>();
  let count = 0;

  const produce = async () => {
    const producer = new Client(server.url, { log: () => undefined });
    while (Date.now() < endsAt) {
      const body = count++;
      try {
        confirmed.set(body, (await producer.put("chaos", body, { delay: Math.floor(Math.random() * 200) })).id);
      } catch (error) {
        // Told as such: it may or may not be there, or it certainly is not.
        assert.ok(
          error instanceof UnconfirmedError ||
            error instanceof UnreachableError ||
            (error instanceof DormouseError && error.retryable),
          String(error),
        );
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    producer.close();
  };
  const producing = Promise.all([produce(), produce(), produce()]);

  let kills = 0;
  let stops = 0;
  while (Date.now() < endsAt) {
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    history.killedAt.push(Date.now());
    await server.kill();
    kills++;
    if (kills % 2 === 0) {
      const [oldest] = workers.splice(0, 1) as [ChildProcess];
      const [started] = await Promise.all([startWorker(server.url, history), server.restart(), stopWorker(oldest)]);
      workers.push(started);
      stops++;
    } else await server.restart();
  }
  await producing;

  const done = async () => {
    const stats = await server.client.stats("chaos").catch(() => undefined);
    return (stats?.waiting ?? 0) + (stats?.leased ?? 0) === 0;
  };
  await until("all jobs are done", done, 30_000);
  await Promise.all(workers.map(stopWorker));
  const dead = (await server.client.stats("chaos").catch(() => undefined))?.dead ?? 0;
  await clean();

  const lost = [...confirmed].filter(([, id]) => !history.deliveries.has(id));
  const twice = [...history.idsOfBody].filter(([, ids]) => ids.size > 1);
  console.log(
    `# ${kills} kills, ${stops} SIGTERMs, ${confirmed.size} of ${count} puts confirmed, ${lost.length} lost, ${history.second} second deliveries`,
  );
  assert.deepEqual(history.violations, []);
  assert.deepEqual(lost, []);
  assert.deepEqual(twice, [], "a put that was sent again made no second job");
  assert.equal(dead, 0);
  assert.ok(confirmed.size > SECONDS * 10, "work was done at all");
});

test("SIGTERM ends the poll, finishes the job in hand and takes no other", async () => {
  const server = await memoryServer();
  const events: string[] = [];
  const child = fork(PROGRAM, [server.url, "drain", "400"], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  child.on("message", (message) => events.push((message as Message).what));
  await until(
    "it waits for jobs",
    async () => (await server.client.stats("drain").catch(() => undefined))?.waiters === 1,
  );
  await server.client.put("drain", 1);
  await until("the job runs", () => events.includes("started"));
  await stopWorker(child);
  assert.deepEqual(events, ["ready", "started", "ended", "told", "stopped"]);
  await server.client.put("drain", 2);
  assert.equal((await server.client.stats("drain")).ready, 1);
  await server.stop();
});
