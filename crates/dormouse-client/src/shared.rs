//! What callers and the two threads share: the state, and how they wake each other.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::connect::Connector;
use crate::limits::WRITE_ROUNDS_MAX;
use crate::state::{ConnId, Portion, State, Todo};
use crate::stream::Written;

/// See the module.
pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) connector: Connector,
    /// A connection may be missing, or the end has come.
    pub(crate) connect: Condvar,
    /// An answer has come, for whoever closes.
    pub(crate) quiet: Condvar,
    wake: Wake,
}

impl Shared {
    pub(crate) fn new(state: State, connector: Connector) -> std::io::Result<Shared> {
        let (connect, quiet) = (Condvar::new(), Condvar::new());
        Ok(Shared { state: Mutex::new(state), connector, connect, quiet, wake: Wake::new()? })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held that leaves the state between two steps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what a change of the state leads to. Not under the lock: sinks and wakers are foreign
    /// code.
    pub(crate) fn perform(&self, todo: Todo) {
        let Todo { mut answers, flush, close, finish, connect, wake } = todo;
        for id in flush {
            self.flush(id);
        }
        finish.iter().for_each(|stream| stream.finish());
        close.iter().for_each(|stream| stream.close());
        if connect {
            self.connect.notify_one();
        }
        if wake {
            self.wake.wake();
        }
        answers.deliver();
    }

    /// Writes what a connection has to write, unless another thread does.
    pub(crate) fn flush(&self, id: ConnId) {
        for _ in 0..WRITE_ROUNDS_MAX {
            let portion = self.lock().conn(id).and_then(|conn| conn.take_portion());
            let Some(portion) = portion else { return };
            if !self.write(id, portion) {
                return;
            }
        }
        // Others keep adding: they must not hold up this caller for ever.
        if let Some(conn) = self.lock().conn(id)
            && let Some(portion) = conn.take_portion()
        {
            conn.wrote_part(portion.bytes, portion.at);
        }
        self.wake.wake();
    }

    /// Writes on after the socket was full.
    pub(crate) fn flush_blocked(&self, id: ConnId) {
        let portion = self.lock().conn(id).and_then(|conn| conn.take_blocked());
        if let Some(portion) = portion
            && self.write(id, portion)
        {
            self.flush(id);
        }
    }

    /// Writes a portion; false if the rest is the reader's.
    fn write(&self, id: ConnId, portion: Portion) -> bool {
        let Portion { stream, bytes, at } = portion;
        let written = stream.write(&bytes[at..]);
        let mut state = self.lock();
        // It may have broken meanwhile: then its calls are dealt with.
        let Some(conn) = state.conn(id) else { return false };
        match written {
            Ok(Written::All) => {
                conn.wrote_all(bytes);
                return true;
            }
            Ok(Written::Part(more)) => conn.wrote_part(bytes, at + more),
            Err(_) => conn.has_failed = true,
        }
        drop(state);
        self.wake.wake();
        false
    }

    pub(crate) fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.receiver.as_fd()
    }

    /// The reader is awake.
    pub(crate) fn woken(&self) {
        self.wake.clear();
    }

    /// Wakes the reader.
    pub(crate) fn wake(&self) {
        self.wake.wake();
    }
}

/// Wakes a thread that waits for sockets, by another socket.
struct Wake {
    sender: UnixStream,
    receiver: UnixStream,
    /// A byte is on its way: a second one would only fill the socket.
    is_set: AtomicBool,
}

impl Wake {
    fn new() -> std::io::Result<Wake> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        Ok(Wake { sender, receiver, is_set: AtomicBool::new(false) })
    }

    fn wake(&self) {
        if !self.is_set.swap(true, Ordering::AcqRel) {
            // A full socket wakes as well.
            let _ = (&self.sender).write(&[1]);
        }
    }

    fn clear(&self) {
        let mut bytes = [0; 16];
        while matches!((&self.receiver).read(&mut bytes), Ok(read) if read > 0) {}
        self.is_set.store(false, Ordering::Release);
    }
}
