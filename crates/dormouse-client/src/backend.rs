//! Servers as a backend.

use std::fmt;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dormouse_core::backend::{Admission, Backend, Request, Sink};
use dormouse_core::error::Error;

use crate::connect::Connector;
use crate::limits::CLOSE_MS_MAX;
use crate::options::ConnectOptions;
use crate::shared::Shared;
use crate::state::{Need, Phase, State, Todo, closed};
use crate::url::ServerUrl;
use crate::{open, reader};

/// A running server, or several that share their jobs, as a backend. Dropping it closes it.
pub struct RemoteBackend {
    shared: Arc<Shared>,
    threads: Mutex<Vec<Thread>>,
}

/// A thread of the client.
struct Thread {
    handle: JoinHandle<()>,
    /// Is disconnected when the thread has ended.
    end: Receiver<()>,
    /// It asks for addresses and greetings, which may take long.
    may_block: bool,
}

impl Thread {
    /// Waits for its end. One that is still blocked by then is left alone: it ends by itself, and
    /// does nothing any more.
    fn join(self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        if !self.may_block || self.end.recv_timeout(left) == Err(RecvTimeoutError::Disconnected) {
            // One that panicked has ended, too.
            let _ = self.handle.join();
        }
    }
}

impl RemoteBackend {
    /// Connects to the first of these servers that takes a connection:
    /// `dormouse://[token@]host[:port]`, several separated by commas.
    ///
    /// `invalid`: the URL is wrong, or another kind of server answers; `unauthorized`: the token
    /// is; `unavailable`: no server can be reached.
    pub fn open(urls: &str, options: &ConnectOptions) -> Result<RemoteBackend, Error> {
        let connector = Connector::new(ServerUrl::parse_all(urls)?, options)?;
        let (stream, server) = connector.open_any(0, &|| true)?;
        let cannot = |error: std::io::Error| {
            Error::unavailable(format!("the client's threads cannot be started: {error}"))
        };
        let mut state = State::new(options, connector.urls());
        state.install(Need::Commands, stream, server, Instant::now(), &mut Todo::default());
        let shared = Arc::new(Shared::new(state, connector).map_err(cannot)?);
        let backend = RemoteBackend { shared, threads: Mutex::default() };
        backend.spawn("dormouse-read", reader::run, false).map_err(cannot)?;
        backend.spawn("dormouse-connect", open::run, true).map_err(cannot)?;
        Ok(backend)
    }

    fn spawn(&self, name: &str, run: fn(&Shared), may_block: bool) -> std::io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let (ended, end) = mpsc::channel();
        let body = move || {
            // Dropped after the last step, also of a thread that panics.
            let _ended = ended;
            run(&shared);
        };
        let handle = thread::Builder::new().name(name.to_owned()).spawn(body)?;
        let thread = Thread { handle, end, may_block };
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }

    /// Ends waits, waits a moment for answers that are under way, and ends the connections and
    /// threads, all of it within 5 s. A second close does nothing.
    pub fn close(&self) {
        let until = Instant::now() + Duration::from_millis(CLOSE_MS_MAX);
        let mut todo = Todo::default();
        let mut state = self.shared.lock();
        if state.phase == Phase::Open {
            state.close(&mut todo);
        }
        drop(state);
        self.shared.perform(todo);
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        // A sink that drops the last handle runs on the reader, which cannot wait for itself.
        let here = thread::current().id();
        let is_own = threads.iter().any(|thread| thread.handle.thread().id() == here);
        let mut state = self.shared.lock();
        if !is_own {
            let longest = until.saturating_duration_since(Instant::now());
            let quiet = &self.shared.quiet;
            let waited = quiet.wait_timeout_while(state, longest, |state| !state.is_quiet());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.phase = Phase::Closed;
        drop(state);
        self.shared.connect.notify_all();
        self.shared.wake();
        if !is_own {
            threads.into_iter().for_each(|thread| thread.join(until));
        }
    }
}

impl Backend for RemoteBackend {
    fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        let admission = Admission::of(batch.iter().map(|request| &request.command));
        let (mut todo, now) = (Todo::default(), Instant::now());
        let mut state = self.shared.lock();
        if state.phase != Phase::Open {
            return Err(closed());
        }
        admission.admit(state.load)?;
        for request in batch {
            state.take(request, &sink, now, &mut todo);
        }
        drop(state);
        self.shared.perform(todo);
        Ok(())
    }
}

impl Drop for RemoteBackend {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for RemoteBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteBackend").finish_non_exhaustive()
    }
}
