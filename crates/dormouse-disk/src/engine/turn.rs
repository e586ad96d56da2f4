//! One turn: takes queued requests, applies them at one reading of the clock, does what is due, and
//! hands the facts to be written to the storage.
//!
//! Answers leave in two ways: *prompt* ones at the end of the turn, the others with the batch whose
//! facts they wait for. A request that must wait (a reserve with nothing due) is parked here with
//! its sink until the rules answer its ticket. If a turn fails or panics, every request that was
//! taken, parked or queued is answered with the reason, so no caller hangs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use dormouse_core::backend::{Answer, ReplyGroups, Request, Sink, Ticket};
use dormouse_core::command::Command;
use dormouse_core::error::{Error, Fatal};
use dormouse_core::machine::When;
use dormouse_core::time::Now;

use super::Report;
use super::inbox::{Inbox, JournalProgress, Messages, Submission, TurnOwner};
use super::meters::RuleMeters;
use super::outbox::Outbox;
use super::parked::ParkedSinks;
use super::turn_times::TurnParts;
use crate::clock::{Deadline, Laps, Reading, TimeSource};

/// The longest sleep: a wall clock that is set forward is noticed by then.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// A gap between two turns beyond this means that the process stood still.
const PAUSE_MS: u64 = 2_000;
/// How often the engine thread looks whether requests may be taken again.
const CROWDED_SLEEP: Duration = Duration::from_millis(1);
/// After a pause, acks and kills are applied as of before it for this long; then leases expire.
const DRAIN: Duration = Duration::from_millis(50);
/// How often requests are looked for meanwhile.
const DRAIN_STEP: Duration = Duration::from_millis(5);

/// Portions of long commands that a close still does: a second or two. Those who wait for more are
/// told that the queue is closed.
const CLOSE_PORTIONS: usize = 1_000;

/// Where an answer goes, and when.
pub(super) type Route<'r> = dyn FnMut(Ticket, Answer, When) + 'r;

