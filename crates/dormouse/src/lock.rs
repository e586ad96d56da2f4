//! Locks: at most one holder at a time in the whole installation.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use dormouse_core::command::{Command, Operation as _};
use dormouse_core::error::{Code, Error};
use dormouse_core::limits::{PAGE_MAX, WAIT_MS_MAX};
use dormouse_core::op::{self, LockReply, LocksPage};

use crate::block::block_on;
use crate::call::Call;
use crate::pending::{Pending, Read};
use crate::queue::Queue;
use crate::time::{instant, span_ms};

impl Queue {
    /// Takes the lock `name` for `owner`; the same owner may take it again while holding it. Fails
    /// with `conflict` if another owner has it, unless [`wait_for`](Acquire::wait_for) is set.
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

    /// A page of the locks that are held and whose name begins with `prefix`. It may have fewer
    /// than a page may hold and not be the last: go on while there is a `cursor`.
    ///
    /// ```
    /// # use dormouse::Queue;
    /// # use std::time::Duration;
    /// let queue = Queue::memory();
    /// let lock = queue.lock("nightly", "host-1", Duration::from_secs(30)).wait()?;
    /// let page = queue.locks("night").wait()?;
    /// assert_eq!((&page.locks[0].owner[..], page.cursor), (&b"host-1"[..], None));
    /// queue.break_lock("nightly").wait()?;
    /// assert!(queue.locks("").wait()?.locks.is_empty());
    /// # drop(lock);
    /// # Ok::<(), dormouse::Error>(())
    /// ```
    pub fn locks(&self, prefix: impl AsRef<[u8]>) -> Call<op::Locks, LocksPage> {
        let prefix = Bytes::copy_from_slice(prefix.as_ref());
        let options = op::Locks { prefix, cursor: None, limit: PAGE_MAX };
        Call::new(self, Ok(options), Queue::call)
    }

    /// Frees a lock, whoever holds it; the first who waits gets it.
    pub fn break_lock(&self, name: impl AsRef<[u8]>) -> Call<op::BreakLock, ()> {
        let name = Bytes::copy_from_slice(name.as_ref());
        Call::new(self, Ok(op::BreakLock { name, fence: None }), Queue::call)
    }
}

impl Call<op::BreakLock, ()> {
    /// Only this grant, as the list of locks has it: another may have got the lock since.
    pub fn fence(self, fence: u64) -> Self {
        self.set(|broken| broken.fence = Some(fence))
    }
}

impl Call<op::Locks, LocksPage> {
    /// How many at most.
    pub fn limit(self, limit: usize) -> Self {
        self.set(|page| page.limit = limit)
    }

    /// Where the last page ended: its `cursor`.
    pub fn after(self, cursor: impl Into<String>) -> Self {
        self.set(|page| page.cursor = Some(cursor.into()))
    }
}

/// A request for a lock: await it, block with [`wait`](Acquire::wait), or start it with
/// [`send`](Acquire::send).
///
/// Dropping it before it is answered withdraws it; a lock granted in that instant is released.
#[derive(Clone, Debug)]
#[must_use = "nothing is sent until it is awaited, waited for or sent"]
pub struct Acquire {
    queue: Queue,
    options: op::Lock,
    wait_ms: u64,
}

impl Acquire {
    /// How long to wait while another owner has it; `Duration::MAX` waits forever.
    pub fn wait_for(mut self, wait: Duration) -> Acquire {
        // A Duration is never negative.
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

/// The future of a lock request: sent when first polled at the latest, withdrawn when dropped.
///
/// A wait longer than the backend's limit is split into several.
#[derive(Debug)]
#[must_use = "the request is withdrawn when its future is dropped"]
pub struct AcquireFuture {
    queue: Queue,
    options: op::Lock,
    /// The part of the wait that has not been sent yet.
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

/// A held lock; dropping it releases it.
///
/// It expires after its ttl unless [renewed](Lock::renew), so a dead holder blocks nobody. Pass the
/// [`fence`](Lock::fence) to the protected resource: if that refuses smaller fences, a holder whose
/// lock has expired can do no harm.
#[must_use = "a lock is released when it is dropped"]
pub struct Lock {
    queue: Queue,
    holder: op::Unlock,
    grant: LockReply,
    /// False once it was released explicitly.
    held: bool,
}

impl Lock {
    /// The fencing number; it grows with every grant of any lock.
    pub fn fence(&self) -> u64 {
        self.grant.fence
    }

    /// When it expires, as granted or last renewed through this value.
    pub fn expires_at(&self) -> SystemTime {
        instant(self.grant.expires_at)
    }

    /// How many releases by this owner are needed until it is free.
    pub fn depth(&self) -> u32 {
        self.grant.depth
    }

    /// Extends it to its own ttl from now. `not_found`: it had expired; `conflict`: it had expired
    /// and another owner has it.
    pub fn renew(&mut self) -> Renewal<'_> {
        let sent = self.send_renew(None);
        Renewal { lock: self, sent }
    }

    /// Extends it to `ttl` from now.
    pub fn renew_for(&mut self, ttl: Duration) -> Renewal<'_> {
        let sent = self.send_renew(Some(span_ms(ttl)));
        Renewal { lock: self, sent }
    }

    /// Releases it; true if it is free now, false if an outer acquire of the same owner holds it.
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

/// A renewal in progress; its answer is also stored in the lock.
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
