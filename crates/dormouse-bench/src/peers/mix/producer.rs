//! A shop's side: puts at a steady rate, and the cancels of most of them some time later.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::super::caller::Caller;
use super::super::wire::{Puts, resp};
use super::account::Account;
use crate::Result;
use crate::pace::{sleep_until, wall_us};

/// Commands that come up within this time are sent together.
const TICK: Duration = Duration::from_millis(2);
/// Requests of a kind sent together at most: a producer that is behind catches up step by step.
const TOGETHER_MAX: usize = 256;
/// One of so many jobs is not cancelled.
const KEPT_OF: u64 = 10;

/// The work of one connection.
pub(super) struct Producer<'a> {
    pub(super) account: &'a Account,
    pub(super) caller: Caller,
    pub(super) delay: Duration,
    /// Puts per second of this connection, and how many in all.
    pub(super) rate: f64,
    pub(super) jobs: u64,
    /// Its jobs have the numbers `first`, `first + step`, and so on.
    pub(super) first: u64,
    pub(super) step: u64,
    pub(super) began: Instant,
}

/// Jobs to be cancelled, the earliest first.
type Cancels = VecDeque<(Instant, Vec<u8>)>;

impl Producer<'_> {
    pub(super) fn run(mut self) -> Result<()> {
        let delay_ms = u64::try_from(self.delay.as_millis())?;
        let puts = Puts::new(&self.caller.codec, 1, delay_ms);
        let (mut put, mut cancels, mut out) = (0, Cancels::new(), Vec::new());
        while (put < self.jobs || !cancels.is_empty()) && !self.account.is_over.load(Relaxed) {
            let now = Instant::now();
            out.clear();
            let new = self.add_puts(put, now, &puts, &mut out);
            let due = add_cancels(&cancels, now, &mut out);
            if out.is_empty() {
                sleep_until(self.next_at(put, &cancels).max(now + TICK));
                continue;
            }
            let sent = Instant::now();
            self.caller.send(&out)?;
            for number in put..put + new {
                let id = self.put_reply(sent)?;
                if !is_kept(number) {
                    cancels.push_back((sent + self.delay / 4, id));
                }
            }
            for _ in 0..due {
                let (_, id) = cancels.pop_front().ok_or("more cancels than jobs")?;
                self.cancel_reply(&id, sent)?;
            }
            put += new;
            sleep_until(sent + TICK);
        }
        Ok(())
    }

    /// Adds the puts that are due by now; how many.
    fn add_puts(&self, put: u64, now: Instant, puts: &Puts, out: &mut Vec<u8>) -> u64 {
        let scheduled =
            (now.saturating_duration_since(self.began).as_secs_f64() * self.rate) as u64;
        let new = scheduled.min(self.jobs).saturating_sub(put).min(TOGETHER_MAX as u64);
        if new > 0 {
            self.account.note_behind(now.saturating_duration_since(self.at(put)));
        }
        for own in put..put + new {
            let (number, now_us) = (self.first + own * self.step, wall_us());
            if is_kept(own) {
                self.account.expect(number, now_us);
            }
            puts.push(number, now_us / 1_000, out);
        }
        new
    }

    /// When a put is scheduled.
    fn at(&self, own: u64) -> Instant {
        self.began + Duration::from_secs_f64((own + 1) as f64 / self.rate)
    }

    fn next_at(&self, put: u64, cancels: &Cancels) -> Instant {
        let next_put = (put < self.jobs).then(|| self.at(put));
        let next_cancel = cancels.front().map(|(at, _)| *at);
        next_put.into_iter().chain(next_cancel).min().unwrap_or(self.began)
    }

    /// The id of a new job.
    fn put_reply(&mut self, sent: Instant) -> Result<Vec<u8>> {
        let mut id = Vec::new();
        self.caller.receive(|_, input| {
            id.clear();
            resp::walk(input, |leaf| id.extend_from_slice(leaf))
        })?;
        if id.is_empty() || !id.iter().all(u8::is_ascii_digit) {
            return Err(format!("a put is answered with {}", String::from_utf8_lossy(&id)).into());
        }
        self.account.note_put(sent.elapsed());
        Ok(id)
    }

    fn cancel_reply(&mut self, id: &[u8], sent: Instant) -> Result<()> {
        let mut words: Vec<Vec<u8>> = Vec::new();
        self.caller.receive(|_, input| {
            words.clear();
            resp::walk(input, |leaf| words.push(leaf.to_vec()))
        })?;
        let expected = [id, b"delayed"];
        if words != expected {
            let words = words.concat();
            return Err(format!("a cancel says {}", String::from_utf8_lossy(&words)).into());
        }
        self.account.note_cancel(sent.elapsed());
        Ok(())
    }
}

/// Adds the cancels that are due by now; how many.
fn add_cancels(cancels: &Cancels, now: Instant, out: &mut Vec<u8>) -> usize {
    let due = cancels.iter().take(TOGETHER_MAX).take_while(|(at, _)| *at <= now);
    due.map(|(_, id)| resp::push(out, &[b"CANCEL", id])).count()
}

/// Whether this one of a connection's jobs is consumed.
fn is_kept(own: u64) -> bool {
    own % KEPT_OF == KEPT_OF - 1
}
