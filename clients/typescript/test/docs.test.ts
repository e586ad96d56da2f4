/** Every block of docs/clients/typescript.md is compiled against the package and run against a server. */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { TestServer } from "../src/testing.js";
import { clockServer, memoryServer, ROOT, serverProgram, until } from "./support.js";

/** The directory of `package.json`: blocks below it import the package by its name. */
const PACKAGE = fileURLToPath(new URL("../../", import.meta.url));
const BLOCKS = path.join(PACKAGE, "docs-blocks");
const page = readFileSync(path.join(ROOT, "docs/clients/typescript.md"), "utf8");
const blocks = new Map<string, string>();

let server: TestServer;

before(async () => {
  for (const [, text] of page.matchAll(/^```ts\n(.*?)^```$/gms)) {
    const name = /^\/\/ (\S+\.ts)\n/.exec(text ?? "")?.[1];
    assert.ok(name, `a block begins with the name of its file: ${text}`);
    blocks.set(name, text ?? "");
  }
  rmSync(BLOCKS, { recursive: true, force: true });
  mkdirSync(BLOCKS);
  for (const [name, text] of blocks) writeFileSync(path.join(BLOCKS, name), text);
  // As a user would have it: strict, but index signatures may be read with a dot.
  const options = ["--strict", "--target", "es2022", "--module", "nodenext", "--types", "node", "--skipLibCheck"];
  const tsc = path.join(PACKAGE, "node_modules/typescript/bin/tsc");
  const files = [...blocks.keys()].map((name) => path.join(BLOCKS, name));
  execFileSync(
    process.execPath,
    [tsc, ...options, "--typeRoots", path.join(PACKAGE, "node_modules/@types"), ...files],
    { stdio: "inherit", cwd: BLOCKS },
  );
  server = await memoryServer();
});
after(() => server.stop());

/** Runs a block and returns what it printed. */
function run(name: string, env: Record<string, string> = {}): ReturnType<typeof spawn> & { printed: () => string } {
  const file = path.join(BLOCKS, name.replace(/\.ts$/, ".js"));
  const child = spawn(process.execPath, [file], {
    // A test below this one prints what it would print alone.
    env: {
      ...process.env,
      NODE_TEST_CONTEXT: undefined,
      DORMOUSE_URL: server.url,
      DORMOUSE_BIN: serverProgram(),
      ...env,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let printed = "";
  child.stdout.on("data", (chunk) => (printed += String(chunk)));
  return Object.assign(child, { printed: () => printed });
}

test("the worker has at most 15 lines and does what its page says", async () => {
  const lines = (blocks.get("worker.ts") ?? "")
    .split("\n")
    .filter((line) => line.trim() !== "" && !line.startsWith("//"));
  assert.ok(lines.length <= 15, `${lines.length} lines`);
  const asked: string[] = [];
  const shop = http.createServer((request, answer) => {
    asked.push(`${request.method} ${request.url}`);
    answer.writeHead(request.url?.includes("/3/") ? 429 : request.url?.includes("/4/") ? 500 : 200).end();
  });
  await new Promise<void>((resolve) => shop.listen(0, "127.0.0.1", resolve));
  const worker = run("worker.ts", { SHOP_URL: `http://127.0.0.1:${(shop.address() as AddressInfo).port}` });
  const orders = [1, 0, 3, 4].map((order) => ({ body: { order }, key: `o${order}`, backoff: { fixed: "1h" } }));
  await server.client.putMany("orders", orders);
  const states = async () =>
    Promise.all(
      orders.map((order) =>
        server.client.get({ topic: "orders", key: order.key }).then(
          (job) => job.state,
          () => "gone",
        ),
      ),
    );
  await until("all have ended", async () => (await states()).join() === "gone,dead,delayed,delayed");
  const exited = once(worker, "exit");
  worker.kill("SIGTERM");
  assert.deepEqual(await exited, [0, null]);
  assert.match(worker.printed(), /\{ done: 1, failed: 2, dead: 1, released: 0, lost: 0 \}/);
  assert.equal(asked.filter((line) => line === "POST /orders/1/timeout").length, 1);
  const error = (await server.client.get({ topic: "orders", key: "o3" })).error;
  assert.equal(error, "Retry: the shop is busy");
  shop.close();
  await server.client.topics.purge("orders");
});

test("the order and its payment: exactly one of them wins", async () => {
  const still = await clockServer();
  process.env["DORMOUSE_URL"] = still.url;
  const recipe = (await import(pathToFileURL(path.join(BLOCKS, "orders.js")).href)) as {
    placed(order: number): Promise<void>;
    paid(order: number): Promise<boolean>;
    timeouts: { run(): Promise<unknown>; stop(): Promise<unknown>; tally: { done: number } };
  };
  delete process.env["DORMOUSE_URL"];
  await recipe.placed(1);
  await recipe.placed(2);
  await recipe.placed(3);
  assert.equal(await recipe.paid(1), true);
  assert.equal((await still.client.stats("orders")).delayed, 2);
  await still.advance("30m");
  // The third is paid while a worker has its timeout in hand.
  const [second, third] = await still.client.reserve("orders", { max: 2 });
  assert.equal(await recipe.paid(3), true);
  await still.client.release([second?.token ?? "", third?.token ?? ""]);
  void recipe.timeouts.run();
  await until("both timeouts are done", () => recipe.timeouts.tally.done === 2);
  assert.equal(await recipe.paid(2), false, "the timeout was faster");
  assert.equal(await recipe.paid(3), false, "it was paid before");
  await recipe.timeouts.stop();
  await still.stop();
});

test("what comes next is put with the ack", async () => {
  process.env["DORMOUSE_URL"] = server.url;
  const { packing } = (await import(pathToFileURL(path.join(BLOCKS, "packing.js")).href)) as {
    packing: { run(): Promise<unknown>; stop(): Promise<unknown>; tally: { done: number } };
  };
  delete process.env["DORMOUSE_URL"];
  await server.client.put("paid", { order: "7" });
  void packing.run();
  await until("it is packed", () => packing.tally.done === 1);
  await packing.stop();
  assert.equal((await server.client.stats("ship")).ready, 1);
  assert.equal((await server.client.get({ topic: "asks", key: "7" })).state, "delayed");
});

test("the other blocks run as printed", async () => {
  const puts = run("puts.ts");
  const tests = run("reminder.test.ts");
  const traced = run("traced.ts");
  const codes = await Promise.all([puts, tests, traced].map((child) => once(child, "exit")));
  assert.deepEqual(codes, [
    [0, null],
    [0, null],
    [0, null],
  ]);
  assert.match(puts.printed(), /key has 0 bytes/);
  assert.match(tests.printed(), /# pass 1/);
  assert.match(
    traced.printed(),
    /a span begins 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n00-0af7[^]*it ends/,
  );
  const names = ["orders.ts", "packing.ts", "puts.ts", "reminder.test.ts", "traced.ts", "worker.ts"];
  assert.deepEqual([...blocks.keys()].sort(), names);
});
