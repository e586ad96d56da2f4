//! The engine's own meters: atomics that its threads write and any thread reads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use dormouse_core::machine::Machine;
use dormouse_core::meter::{Meter, MeterValue};
use dormouse_core::timeline::Timeline;

use super::turn_times::TurnTimes;
use crate::journal::SealedBatch;
use crate::store::{Store, TaskResult};

/// Seconds; a sync takes 0.1 ms on a drive with a safe cache and a second on one in trouble.
pub(super) const SECONDS: [f64; 13] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0];
const RECORDS: [f64; 9] = [1.0, 4.0, 16.0, 64.0, 256.0, 1e3, 4e3, 16e3, 64e3];
const BYTES: [f64; 9] = [256.0, 1e3, 4e3, 16e3, 64e3, 256e3, 1e6, 4e6, 16e6];

/// How often a value fell where.
pub(super) struct Histogram {
    bounds: &'static [f64],
    counts: Vec<AtomicU64>,
    sum: AtomicU64,
    /// The unit of one count.
    unit: f64,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64], unit: f64) -> Histogram {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, counts, sum: AtomicU64::new(0), unit }
    }

    pub(super) fn note(&self, value: u64) {
        let scaled = value as f64 * self.unit;
        // Most values fall into the first buckets.
        let bucket = self.bounds.iter().position(|bound| *bound >= scaled);
        let bucket = bucket.unwrap_or(self.bounds.len());
        self.counts[bucket].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    pub(super) fn value(&self) -> MeterValue {
        MeterValue::Histogram {
            bounds: self.bounds,
            counts: self.counts.iter().map(|count| count.load(Relaxed)).collect(),
            sum: self.sum.load(Relaxed) as f64 * self.unit,
        }
    }
}

fn gauge(value: &AtomicU64) -> MeterValue {
    MeterValue::Gauge(value.load(Relaxed))
}

fn counter(value: &AtomicU64) -> MeterValue {
    MeterValue::Counter(value.load(Relaxed))
}

pub(super) fn meter(name: &'static str, help: &'static str, value: MeterValue) -> Meter {
    Meter { name, help, value }
}

/// How many requests wait in the inbox.
pub(super) fn inbox_requests(requests: usize) -> Meter {
    let value = MeterValue::Gauge(requests as u64);
    meter("inbox_requests", "Requests that wait for the engine thread", value)
}

/// Sizes of the rules' state in memory, and the times of turns; written at the end of every turn.
pub(super) struct RuleMeters {
    pub(super) turns: TurnTimes,
    leased_jobs: AtomicU64,
    leased_bytes: AtomicU64,
    waiting_requests: AtomicU64,
    locks_held: AtomicU64,
    topics_alive: AtomicU64,
    schedules: AtomicU64,
    /// Ticks that passed, by `OUTCOMES`.
    ticks: [AtomicU64; OUTCOMES.len()],
    ticks_refused: AtomicU64,
    schedules_overdue: AtomicU64,
}

/// What becomes of a tick.
const OUTCOMES: [&str; 4] = ["given", "missed", "overlapped", "skipped"];

impl RuleMeters {
    pub(super) fn new() -> RuleMeters {
        RuleMeters {
            turns: TurnTimes::new(),
            leased_jobs: AtomicU64::new(0),
            leased_bytes: AtomicU64::new(0),
            waiting_requests: AtomicU64::new(0),
            locks_held: AtomicU64::new(0),
            topics_alive: AtomicU64::new(0),
            schedules: AtomicU64::new(0),
            ticks: OUTCOMES.map(|_| AtomicU64::new(0)),
            ticks_refused: AtomicU64::new(0),
            schedules_overdue: AtomicU64::new(0),
        }
    }

    pub(super) fn note<T: Timeline>(&self, machine: &Machine<T>) {
        self.leased_jobs.store(machine.leased_jobs() as u64, Relaxed);
        self.leased_bytes.store(machine.leased_bytes(), Relaxed);
        self.waiting_requests.store(machine.waiting_requests() as u64, Relaxed);
        self.locks_held.store(machine.locks_held() as u64, Relaxed);
        self.topics_alive.store(machine.topics_alive() as u64, Relaxed);
        self.schedules.store(machine.schedule_count(), Relaxed);
        let passed = machine.ticks_passed();
        let by_outcome = [passed.given, passed.missed, passed.overlapped, passed.skipped];
        for (ticks, count) in self.ticks.iter().zip(by_outcome) {
            ticks.store(count, Relaxed);
        }
        self.ticks_refused.store(machine.ticks_refused(), Relaxed);
        self.schedules_overdue.store(machine.schedules_overdue() as u64, Relaxed);
    }

