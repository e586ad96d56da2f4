/** Bad input, absent servers and lost answers: each gives an error that names the fix. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import http from "node:http";
import type { AddressInfo } from "node:net";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test, type TestContext } from "node:test";
import {
  Client,
  DormouseError,
  ForbiddenError,
  InvalidError,
  type LogEntry,
  ProtocolError,
  UnauthorizedError,
  UnavailableError,
  UnconfirmedError,
  UnreachableError,
  Worker,
} from "../src/index.js";
import { startServer, type TestServer } from "../src/testing.js";
import { freePort, loggedClient, memoryServer, Proxy, serverProgram, until } from "./support.js";

let server: TestServer;

before(async () => {
  server = await memoryServer();
});
after(() => server.stop());

/** A proxy in front of the server, and a client that goes through it. */
async function lossy(t: TestContext): Promise<{ proxy: Proxy; client: Client; entries: LogEntry[] }> {
  const proxy = await Proxy.start(server.url);
  t.after(() => proxy.stop());
  return { proxy, ...loggedClient(proxy.url) };
}

/** Serves one handler at a free port. */
async function serve(t: TestContext, listener: http.RequestListener): Promise<string> {
  const made = http.createServer(listener);
  await new Promise<void>((resolve) => made.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    made.closeAllConnections();
    made.close();
  });
  return `http://127.0.0.1:${(made.address() as AddressInfo).port}`;
}

test("a URL that cannot be right is refused at once", () => {
  for (const [url, fix] of [
    ["localhost", /is no URL; write it as http:/],
    ["redis://127.0.0.1:7789", /the HTTP address of the server is needed/],
    ["http://:secret@host", /give the token as the option `token`/],
  ] as const) {
    assert.throws(
      () => new Client(url),
      (error: Error) => error instanceof InvalidError && fix.test(error.message),
      url,
    );
  }
  assert.throws(() => new Client([]), /give at least one/);
  assert.throws(() => new Client(undefined, { retryFor: "soon" }), /retryFor is "soon"; write it as/);
});

test("no server: each retry is logged, and the bound is kept", async () => {
  const { client, entries } = loggedClient(`http://127.0.0.1:${await freePort()}`, { retryFor: 300 });
  await assert.rejects(client.put("a", 1), (error: UnreachableError) => {
    assert.ok(error instanceof UnreachableError);
    assert.equal(error.sent, false);
    assert.match(error.message, /connection refused; start one with `dormouse serve`, or correct the URL/);
    return true;
  });
  assert.ok(entries.length >= 2 && entries.every((entry) => entry.event === "retry"));
  await assert.rejects(
    new Client("http://no-such-host.invalid", { retryFor: 0 }).stats(),
    /host name of .* is not known; correct the URL/,
  );
});

test("something else at the address is told from a server", async (t) => {
  const web = await serve(t, (_, answer) => answer.writeHead(404, { "content-type": "text/html" }).end("<h1>no</h1>"));
  await assert.rejects(
    new Client(web).stats(),
    (error: Error) => error instanceof ProtocolError && /correct the host, port or path/.test(error.message),
  );
  const banner = net.createServer((socket) => socket.on("error", () => undefined).end("-ERR unknown command\r\n"));
  await new Promise<void>((resolve) => banner.listen(0, "127.0.0.1", resolve));
  t.after(() => banner.close());
  const port = (banner.address() as AddressInfo).port;
  await assert.rejects(
    new Client(`http://127.0.0.1:${port}`).stats(),
    (error: Error) => error instanceof ProtocolError && /does not answer in HTTP/.test(error.message),
  );
  await assert.rejects(
    new Client(server.url.replace("http:", "https:")).stats(),
    (error: Error) => error instanceof ProtocolError && /does not answer in TLS; write http:/.test(error.message),
  );
});

