//! Decides which thread takes the next turn: one that came with a request, or the engine thread.
//!
//! The state lies behind a lock that callers only try. A caller that gets it takes turns for
//! everybody whose requests are queued, for a short time; one that does not leaves its request to
//! the holder, which looks into the inbox again after it has let the state go. Long work is the
//! engine thread's: callers wake it. Answers are delivered after the state is let go, so a sink may
//! do what it likes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

use dormouse_core::backend::EventSink;
use dormouse_core::error::Fatal;

use super::inbox::{Inbox, Rest, TurnOwner};
use super::outbox::{Delivered, Outbox};
use super::turn::EngineState;
use super::worker::{OwnThread, panicked};
use crate::clock::{Deadline, Laps, Stopwatch};

/// A caller works for others no longer than this; then the engine thread goes on.
const CALLER_TIME_MAX: Duration = Duration::from_micros(200);
/// Several callers in a row whose turns take longer than this show that the disk is slow: then the
/// engine thread takes all turns for a while, and callers are not held up. A single one may have
/// lost the processor.
const SLOW_TURNS: Duration = Duration::from_millis(1);
const SLOW_IN_A_ROW: u64 = 4;
const SLOW_MS: u64 = 1_000;

/// Shared by the engine's handles and all its threads.
pub(super) struct Control {
    pub(super) inbox: Inbox,
    pub(super) outbox: Outbox,
    pub(super) watch: Arc<EventSink>,
    /// `None` before the start and after the end.
    state: Mutex<Option<EngineState>>,
    /// The engine thread waits for the state: callers do not try.
    wanted: AtomicBool,
    /// When the engine thread takes a turn by itself, on the steady clock of the rules.
    alarm_at: AtomicU64,
    /// How many callers in a row were slow.
    slow_in_a_row: AtomicU64,
    /// Until when, by `started`, the engine thread takes all turns.
    slow_until_ms: AtomicU64,
    started: Stopwatch,
    /// The first failure.
    failed: OnceLock<Fatal>,
}

/// The engine thread's next step after a turn.
pub(super) enum AfterEngineTurn {
    /// Sleeps, unless there is more to do.
    Sleep { wake: Deadline, progress_only: bool },
    /// Finishes everything and ends.
    Close,
}

/// A caller's next step after its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterTurns {
    /// Looks whether there is more, and takes it unless this caller has done enough.
    Look { progress_only: bool, is_done: bool },
    /// Leaves everything else to the engine thread.
    WakeThread,
}

impl Control {
    pub(super) fn new() -> Control {
        let watch = Arc::new(EventSink::default());
        Control {
            inbox: Inbox::default(),
            outbox: Outbox::new(Arc::clone(&watch)),
            watch,
            state: Mutex::new(None),
            wanted: AtomicBool::new(false),
            alarm_at: AtomicU64::new(0),
            slow_in_a_row: AtomicU64::new(0),
            slow_until_ms: AtomicU64::new(0),
            started: Stopwatch::start(),
            failed: OnceLock::new(),
        }
    }

