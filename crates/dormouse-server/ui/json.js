// JSON without loss. `JSON.parse` rounds integers beyond 2^53, drops repeated names and sorts names
// that look like numbers, so bodies of jobs are kept as the text that the server sent.

// A JSON value as it was written.
export class RawJson {
  constructor(text) {
    this.text = text;
  }
}

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;

// The parts of a JSON text, one after another. Strings and numbers stay as they were written.
class Tokens {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found?.[0];
  }

  // The next part, or undefined at the end.
  next() {
    this.match(SPACE);
    const c = this.text[this.at];
    if (c === undefined) return undefined;
    if ("{}[],:".includes(c)) {
      this.at += 1;
      return c;
    }
    const token = c === '"' ? this.string() : this.match(NUMBER) ?? this.match(WORD);
    if (token === undefined) throw new SyntaxError(`no JSON at character ${this.at}`);
    return token;
  }

  // A pattern would use a stack for each character; a string may have a million.
  string() {
    let end = this.at + 1;
    for (;;) {
      const c = this.text.charCodeAt(end);
      if (Number.isNaN(c)) return undefined;
      if (c === 34) break;
      end += c === 92 ? 2 : 1;
    }
    const token = this.text.slice(this.at, end + 1);
    this.at = end + 1;
    return token;
  }

  // Steps over the next value and returns its text.
  raw() {
    this.match(SPACE);
    const from = this.at;
    let depth = 0;
    do {
      const token = this.next();
      if (token === undefined) throw new SyntaxError("the JSON ends too early");
      if (token === "{" || token === "[") depth += 1;
      if (token === "}" || token === "]") depth -= 1;
    } while (depth > 0);
    return this.text.slice(from, this.at);
  }
}

function value(tokens, token, name) {
  if (token === "{") return object(tokens, name);
  if (token === "[") {
    const items = [];
    for (token = tokens.next(); token !== "]"; token = tokens.next()) {
      if (token === undefined) throw new SyntaxError("the JSON ends too early");
      if (token !== ",") items.push(value(tokens, token, name));
    }
    return items;
  }
  if (token === undefined || "}],:".includes(token)) throw new SyntaxError("a value is missing");
  return JSON.parse(token);
}

function object(tokens, name) {
  // No prototype: a header may be called `constructor` or `__proto__`.
  const fields = Object.create(null);
  for (let token = tokens.next(); token !== "}"; token = tokens.next()) {
    if (token === ",") continue;
    if (token === undefined || token[0] !== '"') throw new SyntaxError("a name is missing");
    const field = JSON.parse(token);
    if (tokens.next() !== ":") throw new SyntaxError("a colon is missing");
    // `body` is a job's, unless it is the name of a header.
    const isBody = field === "body" && name !== "headers";
    fields[field] = isBody ? new RawJson(tokens.raw()) : value(tokens, tokens.next(), field);
  }
  return fields;
}

// Reads an answer of the server: a `body` becomes `RawJson`, all else plain values.
export function readAnswer(text) {
  const tokens = new Tokens(text);
  const answer = value(tokens, tokens.next(), "");
  if (tokens.next() !== undefined) throw new SyntaxError("there is more after the JSON");
  return answer;
}

// Lays JSON out over lines without changing any name, string or number. Throws if it is none.
export function pretty(text) {
  const tokens = new Tokens(text);
  const out = [];
  let depth = 0;
  let before = "";
  const line = () => out.push("\n", "  ".repeat(depth));
  for (let token = tokens.next(); token !== undefined; token = tokens.next()) {
    const opens = before === "{" || before === "[";
    if (token === "}" || token === "]") {
      depth -= 1;
      if (!opens) line();
    } else if (opens || before === ",") {
      line();
    }
    out.push(token === ":" ? ": " : token);
    if (token === "{" || token === "[") depth += 1;
    before = token;
  }
  return out.join("");
}

// Whether the text is one JSON value; says what is wrong otherwise.
export function whatIsWrong(text) {
  try {
    const tokens = new Tokens(text);
    value(tokens, tokens.next(), "headers");
    if (tokens.next() !== undefined) return "there is more after the JSON value";
    // The scan above takes some mistakes (a comma too many) for good.
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return error.message;
  }
}

// The text of an answer, with each body as it came.
export function writeAnswer(answer) {
  if (answer instanceof RawJson) return answer.text;
  if (Array.isArray(answer)) return `[${answer.map(writeAnswer).join(",")}]`;
  if (answer === null || typeof answer !== "object") return JSON.stringify(answer);
  return `{${Object.entries(answer).map(([name, field]) => `${JSON.stringify(name)}:${writeAnswer(field)}`).join(",")}}`;
}
