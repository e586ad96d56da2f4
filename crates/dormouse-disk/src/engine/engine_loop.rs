//! The engine thread. Each turn takes all queued requests, applies them at one reading of the
//! clock, does what is due, and hands the facts to be written to the storage.
//!
//! Answers leave in two ways: *prompt* ones at the end of the turn, the others with the batch whose
//! facts they wait for. A request that must wait (a reserve with nothing due) is parked here with
//! its sink until the rules answer its ticket. If a turn fails or panics, every request that was
//! taken, parked or queued is answered with the reason, so no caller hangs.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use dormouse_core::backend::{Answer, ReplyGroups, Request, Sink, Ticket};
use dormouse_core::command::Command;
use dormouse_core::error::{Error, Fatal};
use dormouse_core::machine::When;
use dormouse_core::time::Now;

use super::Report;
use super::inbox::{Inbox, Messages, Submission};
use super::meters::RuleMeters;
use super::parked::ParkedSinks;
use super::worker::panicked;
use crate::clock::{Deadline, Reading, TimeSource};

/// The longest sleep: a wall clock that is set forward is noticed by then.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// A gap between two turns beyond this means that the process stood still.
const PAUSE_MS: u64 = 2_000;
/// After a pause, acks and kills are applied as of before it for this long; then leases expire.
const DRAIN: Duration = Duration::from_millis(50);

/// Where an answer goes, and when.
pub(super) type Route<'r> = dyn FnMut(Ticket, Answer, When) + 'r;

/// Where the engine keeps jobs: memory, or the disk store.
pub(super) trait Storage: Send {
    /// The two clocks at a reading.
    fn now(&self, reading: Reading) -> Now;
    /// Applies a command.
    fn step(
        &mut self,
        now: Now,
        ticket: Ticket,
        command: Command,
        route: &mut Route<'_>,
    ) -> Result<(), Fatal>;
    /// Does what is due.
    fn tick(&mut self, now: Now, route: &mut Route<'_>) -> Result<(), Fatal>;
    /// How long until `tick` is needed.
    fn next_wake(&self, now: Now) -> Option<u64>;
    /// Notes the sizes of the rules' state.
    fn note(&self, meters: &RuleMeters);
    /// Another thread reported.
    fn report(&mut self, _report: Report) -> Result<(), Fatal> {
        Ok(())
    }
    /// Takes the answers that wait for the open batch, and delivers them once it is durable.
    fn end_turn(&mut self, now: Now, waiting: &mut ReplyGroups) -> Result<(), Fatal>;
    /// Whether so much is unwritten that no more requests should be taken now.
    fn is_crowded(&self) -> bool {
        false
    }
    /// The store has stopped: undelivered answers become this error.
    fn fail(&mut self, _why: &Error) {}
    /// Finishes everything.
    fn close(&mut self, now: Now, waiting: &mut ReplyGroups) -> Result<(), Fatal>;
}

/// The engine thread's state.
pub(super) struct EngineLoop<K> {
    inbox: Arc<Inbox>,
    storage: K,
    clock: Arc<dyn TimeSource>,
    parked: ParkedSinks,
    /// Answers that may leave at once.
    prompt: ReplyGroups,
    /// Answers that wait for the open batch.
    waiting: ReplyGroups,
    /// Taken from the inbox, not yet applied: if the store stops, they are answered all the same.
    taken: VecDeque<Submission>,
    /// The submission that is being applied; likewise.
    current: Option<CurrentSubmission>,
    /// The time of the last turn.
    last: Now,
    meters: Arc<RuleMeters>,
}

/// The rest of a submission while it is applied.
struct CurrentSubmission {
    requests: std::vec::IntoIter<Request>,
    sink: Arc<dyn Sink>,
    /// The request in hand, until it is answered or parked.
    asked: Option<Ticket>,
}

impl<K: Storage> EngineLoop<K> {
    pub(super) fn new(
        inbox: Arc<Inbox>,
        storage: K,
        clock: Arc<dyn TimeSource>,
        meters: Arc<RuleMeters>,
    ) -> EngineLoop<K> {
        let last = storage.now(clock.read());
        let (prompt, waiting) = (ReplyGroups::default(), ReplyGroups::default());
        let (parked, taken, current) = (ParkedSinks::default(), VecDeque::new(), None);
        EngineLoop { inbox, storage, clock, parked, prompt, waiting, taken, current, last, meters }
    }

    /// Runs until closed, or until the first failure; then every request gets the reason.
    pub(super) fn run(mut self) -> Result<(), Fatal> {
        // Sinks are other people's code, and rules may have bugs: a panic must not leave everybody
        // waiting.
        let turns = catch_unwind(AssertUnwindSafe(|| self.turns()));
        let ended = turns.unwrap_or_else(|_| Err(panicked()));
        let reason = match &ended {
            Ok(()) => Error::unavailable("the queue is closed; open it again to go on"),
            Err(fatal) => fatal.clone().into(),
        };
        self.drop_current(&reason);
        self.taken.extend(self.inbox.stop(reason.clone()));
        for submission in std::mem::take(&mut self.taken) {
            self.refuse(submission, &reason);
        }
        self.storage.fail(&reason);
        self.prompt.fail(&reason);
        self.waiting.fail(&reason);
        self.parked.fail(&reason);
        ended
    }

