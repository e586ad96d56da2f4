//! Puts many jobs from a file of lines, in batches.

use std::io::{BufRead as _, BufReader, Read};
use std::time::Duration;

use serde_json::json;

use crate::Global;
use crate::client::{Client, Request, UNCONFIRMED, named};
use crate::exit::{Exit, Failure};
use crate::output::{self, Output, progress};
use crate::tokens::ItemResult;

/// Jobs in a batch.
const BATCH_JOBS_MAX: usize = 500;
/// A batch of this many bytes is sent, however few jobs are in it.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// The longest line that is read; longer than any job may be.
const LINE_BYTES_MAX: usize = 8 << 20;
/// How often a batch is sent while the server is busy, and the first pause.
const BUSY_TRIES_MAX: u32 = 8;
const BUSY_PAUSE: Duration = Duration::from_millis(100);

#[derive(serde::Deserialize)]
struct Results {
    results: Vec<ItemResult>,
}

/// The results of all lines so far.
#[derive(Default)]
struct Totals {
    created: u64,
    duplicate: u64,
    replaced: u64,
    failed: Vec<(u64, ItemResult)>,
}

/// Puts every line of `source`.
pub(super) async fn put(global: &Global, path: &str, source: Box<dyn Read>) -> Result<(), Failure> {
    let client = global.client()?;
    let mut lines = Lines { source: BufReader::new(source), number: 0 };
    let mut totals = Totals::default();
    loop {
        let batch = lines.batch()?;
        if batch.numbers.is_empty() {
            break;
        }
        if let Err(failure) = send(&client, path, batch, &mut totals).await {
            totals.print(global)?;
            return Err(failure);
        }
        progress(&format!("{} put, {} failed", totals.put(), totals.failed.len()), false);
    }
    progress("", false);
    totals.print(global)?;
    if totals.failed.is_empty() {
        return Ok(());
    }
    Err(Failure::with(Exit::Error, format!("{} of the lines failed", totals.failed.len())))
}

/// Sends a batch. The server refuses a batch with an invalid line; that line is left out and the
/// rest is sent again.
async fn send(
    client: &Client,
    path: &str,
    mut batch: Batch,
    totals: &mut Totals,
) -> Result<(), Failure> {
    let mut pause = BUSY_PAUSE;
    let mut tries = 1;
    while !batch.numbers.is_empty() {
        let request = Request::post(path)
            .header("content-type", "application/x-ndjson")
            .body(batch.lines.join(&b'\n'));
        let failure = match client.call(request).await {
            Ok(reply) => {
                let results: Results = reply.parse()?;
                for (number, result) in batch.numbers.into_iter().zip(results.results) {
                    totals.count(number, result);
                }
                return Ok(());
            }
            Err(failure) => failure,
        };
        if failure.code() == Some("busy") && tries < BUSY_TRIES_MAX {
            tokio::time::sleep(pause).await;
            pause *= 2;
            tries += 1;
        } else if let Some((index, detail)) = blamed(&failure, batch.lines.len()) {
            batch.lines.remove(index);
            totals.count(batch.numbers.remove(index), ItemResult::invalid(detail));
        } else {
            let (first, last) = (batch.numbers[0], batch.numbers[batch.numbers.len() - 1]);
            return Err(failure.about(&format!("lines {first} to {last}")));
        }
    }
    Ok(())
}

/// The line of a batch that the server could not read, and the reason.
fn blamed(failure: &Failure, count: usize) -> Option<(usize, &str)> {
    let (number, detail) = failure.text().strip_prefix("invalid: line ")?.split_once(": ")?;
    let index = number.parse::<usize>().ok()?.checked_sub(1)?;
    (index < count).then_some((index, detail))
}

