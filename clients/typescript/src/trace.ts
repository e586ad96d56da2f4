/** Trace context: `traceparent` and `tracestate` go from a put to the handler as headers of the job. */

import { AsyncLocalStorage } from "node:async_hooks";

/** The two headers of W3C Trace Context. */
export interface TraceContext {
  traceparent?: string;
  tracestate?: string;
}

const running = new AsyncLocalStorage<TraceContext>();

/** The trace context of the job whose handler runs here; empty elsewhere. */
export function currentTrace(): TraceContext {
  return running.getStore() ?? {};
}

/** Runs a handler so that its own puts carry on the trace of its job. */
export function withTrace<T>(headers: Record<string, string>, run: () => T): T {
  const { traceparent, tracestate } = headers;
  // Most jobs have none, and the storage is not free.
  if (traceparent === undefined) return run();
  return running.run({ traceparent, ...(tracestate === undefined ? {} : { tracestate }) }, run);
}
