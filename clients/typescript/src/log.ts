/** One hook for everything worth telling: retries, lost leases, the life of jobs. */

export type LogLevel = "debug" | "info" | "warn" | "error";

/** A line for a log. `event` is a stable name, `message` a sentence, the rest belongs to the event. */
export interface LogEntry {
  level: LogLevel;
  /**
   * `retry` (a request is sent again), `offline` and `online` (a worker cannot reach its server, reaches it
   * again), `job_started`, `job_ended`, `job_told` (its ack or nack was answered), `untold` (it never was),
   * `lease_lost`, `stopping`.
   */
  event: string;
  message: string;
  [field: string]: unknown;
}

export type LogHook = (entry: LogEntry) => void;

/** Warnings and errors to stderr: nothing is tried again in silence. */
function toStderr(entry: LogEntry): void {
  console.warn(`dormouse: ${entry.message}`);
}

/** Where entries go. Without a hook only warnings and errors are written. */
export class Log {
  readonly #hook: LogHook | undefined;

  constructor(hook: LogHook | undefined) {
    this.#hook = hook;
  }

  /** Whether somebody reads entries of jobs; they are not even made otherwise. */
  get wantsAll(): boolean {
    return this.#hook !== undefined;
  }

  write(level: LogLevel, event: string, message: string, fields: Record<string, unknown> = {}): void {
    const entry = { ...fields, level, event, message };
    if (!this.#hook) {
      if (level === "warn" || level === "error") toStderr(entry);
      return;
    }
    try {
      this.#hook(entry);
    } catch (error) {
      console.warn("dormouse: the log hook failed:", error);
    }
  }
}
