// Every RESP verb through ioredis, as people would call it.
"use strict";

const assert = require("node:assert");
const Redis = require("ioredis");

const options = { port: 7789, host: "127.0.0.1", maxRetriesPerRequest: 0 };
const cases = {
  async "a job is put, reserved and acked"(redis) {
    const id = await redis.call("PUT", "js-life", "hello");
    const [[topic, gotId, token, attempt, dueAt, body]] = await redis.call("RESERVE", "js-life");
    assert.deepStrictEqual([topic, gotId, Number(attempt), body], ["js-life", id, 1, "hello"]);
    assert(Math.abs(Number(dueAt) - Date.now()) < 60000);
    assert.strictEqual(await redis.call("ACK", token), "OK");
    assert.strictEqual(await redis.call("ACK", token), "GONE");
  },

  async "commands sent together are answered in order"(redis) {
    const puts = Array.from({ length: 500 }, (_, n) => redis.call("PUT", "js-many", String(n)));
    const ids = (await Promise.all(puts)).map(Number);
    assert.deepStrictEqual(ids, [...ids].sort((a, b) => a - b));
    const jobs = await redis.call("RESERVE", "js-many", "MAX", 500);
    assert.deepStrictEqual(jobs.map((job) => job[5]), ids.map((_, n) => String(n)));
    const acked = await redis.call("ACK", ...jobs.map((job) => job[2]));
    assert.deepStrictEqual(acked, jobs.map(() => "OK"));
  },

  async "bodies are bytes"(redis) {
    const body = Buffer.from(Array.from({ length: 256 }, (_, n) => n));
    await redis.call("PUT", "js-bytes", body);
    const [job] = await redis.callBuffer("RESERVE", "js-bytes");
    assert(body.equals(job[5]));
    await redis.call("ACK", job[2]);
  },

  async "who waits is woken by another connection"(redis) {
    const other = redis.duplicate();
    const waiting = redis.call("RESERVE", "js-wait", "WAIT", "20s");
    await other.call("PUT", "js-wait", "wake up", "DELAY", 50);
    const [job] = await waiting;
    assert.strictEqual(job[5], "wake up");
    await redis.call("ACK", job[2]);
    await other.quit();
  },

  async "a lost lease and a mistake are named"(redis) {
    await redis.call("PUT", "js-lost", "x", "TTR", 1, "ATTEMPTS", 0);
    const [first] = await redis.call("RESERVE", "js-lost");
    const [second] = await redis.call("RESERVE", "js-lost", "WAIT", "10s", "TTR", "1m");
    await assert.rejects(redis.call("ACK", first[2]), /LEASELOST/);
    assert.strictEqual(await redis.call("ACK", second[2]), "OK");
    await assert.rejects(redis.call("PUT", "js-lost", "x", "DELAY", "soon"), /INVALID/);
    await assert.rejects(redis.call("RESERVVE", "js-lost"), /unknown/i);
  },

  async "cancel tells what happened"(redis) {
    const id = await redis.call("PUT", "js-cancel", "x", "DELAY", "1h");
    await redis.call("CANCEL", id);
    await assert.rejects(redis.call("CANCEL", id), /NOTFOUND/);
  },
};

async function main() {
  for (const [name, run] of Object.entries(cases)) {
    const redis = new Redis(options);
    try {
      await run(redis);
      console.log(`ok: ${name}`);
    } finally {
      redis.disconnect();
    }
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
