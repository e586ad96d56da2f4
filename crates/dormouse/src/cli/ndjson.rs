//! Many jobs from a file of lines, put in batches.

use std::io::{BufRead as _, BufReader, Read};
use std::time::Duration;

use serde_json::json;

use super::Global;
use super::client::{Client, Request};
use super::exit::{Exit, Failure};
use super::output::{self, Output, progress};
use super::tokens::Outcome;

/// Jobs in a batch.
const BATCH_JOBS_MAX: usize = 500;
/// Bytes from which on a batch is sent, however few jobs are in it.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// The longest line that is read; more than any job may have.
const LINE_BYTES_MAX: usize = 8 << 20;
/// How often a batch is sent again that the server was too busy for, and the first pause.
const BUSY_TRIES_MAX: u32 = 8;
const BUSY_PAUSE: Duration = Duration::from_millis(100);

#[derive(serde::Deserialize)]
struct Results {
    results: Vec<Outcome>,
}

/// What became of all lines so far.
#[derive(Default)]
struct Tally {
    created: u64,
    duplicate: u64,
    replaced: u64,
    failed: Vec<(u64, Outcome)>,
}

/// Puts every line of `source`.
pub(super) async fn put(global: &Global, path: &str, source: Box<dyn Read>) -> Result<(), Failure> {
    let client = global.client()?;
    let mut lines = Lines { source: BufReader::new(source), number: 0 };
    let mut tally = Tally::default();
    loop {
        let batch = lines.batch()?;
        if batch.numbers.is_empty() {
            break;
        }
        if let Err(failure) = send(&client, path, batch, &mut tally).await {
            tally.print(global)?;
            return Err(failure);
        }
        progress(&format!("{} put, {} failed", tally.put(), tally.failed.len()), false);
    }
    progress("", false);
    tally.print(global)?;
    if tally.failed.is_empty() {
        return Ok(());
    }
    Err(Failure::with(Exit::Error, format!("{} of the lines failed", tally.failed.len())))
}

async fn send(client: &Client, path: &str, batch: Batch, tally: &mut Tally) -> Result<(), Failure> {
    let first = batch.numbers[0];
    let request =
        Request::post(path).header("content-type", "application/x-ndjson").body(batch.text);
    let mut pause = BUSY_PAUSE;
    let mut tries = 1;
    let reply = loop {
        match client.call(request.clone()).await {
            Err(failure) if failure.code() == Some("busy") && tries < BUSY_TRIES_MAX => {
                tokio::time::sleep(pause).await;
                pause *= 2;
                tries += 1;
            }
            Err(failure) => {
                let last = batch.numbers.last().copied().unwrap_or(first);
                return Err(failure.about(&format!("lines {first} to {last}")));
            }
            Ok(reply) => break reply,
        }
    };
    let results: Results = reply.parse()?;
    for (number, outcome) in batch.numbers.into_iter().zip(results.results) {
        tally.count(number, outcome);
    }
    Ok(())
}

impl Tally {
    fn count(&mut self, number: u64, outcome: Outcome) {
        match outcome.code.as_str() {
            "created" => self.created += 1,
            "duplicate" => self.duplicate += 1,
            "replaced" => self.replaced += 1,
            code => {
                let detail = outcome.detail.as_deref().unwrap_or_default();
                progress("", false);
                output::say(&format!("line {number}: {code}: {detail}"));
                self.failed.push((number, outcome));
            }
        }
    }

    fn put(&self) -> u64 {
        self.created + self.duplicate + self.replaced
    }

    fn print(&self, global: &Global) -> Result<(), Failure> {
        let failed = self.failed.len();
        if global.output == Output::Table {
            let Tally { created, duplicate, replaced, .. } = self;
            let text = format!("{created} created, {duplicate} duplicate, {replaced} replaced");
            return output::print_line(&format!("{text}, {failed} failed"));
        }
        let failure = |(line, outcome): &(u64, Outcome)| json!({"line": line, "code": outcome.code, "detail": outcome.detail, "id": outcome.id});
        let summary = json!({
            "created": self.created,
            "duplicate": self.duplicate,
            "replaced": self.replaced,
            "failed": failed,
            "failures": self.failed.iter().map(failure).collect::<Vec<_>>(),
        });
        output::print_line(&summary.to_string())
    }
}

/// Some lines, and which they are.
#[derive(Default)]
struct Batch {
    text: Vec<u8>,
    numbers: Vec<u64>,
}

struct Lines<R> {
    source: BufReader<R>,
    number: u64,
}

impl<R: Read> Lines<R> {
    /// The next lines that are not empty; none at the end.
    fn batch(&mut self) -> Result<Batch, Failure> {
        let mut batch = Batch::default();
        while batch.numbers.len() < BATCH_JOBS_MAX && batch.text.len() < BATCH_BYTES_MAX {
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
                batch.text.extend_from_slice(line);
                batch.text.push(b'\n');
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
        assert_eq!(batch.text, b"{}\n{\"a\":1}\n{}\n");
        assert!(lines.batch().unwrap().numbers.is_empty());
    }

    #[test]
    fn a_batch_is_bounded() {
        let text = "{}\n".repeat(BATCH_JOBS_MAX + 1);
        let mut lines = Lines { source: BufReader::new(text.as_bytes()), number: 0 };
        assert_eq!(lines.batch().unwrap().numbers.len(), BATCH_JOBS_MAX);
        assert_eq!(lines.batch().unwrap().numbers, [BATCH_JOBS_MAX as u64 + 1]);
    }
}
