//! One connection to one node, opened on first use and again after it broke.
//!
//! All calls of a node share it. While it is being opened they wait for the same attempt, which
//! runs in a task of its own, so that a caller that gives up does not end it for the others. After
//! a failure, calls fail at once for `REOPEN_DELAY`. A connection that failed is replaced, never
//! reused: a late reply on it could otherwise be taken for the reply to a later call.

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

/// After a failure no new attempt is made for this long, however many calls want one.
const REOPEN_DELAY: Duration = Duration::from_millis(50);

type OpenResult = Result<OpenConnection, RedisError>;
type Opened = (MultiplexedConnection, Arc<AtomicBool>);

/// An open connection; the number distinguishes it from its predecessors.
#[derive(Clone)]
pub(super) struct OpenConnection {
    pub(super) connection: MultiplexedConnection,
    number: u64,
    /// Set when the node has closed it.
    closed: Arc<AtomicBool>,
}

enum State {
    Closed,
    Opening(watch::Receiver<Option<OpenResult>>),
    Open(OpenConnection),
    /// The error of the last attempt, and when to try again.
    Failed(RedisError, Instant),
}

struct Inner {
    state: State,
    opened: u64,
}

/// A connection to a node, open or not.
pub(super) struct Connection {
    pub(super) address: Address,
    opener: Arc<Opener>,
    meters: Arc<Meters>,
    inner: Mutex<Inner>,
}

impl Connection {
    pub(super) fn new(address: Address, opener: Arc<Opener>, meters: Arc<Meters>) -> Connection {
        let inner = Mutex::new(Inner { state: State::Closed, opened: 0 });
        Connection { address, opener, meters, inner }
    }

    /// The open connection; opens it if necessary.
    pub(super) async fn get(self: &Arc<Self>) -> OpenResult {
        let mut opening = {
            let mut inner = self.lock();
            match &inner.state {
                State::Open(open) if !open.closed.load(Ordering::Acquire) => {
                    return Ok(open.clone());
                }
                State::Failed(error, until) if clock::instant() < *until => {
                    return Err(error.clone());
                }
                State::Opening(opening) => opening.clone(),
                State::Closed | State::Failed(..) | State::Open(_) => {
                    let opening = self.start_opening();
                    inner.state = State::Opening(opening.clone());
                    opening
                }
            }
        };
        let result = opening.wait_for(Option::is_some).await.map(|result| result.clone());
        match result {
            Ok(Some(result)) => result,
            // The opening task was dropped: the runtime is shutting down.
            Ok(None) | Err(_) => self.fail(),
        }
    }

    /// Gives up a connection that failed, unless it has been replaced already. Calls in flight keep
    /// it until they end.
    pub(super) fn discard(&self, failed: &OpenConnection) {
        let mut inner = self.lock();
        if matches!(&inner.state, State::Open(open) if open.number == failed.number) {
            inner.state = State::Closed;
        }
    }

    /// Gives up whichever connection is open.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        if matches!(inner.state, State::Open(_)) {
            inner.state = State::Closed;
        }
    }

    fn start_opening(self: &Arc<Self>) -> watch::Receiver<Option<OpenResult>> {
        let (sender, opening) = watch::channel(None);
        let connection = Arc::clone(self);
        tokio::spawn(async move {
            let closed = Arc::new(AtomicBool::new(false));
            let closed_flag = Arc::clone(&closed);
            let on_push = move |push: PushInfo| {
                if push.kind == PushKind::Disconnection {
                    closed_flag.store(true, Ordering::Release);
                }
                Ok::<_, Infallible>(())
            };
            let result = connection.opener.open(&connection.address, on_push).await;
            let result = result.map(|connection| (connection, closed));
            sender.send_replace(Some(connection.finish_opening(result)));
        });
        opening
    }

    fn finish_opening(&self, result: Result<Opened, RedisError>) -> OpenResult {
        let mut inner = self.lock();
        let number = inner.opened;
        let result =
            result.map(|(connection, closed)| OpenConnection { connection, number, closed });
        match &result {
            Ok(open) => {
                if inner.opened > 0 {
                    count(&self.meters.reconnects);
                }
                inner.opened += 1;
                inner.state = State::Open(open.clone());
            }
            Err(error) => {
                inner.state = State::Failed(error.clone(), clock::instant() + REOPEN_DELAY);
            }
        }
        result
    }

    fn fail(&self) -> OpenResult {
        self.lock().state = State::Closed;
        Err(RedisError::from((ErrorKind::Io, "the connection was not opened")))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
