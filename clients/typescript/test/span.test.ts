/** Spans and names, without a server. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { spanMs } from "../src/span.js";
import { fromWire, query, toWire } from "../src/wire.js";

test("spans are read as the server reads them", () => {
  const cases: [string | number, number][] = [
    [250, 250],
    ["250", 250],
    ["30s", 30_000],
    ["1h 30m", 5_400_000],
    ["1h30m", 5_400_000],
    ["2d", 172_800_000],
    ["500ms", 500],
    ["1.5s", 1_500],
    ["PT30M", 1_800_000],
    ["P1DT1S", 86_401_000],
  ];
  for (const [span, ms] of cases) assert.equal(spanMs(span, "wait"), ms, String(span));
  for (const bad of ["", "soon", "1y", "P", "PT", -1, NaN, "-5s", "5 s x"]) {
    assert.throws(() => spanMs(bad, "wait"), /wait is .*write it as/, String(bad));
  }
});

test("names are translated, bodies and headers are not", () => {
  const wire = {
    due_at: "2027-01-01T08:00:00.000Z",
    ttr_ms: 5,
    body: { due_at: "x" },
    headers: { a_b: "c" },
    new_field: [{ x_y: 1 }],
  };
  assert.deepEqual(fromWire(wire), {
    dueAt: new Date("2027-01-01T08:00:00.000Z"),
    ttrMs: 5,
    body: { due_at: "x" },
    headers: { a_b: "c" },
    newField: [{ xY: 1 }],
  });
  assert.deepEqual(toWire({ onConflict: "keep", delay: undefined, fields: { as_is: 1 } }), {
    on_conflict: "keep",
    as_is: 1,
  });
  assert.equal(
    query({ unlessLeased: true, from: new Date(0), x: undefined }),
    "?unless_leased=true&from=1970-01-01T00%3A00%3A00.000Z",
  );
});
