//! A few connections that put one job after another and take down what was answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::super::caller::Caller;
use super::super::server::Server;
use super::super::wire::{Codec, Puts};
use super::SILENCE_MAX;
use crate::Result;
use crate::redis::zset_scripts::wall_ms;

const WRITERS: u64 = 4;
/// Numbers of a writer begin with its own.
const NUMBERS: u64 = 1_000_000;
const AFTER_REFUSAL: Duration = Duration::from_millis(1);

/// A put that was answered well.
pub(super) struct Answered {
    pub(super) number: u64,
    pub(super) sent: Instant,
    pub(super) answered: Instant,
}

#[derive(Default)]
pub(super) struct Outcome {
    pub(super) answered: Vec<Answered>,
    pub(super) refused: u64,
}

pub(super) struct Writers {
    threads: Vec<JoinHandle<Outcome>>,
    over: Arc<AtomicBool>,
}

impl Writers {
    pub(super) fn start(server: &Server) -> Result<Writers> {
        let over = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for writer in 0..WRITERS {
            let caller = Caller::connect(server.address, &server.codec, SILENCE_MAX)?;
            let over = Arc::clone(&over);
            threads.push(thread::spawn(move || write(caller, writer * NUMBERS, &over)));
        }
        Ok(Writers { threads, over })
    }

    pub(super) fn stop(self) -> Result<Outcome> {
        self.over.store(true, Ordering::Relaxed);
        let mut whole = Outcome::default();
        for thread in self.threads {
            let outcome = thread.join().map_err(|_| "a writer panicked")?;
            whole.answered.extend(outcome.answered);
            whole.refused += outcome.refused;
        }
        Ok(whole)
    }
}

/// Until it is over or the server has gone.
fn write(mut caller: Caller, first: u64, over: &AtomicBool) -> Outcome {
    let puts = Puts::new(&caller.codec, 1, 0);
    let (mut outcome, mut out) = (Outcome::default(), Vec::new());
    for number in first.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        out.clear();
        puts.push(number, wall_ms(), &mut out);
        let sent = Instant::now();
        if caller.send(&out).is_err() {
            break;
        }
        match caller.receive(Codec::put_reply) {
            Ok(()) => {
                let answered = Instant::now();
                outcome.answered.push(Answered { number, sent, answered });
            }
            Err(error) if error.is::<std::io::Error>() => break,
            Err(_) => {
                outcome.refused += 1;
                caller.forget();
                thread::sleep(AFTER_REFUSAL);
            }
        }
    }
    outcome
}