    fn turns(&mut self) -> Result<(), Fatal> {
        loop {
            let messages = self.inbox.wait(Some(self.sleep()), self.storage.is_crowded());
            let closing = messages.closing;
            self.turn(messages)?;
            if closing {
                return self.storage.close(self.last, &mut self.waiting);
            }
        }
    }

    fn turn(&mut self, messages: Messages) -> Result<(), Fatal> {
        self.taken.extend(messages.submissions);
        for report in messages.reports {
            self.storage.report(report)?;
        }
        let mut now = self.storage.now(self.clock.read());
        let gap_ms = now.steady_ms.saturating_sub(self.last.steady_ms);
        if gap_ms > PAUSE_MS && self.clock.jumps_are_pauses() {
            self.drain_pause()?;
            now = self.storage.now(self.clock.read());
        }
        self.apply(now)?;
        self.last = now;
        let EngineLoop { storage, parked, prompt, waiting, .. } = self;
        storage.tick(now, &mut |ticket, answer, when| {
            if let Some(sink) = parked.remove(ticket) {
                let outgoing = if when == When::Prompt { &mut *prompt } else { &mut *waiting };
                outgoing.push(&sink, ticket, answer);
            }
        })?;
        self.storage.note(&self.meters);
        self.prompt.deliver();
        self.storage.end_turn(now, &mut self.waiting)
    }

    /// The process was paused. A consumer that finished in time must not lose its lease for that:
    /// for a moment acks and kills are applied as of before the pause. Everything else waits,
    /// because a delay or a lease counted from before the pause would end early.
    fn drain_pause(&mut self) -> Result<(), Fatal> {
        let before = self.last;
        let end = Deadline::after(DRAIN);
        loop {
            let (ends, others) = std::mem::take(&mut self.taken).into_iter().map(split).unzip();
            self.taken = ends;
            let applied = self.apply(before);
            let mut others: VecDeque<Submission> = others;
            self.taken.append(&mut others);
            applied?;
            if end.left().is_zero() {
                return Ok(());
            }
            let late = self.inbox.wait(Some(end.left()), false);
            // Earlier submissions stay first; their acks and kills are done already.
            self.taken.extend(late.submissions);
            for report in late.reports {
                self.storage.report(report)?;
            }
        }
    }

    fn apply(&mut self, now: Now) -> Result<(), Fatal> {
        while let Some(Submission { requests, sink }) = self.taken.pop_front() {
            self.current =
                Some(CurrentSubmission { requests: requests.into_iter(), sink, asked: None });
            self.apply_current(now)?;
            self.current = None;
        }
        Ok(())
    }

    fn apply_current(&mut self, now: Now) -> Result<(), Fatal> {
        let EngineLoop { storage, parked, prompt, waiting, current: Some(current), .. } = self
        else {
            return Ok(());
        };
        let CurrentSubmission { requests, sink, asked } = current;
        for Request { ticket, command } in requests {
            *asked = Some(ticket);
            storage.step(now, ticket, command, &mut |ticket, answer, when| {
                let outgoing = if when == When::Prompt { &mut *prompt } else { &mut *waiting };
                if *asked == Some(ticket) {
                    *asked = None;
                    outgoing.push(sink, ticket, answer);
                } else if let Some(sink) = parked.remove(ticket) {
                    outgoing.push(&sink, ticket, answer);
                }
            })?;
            if let Some(ticket) = asked.take() {
                parked.insert(ticket, Arc::clone(sink));
            }
        }
        Ok(())
    }

    /// The store stopped in the middle of a submission.
    fn drop_current(&mut self, reason: &Error) {
        let Some(CurrentSubmission { requests, sink, asked }) = self.current.take() else { return };
        if let Some(ticket) = asked {
            self.waiting.push(&sink, ticket, Err(reason.clone()));
        }
        self.refuse(Submission { requests: requests.collect(), sink }, reason);
    }

    fn refuse(&mut self, submission: Submission, reason: &Error) {
        for request in submission.requests {
            self.waiting.push(&submission.sink, request.ticket, Err(reason.clone()));
        }
    }

    /// Sleeps to the next instant that matters, to the microsecond. Which clock it is on is not
    /// known here: waking a little before costs another short sleep, after would be late.
    fn sleep(&self) -> Duration {
        let reading = self.clock.read();
        let now = self.storage.now(reading);
        let Some(wake_ms) = self.storage.next_wake(now) else { return SLEEP_MAX };
        let wake = Duration::from_millis(wake_ms);
        let passed_us = reading.into_ms_us.max(reading.wall_into_ms_us);
        wake.saturating_sub(Duration::from_micros(u64::from(passed_us))).min(SLEEP_MAX)
    }
}

/// Splits a submission into commands that only end leases, and the rest.
fn split(submission: Submission) -> (Submission, Submission) {
    let Submission { requests, sink } = submission;
    let ends = |request: &Request| matches!(request.command, Command::Ack(_) | Command::Kill(_));
    let (ends, others) = requests.into_iter().partition(ends);
    (Submission { requests: ends, sink: Arc::clone(&sink) }, Submission { requests: others, sink })
}