    /// Blocks; only for the engine thread, and before it starts.
    fn lock(&self) -> MutexGuard<'_, Option<EngineState>> {
        // Turns catch panics, so it is never poisoned.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn install(&self, state: EngineState) {
        *self.lock() = Some(state);
    }

    /// Takes the state out, for good.
    pub(super) fn remove(&self) -> Option<EngineState> {
        self.wanted.store(true, SeqCst);
        let state = self.lock().take();
        self.wanted.store(false, SeqCst);
        state
    }

    /// How long until the rules want a turn by themselves. Waits for the turn under way.
    pub(super) fn next_wake_ms(&self) -> Option<u64> {
        self.wanted.store(true, SeqCst);
        let wake_ms = self.lock().as_ref().and_then(EngineState::next_wake_ms);
        self.wanted.store(false, SeqCst);
        // Callers have left their requests to the engine thread meanwhile.
        self.inbox.wake();
        wake_ms
    }

    /// The first failure, if there was one.
    pub(super) fn failure(&self) -> Option<&Fatal> {
        self.failed.get()
    }

    /// The store has to stop. Only the engine thread ends it.
    pub(super) fn fail(&self, why: Fatal) {
        // The first one is the reason.
        let _ = self.failed.set(why);
        self.inbox.wake();
    }

    /// Takes turns and delivers answers, as far as this thread can without waiting.
    pub(super) fn drive(&self) {
        let _own = OwnThread::enter();
        let mut laps = Laps::start();
        loop {
            let after = self.try_turns(&mut laps);
            self.deliver();
            match after {
                Some(AfterTurns::Look { progress_only, is_done }) => {
                    match self.inbox.rest(TurnOwner::Caller, progress_only) {
                        Rest::Nothing => return,
                        Rest::Short if !is_done => _ = laps.lap(),
                        Rest::Short | Rest::Long => return self.inbox.wake(),
                    }
                }
                Some(AfterTurns::WakeThread) => return self.inbox.wake(),
                None => return,
            }
        }
    }

    /// `None` = another thread has the state and sees what was pushed.
    fn try_turns(&self, laps: &mut Laps) -> Option<AfterTurns> {
        if self.wanted.load(SeqCst) || self.is_slow() || self.failed.get().is_some() {
            return Some(AfterTurns::WakeThread);
        }
        let mut guard = match self.state.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let state = guard.as_mut()?;
        if self.failed.get().is_some() {
            // The one before failed while this thread waited for the lock's answer.
            return Some(AfterTurns::WakeThread);
        }
        let before = laps.total();
        let turns = catch_unwind(AssertUnwindSafe(|| self.caller_turns(state, laps)));
        self.note_time(laps.total() - before);
        match turns.unwrap_or_else(|_| Err(panicked())) {
            Ok(after) => Some(after),
            Err(fatal) => {
                // Under the lock: nobody takes a turn on a broken state.
                let _ = self.failed.set(fatal);
                Some(AfterTurns::WakeThread)
            }
        }
    }

    fn caller_turns(&self, state: &mut EngineState, laps: &mut Laps) -> Result<AfterTurns, Fatal> {
        loop {
            let messages = state.take(TurnOwner::Caller, &self.inbox);
            let is_done = laps.total() > CALLER_TIME_MAX;
            if messages.is_empty() && !state.is_unfinished() {
                return Ok(AfterTurns::Look { progress_only: state.is_crowded(), is_done });
            }
            // After the messages were taken: they are not older than their time.
            let now = state.now();
            if state.was_paused(now) {
                state.keep(messages);
                return Ok(AfterTurns::WakeThread);
            }
            state.turn(now, messages, TurnOwner::Caller, &self.outbox, laps)?;
            if state.has_long_work() {
                return Ok(AfterTurns::WakeThread);
            }
            let is_done = laps.total() > CALLER_TIME_MAX;
            if !state.is_unfinished() {
                if state.next_wake_at() < self.alarm_at.load(SeqCst) {
                    return Ok(AfterTurns::WakeThread);
                }
                // What came meanwhile is taken after these answers are delivered.
                return Ok(AfterTurns::Look { progress_only: state.is_crowded(), is_done });
            }
            if is_done {
                return Ok(AfterTurns::WakeThread);
            }
        }
    }

    fn note_time(&self, passed: Duration) {
        if passed <= SLOW_TURNS {
            self.slow_in_a_row.store(0, Relaxed);
        } else if self.slow_in_a_row.fetch_add(1, Relaxed) + 1 >= SLOW_IN_A_ROW {
            let until = self.started.passed().as_millis() as u64 + SLOW_MS;
            self.slow_until_ms.store(until, Relaxed);
        }
    }

    fn is_slow(&self) -> bool {
        let until = self.slow_until_ms.load(Relaxed);
        until > 0 && (self.started.passed().as_millis() as u64) < until
    }

    /// Delivers answers and events. Not to be called while the state is held.
    pub(super) fn deliver(&self) {
        match self.outbox.deliver() {
            Delivered::All => {}
            Delivered::Part => self.inbox.wake(),
            Delivered::Panicked(fatal) => self.fail(fatal),
        }
    }

    /// The engine thread's turn, with everything that callers leave to it.
    pub(super) fn engine_turn(&self) -> Result<AfterEngineTurn, Fatal> {
        self.wanted.store(true, SeqCst);
        let mut guard = self.lock();
        self.wanted.store(false, SeqCst);
        if let Some(fatal) = self.failed.get() {
            return Err(fatal.clone());
        }
        let Some(state) = guard.as_mut() else { return Ok(AfterEngineTurn::Close) };
        let turn = catch_unwind(AssertUnwindSafe(|| self.long_turn(state)));
        turn.unwrap_or_else(|_| Err(panicked())).inspect_err(|fatal| {
            // Under the lock: nobody takes a turn on a broken state.
            let _ = self.failed.set(fatal.clone());
        })
    }

    fn long_turn(&self, state: &mut EngineState) -> Result<AfterEngineTurn, Fatal> {
        let messages = state.take(TurnOwner::EngineThread, &self.inbox);
        let closing = messages.closing;
        state.engine_turn(messages, &self.inbox, &self.outbox)?;
        if let Some(fatal) = self.failed.get() {
            // Another thread failed meanwhile, and its wake was taken with the messages.
            return Err(fatal.clone());
        }
        if closing {
            return Ok(AfterEngineTurn::Close);
        }
        self.alarm_at.store(state.next_wake_at(), SeqCst);
        let wake = Deadline::after(state.sleep());
        Ok(AfterEngineTurn::Sleep { wake, progress_only: state.is_crowded() })
    }
}
