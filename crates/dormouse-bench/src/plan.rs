//! What to measure, and the jobs it is measured with.

use std::path::PathBuf;

use bytes::Bytes;
use clap::ValueEnum;
use dormouse_core::op::Put;
use dormouse_core::topic::TopicName;
use serde::{Deserialize, Serialize};

use crate::Result;
use dormouse_check::generate::rng::Rng;

/// Due times are uniform over this.
pub(crate) const SPREAD_MS: u64 = 30 * 24 * 3_600 * 1_000;
/// No job of the backlog comes due while the other phases run.
const LEAD_MS: u64 = 3_600 * 1_000;
/// The drain's clock is ahead by so much: everything is due.
pub(crate) const ALL_DUE_MS: u64 = SPREAD_MS + 2 * 24 * 3_600 * 1_000;
/// Bytes of puts on their way to the engine; its inbox takes twice as much.
const IN_FLIGHT_BYTES_MAX: usize = 32 << 20;
/// Fewer jobs say nothing.
const JOBS_MIN: u64 = 1_000;
/// A body begins with the job's number, so that a wrong one is noticed.
pub(crate) const NUMBER_BYTES: usize = 8;

/// The flags of `engine`.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// Jobs of the backlog
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) jobs: u64,
    /// Bytes of a body, at least 8
    #[arg(long, default_value_t = 100)]
    pub(crate) body: usize,
    /// Jobs per put, reserve and ack
    #[arg(long, default_value_t = 1_024)]
    pub(crate) batch: usize,
    /// Put batches on their way at once
    #[arg(long, default_value_t = 8)]
    pub(crate) in_flight: usize,
    /// Give every job a key of its own
    #[arg(long)]
    pub(crate) keyed: bool,
    /// Spread the jobs over so many topics
    #[arg(long, default_value_t = 1)]
    pub(crate) topics: u64,
    /// Also: 1M jobs due in one ms on a topic with a slow consumer
    #[arg(long)]
    pub(crate) herd: bool,
    /// Jobs of the herd
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) herd_jobs: u64,
    /// Jobs of the bulk loads beside which lateness is measured; 0 leaves that out
    #[arg(long, default_value_t = 3_000_000)]
    pub(crate) bulk_jobs: u64,
    /// Also: put and cancel so many jobs, kill -9, start again
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) cancelled: u64,
    /// With --cancelled: one job in so many is not cancelled; 0 = all are
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) keep_every: u64,
    /// How long that start stays quiet before its bytes on disk are counted
    #[arg(long, default_value_t = 60.0)]
    pub(crate) quiet_seconds: f64,
    /// All jobs are due at once and nobody takes them
    #[arg(long)]
    pub(crate) ready: bool,
    /// Where to make a directory for the run, removed afterwards [default: the temporary directory]
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
    /// Leave the directory
    #[arg(long)]
    pub(crate) keep: bool,
    /// Seed of bodies, due times and choices
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Phases to leave out; without the fill, all that need its backlog
    #[arg(long, value_delimiter = ',')]
    pub(crate) skip: Vec<Phase>,
}

/// The measurements, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Phase {
    Fill,
    Raw,
    Reopen,
    Idle,
    Keyed,
    Cancel,
    /// Lateness in quiet
    Late,
    /// Lateness beside a bulk load
    LateBeside,
    /// Lateness right after a bulk load
    LateAfter,
    Herd,
    Drain,
    /// Puts and cancels, on a directory of their own
    Cancelled,
    /// The start after that
    Leftovers,
}

impl Phase {
    fn needs_backlog(self) -> bool {
        use Phase::{Cancel, Drain, Fill, Idle, Keyed, Raw, Reopen};
        matches!(self, Fill | Raw | Reopen | Idle | Keyed | Cancel | Drain)
    }
}

impl Plan {
    /// Whether a job is put to be cancelled.
    pub(crate) fn is_cancelled(&self, number: u64) -> bool {
        self.keep_every == 0 || !number.is_multiple_of(self.keep_every)
    }

    pub(crate) fn check(&self) -> Result<()> {
        for (flag, jobs) in [("--cancelled", self.cancelled), ("--bulk-jobs", self.bulk_jobs)] {
            if (1..JOBS_MIN).contains(&jobs) {
                return Err(format!("{flag} is {jobs}; give 0 or at least {JOBS_MIN}").into());
            }
        }
        if self.jobs < JOBS_MIN {
            return Err(format!("--jobs is {}; give at least {JOBS_MIN}", self.jobs).into());
        }
        if self.body < NUMBER_BYTES {
            return Err(format!("--body is {}; give at least {NUMBER_BYTES}", self.body).into());
        }
        let batch_max = dormouse_core::limits::BATCH_MAX;
        if !(1..=batch_max).contains(&self.batch) {
            return Err(format!("--batch is {}; give 1 to {batch_max}", self.batch).into());
        }
        if !(1..=self.jobs).contains(&self.topics) {
            return Err(format!("--topics is {}; give 1 to the number of jobs", self.topics).into());
        }
        Ok(())
    }

    pub(crate) fn includes(&self, phase: Phase) -> bool {
        let asked = match phase {
            Phase::Keyed => self.keyed,
            Phase::Herd => self.herd,
            Phase::LateBeside | Phase::LateAfter => self.bulk_jobs > 0,
            Phase::Cancelled | Phase::Leftovers => self.cancelled > 0,
            _ => true,
        };
        let has_backlog = !self.skip.contains(&Phase::Fill);
        asked && (has_backlog || !phase.needs_backlog()) && !self.skip.contains(&phase)
    }

