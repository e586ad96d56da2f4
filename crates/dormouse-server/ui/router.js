// Every view has a URL: `#/t/orders/jobs?state=dead`. The part after `#` never reaches the server.
import { signal } from "./html.js";

function read() {
  const hash = location.hash.replace(/^#/, "") || "/";
  const [path, query = ""] = hash.split(/\?(.*)/s);
  try {
    const steps = path.split("/").filter((step) => step !== "").map(decodeURIComponent);
    return { steps, query: new URLSearchParams(query), hash };
  } catch {
    return { steps: [], query: new URLSearchParams(), hash, error: `"${hash}" is not a valid address` };
  }
}

export const route = signal(read());
addEventListener("hashchange", () => { route.value = read(); });

// The address of a view: link("t", topic, "jobs", {state: "dead"}).
export function link(...steps) {
  const last = steps.at(-1);
  const query = typeof last === "object" ? steps.pop() : {};
  const wanted = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const search = new URLSearchParams(wanted).toString();
  return `#/${steps.map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

export const go = (...steps) => { location.hash = link(...steps); };

// Changes the query of the present view in place: typing in a filter makes no history.
export function amend(changes) {
  const { steps, query } = route.value;
  const next = { ...Object.fromEntries(query), ...changes };
  history.replaceState(null, "", link(...steps, next));
  route.value = read();
}