test("a bad token and a missing right end at once, also a worker", async () => {
  const secret = "token-of-the-shop-81kQ0vTn";
  const hash = createHash("sha256").update(secret).digest("hex");
  const dir = mkdtempSync(path.join(tmpdir(), "dormouse-ts-"));
  const config = path.join(dir, "config.toml");
  writeFileSync(config, `[[tokens]]\nname = "shop"\ntoken_sha256 = "${hash}"\nscopes = ["producer:orders"]\n`, {
    mode: 0o600,
  });
  const guarded = await startServer({
    bin: serverProgram(),
    args: ["--backend", "memory", "--config", config],
    client: { token: secret },
  });
  try {
    await guarded.client.put("orders", 1);
    await assert.rejects(guarded.client.put("others", 1), ForbiddenError);
    const bad = new Client(guarded.url, { token: "wrong-token-0123456789" });
    await assert.rejects(
      bad.put("orders", 1),
      (error) => error instanceof UnauthorizedError && /or set DORMOUSE_TOKEN/.test(error.message),
    );
    await assert.rejects(new Worker(bad, "orders", () => undefined).run(), UnauthorizedError);
    await assert.rejects(
      (async () => {
        for await (const _ of bad.events()) break;
      })(),
      UnauthorizedError,
    );
  } finally {
    await guarded.stop();
    rmSync(dir, { recursive: true });
  }
});

test("a certificate of a private authority must be named", async () => {
  const dir = mkdtempSync(path.join(tmpdir(), "dormouse-ts-"));
  const [key, cert] = [path.join(dir, "key.pem"), path.join(dir, "cert.pem")];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync(
    "openssl",
    ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert, ...names],
    { stdio: "ignore" },
  );
  const secure = await startServer({
    bin: serverProgram(),
    args: ["--backend", "memory", "--tls-cert", cert, "--tls-key", key],
  });
  try {
    assert.match(secure.url, /^https:/);
    await assert.rejects(
      new Client(secure.url).stats(),
      (error: Error) => error instanceof UnreachableError && /is not trusted .*tls: \{ ca \}/.test(error.message),
    );
    const trusting = new Client(secure.url, { tls: { ca: readFileSync(cert) } });
    assert.equal((await trusting.put("a", 1)).code, "created");
    trusting.close();
  } finally {
    await secure.stop();
    rmSync(dir, { recursive: true });
  }
});

test("a put whose answer was lost is sent again and makes one job", async (t) => {
  const { proxy, client, entries } = await lossy(t);
  proxy.lose = 2;
  const put = await client.put("lossy", 1);
  assert.equal(put.code, "created");
  assert.equal(entries.length, 2);
  assert.equal((await server.client.stats("lossy")).ready, 1);
  proxy.lose = 1;
  await client.putMany("lossy-many", [{ body: 1 }, { body: 2 }]);
  assert.equal((await server.client.stats("lossy-many")).ready, 2);
});

test("a job that was acked before its put is sent again does not come twice", async (t) => {
  const { proxy, client, entries } = await lossy(t);
  proxy.lose = 1;
  const put = client.put("fast", 1);
  const [job] = await server.client.reserve("fast", { wait: "5s" });
  await server.client.ack(job?.token ?? "");
  assert.equal((await put).id, job?.id);
  assert.equal(entries.length, 1);
  assert.deepEqual(await server.client.reserve("fast"), []);
});

test("what must not be repeated is unconfirmed when its answer is lost", async (t) => {
  const { proxy, client } = await lossy(t);
  for (const call of [
    () => client.put("unconfirmed", 1, { key: null }),
    () => client.reserve("unconfirmed"),
    () => client.locks.acquire("unconfirmed", "me"),
  ]) {
    proxy.lose = 1;
    await assert.rejects(
      call(),
      (error: Error) => error instanceof UnconfirmedError && /may or may not have happened/.test(error.message),
    );
    proxy.lose = 0;
  }
  assert.equal((await server.client.stats("unconfirmed")).totals["puts"], 1);
});

