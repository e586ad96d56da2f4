/** For tests: a server of one's own, whose clock is moved by hand. */

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { createInterface } from "node:readline";
import { Client, type ClientOptions } from "./client.js";
import { UnreachableError } from "./errors.js";

export interface TestServerOptions {
  /** The program; `DORMOUSE_BIN`, else `dormouse` of the search path. */
  bin?: string;
  /** Arguments of `serve` instead of `--backend memory --test-clock`, for example `["--data", dir]`. */
  args?: string[];
  /** Options of `server.client`. */
  client?: ClientOptions;
  /** Addresses; a free port of loopback unless given. */
  http?: string;
}

const START_MS = 20_000;

/** A running server. Its jobs live in memory and its clock stands still unless `args` say otherwise. */
export class TestServer {
  readonly client: Client;
  readonly #options: TestServerOptions;
  readonly url: string;
  #process: ChildProcess;

  constructor(process: ChildProcess, url: string, options: TestServerOptions) {
    this.#process = process;
    this.url = url;
    this.#options = options;
    this.client = new Client(url, options.client);
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** Moves the clock. What comes due in between happens in its order before this resolves. */
  advance(by: string | number): Promise<Date> {
    return this.client.advance(by);
  }

  /** Ends the process without warning, as a crash does. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Starts it again at the same address. */
  async restart(): Promise<void> {
    const again = await launch({ ...this.#options, http: new URL(this.url).host });
    this.#process = again.process;
  }

  async stop(): Promise<void> {
    this.client.close();
    await this.#end("SIGTERM");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const process = this.#process;
    if (process.exitCode !== null || process.signalCode !== null) return;
    process.ref();
    const exited = once(process, "exit");
    process.kill(signal);
    await exited;
  }
}

/** Starts `dormouse serve` on a free port of loopback. */
export async function startServer(options: TestServerOptions = {}): Promise<TestServer> {
  const { process, url } = await launch(options);
  return new TestServer(process, url, options);
}

async function launch(options: TestServerOptions): Promise<{ process: ChildProcess; url: string }> {
  const bin = options.bin ?? process.env["DORMOUSE_BIN"] ?? "dormouse";
  const own = ["--http", options.http ?? "127.0.0.1:0", "--resp", "off"];
  const args = ["serve", ...own, ...(options.args ?? ["--backend", "memory", "--test-clock"])];
  const child = spawn(bin, args, { stdio: ["ignore", "pipe", "pipe"] });
  let chatter = "";
  child.stderr.on("data", (chunk) => (chatter = (chatter + String(chunk)).slice(-2_000)));
  const url = new Promise<string>((resolve, reject) => {
    const fail = (why: string) =>
      reject(
        new UnreachableError(
          `${bin} ${args.join(" ")}: ${why}; give the program as \`bin\` or DORMOUSE_BIN. ${chatter}`,
          { sent: false },
        ),
      );
    child.on("error", (error) => fail(error.message));
    child.on("exit", (code, signal) => fail(`it ended with ${code ?? signal}`));
    createInterface(child.stdout).on("line", (line) => {
      const found = /^http listening on (\S+)$/.exec(line);
      if (found?.[1] !== undefined) resolve(found[1]);
    });
    setTimeout(() => fail(`it was not ready within ${START_MS} ms`), START_MS).unref();
  });
  try {
    const found = await url;
    detach(child);
    return { process: child, url: found };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

/** A test that fails before its `stop` must neither hang nor leave a server behind. */
function detach(child: ChildProcess): void {
  child.unref();
  for (const pipe of [child.stdout, child.stderr]) (pipe as Socket | null)?.unref();
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  child.once("exit", () => process.off("exit", kill));
}
