//! One connection to one node, opened when it is needed and again when it broke.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, PushInfo, PushKind, RedisError};
use tokio::sync::watch;

use super::meters::{Meters, count};
use super::opener::Opener;
use super::url::Address;
use crate::clock;

/// After a failure nobody tries for this long: a thousand callers are one to a dead node.
const REOPEN_PAUSE: Duration = Duration::from_millis(50);

type Outcome = Result<Line, RedisError>;
type Opened = (MultiplexedConnection, Arc<AtomicBool>);

/// An open connection; its number tells it from the ones before and after.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) connection: MultiplexedConnection,
    number: u64,
    /// The other side has gone: nothing can be sent any more.
    ended: Arc<AtomicBool>,
}

enum State {
    Closed,
    /// Somebody opens it; all who need it wait for the same outcome.
    Opening(watch::Receiver<Option<Outcome>>),
    Open(Line),
    /// What came of the last attempt, and when another is worth it.
    Failed(RedisError, Instant),
}

struct Inside {
    state: State,
    opened: u64,
}

/// The connection of a node, or the lack of it.
pub(super) struct Wire {
    address: Address,
    opener: Arc<Opener>,
    meters: Arc<Meters>,
    inside: Mutex<Inside>,
}

impl Wire {
    /// Not yet open.
    pub(super) fn new(address: Address, opener: Arc<Opener>, meters: Arc<Meters>) -> Wire {
        let inside = Mutex::new(Inside { state: State::Closed, opened: 0 });
        Wire { address, opener, meters, inside }
    }

    /// The open connection, or the one that somebody opens right now.
    pub(super) async fn line(self: &Arc<Self>) -> Outcome {
        let mut opening = {
            let mut inside = self.lock();
            match &inside.state {
                State::Open(line) if !line.ended.load(Ordering::Acquire) => {
                    return Ok(line.clone());
                }
                State::Failed(error, until) if clock::instant() < *until => {
                    return Err(error.clone());
                }
                State::Opening(opening) => opening.clone(),
                State::Closed | State::Failed(..) | State::Open(_) => {
                    let opening = self.start_opening();
                    inside.state = State::Opening(opening.clone());
                    opening
                }
            }
        };
        let outcome = opening.wait_for(Option::is_some).await.map(|outcome| outcome.clone());
        match outcome {
            Ok(Some(outcome)) => outcome,
            // The opening task ended without a word: its runtime is going down.
            Ok(None) | Err(_) => self.fail(),
        }
    }

    /// Gives up a connection that failed, unless it has been replaced already. Calls under way on
    /// it keep it for themselves until they end; no new one can meet a late reply.
    pub(super) fn discard(&self, line: &Line) {
        let mut inside = self.lock();
        if matches!(&inside.state, State::Open(open) if open.number == line.number) {
            inside.state = State::Closed;
        }
    }

    /// Gives up whichever connection is open.
    pub(super) fn close(&self) {
        let mut inside = self.lock();
        if matches!(inside.state, State::Open(_)) {
            inside.state = State::Closed;
        }
    }

    /// In a task of its own: the caller who asked first may lose patience, the others have not.
    fn start_opening(self: &Arc<Self>) -> watch::Receiver<Option<Outcome>> {
        let (tell, opening) = watch::channel(None);
        let wire = Arc::clone(self);
        tokio::spawn(async move {
            let ended = Arc::new(AtomicBool::new(false));
            let note = Arc::clone(&ended);
            let hear = move |push: PushInfo| {
                if push.kind == PushKind::Disconnection {
                    note.store(true, Ordering::Release);
                }
                Ok::<_, Infallible>(())
            };
            let outcome = wire.opener.open(&wire.address, hear).await;
            let outcome = outcome.map(|connection| (connection, ended));
            tell.send_replace(Some(wire.settle(outcome)));
        });
        opening
    }

    fn settle(&self, outcome: Result<Opened, RedisError>) -> Outcome {
        let mut inside = self.lock();
        let number = inside.opened;
        let outcome = outcome.map(|(connection, ended)| Line { connection, number, ended });
        match &outcome {
            Ok(line) => {
                if inside.opened > 0 {
                    count(&self.meters.reconnects);
                }
                inside.opened += 1;
                inside.state = State::Open(line.clone());
            }
            Err(error) => {
                inside.state = State::Failed(error.clone(), clock::instant() + REOPEN_PAUSE);
            }
        }
        outcome
    }

    fn fail(&self) -> Outcome {
        self.lock().state = State::Closed;
        Err(RedisError::from((ErrorKind::Io, "the connection was not opened")))
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
