//! Sessions: leases that end with their holder.

use std::fmt;

use dormouse_core::command::{Command, Operation as _};
use dormouse_core::op::{CloseSession, OpenSession, SessionId};

use crate::call::Call;
use crate::leased_job::LeasedJob;
use crate::pending::{Pending, Read};
use crate::queue::Queue;
use crate::reserve::Reserve;

impl Queue {
    /// Opens a session: jobs reserved in it are released unspent when it ends.
    ///
    /// ```
    /// # use dormouse::{Queue, State};
    /// let queue = Queue::memory();
    /// queue.put("mails", "one").wait()?;
    /// let session = queue.session().wait()?;
    /// let jobs = session.reserve("mails").wait()?;
    /// session.close().wait()?;
    /// assert_eq!(queue.get(jobs[0].id()).wait()?.state, State::Ready);
    /// # Ok::<(), dormouse::Error>(())
    /// ```
    pub fn session(&self) -> Call<(), Session> {
        Call::new(self, Ok(()), |queue, ()| {
            let owner = queue.clone();
            let read = move |reply| {
                Ok(Session { queue: owner, id: OpenSession::from_reply(reply)?, open: true })
            };
            Pending::claim(queue, OpenSession, Read::With(Box::new(read)))
        })
    }
}

/// An open session; dropping it ends it and releases its leases.
#[must_use = "a session ends when it is dropped"]
pub struct Session {
    queue: Queue,
    id: SessionId,
    /// False once it was closed explicitly.
    open: bool,
}

impl Session {
    /// The id of the session in commands.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// As [`Queue::reserve`], with leases that end with this session.
    pub fn reserve(&self, topic: &str) -> Reserve {
        self.queue.reserve(topic).session(self)
    }

    /// As [`Queue::reserve_any`], with leases that end with this session.
    pub fn reserve_any<'a>(&self, topics: impl IntoIterator<Item = &'a str>) -> Reserve {
        self.queue.reserve_any(topics).session(self)
    }

    /// As [`Queue::reserve_one`], with a lease that ends with this session.
    pub fn reserve_one(&self, topic: &str) -> Reserve<Option<LeasedJob>> {
        self.queue.reserve_one(topic).session(self)
    }

    /// Ends the session; the answer comes when its leases are released.
    pub fn close(mut self) -> Pending<()> {
        self.open = false;
        self.queue.call(CloseSession(self.id))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.open {
            self.queue.forget(Command::CloseSession(self.id));
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Session").field(&self.id).finish()
    }
}
