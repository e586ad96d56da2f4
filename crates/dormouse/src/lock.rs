//! Locks: one holder at a time over the whole installation.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use dormouse_core::command::{Command, Operation as _};
use dormouse_core::error::{Code, Error};
use dormouse_core::limits::WAIT_MS_MAX;
use dormouse_core::op::{self, LockReply};

use crate::block::block_on;
use crate::pending::{Pending, Read};
use crate::queue::Queue;
use crate::time::{instant, span_ms};

impl Queue {
    /// Takes the lock `name` for `owner`, who may take it again while holding it. Answers
    /// `conflict` if another owner has it, unless [`wait_for`](Acquire::wait_for) says to wait.
    ///
    /// ```
    /// # use dormouse::{Code, Queue};
    /// # use std::time::Duration;
    /// let queue = Queue::memory();
    /// let ttl = Duration::from_secs(30);
    /// let lock = queue.lock("nightly", "host-1", ttl).wait()?;
    /// let other = queue.lock("nightly", "host-2", ttl).wait();
    /// assert_eq!(other.map(|_| ()).map_err(|error| error.code), Err(Code::Conflict));
    /// assert!(lock.unlock().wait()?);
    /// # Ok::<(), dormouse::Error>(())
    /// ```
    pub fn lock(&self, name: impl AsRef<[u8]>, owner: impl AsRef<[u8]>, ttl: Duration) -> Acquire {
        let options = op::Lock {
            name: Bytes::copy_from_slice(name.as_ref()),
            owner: Bytes::copy_from_slice(owner.as_ref()),
            ttl_ms: span_ms(ttl),
            wait_ms: 0,
        };
        Acquire { queue: self.clone(), options, wait_ms: 0 }
    }
}

/// A lock that is asked for: await it, or block with [`wait`](Acquire::wait), or start it with
/// [`send`](Acquire::send).
///
/// Dropped before it is answered it is withdrawn; a lock granted in that instant is given back.
#[derive(Clone, Debug)]
#[must_use = "nothing is sent until it is awaited, waited for or sent"]
pub struct Acquire {
    queue: Queue,
    options: op::Lock,
    wait_ms: u64,
}

impl Acquire {
    /// How long to wait while another owner has it; `Duration::MAX` waits without end.
    pub fn wait_for(mut self, wait: Duration) -> Acquire {
        // Never negative: it comes from a Duration.
        self.wait_ms = span_ms(wait).unsigned_abs();
        self
    }

    /// Sends it now; the lock is taken when the future is awaited, and given back when it is
    /// dropped.
    pub fn send(self) -> AcquireFuture {
        let mut future = self.into_future();
        future.sent = Some(future.submit());
        future
    }

    /// Sends it and blocks the thread until it is answered.
    pub fn wait(self) -> Result<Lock, Error> {
        block_on(self.into_future())
    }
}

impl IntoFuture for Acquire {
    type Output = Result<Lock, Error>;
    type IntoFuture = AcquireFuture;

    fn into_future(self) -> AcquireFuture {
        let Acquire { queue, options, wait_ms } = self;
        AcquireFuture { queue, options, wait_ms, sent: None }
    }
}

/// A lock being acquired; sent when it is first polled at the latest, withdrawn when it is dropped.
///
/// A wait beyond the backend's longest is cut into several.
#[derive(Debug)]
#[must_use = "a lock that is asked for is withdrawn when it is dropped"]
pub struct AcquireFuture {
    queue: Queue,
    options: op::Lock,
    /// How much of the wait has not been sent yet.
    wait_ms: u64,
    sent: Option<Pending<LockReply>>,
}

impl AcquireFuture {
    fn submit(&mut self) -> Pending<LockReply> {
        let wait_ms = self.wait_ms.min(WAIT_MS_MAX);
        self.wait_ms -= wait_ms;
        self.options.wait_ms = i64::try_from(wait_ms).unwrap_or(i64::MAX);
        let read = Read::Plain(op::Lock::from_reply);
        Pending::claim(&self.queue, self.options.clone(), read)
    }

    fn unlock(&self) -> op::Unlock {
        op::Unlock { name: self.options.name.clone(), owner: self.options.owner.clone() }
    }
}

impl Future for AcquireFuture {
    type Output = Result<Lock, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Lock, Error>> {
        let this = self.get_mut();
        loop {
            let mut pending = this.sent.take().unwrap_or_else(|| this.submit());
            let Poll::Ready(result) = Pin::new(&mut pending).poll(cx) else {
                this.sent = Some(pending);
                return Poll::Pending;
            };
            match result {
                Ok(grant) => {
                    let (queue, holder) = (this.queue.clone(), this.unlock());
                    return Poll::Ready(Ok(Lock { queue, holder, grant, held: true }));
                }
                Err(error) if error.code == Code::Conflict && this.wait_ms > 0 => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

/// A lock that is held; dropping it gives it back.
///
/// It runs out by itself after its ttl unless [renewed](Lock::renew), so a holder that died stops
/// nobody. Hand the [`fence`](Lock::fence) to what the lock protects: it refuses a smaller one,
/// and a holder that slept through its ttl can do no harm.
#[must_use = "a lock is given back when it is dropped"]
pub struct Lock {
    queue: Queue,
    holder: op::Unlock,
    grant: LockReply,
    /// False once it was given back by hand.
    held: bool,
}

impl Lock {
    /// Grows with every grant of any lock.
    pub fn fence(&self) -> u64 {
        self.grant.fence
    }

    /// When it runs out, as it was granted or last renewed through this value.
    pub fn expires_at(&self) -> SystemTime {
        instant(self.grant.expires_at)
    }

    /// How often this owner must give it back until it is free.
    pub fn depth(&self) -> u32 {
        self.grant.depth
    }

    /// Prolongs it from now on for its own ttl. `not_found`: it ran out before; `conflict`: and
    /// another owner has it.
    pub fn renew(&mut self) -> Renewal<'_> {
        let sent = self.send_renew(None);
        Renewal { lock: self, sent }
    }

    /// Prolongs it to `ttl` from now.
    pub fn renew_for(&mut self, ttl: Duration) -> Renewal<'_> {
        let sent = self.send_renew(Some(span_ms(ttl)));
        Renewal { lock: self, sent }
    }

    /// Gives it back; true if it is free now, false if an outer acquire of the same owner holds it.
    pub fn unlock(mut self) -> Pending<bool> {
        self.held = false;
        self.queue.call(self.holder.clone())
    }

    fn send_renew(&self, ttl_ms: Option<i64>) -> Pending<LockReply> {
        let op::Unlock { name, owner } = self.holder.clone();
        let renew = op::RenewLock { name, owner, ttl_ms };
        self.queue.call(renew)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.held {
            self.queue.forget(Command::Unlock(self.holder.clone()));
        }
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").field("grant", &self.grant).finish_non_exhaustive()
    }
}

/// A renewal under way; its answer is also kept in the lock.
#[derive(Debug)]
#[must_use = "only its answer says whether the lock is still held"]
pub struct Renewal<'a> {
    lock: &'a mut Lock,
    sent: Pending<LockReply>,
}

impl Renewal<'_> {
    /// Blocks the thread until it is answered.
    pub fn wait(self) -> Result<LockReply, Error> {
        block_on(self)
    }
}

impl Future for Renewal<'_> {
    type Output = Result<LockReply, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<LockReply, Error>> {
        let this = self.get_mut();
        let result = ready!(Pin::new(&mut this.sent).poll(cx));
        if let Ok(grant) = &result {
            this.lock.grant = *grant;
        }
        Poll::Ready(result)
    }
}
