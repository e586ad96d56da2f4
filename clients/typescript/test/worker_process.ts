/** A worker as a process of its own, which tells its parent what happens: `worker_process.js URL TOPIC WORK_MS`. */

import { Client, Worker } from "../src/index.js";

const [url, topic, workMs] = process.argv.slice(2) as [string, string, string];

function tell(
  what: string,
  job: { id: string; token: string; attempt: number; body: unknown },
  more: object = {},
): void {
  process.send?.({ what, id: job.id, token: job.token, body: job.body, at: Date.now(), ...more });
}

const client = new Client(url, {
  log: (entry) => {
    if (entry.event === "job_told") tell("told", entry["job"] as never, { verb: entry["verb"], code: entry["code"] });
    else if (entry.level === "error") process.send?.({ what: "error", message: entry.message });
  },
});

const worker = new Worker(
  client,
  topic,
  async (job) => {
    tell("started", job, { reservedAt: job.expiresAt.getTime() - job.ttrMs });
    job.signal.addEventListener("abort", () => tell("aborted", job));
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 2 * Number(workMs)));
    tell("ended", job);
  },
  { concurrency: 8, ttr: "5s" },
);

// It listens to signals when it is ready: the parent may send one at once.
const running = worker.run();
process.send?.({ what: "ready" });
const tally = await running;
process.send?.({ what: "stopped", tally });
process.disconnect();