test("a cancel that was carried out and not heard is unconfirmed, not absent", async (t) => {
  const { proxy, client } = await lossy(t);
  await client.put("cancels", 1, { key: "a", delay: "1h" });
  proxy.lose = 1;
  await assert.rejects(client.cancel({ topic: "cancels", key: "a" }), UnconfirmedError);
  await client.put("cancels", 1, { key: "b", delay: "1h" });
  proxy.lose = 1;
  await assert.rejects(client.put("cancels", 2, { key: "c", onConflict: "reject" }), UnconfirmedError);
  assert.equal((await client.get({ topic: "cancels", key: "c" })).body, 2);
});

test("the next server is asked when one fails", async () => {
  const gone = `http://127.0.0.1:${await freePort()}`;
  const { client, entries } = loggedClient([gone, server.url]);
  await client.put("several", 1);
  await client.put("several", 2);
  assert.equal(entries.length, 1, "the one that answers is kept");
  assert.equal((await server.client.stats("several")).ready, 2);
});

test("a proxy without its server, and a busy server, are asked again", async (t) => {
  let asked = 0;
  const front = await serve(t, (_, answer) => {
    asked++;
    if (asked === 1) answer.writeHead(502).end("bad gateway");
    else if (asked === 2) {
      const busy = { code: "busy", detail: "too much at once", retryable: true };
      answer.writeHead(503, { "content-type": "application/problem+json" }).end(JSON.stringify(busy));
    } else answer.writeHead(200).end('{"topics": 7, "a_new_field": {"of_a": "newer server"}}');
  });
  const { client, entries } = loggedClient(front);
  const stats = await client.stats();
  assert.equal(stats.topics, 7);
  assert.deepEqual((stats as unknown as Record<string, unknown>)["aNewField"], { ofA: "newer server" });
  assert.equal(entries.length, 2);
  assert.ok(entries[0]?.["error"] instanceof UnavailableError);
});

test("an error with a code of a newer server is still an error of this client", async (t) => {
  const front = await serve(t, (_, answer) =>
    answer.writeHead(418).end('{"code": "asleep", "detail": "in the teapot"}'),
  );
  await assert.rejects(new Client(front).stats(), (error: DormouseError) => {
    assert.ok(error instanceof DormouseError);
    assert.deepEqual(
      [error.code, error.status, error.message, error.retryable],
      ["asleep", 418, "in the teapot", false],
    );
    return true;
  });
});

test("a server that does not answer in time is given up, and a signal ends a call at once", async (t) => {
  const silent = await serve(t, () => undefined);
  const { client } = loggedClient(silent, { timeout: 100, retryFor: 200 });
  await assert.rejects(client.stats(), (error: Error) => /no answer within 100 ms/.test(error.message));
  const stop = new AbortController();
  const waiting = server.client.reserve("nothing-here", { wait: "30s", signal: stop.signal });
  setTimeout(() => stop.abort(new Error("enough")), 50);
  await assert.rejects(waiting, /enough/);
});

test("a broken stream of events goes on where it was", async (t) => {
  const { proxy, client, entries } = await lossy(t);
  const seen: unknown[] = [];
  const stop = new AbortController();
  const watching = (async () => {
    for await (const event of client.events({ topic: "resumed", signal: stop.signal }))
      seen.push(event.id ?? event.event);
  })();
  const put: string[] = [];
  const add = async () => put.push((await server.client.put("resumed", 1)).id);
  await until("the stream has begun", async () => {
    await add();
    return seen.length > 0;
  });
  const first = put.indexOf(String(seen[0]));
  proxy.lose = 1;
  await add();
  await until("the connection broke", () => entries.length > 0);
  await add();
  await until("all events came", () => seen.length >= put.length - first);
  assert.deepEqual(seen, put.slice(first));
  stop.abort();
  await watching;
});
