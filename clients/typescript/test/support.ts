/** What the tests share: the server's program, waiting for conditions, a proxy that loses answers. */

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Client, type ClientOptions, type LogEntry } from "../src/index.js";
import { startServer, type TestServer } from "../src/testing.js";

/** The root of the repository: the first directory above with its `Cargo.toml` and `docs`. */
export const ROOT = findRoot(path.dirname(fileURLToPath(import.meta.url)));

function findRoot(from: string): string {
  if (existsSync(path.join(from, "Cargo.toml")) && existsSync(path.join(from, "docs"))) return from;
  const above = path.dirname(from);
  assert.notEqual(above, from, "the tests must run below the root of the repository");
  return findRoot(above);
}

/** The server's program: `DORMOUSE_BIN`, else what cargo has built. */
export function serverProgram(): string {
  const built = ["debug", "release"].map((kind) => path.join(ROOT, "target", kind, "dormouse"));
  const found = process.env["DORMOUSE_BIN"] ?? built.find((file) => existsSync(file));
  assert.ok(found, "no server to test against: run `cargo build`, or set DORMOUSE_BIN to the program `dormouse`");
  return found;
}

/** A server in memory with real time. */
export function memoryServer(client: ClientOptions = {}): Promise<TestServer> {
  return startServer({
    bin: serverProgram(),
    args: ["--backend", "memory"],
    client: { log: () => undefined, ...client },
  });
}

/** A server in memory whose clock the test moves. */
export function clockServer(): Promise<TestServer> {
  return startServer({ bin: serverProgram(), client: { log: () => undefined } });
}

/** A server on a directory of its own, which is removed by `clean`. */
export async function diskServer(
  client: ClientOptions = {},
): Promise<{ server: TestServer; clean: () => Promise<void> }> {
  const data = mkdtempSync(path.join(tmpdir(), "dormouse-ts-"));
  const args = ["--data", data];
  const server = await startServer({ bin: serverProgram(), args, client: { log: () => undefined, ...client } });
  const clean = async () => {
    await server.stop();
    rmSync(data, { recursive: true, force: true });
  };
  return { server, clean };
}

/** Waits until a condition holds; fails with its name after a generous time. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, forMs = 15_000): Promise<void> {
  const giveUpAt = performance.now() + forMs;
  while (!(await holds())) {
    assert.ok(performance.now() < giveUpAt, `waited ${forMs} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** A client that remembers what it logged. */
export function loggedClient(
  url: string | string[],
  options: ClientOptions = {},
): { client: Client; entries: LogEntry[] } {
  const entries: LogEntry[] = [];
  const client = new Client(url, { log: (entry) => entries.push(entry), ...options });
  return { client, entries };
}

/** A proxy that forwards to a server and loses answers on request. */
export class Proxy {
  readonly url: string;
  /** So many answers are still to be lost: the request arrives, the connection breaks. */
  lose = 0;
  connections = 0;
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();

  private constructor(server: net.Server, port: number) {
    this.#server = server;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(target: string): Promise<Proxy> {
    const server = net.createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const proxy = new Proxy(server, (server.address() as net.AddressInfo).port);
    server.on("connection", (socket) => proxy.#forward(socket, new URL(target)));
    return proxy;
  }

  #forward(socket: net.Socket, target: URL): void {
    this.connections++;
    const upstream = net.connect(Number(target.port), target.hostname);
    for (const end of [socket, upstream]) {
      this.#sockets.add(end);
      end.on("error", () => undefined);
      end.on("close", () => {
        this.#sockets.delete(end);
        socket.destroy();
        upstream.destroy();
      });
    }
    socket.pipe(upstream);
    upstream.on("data", (chunk) => {
      if (this.lose > 0) {
        this.lose--;
        socket.destroy();
      } else socket.write(chunk);
    });
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** A port of loopback at which nobody listens. */
export async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** All items of an iterator. */
export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