impl Totals {
    fn count(&mut self, number: u64, result: ItemResult) {
        match result.code.as_str() {
            "created" => self.created += 1,
            "duplicate" => self.duplicate += 1,
            "replaced" => self.replaced += 1,
            code => {
                let detail = result.detail.as_deref().unwrap_or_default();
                let id = result.id.as_deref().filter(|_| code == UNCONFIRMED);
                let id = id.map(named).unwrap_or_default();
                progress("", false);
                output::say(&format!("line {number}: {code}: {detail}{id}"));
                self.failed.push((number, result));
            }
        }
    }

    fn put(&self) -> u64 {
        self.created + self.duplicate + self.replaced
    }

    fn print(&self, global: &Global) -> Result<(), Failure> {
        let failed = self.failed.len();
        if global.output == Output::Table {
            let Totals { created, duplicate, replaced, .. } = self;
            let text = format!("{created} created, {duplicate} duplicate, {replaced} replaced");
            return output::print_line(&format!("{text}, {failed} failed"));
        }
        let mut failures = Vec::new();
        for (line, one) in &self.failed {
            let (code, detail, id) = (&one.code, &one.detail, &one.id);
            failures.push(json!({"line": line, "code": code, "detail": detail, "id": id}));
        }
        let summary = json!({
            "created": self.created,
            "duplicate": self.duplicate,
            "replaced": self.replaced,
            "failed": failed,
            "failures": failures,
        });
        output::print_line(&summary.to_string())
    }
}

/// Lines, and their numbers in the file.
#[derive(Default)]
struct Batch {
    lines: Vec<Vec<u8>>,
    numbers: Vec<u64>,
}

struct Lines<R> {
    source: BufReader<R>,
    number: u64,
}

impl<R: Read> Lines<R> {
    /// The next non-empty lines; none at the end.
    fn batch(&mut self) -> Result<Batch, Failure> {
        let mut batch = Batch::default();
        let mut bytes = 0;
        while batch.numbers.len() < BATCH_JOBS_MAX && bytes < BATCH_BYTES_MAX {
            let mut line = Vec::new();
            let mut source = (&mut self.source).take(LINE_BYTES_MAX as u64);
            let length = source
                .read_until(b'\n', &mut line)
                .map_err(|error| Failure::new(format!("cannot read: {error}")))?;
            if length == 0 {
                break;
            }
            self.number += 1;
            if length == LINE_BYTES_MAX {
                let text = format!("line {} has {LINE_BYTES_MAX} bytes or more", self.number);
                return Err(Failure::new(text));
            }
            let line = line.trim_ascii();
            if !line.is_empty() {
                bytes += line.len() + 1;
                batch.lines.push(line.to_vec());
                batch.numbers.push(self.number);
            }
        }
        Ok(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_as_they_are_in_the_file() {
        let text: &[u8] = b"{}\n\n  {\"a\":1}\r\n{}";
        let mut lines = Lines { source: BufReader::new(text), number: 0 };
        let batch = lines.batch().unwrap();
        assert_eq!(batch.numbers, [1, 3, 4]);
        assert_eq!(batch.lines.join(&b'\n'), b"{}\n{\"a\":1}\n{}");
        assert!(lines.batch().unwrap().numbers.is_empty());
    }

    #[test]
    fn the_line_to_blame_is_found() {
        let check = |code: &str, detail: &str, expected: Option<(usize, &str)>| {
            assert_eq!(blamed(&Failure::of_server(code, detail), 3), expected, "{detail}");
        };
        check("invalid", "line 3: unknown field: x", Some((2, "unknown field: x")));
        check("invalid", "line 4: not of this batch", None);
        check("invalid", "line 0: no line", None);
        check("full", "line 1: no", None);
        check("invalid", "the topic", None);
    }

    #[test]
    fn a_batch_is_bounded() {
        let text = "{}\n".repeat(BATCH_JOBS_MAX + 1);
        let mut lines = Lines { source: BufReader::new(text.as_bytes()), number: 0 };
        assert_eq!(lines.batch().unwrap().numbers.len(), BATCH_JOBS_MAX);
        assert_eq!(lines.batch().unwrap().numbers, [BATCH_JOBS_MAX as u64 + 1]);
    }
}