    /// Put batches on their way at once, by number and by bytes.
    pub(crate) fn window(&self) -> usize {
        let batch_bytes = self.batch * (self.body + 256);
        self.in_flight.min(IN_FLIGHT_BYTES_MAX / batch_bytes).max(1)
    }

    /// The topics' names, by their numbers.
    pub(crate) fn topic_names(&self) -> Result<Vec<TopicName>> {
        let name = |number: u64| Ok(TopicName::new(&format!("backlog-{number}"))?);
        (0..self.topics).map(name).collect()
    }

    /// The number of the topic that this job is in.
    pub(crate) fn topic_of(&self, job: u64) -> usize {
        usize::try_from(job % self.topics).unwrap_or(0)
    }

    /// Distinct jobs in random order, the same in every process.
    pub(crate) fn shuffled(&self) -> Shuffled {
        Shuffled::new(self.jobs, self.seed)
    }
}

/// The numbers below `count` in an order that jumps all over them.
#[derive(Clone, Copy)]
pub(crate) struct Shuffled {
    count: u64,
    step: u64,
    start: u64,
}

impl Shuffled {
    pub(crate) fn new(count: u64, seed: u64) -> Shuffled {
        let mut rng = Rng::new(seed ^ 0x5348_5546);
        let start = rng.below(count);
        let mut step = count / 3 + rng.below(count / 3);
        while gcd(step, count) != 1 {
            step += 1;
        }
        Shuffled { count, step, start }
    }

    pub(crate) fn at(self, index: u64) -> u64 {
        let jump = u128::from(index) * u128::from(self.step) + u128::from(self.start);
        (jump % u128::from(self.count)) as u64
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Makes the jobs of the backlog.
pub(crate) struct Maker {
    plan: Plan,
    topics: Vec<TopicName>,
    noise: Noise,
    rng: Rng,
}

impl Maker {
    pub(crate) fn new(plan: &Plan) -> Result<Maker> {
        Ok(Maker {
            plan: plan.clone(),
            topics: plan.topic_names()?,
            noise: Noise::new(plan.body, plan.seed),
            rng: Rng::new(plan.seed),
        })
    }

    /// The jobs of these numbers. Their bodies and keys share one buffer.
    pub(crate) fn puts(&mut self, numbers: std::ops::Range<u64>) -> Vec<Put> {
        let count = usize::try_from(numbers.end - numbers.start).unwrap_or(0);
        let mut bytes = Vec::with_capacity(count * (self.plan.body + 20));
        for number in numbers.clone() {
            self.noise.push_body(number, &mut bytes);
            if self.plan.keyed {
                push_key(number, &mut bytes);
            }
        }
        let mut bytes = Bytes::from(bytes);
        let mut puts = Vec::with_capacity(count);
        for number in numbers {
            let topic = self.topics[self.plan.topic_of(number)].clone();
            let mut put = Put::new(topic, bytes.split_to(self.plan.body));
            if self.plan.keyed {
                put.key = Some(bytes.split_to(key_len(number)));
            }
            if !self.plan.ready {
                put.delay_ms = Some((LEAD_MS + self.rng.below(SPREAD_MS)) as i64);
            }
            puts.push(put);
        }
        puts
    }
}

/// Bytes that do not compress, and are cheap to get.
pub(crate) struct Noise {
    pool: Vec<u8>,
    body: usize,
    rng: Rng,
}

impl Noise {
    pub(crate) fn new(body: usize, seed: u64) -> Noise {
        let mut rng = Rng::new(seed ^ 0x4e4f_4953);
        let words = (1 << 17) + body / 8;
        let pool = (0..words).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
        Noise { pool, body, rng }
    }

    fn push_body(&mut self, number: u64, into: &mut Vec<u8>) {
        into.extend_from_slice(&number.to_le_bytes());
        let from = self.rng.below(1 << 20) as usize;
        into.extend_from_slice(&self.pool[from..from + self.body - NUMBER_BYTES]);
    }

    pub(crate) fn body(&mut self, number: u64) -> Bytes {
        let mut bytes = Vec::with_capacity(self.body);
        self.push_body(number, &mut bytes);
        Bytes::from(bytes)
    }
}

/// The number a body begins with.
pub(crate) fn number_in(body: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(body.get(..NUMBER_BYTES)?.try_into().ok()?))
}

/// The key of a job.
pub(crate) fn key(number: u64) -> Bytes {
    Bytes::from(format!("order-{number}"))
}

fn push_key(number: u64, into: &mut Vec<u8>) {
    use std::io::Write;
    // A Vec takes everything.
    let _ = write!(into, "order-{number}");
}

fn key_len(number: u64) -> usize {
    "order-".len() + number.checked_ilog10().unwrap_or(0) as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffled_numbers_are_distinct() {
        for count in [1_000, 1_024, 9_973] {
            let shuffled = Shuffled::new(count, 7);
            let mut numbers: Vec<u64> = (0..count).map(|index| shuffled.at(index)).collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..count));
        }
    }

    #[test]
    fn keys_have_the_length_they_are_cut_by() {
        for number in [0, 9, 10, 99, 100, 12_345_678] {
            let mut bytes = Vec::new();
            push_key(number, &mut bytes);
            assert_eq!(bytes.len(), key_len(number));
            assert_eq!(bytes, key(number));
        }
    }
}
