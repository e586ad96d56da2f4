//! One owner: takes, takes again, renews, gives back, forgets.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dormouse_core::backend::Backend;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::op::{Lock, LockReply, RenewLock, Unlock};

use super::{Hold, LOCKS, Owners, Story};
use crate::generate::rng::Rng;
use crate::harness::process::client::Client;

/// Time enough for an answer to arrive while the lock is on, and short enough to run out often.
const TTL_MS: [i64; 3] = [40, 200, 800];

/// One owner at work.
pub(super) struct Owner<'o> {
    all: &'o Owners,
    client: Client,
    number: u64,
    name: Bytes,
    rng: Rng,
    held: [Option<Hold>; LOCKS],
}

impl<'o> Owner<'o> {
    pub(super) fn new(all: &'o Owners, backend: &Arc<dyn Backend>, number: u64) -> Owner<'o> {
        let name = Bytes::from(format!("owner-{number}"));
        let rng = Rng::new(all.seed ^ (number << 20));
        Owner { all, client: Client::new(backend), number, name, rng, held: [None; LOCKS] }
    }

    pub(super) fn work(mut self) {
        while !self.all.stop.load(Ordering::SeqCst) {
            let lock = self.rng.below(LOCKS as u64) as usize;
            let outcome = match (self.held[lock], self.rng.below(100)) {
                (Some(_), 0..20) => self.take(lock),
                (Some(_), 20..40) => self.renew(lock),
                (Some(hold), 40..60) => {
                    // Until it has run out, or longer: others get it meanwhile.
                    thread::sleep(hold.ttl.min(Duration::from_millis(self.rng.below(250))));
                    Ok(())
                }
                (Some(_), _) => self.give(lock),
                (None, _) => self.take(lock),
            };
            if let Err(error) = outcome {
                self.all.complain(format!("owner {}: {error}", self.number));
            }
            self.touch(lock);
        }
    }

    fn lock_name(lock: usize) -> Bytes {
        Bytes::from(format!("lock-{lock}"))
    }

    /// `None` = nobody knows.
    fn ask(&mut self, command: Command) -> Result<Option<Reply>, Error> {
        self.all.calls.fetch_add(1, Ordering::Relaxed);
        match self.client.call_one(command) {
            Ok(reply) => Ok(Some(reply)),
            Err(error) if matches!(error.code, Code::Unconfirmed | Code::Unavailable) => {
                self.all.unknown.fetch_add(1, Ordering::Relaxed);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn take(&mut self, lock: usize) -> Result<(), Error> {
        let ttl_ms = TTL_MS[self.rng.below(3) as usize];
        let wait_ms = if self.rng.chance(50) { 0 } else { self.rng.below(300) as i64 };
        let (name, owner) = (Owner::lock_name(lock), self.name.clone());
        let asked_at = Instant::now();
        let reply = self.ask(Command::Lock(Lock { name, owner, ttl_ms, wait_ms }));
        let told_at = Instant::now();
        let before = self.held[lock];
        match reply {
            Ok(Some(Reply::Lock(reply))) => {
                let ttl = Duration::from_millis(ttl_ms as u64);
                self.granted(lock, reply, asked_at, told_at, ttl);
            }
            Err(error) if error.code == Code::Conflict => {
                if before.is_some_and(|hold| told_at < hold.until) {
                    let text = format!("owner {}: it is sure to hold {before:?}", self.number);
                    self.all.complain(format!("{text}, but {error}"));
                }
                self.held[lock] = None;
            }
            // Whether it is one deeper nobody knows.
            Ok(None) => self.held[lock] = None,
            Ok(other) => return Err(Error::unavailable(format!("lock answered {other:?}"))),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn granted(
        &mut self,
        lock: usize,
        reply: LockReply,
        asked_at: Instant,
        told_at: Instant,
        ttl: Duration,
    ) {
        let before = self.held[lock].filter(|hold| told_at < hold.until);
        if let Some(before) = before
            && (reply.fence, reply.depth) != (before.fence, before.depth + 1)
        {
            let text = format!("owner {} is sure of {before:?}, was told {reply:?}", self.number);
            self.all.complain(text);
        }
        let until = (asked_at + ttl).max(before.map_or(asked_at, |hold| hold.until));
        // Which of the two a renewal goes by is not promised.
        let ttl = ttl.min(before.map_or(ttl, |hold| hold.ttl));
        let (fence, depth) = (reply.fence, reply.depth);
        let owner = self.number;
        let hold = Hold { owner, fence, depth, asked_at, from: told_at, until, ttl };
        self.held[lock] = Some(hold);
        self.story(lock).holds.push(hold);
    }

    fn renew(&mut self, lock: usize) -> Result<(), Error> {
        let Some(hold) = self.held[lock] else { return Ok(()) };
        let (name, owner) = (Owner::lock_name(lock), self.name.clone());
        let asked_at = Instant::now();
        // It may end earlier than it would have without.
        self.cut(lock, hold.fence, asked_at + hold.ttl);
        let reply = self.ask(Command::RenewLock(RenewLock { name, owner, ttl_ms: None }));
        let told_at = Instant::now();
        match reply {
            Ok(Some(Reply::Lock(_))) => {
                let longer = Hold { asked_at, from: told_at, until: asked_at + hold.ttl, ..hold };
                self.held[lock] = Some(longer);
                let mut story = self.story(lock);
                story.uses.push((hold, asked_at));
                story.holds.push(Hold { asked_at: hold.asked_at, ..longer });
            }
            Err(error) if matches!(error.code, Code::NotFound | Code::Conflict) => {
                if told_at < hold.until {
                    self.all.complain(format!("{hold:?} was not renewed: {error}"));
                }
                self.held[lock] = None;
            }
            Ok(None) => {
                self.held[lock] = Some(Hold { until: hold.until.min(asked_at + hold.ttl), ..hold });
            }
            Ok(other) => return Err(Error::unavailable(format!("renew answered {other:?}"))),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn give(&mut self, lock: usize) -> Result<(), Error> {
        let Some(hold) = self.held[lock].take() else { return Ok(()) };
        let asked_at = Instant::now();
        // Nobody may be sure while it may be free.
        self.cut(lock, hold.fence, asked_at);
        let (name, owner) = (Owner::lock_name(lock), self.name.clone());
        let reply = self.ask(Command::Unlock(Unlock { name, owner }));
        match reply {
            Ok(Some(Reply::Unlocked(is_free))) => {
                if asked_at < hold.until && is_free != (hold.depth == 1) {
                    let text = format!("{hold:?} was given back, free: {is_free}");
                    self.all.complain(text);
                }
                self.story(lock).uses.push((hold, asked_at));
                if !is_free {
                    self.held[lock] = Some(Hold { depth: hold.depth - 1, ..hold });
                }
            }
            Err(error) if matches!(error.code, Code::NotFound | Code::Conflict) => {
                if Instant::now() < hold.until {
                    self.all.complain(format!("{hold:?} was not given back: {error}"));
                }
            }
            Ok(None) => {}
            Ok(other) => return Err(Error::unavailable(format!("unlock answered {other:?}"))),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Nobody is sure of a hold beyond this.
    fn cut(&self, lock: usize, fence: u64, at: Instant) {
        for hold in self.story(lock).holds.iter_mut().filter(|hold| hold.fence == fence) {
            hold.until = hold.until.min(at);
        }
    }

    /// Uses what the lock protects, if it is sure to hold it.
    fn touch(&self, lock: usize) {
        let Some(hold) = self.held[lock] else { return };
        let before = self.all.resources[lock].fetch_max(hold.fence, Ordering::SeqCst);
        if before > hold.fence && Instant::now() < hold.until {
            let text = format!("lock {lock}: {hold:?}: the resource has seen {before}");
            self.all.complain(text);
        }
    }

    fn story(&self, lock: usize) -> MutexGuard<'o, Story> {
        self.all.stories[lock].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