/// Where the engine keeps jobs: memory, or the disk store.
pub(super) trait Storage: Send {
    /// The two clocks at a reading.
    fn now(&self, reading: Reading) -> Now;
    /// Applies a command.
    fn step(&mut self, now: Now, request: Request, route: &mut Route<'_>) -> Result<(), Fatal>;
    /// Does what is due.
    fn tick(&mut self, now: Now, route: &mut Route<'_>) -> Result<(), Fatal>;
    /// Does a portion of a long command.
    fn continue_long(&mut self, now: Now, route: &mut Route<'_>) -> Result<(), Fatal>;
    /// Whether long commands have portions to go.
    fn has_long_commands(&self) -> bool;
    /// How long until `tick` is needed.
    fn next_wake(&self, now: Now) -> Option<u64>;
    /// Notes the sizes of the rules' state.
    fn note(&self, meters: &RuleMeters);
    /// The journal has come further.
    fn advance(&mut self, _progress: JournalProgress) {}
    /// Another thread reported.
    fn report(&mut self, _report: Report) -> Result<(), Fatal> {
        Ok(())
    }
    /// Takes the answers that wait for the open batch, and delivers them once it is durable.
    fn end_turn(
        &mut self,
        now: Now,
        owner: TurnOwner,
        waiting: &mut ReplyGroups,
        outbox: &Outbox,
    ) -> Result<(), Fatal>;
    /// Whether there is work that only the engine thread does.
    fn has_long_work(&self) -> bool {
        false
    }
    /// Whether so much is unwritten that no more requests should be taken now.
    fn is_crowded(&self) -> bool {
        false
    }
    /// The store has stopped: undelivered answers become this error.
    fn fail(&mut self, _why: &Error) {}
    /// Finishes everything.
    fn close(&mut self, now: Now, waiting: &mut ReplyGroups, outbox: &Outbox) -> Result<(), Fatal>;
}

/// Everything that a turn changes.
pub(super) struct EngineState {
    storage: Box<dyn Storage>,
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
    /// The last turn of the engine thread did no portion of a long command.
    put_off: bool,
    meters: Arc<RuleMeters>,
}

/// The rest of a submission while it is applied.
struct CurrentSubmission {
    requests: std::vec::IntoIter<Request>,
    sink: Arc<dyn Sink>,
    /// The request in hand, until it is answered or parked.
    asked: Option<Ticket>,
}

impl EngineState {
    pub(super) fn new(
        storage: Box<dyn Storage>,
        clock: Arc<dyn TimeSource>,
        meters: Arc<RuleMeters>,
    ) -> EngineState {
        let last = storage.now(clock.read());
        let (prompt, waiting) = (ReplyGroups::default(), ReplyGroups::default());
        let (parked, taken, current) = (ParkedSinks::default(), VecDeque::new(), None);
        let put_off = false;
        EngineState {
            storage,
            clock,
            parked,
            prompt,
            waiting,
            taken,
            current,
            last,
            put_off,
            meters,
        }
    }

    /// Whether requests must stay queued for now.
    pub(super) fn is_crowded(&self) -> bool {
        self.storage.is_crowded()
    }

    /// Whether there is work that only the engine thread does.
    pub(super) fn has_long_work(&self) -> bool {
        // Requests that stay queued are the engine thread's: it looks again and again.
        self.storage.has_long_work() || self.has_portions() || self.is_crowded()
    }

    /// Whether a portion of a long command can be done now.
    fn has_portions(&self) -> bool {
        self.storage.has_long_commands() && !self.storage.is_crowded()
    }

    /// The two clocks, now.
    pub(super) fn now(&self) -> Now {
        self.storage.now(self.clock.read())
    }

    /// Whether the process stood still since the last turn: the engine thread takes one each
    /// second.
    pub(super) fn was_paused(&self, now: Now) -> bool {
        let gap_ms = now.steady_ms.saturating_sub(self.last.steady_ms);
        gap_ms > PAUSE_MS && self.clock.jumps_are_pauses()
    }

    /// Takes what this turn may do. Submissions are here from now on: they are answered even if the
    /// turn fails.
    pub(super) fn take(&mut self, owner: TurnOwner, inbox: &Inbox) -> Messages {
        inbox.take(owner, self.is_crowded(), &mut self.taken)
    }

    /// Keeps what was taken for the next turn.
    pub(super) fn keep(&mut self, messages: Messages) {
        self.storage.advance(messages.progress);
    }

    /// The engine thread's turn: only it notices that the process was paused.
    pub(super) fn engine_turn(
        &mut self,
        mut messages: Messages,
        inbox: &Inbox,
        outbox: &Outbox,
    ) -> Result<(), Fatal> {
        let mut now = self.now();
        if self.was_paused(now) {
            self.read(messages)?;
            self.drain_pause(inbox)?;
            messages = Messages::default();
            now = self.now();
        }
        self.turn(now, messages, TurnOwner::EngineThread, outbox, &mut Laps::start())
    }

    /// Takes one turn.
    pub(super) fn turn(
        &mut self,
        now: Now,
        messages: Messages,
        owner: TurnOwner,
        outbox: &Outbox,
        laps: &mut Laps,
    ) -> Result<(), Fatal> {
        let mut parts = TurnParts::default();
        let has_requests = messages.submissions > 0;
        self.read(messages)?;
        self.apply(now, &mut parts, laps)?;
        self.last = now;
        let EngineState { storage, parked, prompt, waiting, put_off, .. } = self;
        let route = &mut |ticket, answer, when| {
            if let Some(sink) = parked.remove(ticket) {
                let outgoing = if when == When::Prompt { &mut *prompt } else { &mut *waiting };
                outgoing.push(&sink, ticket, answer);
            }
        };
        storage.tick(now, route)?;
        // Not on the thread of a caller, which has its own to do. And requests that came during the
        // last portion are answered before the next.
        if owner == TurnOwner::EngineThread {
            *put_off = (has_requests && !*put_off) || storage.is_crowded();
            if !*put_off {
                storage.continue_long(now, route)?;
            }
        }
        self.storage.note(&self.meters);
        outbox.push(&mut Vec::new(), &mut self.prompt);
        parts.tick = laps.lap();
        self.storage.end_turn(now, owner, &mut self.waiting, outbox)?;
        parts.journal = laps.lap();
        self.meters.turns.note(&parts);
        Ok(())
    }

    fn read(&mut self, messages: Messages) -> Result<(), Fatal> {
        self.storage.advance(messages.progress);
        messages.reports.into_iter().try_for_each(|report| self.storage.report(report))
    }

    /// Finishes everything that was taken.
    pub(super) fn close(&mut self, outbox: &Outbox) -> Result<(), Fatal> {
        let EngineState { storage, parked, waiting, .. } = self;
        for _ in 0..CLOSE_PORTIONS {
            if !storage.has_long_commands() {
                break;
            }
            storage.continue_long(self.last, &mut |ticket, answer, _| {
                if let Some(sink) = parked.remove(ticket) {
                    waiting.push(&sink, ticket, answer);
                }
            })?;
        }
        self.storage.close(self.last, &mut self.waiting, outbox)
    }

    /// Answers every request that is here, and these, with the reason why the engine has ended.
    pub(super) fn fail(&mut self, queued: Vec<Submission>, reason: &Error) {
        self.drop_current(reason);
        self.taken.extend(queued);
        for submission in std::mem::take(&mut self.taken) {
            self.refuse(submission, reason);
        }
        self.storage.fail(reason);
        self.prompt.fail(reason);
        self.waiting.fail(reason);
        self.parked.fail(reason);
    }

    /// The process was paused. A consumer that finished in time must not lose its lease for that:
    /// for a moment acks and kills are applied as of before the pause. Everything else waits,
    /// because a delay or a lease counted from before the pause would end early.
    fn drain_pause(&mut self, inbox: &Inbox) -> Result<(), Fatal> {
        let before = self.last;
        let end = Deadline::after(DRAIN);
        loop {
            let (ends, others) = std::mem::take(&mut self.taken).into_iter().map(split).unzip();
            self.taken = ends;
            let applied = self.apply(before, &mut TurnParts::default(), &mut Laps::start());
            let mut others: VecDeque<Submission> = others;
            self.taken.append(&mut others);
            applied?;
            if end.left().is_zero() {
                return Ok(());
            }
            std::thread::sleep(end.left().min(DRAIN_STEP));
            // Earlier submissions stay first; their acks and kills are done already.
            let messages = inbox.take(TurnOwner::EngineThread, false, &mut self.taken);
            self.read(messages)?;
        }
    }

    fn apply(&mut self, now: Now, parts: &mut TurnParts, laps: &mut Laps) -> Result<(), Fatal> {
        while let Some(Submission { requests, sink }) = self.taken.pop_front() {
            self.current =
                Some(CurrentSubmission { requests: requests.into_iter(), sink, asked: None });
            self.apply_current(now, parts, laps)?;
            self.current = None;
        }
        Ok(())
    }

    fn apply_current(
        &mut self,
        now: Now,
        parts: &mut TurnParts,
        laps: &mut Laps,
    ) -> Result<(), Fatal> {
        let EngineState { storage, parked, prompt, waiting, current: Some(current), .. } = self
        else {
            return Ok(());
        };
        let CurrentSubmission { requests, sink, asked } = current;
        let mut in_row = 0;
        while let Some(request) = requests.next() {
            let ticket = request.ticket;
            *asked = Some(ticket);
            let verb = request.command.verb();
            storage.step(now, request, &mut |ticket, answer, when| {
                let outgoing = if when == When::Prompt { &mut *prompt } else { &mut *waiting };
                if *asked == Some(ticket) {
                    *asked = None;
                    outgoing.push(sink, ticket, answer);
                } else if let Some(sink) = parked.remove(ticket) {
                    outgoing.push(&sink, ticket, answer);
                }
            })?;
            // A reading of the clock takes as long as a part of a short request: those of a kind
            // are measured together.
            in_row += 1;
            if requests.as_slice().first().is_none_or(|next| next.command.verb() != verb) {
                parts.note_requests(verb, std::mem::take(&mut in_row), laps.lap());
            }
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

    /// The next instant that matters, on the steady clock; at most `SLEEP_MAX` ahead.
    pub(super) fn next_wake_at(&self) -> u64 {
        let wake_ms = self.storage.next_wake(self.last).unwrap_or(u64::MAX);
        self.last.steady_ms + wake_ms.min(SLEEP_MAX.as_millis() as u64)
    }

    /// How long until the rules want a turn by themselves; `None` = never, as things are.
    pub(super) fn next_wake_ms(&self) -> Option<u64> {
        if self.has_portions() {
            return Some(0);
        }
        self.storage.next_wake(self.storage.now(self.clock.read()))
    }

    /// Whether the rules want another turn at once.
    pub(super) fn is_unfinished(&self) -> bool {
        self.storage.next_wake(self.last) == Some(0)
    }

    /// How long to sleep to the next instant that matters, to the microsecond.
    pub(super) fn sleep(&self) -> Duration {
        let reading = self.clock.read();
        let now = self.storage.now(reading);
        if self.has_portions() {
            return Duration::ZERO;
        }
        let sleep_max = if self.is_crowded() { CROWDED_SLEEP } else { SLEEP_MAX };
        let Some(wake_ms) = self.storage.next_wake(now) else { return sleep_max };
        let wake = Duration::from_millis(wake_ms);
        wake.saturating_sub(Duration::from_micros(u64::from(reading.into_ms_us))).min(sleep_max)
    }
}

/// Splits a submission into commands that only end leases, and the rest.
fn split(submission: Submission) -> (Submission, Submission) {
    let Submission { requests, sink } = submission;
    let ends = |request: &Request| matches!(request.command, Command::Ack(_) | Command::Kill(_));
    let (ends, others) = requests.into_iter().partition(ends);
    (Submission { requests: ends, sink: Arc::clone(&sink) }, Submission { requests: others, sink })
}
