//! The sums of all connections' work, and the jobs that must still come.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Result;
use crate::latency::Latencies;
use crate::pace::wall_us;

/// How much a server that counts in whole milliseconds may take off.
const EARLY_US: u64 = 1_000;

#[derive(Default)]
pub(super) struct Account {
    pub(super) puts: AtomicU64,
    pub(super) cancels: AtomicU64,
    pub(super) acks: AtomicU64,
    /// Jobs that came before their time.
    pub(super) early: AtomicU64,
    /// Since the last progress line.
    slowest_put_us: AtomicU64,
    slowest_cancel_us: AtomicU64,
    behind_us: AtomicU64,
    late: Mutex<Latencies>,
    /// When each job was sent that is to be consumed and has not come yet, by its number.
    expected: Mutex<HashMap<u64, u64>>,
    /// Everything is put and cancelled.
    pub(super) is_put: AtomicBool,
    /// Something failed, or took too long.
    pub(super) is_over: AtomicBool,
}

/// The worst since the last look, and how late jobs came.
pub(super) struct Window {
    pub(super) slowest_put_us: u64,
    pub(super) slowest_cancel_us: u64,
    /// How far the producers were behind their schedule.
    pub(super) behind_us: u64,
    pub(super) late: Latencies,
}

impl Account {
    pub(super) fn note_put(&self, took: Duration) {
        self.puts.fetch_add(1, Relaxed);
        self.slowest_put_us.fetch_max(us(took), Relaxed);
    }

    pub(super) fn note_cancel(&self, took: Duration) {
        self.cancels.fetch_add(1, Relaxed);
        self.slowest_cancel_us.fetch_max(us(took), Relaxed);
    }

    pub(super) fn note_behind(&self, by: Duration) {
        self.behind_us.fetch_max(us(by), Relaxed);
    }

    /// A job is sent that will be consumed.
    pub(super) fn expect(&self, number: u64, sent_us: u64) {
        lock(&self.expected).insert(number, sent_us);
    }

    /// Such a job came: once, and not before its time by either side's clock.
    pub(super) fn take(&self, number: u64, due_ms: u64, delay: Duration) -> Result<()> {
        let now_us = wall_us();
        let sent_us = lock(&self.expected).remove(&number);
        let sent_us = sent_us.ok_or_else(|| {
            format!("job {number} came although it was cancelled, or it came twice")
        })?;
        let due_us = (sent_us + us(delay)).max(due_ms * 1_000);
        self.early.fetch_add(u64::from(now_us + EARLY_US < due_us), Relaxed);
        lock(&self.late).add_us(now_us.saturating_sub(due_ms * 1_000));
        Ok(())
    }

    pub(super) fn expected(&self) -> usize {
        lock(&self.expected).len()
    }

    /// Whether consumers have nothing more to wait for.
    pub(super) fn is_done(&self) -> bool {
        self.is_over.load(Relaxed) || (self.is_put.load(Relaxed) && self.expected() == 0)
    }

    pub(super) fn window(&self) -> Window {
        Window {
            slowest_put_us: self.slowest_put_us.swap(0, Relaxed),
            slowest_cancel_us: self.slowest_cancel_us.swap(0, Relaxed),
            behind_us: self.behind_us.swap(0, Relaxed),
            late: std::mem::take(&mut *lock(&self.late)),
        }
    }
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_comes_once_and_not_early() {
        let account = Account::default();
        let (now_us, delay) = (wall_us(), Duration::from_secs(1));
        account.expect(1, now_us - 2_000_000);
        account.expect(2, now_us);
        assert!(account.take(1, now_us / 1_000 - 1_000, delay).is_ok());
        assert_eq!(account.early.load(Relaxed), 0);
        assert!(account.take(2, now_us / 1_000, delay).is_ok());
        assert_eq!(account.early.load(Relaxed), 1);
        assert!(account.take(1, 0, delay).is_err());
        assert_eq!((account.window().late.len(), account.expected()), (2, 0));
    }
}