    pub(super) fn read(&self) -> [Meter; 9] {
        let ticks = OUTCOMES.iter().zip(&self.ticks);
        let values = ticks.map(|(outcome, count)| (*outcome, count.load(Relaxed))).collect();
        [
            meter("leased_jobs", "Jobs in the hands of consumers", gauge(&self.leased_jobs)),
            meter("leased_bytes", "Bytes of all leased jobs", gauge(&self.leased_bytes)),
            meter(
                "waiting_requests",
                "Reserves and locks that wait",
                gauge(&self.waiting_requests),
            ),
            meter("locks_held", "Locks held", gauge(&self.locks_held)),
            meter("topics_alive", "Topics alive", gauge(&self.topics_alive)),
            meter("schedules", "Schedules of all topics", gauge(&self.schedules)),
            meter(
                "ticks_total",
                "Ticks of schedules that passed, by what became of them",
                MeterValue::Counters { label: "outcome", values },
            ),
            meter(
                "ticks_refused_total",
                "Times that a tick found no room for its job; it is overdue and tried again",
                counter(&self.ticks_refused),
            ),
            meter(
                "schedules_overdue",
                "Schedules whose tick waits for room for its job",
                gauge(&self.schedules_overdue),
            ),
        ]
    }
}

/// The store's work on its files.
pub(super) struct DiskMeters {
    sync_seconds: Histogram,
    batch_records: Histogram,
    batch_bytes: Histogram,
    journal_bytes: AtomicU64,
    run_bytes: AtomicU64,
    runs: AtomicU64,
    memtable_bytes: AtomicU64,
    flushes: AtomicU64,
    merges: AtomicU64,
}

impl DiskMeters {
    pub(super) fn new() -> DiskMeters {
        DiskMeters {
            sync_seconds: Histogram::new(&SECONDS, 1e-9),
            batch_records: Histogram::new(&RECORDS, 1.0),
            batch_bytes: Histogram::new(&BYTES, 1.0),
            journal_bytes: AtomicU64::new(0),
            run_bytes: AtomicU64::new(0),
            runs: AtomicU64::new(0),
            memtable_bytes: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            merges: AtomicU64::new(0),
        }
    }

    /// The journal was synced.
    pub(super) fn note_sync(&self, took: Duration) {
        self.sync_seconds.note(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// A batch was written.
    pub(super) fn note_batch(&self, batch: &SealedBatch) {
        self.batch_records.note(batch.records);
        self.batch_bytes.note(batch.len() as u64);
    }

    /// A task of the background ended.
    pub(super) fn note_done(&self, done: &TaskResult) {
        match done {
            TaskResult::Flushed { .. } => self.flushes.fetch_add(1, Relaxed),
            TaskResult::Merged { run: Some(_) } => self.merges.fetch_add(1, Relaxed),
            TaskResult::Checkpoint { .. }
            | TaskResult::Manifest(_)
            | TaskResult::Removed
            | TaskResult::Covered { .. }
            | TaskResult::Backup
            | TaskResult::Merged { run: None }
            | TaskResult::Weighed { .. } => 0,
        };
    }

    /// Notes the figures that grow with every turn.
    pub(super) fn note_growth(&self, store: &Store) {
        self.journal_bytes.store(store.journal_bytes(), Relaxed);
        self.memtable_bytes.store(store.memtable_bytes(), Relaxed);
    }

    /// Notes the figures that change when a task ends.
    pub(super) fn note_runs(&self, store: &Store) {
        let (runs, bytes) = store.runs();
        self.runs.store(runs, Relaxed);
        self.run_bytes.store(bytes, Relaxed);
    }

    pub(super) fn read(&self) -> [Meter; 9] {
        [
            meter("journal_sync_seconds", "How long syncs took", self.sync_seconds.value()),
            meter("journal_batch_records", "Records per batch", self.batch_records.value()),
            meter("journal_batch_bytes", "Bytes per batch", self.batch_bytes.value()),
            meter(
                "journal_bytes",
                "Bytes of the checkpoint and the live segments",
                gauge(&self.journal_bytes),
            ),
            meter("run_bytes", "Bytes of all runs in use", gauge(&self.run_bytes)),
            meter("runs", "Runs in use", gauge(&self.runs)),
            meter(
                "memtable_bytes",
                "Bytes of the memtable and of those being written as runs",
                gauge(&self.memtable_bytes),
            ),
            meter("flushes_total", "Memtables written as runs", counter(&self.flushes)),
            meter("merges_total", "Merges of runs", counter(&self.merges)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_falls_into_the_first_bucket_that_holds_it() {
        let histogram = Histogram::new(&[1.0, 2.0], 0.5);
        for value in [1, 2, 3, 4, 5, 6] {
            histogram.note(value);
        }
        let expected =
            MeterValue::Histogram { bounds: &[1.0, 2.0], counts: vec![2, 2, 2], sum: 10.5 };
        assert_eq!(histogram.value(), expected);
    }
}
