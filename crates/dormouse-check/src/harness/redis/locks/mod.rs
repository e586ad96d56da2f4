//! Random owners of locks, and the properties that all their answers must have:
//! - two owners are never both sure to hold a lock: each is from the answer of its grant until its
//!   time is over, counted from before it asked, or until it gives the lock back;
//! - a resource that refuses all but the highest fence it has seen refuses no owner that is sure;
//! - fences grow with every grant; an owner that takes a lock it surely holds gets the same hold,
//!   one deeper;
//! - once somebody else was granted a lock, its old holder can neither renew it nor give it back.
//!
//! An answer that nobody got, and one that is `unconfirmed`, makes nobody sure.

mod owner;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dormouse_core::backend::Backend;

use owner::Owner;

const LOCKS: usize = 5;
/// Owners on each backend.
const OWNERS: u64 = 3;

/// A hold that an owner was granted.
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

/// The history of one lock.
#[derive(Default)]
struct Story {
    holds: Vec<Hold>,
    /// Renewals and unlocks that were done: of which hold, asked when.
    uses: Vec<(Hold, Instant)>,
}

/// Counts of a run.
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
