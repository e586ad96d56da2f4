//! Random owners of locks, and what must be true of all they were told:
//! - two owners are never both sure to hold a lock: each is from the answer of its grant until its
//!   time is over, counted from before it asked, or until it gives the lock back;
//! - a resource that refuses all but the highest fence it has seen refuses nobody who is sure;
//! - fences grow with every grant; one who takes a lock that it is sure to hold gets the same hold,
//!   one deeper;
//! - once somebody else was granted a lock, its old holder can neither renew it nor give it back.
//!
//! An answer that nobody got, and one that is `unconfirmed`, makes nobody sure.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dormouse_core::backend::Backend;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::op::{Lock, LockReply, RenewLock, Unlock};

use crate::rig::client::Client;
use crate::sim::rng::Rng;

const LOCKS: usize = 5;
/// Owners on each backend.
const OWNERS: u64 = 3;
/// Time enough for an answer to arrive while the lock is on, and short enough to run out often.
const TTL_MS: [i64; 3] = [40, 200, 800];

/// A hold that an owner was told of.
#[derive(Clone, Copy, Debug)]
struct Hold {
    owner: u64,
    fence: u64,
    depth: u32,
    asked_at: Instant,
    from: Instant,
    /// The owner is sure until then.
    until: Instant,
    ttl: Duration,
}

/// What happened to one lock.
#[derive(Default)]
struct Story {
    holds: Vec<Hold>,
    /// Renewals and unlocks that were done: of which hold, asked when.
    uses: Vec<(Hold, Instant)>,
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Calls made.
    pub calls: u64,
    /// Holds granted.
    pub grants: u64,
    /// Calls of which nobody knows.
    pub unknown: u64,
    /// Locks that were taken after they ran out.
    pub expiries: u64,
}

/// The owners, and what they share.
pub struct Owners {
    seed: u64,
    stories: [Mutex<Story>; LOCKS],
    /// The highest fence that each resource has seen.
    resources: [AtomicU64; LOCKS],
    wrong: Mutex<Option<String>>,
    calls: AtomicU64,
    unknown: AtomicU64,
    stop: AtomicBool,
}

impl Owners {
    /// Nobody holds anything yet.
    pub fn new(seed: u64) -> Owners {
        eprintln!("locks: DORMOUSE_SEED={seed}");
        Owners {
            seed,
            stories: Default::default(),
            resources: Default::default(),
            wrong: Mutex::default(),
            calls: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        }
    }

    /// Owners take and give while faults are done; then all is checked.
    pub fn run(
        self,
        backends: &[Arc<dyn Backend>],
        faults: impl FnOnce(),
    ) -> Result<Tally, String> {
        let began_at = Instant::now();
        thread::scope(|scope| {
            let _stop = Stop(&self.stop);
            for (at, backend) in backends.iter().enumerate() {
                for number in 0..OWNERS {
                    let owner = at as u64 * OWNERS + number;
                    let all = &self;
                    scope.spawn(move || Owner::new(all, backend, owner).work());
                }
            }
            faults();
        });
        let seed = self.seed;
        self.check(began_at).map_err(|text| format!("{text}\nDORMOUSE_SEED={seed}"))
    }

    fn complain(&self, text: String) {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
        self.stop.store(true, Ordering::SeqCst);
    }

    fn check(self, began_at: Instant) -> Result<Tally, String> {
        if let Some(text) = self.wrong.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(text);
        }
        let mut tally = Tally {
            calls: self.calls.into_inner(),
            unknown: self.unknown.into_inner(),
            ..Tally::default()
        };
        for (lock, story) in self.stories.into_iter().enumerate() {
            let story = story.into_inner().unwrap_or_else(PoisonError::into_inner);
            check(lock, &story, began_at)?;
            tally.grants += story.holds.iter().filter(|hold| hold.depth == 1).count() as u64;
            tally.expiries += story.holds.windows(2).filter(|pair| ran_out(pair)).count() as u64;
        }
        Ok(tally)
    }
}

/// The second of two holds began after the time of the first, which nobody gave back.
fn ran_out(pair: &[Hold]) -> bool {
    pair[0].owner != pair[1].owner && pair[1].from >= pair[0].asked_at + pair[0].ttl
}

fn check(lock: usize, story: &Story, began_at: Instant) -> Result<(), String> {
    let at = |instant: Instant| instant.saturating_duration_since(began_at);
    let shown = |hold: &Hold| {
        let Hold { owner, fence, .. } = hold;
        format!("{owner} (fence {fence}, {:?}..{:?})", at(hold.from), at(hold.until))
    };
    for (index, a) in story.holds.iter().enumerate() {
        for b in story.holds[index + 1..].iter().filter(|b| b.fence != a.fence) {
            let both = || format!("lock {lock}: {} and {}", shown(a), shown(b));
            if a.from < b.until && b.from < a.until {
                return Err(format!("{} were both sure to hold it", both()));
            }
            if a.from < b.asked_at && a.fence > b.fence || b.from < a.asked_at && b.fence > a.fence
            {
                return Err(format!("{}: its fence went back", both()));
            }
        }
        if let Some(b) = story.holds.iter().find(|b| b.fence == a.fence && b.owner != a.owner) {
            return Err(format!("lock {lock}: {} and {} have one fence", shown(a), shown(b)));
        }
    }
    for (hold, asked_at) in &story.uses {
        let later = |other: &&Hold| other.fence > hold.fence && other.from < *asked_at;
        if let Some(other) = story.holds.iter().find(later) {
            let (old, new) = (shown(hold), shown(other));
            return Err(format!("lock {lock}: {old} was renewed or given back after {new} had it"));
        }
    }
    Ok(())
}

struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// One owner at work.
struct Owner<'o> {
    all: &'o Owners,
    client: Client,
    number: u64,
    name: Bytes,
    rng: Rng,
    held: [Option<Hold>; LOCKS],
}

impl<'o> Owner<'o> {
    fn new(all: &'o Owners, backend: &Arc<dyn Backend>, number: u64) -> Owner<'o> {
        let name = Bytes::from(format!("owner-{number}"));
        let rng = Rng::new(all.seed ^ (number << 20));
        Owner { all, client: Client::new(backend), number, name, rng, held: [None; LOCKS] }
    }

    fn work(mut self) {
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
                self.held[lock] = Some(Hold { until: hold.until.min(asked_at + hold.ttl), ..hold })
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

    fn story(&self, lock: usize) -> std::sync::MutexGuard<'o, Story> {
        self.all.stories[lock].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
