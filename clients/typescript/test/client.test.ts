/** Each call of the client against a real server. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BatchError, ConflictError, InvalidError, LeaseLostError, NotFoundError, type Client } from "../src/index.js";
import type { TestServer } from "../src/testing.js";
import { all, clockServer, memoryServer, until } from "./support.js";

let server: TestServer;
let queue: Client;

before(async () => {
  server = await memoryServer();
  queue = server.client;
});
after(() => server.stop());

test("a job comes back with what it was put with", async () => {
  const put = await queue.put(
    "mails",
    { to: "you", n: [1, 2] },
    { key: "m1", headers: { a: "b" }, priority: 5, ttr: "9s", group: "g" },
  );
  assert.equal(put.code, "created");
  assert.equal(put.state, "ready");
  assert.equal(put.key, "m1");
  assert.ok(put.dueAt instanceof Date);
  const job = await queue.get<{ to: string }>({ topic: "mails", key: "m1" });
  assert.equal(job.body.to, "you");
  assert.equal(job.kind, "json");
  assert.deepEqual(job.headers, { a: "b" });
  assert.equal(job.priority, 5);
  assert.equal(job.group, "g");
  assert.equal(job.ttrMs, 9_000);
  assert.ok(job.putAt instanceof Date);
  assert.deepEqual(await queue.get(put.id), job);
});

test("bodies are JSON, text, bytes or nothing", async () => {
  const bytes = new Uint8Array([0, 255, 254]);
  await queue.put("kinds", "a string", { priority: 1 });
  await queue.put("kinds", undefined, { text: "plain", priority: 2 });
  await queue.put("kinds", bytes, { priority: 3 });
  await queue.put("kinds", undefined, { priority: 4 });
  await queue.put("kinds", null, { priority: 5 });
  const jobs = await queue.reserve("kinds", { max: 5 });
  assert.deepEqual(
    jobs.map((job) => job.kind),
    ["json", "text", "bytes", "none", "json"],
  );
  assert.deepEqual(
    jobs.map((job) => job.body),
    ["a string", "plain", Buffer.from(bytes), undefined, null],
  );
  await queue.ack(jobs.map((job) => job.token));
});

test("a taken key is kept, rejected or replaced", async () => {
  const first = await queue.put("keys", 1, { key: "k", delay: "1h" });
  const again = await queue.put("keys", 2, { key: "k", delay: "1h" });
  assert.deepEqual([again.code, again.id], ["duplicate", first.id]);
  await assert.rejects(queue.put("keys", 3, { key: "k", onConflict: "reject" }), (error: ConflictError) => {
    assert.ok(error instanceof ConflictError);
    assert.deepEqual([error.id, error.state], [first.id, "delayed"]);
    return true;
  });
  assert.equal((await queue.put("keys", 4, { key: "k", onConflict: "replace", delay: "2h" })).code, "replaced");
  assert.equal((await queue.get({ topic: "keys", key: "k" })).body, 4);
});

test("putMany keeps the order, and tells which items failed", async () => {
  const items = Array.from({ length: 1_200 }, (_, n) => ({ body: n, delay: "1h" as const, key: `n${n}` }));
  const results = await queue.putMany("many", items);
  assert.deepEqual(
    results.map((result) => result.key),
    items.map((item) => item.key),
  );
  assert.equal((await queue.topics.get("many")).delayed, 1_200);
  const mixed = queue.putMany("mixed", [{ body: 1 }, { body: 2, key: "" }, { body: 3 }]);
  await assert.rejects(mixed, (error: BatchError<unknown>) => {
    assert.ok(error instanceof BatchError);
    assert.match(error.message, /1 of 3 puts failed.*key has 0 bytes/);
    assert.ok(error.results[1] instanceof InvalidError);
    assert.equal((error.results[2] as { code: string }).code, "created");
    return true;
  });
});

test("puts that come together share requests, and a bad one does not harm the others", async () => {
  const bad = queue.put("shared", 1, { fields: { dealy: "1h" } });
  const good = Array.from({ length: 20 }, (_, n) => queue.put("shared", n));
  await assert.rejects(bad, (error: InvalidError) => error instanceof InvalidError && /dealy/.test(error.message));
  const results = await Promise.all(good);
  assert.equal(new Set(results.map((result) => result.id)).size, 20);
  const jobs = await queue.reserve("shared", { max: 100 });
  assert.equal(jobs.length, 20);
});

test("what is no JSON is refused before it is sent", async () => {
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  await assert.rejects(queue.put("bad", circle), InvalidError);
  await assert.rejects(queue.put("bad", 1n), /BigInt/);
  await assert.rejects(queue.put("bad", 1, { text: "two" }), /not both/);
});

test("one job is cancelled, moved, run, killed and revived", async () => {
  const ref = { topic: "one", key: "j" };
  const { id } = await queue.put("one", 1, { key: "j", delay: "1h" });
  const at = new Date(Date.now() + 7_200_000);
  const moved = await queue.reschedule(ref, { at });
  assert.deepEqual([moved.code, moved.was, moved.dueAt?.getTime()], ["rescheduled", "delayed", at.getTime()]);
  assert.equal((await queue.reschedule(id, { delay: "3h" })).id, id);
  assert.equal((await queue.run(ref)).was, "delayed");
  await queue.kill(ref, { error: "no" });
  assert.equal((await queue.get(id)).error, "no");
  assert.equal((await queue.revive(id)).was, "dead");
  assert.deepEqual(await queue.cancel(id), { id, code: "cancelled", was: "ready" });
  await assert.rejects(queue.cancel(ref), NotFoundError);
  await assert.rejects(queue.cancel("j"), /a key is given as \{ topic, key \}/);
});

test("a leased job resists cancel with unlessLeased, and is taken away without", async () => {
  await queue.put("race", 1, { key: "r" });
  const [job] = await queue.reserve("race");
  await assert.rejects(queue.cancel({ topic: "race", key: "r" }, { unlessLeased: true }), ConflictError);
  assert.equal((await queue.cancel({ topic: "race", key: "r" })).was, "leased");
  assert.equal((await queue.ack(job?.token ?? "")).code, "gone");
});

test("leases are acked, nacked, released, extended and killed", async () => {
  await queue.putMany(
    "leases",
    [1, 2, 3, 4, 5].map((body) => ({ body, priority: body, attemptsMax: 2 })),
  );
  const [a, b, c, d, e] = (await queue.reserve(["leases"], { max: 5, wait: "1s", ttr: "30s" })).map((job) => job.token);
  assert.equal((await queue.ack(a ?? "")).code, "done");
  const nacked = await queue.nack(b ?? "", { delay: "1h", error: "later" });
  assert.equal(nacked.code, "retry");
  assert.ok(nacked.dueAt instanceof Date);
  assert.equal((await queue.release(c ?? "")).code, "done");
  assert.ok((await queue.extend(d ?? "", { ttr: "50s" })).expiresAt instanceof Date);
  assert.equal((await queue.killLease(e ?? "", { error: "bad" })).code, "done");
  const many = await queue.extend([a ?? "", d ?? "", "99999999.9"]);
  assert.deepEqual(
    many.map((result) => result.code),
    ["not_found", "done", "not_found"],
  );
  await assert.rejects(queue.ack(`${(d ?? "").split(".")[0]}.1`), LeaseLostError);
  const { id } = await queue.put("leases", 6, { delay: "1h" });
  assert.equal((await queue.reserveJob(id)).id, id);
});

test("lists go on over pages", async () => {
  await queue.putMany(
    "pages",
    Array.from({ length: 25 }, (_, body) => ({ body, delay: 3_600_000 + body })),
  );
  const jobs = await all(queue.list<number>("pages", { state: "delayed", limit: 10 }));
  assert.deepEqual(
    jobs.map((job) => job.body),
    Array.from({ length: 25 }, (_, n) => n),
  );
  const bare = await all(queue.list("pages", { state: "delayed", bodies: false }));
  assert.deepEqual([bare.length, bare[0]?.kind], [25, "none"]);
});

test("topics have settings, counts, pauses and mass changes", async () => {
  const set = await queue.topics.set("settings", {
    ttr: "10s",
    attemptsMax: 3,
    backoff: { fixed: "5s" },
    deadTtl: "1d",
  });
  assert.equal(set.settings["ttrMs"], 10_000);
  await queue.putMany("settings", [{ body: 1 }, { body: 2, delay: "1h" }]);
  const info = await queue.stats("settings");
  assert.deepEqual([info.ready, info.delayed, info.totals["puts"]], [1, 1, 2]);
  assert.equal((await queue.topics.pause("settings", { for: "1h" })).paused, true);
  assert.deepEqual(await queue.reserve("settings"), []);
  assert.equal((await queue.topics.resume("settings")).paused, false);
  assert.equal(await queue.topics.kick("settings"), 1);
  assert.equal((await queue.reserve("settings", { max: 5 })).length, 2);
  assert.equal(await queue.topics.release("settings"), 2);
  assert.equal(await queue.topics.revive("settings"), 0);
  assert.equal(await queue.topics.purge("settings"), 2);
  const names = (await all(queue.topics.list())).map((topic) => topic.topic);
  assert.ok(names.includes("settings"));
  assert.ok((await queue.stats()).topics >= 1);
});

test("limits hold jobs, which stay ready", async () => {
  const set = await queue.topics.set("limits", {
    groupLeasedMax: 1,
    rate: { jobs: 100, per: "1s", burst: 9 },
  });
  assert.deepEqual(set.settings, { groupLeasedMax: 1, rate: { jobs: 100, per: 1_000, burst: 9 } });
  await queue.put("limits", 1, { group: "g" });
  const held = await queue.put("limits", 2, { group: "g" });
  const taken = await queue.reserve("limits", { max: 5 });
  assert.deepEqual([taken.length, taken[0]?.group], [1, "g"]);
  const job = await queue.get(held.id);
  assert.deepEqual([job.state, job.heldBy], ["ready", "group_leased_max"]);
});

test("a forecast counts the jobs to come", async () => {
  await queue.putMany("forecast", [{ delay: "10m" }, { delay: "20m" }, { delay: "90m" }]);
  const forecast = await queue.forecast("forecast", {
    from: new Date(),
    to: new Date(Date.now() + 7_200_000),
    step: "1h",
  });
  assert.equal(forecast.stepMs, 3_600_000);
  assert.deepEqual(forecast.counts, [2, 1]);
  assert.ok(forecast.from instanceof Date);
});

test("locks exclude, expire and have growing fences", async () => {
  const grant = await queue.locks.acquire("nightly", "me", { ttl: "30s" });
  assert.equal(grant.depth, 1);
  await assert.rejects(queue.locks.acquire("nightly", "you"), ConflictError);
  assert.ok((await queue.locks.renew("nightly", "me")).expiresAt instanceof Date);
  assert.deepEqual(
    (await all(queue.locks.list())).map((lock) => lock.owner),
    ["me"],
  );
  assert.equal((await queue.locks.release("nightly", "me")).code, "free");
  const next = await queue.locks.acquire("nightly", "you", { wait: "1s" });
  assert.ok(BigInt(next.fence) > BigInt(grant.fence));
  await queue.locks.break("nightly");
  await assert.rejects(queue.locks.break("nightly"), NotFoundError);
});

test("schedules are defined, changed and removed", async () => {
  const nightly = { cron: "0 3 * * *", zone: "Europe/Berlin", body: { make: "reports" } };
  assert.equal((await queue.schedules.put("reports", "nightly", nightly)).code, "created");
  assert.equal((await queue.schedules.put("reports", "nightly", nightly)).code, "unchanged");
  const info = await queue.schedules.get("reports", "nightly");
  assert.deepEqual(info.body, { make: "reports" });
  assert.equal(info.next.length, 5);
  assert.ok(info.next[0] instanceof Date);
  assert.equal((await queue.schedules.pause("reports", "nightly", { for: "1h" })).state, "paused");
  assert.equal((await queue.schedules.resume("reports", "nightly")).state, "waiting");
  assert.equal((await queue.schedules.skip("reports", "nightly")).counts.skipped, 1);
  await queue.schedules.replan("reports", "nightly");
  assert.equal((await queue.schedules.run("reports", "nightly")).code, "created");
  const time = { from: new Date(Date.now() - 3 * 86_400_000), to: new Date(Date.now() - 60_000) };
  const filled = await queue.schedules.backfill("reports", "nightly", time);
  assert.ok(filled.length >= 2 && filled.every((result) => "id" in result));
  assert.equal((await queue.schedules.ticks("reports", "nightly", { limit: 3 })).length, 3);
  assert.equal((await all(queue.schedules.list("reports"))).length, 1);
  const preview = await queue.schedules.preview({ cron: "0 3 * * *", limit: 2 });
  assert.deepEqual([preview.ticks.length, preview.words], [2, "at 03:00 every day, UTC"]);
  await queue.schedules.remove("reports", "nightly", { jobs: true });
  await assert.rejects(queue.schedules.get("reports", "nightly"), NotFoundError);
});

test("events come as they happen, until the signal", async () => {
  const stop = new AbortController();
  const seen: string[] = [];
  const watching = (async () => {
    for await (const event of queue.events({ topic: "watched", signal: stop.signal })) {
      assert.equal(event.topic, "watched");
      assert.ok(event.at instanceof Date && event.eventId !== "");
      seen.push(event.event);
    }
  })();
  // The stream has begun when the first event arrives.
  await until("a first event is seen", async () => {
    await queue.put("watched", 1);
    return seen.length > 0;
  });
  const [job] = await queue.reserve("watched");
  await queue.ack(job?.token ?? "");
  await until("the ack is seen", () => seen.includes("acked"));
  assert.ok(seen.indexOf("put") < seen.indexOf("reserved"));
  stop.abort();
  await watching;
});

test("a clock that is moved makes jobs due", async () => {
  const still = await clockServer();
  try {
    await still.client.put("orders", 42, { delay: "30m" });
    assert.deepEqual(await still.client.reserve("orders"), []);
    const now = await still.advance("30m");
    const [job] = await still.client.reserve("orders");
    assert.equal(job?.body, 42);
    assert.equal(job?.dueAt.getTime(), now.getTime());
  } finally {
    await still.stop();
  }
});
