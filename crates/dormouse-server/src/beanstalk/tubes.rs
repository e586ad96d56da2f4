//! The tubes that clients use, watch or have put jobs into, with their counters.
//!
//! Only the backend knows which tubes have jobs, so a tube that nobody uses or watches stays here
//! while it may have some. It is removed when a command has listed the tubes with jobs (`settle`);
//! until then no reply shows it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::{BEANSTALK_IDLE_TUBES_MAX, BEANSTALK_TUBES_MAX};
use dormouse_core::topic::TopicName;

/// The tube that every connection uses and watches at first; it always exists.
pub(super) const DEFAULT: &str = "default";

/// One tube.
#[derive(Debug)]
pub(crate) struct Tube {
    pub(super) name: TopicName,
    /// Connections that use it; changed under the lock of all tubes, as `watching` is.
    using: AtomicU64,
    /// Connections that watch it.
    watching: AtomicU64,
    /// A client of this protocol has put a job into it, or begun to.
    is_filled: AtomicBool,
    /// Jobs put into it over this protocol.
    pub(super) puts: AtomicU64,
    /// Jobs of it deleted over this protocol.
    pub(super) deletes: AtomicU64,
    /// The number of pauses over this protocol.
    pub(super) pauses: AtomicU64,
    /// The length of the last pause over this protocol.
    pub(super) pause_s: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Tubes {
    known: Mutex<TubeTable>,
}

#[derive(Debug, Default)]
struct TubeTable {
    /// In order of creation, except that the last one fills the place of one that is removed.
    in_order: Vec<Arc<Tube>>,
    places: HashMap<TopicName, usize>,
    /// The number of tubes that nobody uses or watches.
    idle: usize,
}

/// How a connection is attached to a tube.
#[derive(Clone, Copy, Debug)]
pub(super) enum Attachment {
    Uses,
    Watches,
}

impl Tube {
    fn new(name: TopicName) -> Tube {
        Tube {
            name,
            using: AtomicU64::new(0),
            watching: AtomicU64::new(0),
            is_filled: AtomicBool::new(false),
            puts: AtomicU64::new(0),
            deletes: AtomicU64::new(0),
            pauses: AtomicU64::new(0),
            pause_s: AtomicU64::new(0),
        }
    }

    pub(super) fn using(&self) -> u64 {
        self.using.load(Ordering::Relaxed)
    }

    pub(super) fn watching(&self) -> u64 {
        self.watching.load(Ordering::Relaxed)
    }

    /// Notes that it may have a job. All producers read this, so it is written only once.
    pub(super) fn fill(&self) {
        if !self.is_filled.load(Ordering::Relaxed) {
            self.is_filled.store(true, Ordering::Relaxed);
        }
    }

    /// Whether nobody uses or watches it, and it is not the default.
    fn is_idle(&self) -> bool {
        self.using() == 0 && self.watching() == 0 && self.name.as_str() != DEFAULT
    }

    fn connections(&self, attachment: Attachment) -> &AtomicU64 {
        match attachment {
            Attachment::Uses => &self.using,
            Attachment::Watches => &self.watching,
        }
    }
}

impl Tubes {
    /// Only the default tube.
    pub(super) fn new() -> Tubes {
        let mut known = TubeTable::default();
        // Its name is valid.
        if let Ok(name) = TopicName::new(DEFAULT) {
            known.add(name);
        }
        Tubes { known: Mutex::new(known) }
    }

    /// Attaches a connection to a tube, which is created if needed; `None` if there are too many.
    pub(super) fn attach(&self, name: TopicName, attachment: Attachment) -> Option<Arc<Tube>> {
        let mut known = self.lock();
        let tube = match known.find(&name) {
            Some(tube) => tube,
            None if known.in_order.len() - known.idle >= BEANSTALK_TUBES_MAX => return None,
            None => known.add(name),
        };
        if tube.is_idle() {
            known.idle -= 1;
        }
        tube.connections(attachment).fetch_add(1, Ordering::Relaxed);
        Some(tube)
    }

    /// Detaches it. A tube that no job was put into is removed with its last connection.
    pub(super) fn detach(&self, tube: &Arc<Tube>, attachment: Attachment) {
        let mut known = self.lock();
        tube.connections(attachment).fetch_sub(1, Ordering::Relaxed);
        if !tube.is_idle() {
            return;
        }
        known.idle += 1;
        if !tube.is_filled.load(Ordering::Relaxed) {
            known.remove(&tube.name);
        } else if known.idle > BEANSTALK_IDLE_TUBES_MAX {
            known.retain(|_| false);
        }
    }

    pub(super) fn find(&self, name: &TopicName) -> Option<Arc<Tube>> {
        self.lock().find(name)
    }

    /// Whether a client uses or watches it, or it is the default: it exists even without jobs.
    pub(super) fn is_attached(&self, name: &TopicName) -> bool {
        self.find(name).is_some_and(|tube| !tube.is_idle())
    }

    /// Removes a tube without jobs if nobody uses or watches it.
    pub(super) fn forget(&self, name: &TopicName) {
        let mut known = self.lock();
        if known.find(name).is_some_and(|tube| tube.is_idle()) {
            known.remove(name);
        }
    }

    /// All tubes, given those that have jobs: first those in this table, in order, then the others.
    /// Tubes without jobs and clients are removed, unless the list of those with jobs is cut.
    pub(super) fn settle(&self, with_jobs: &[TopicName], is_cut: bool) -> Vec<TopicName> {
        let mut known = self.lock();
        let mut jobs: HashSet<&TopicName> = with_jobs.iter().collect();
        if known.idle > 0 && !is_cut {
            known.retain(|name| jobs.contains(name));
        }
        let shown = |tube: &&Arc<Tube>| !tube.is_idle() || jobs.contains(&tube.name);
        let shown = known.in_order.iter().filter(shown);
        let mut names: Vec<_> = shown.map(|tube| tube.name.clone()).collect();
        for name in &names {
            jobs.remove(name);
        }
        names.extend(with_jobs.iter().filter(|name| jobs.contains(name)).cloned());
        names
    }

    fn lock(&self) -> MutexGuard<'_, TubeTable> {
        // Nothing panics while it is held.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TubeTable {
    fn find(&self, name: &TopicName) -> Option<Arc<Tube>> {
        self.places.get(name).and_then(|&place| self.in_order.get(place)).cloned()
    }

    /// It is idle until a connection is attached.
    fn add(&mut self, name: TopicName) -> Arc<Tube> {
        let tube = Arc::new(Tube::new(name));
        self.idle += usize::from(tube.is_idle());
        self.places.insert(tube.name.clone(), self.in_order.len());
        self.in_order.push(Arc::clone(&tube));
        tube
    }

    /// Removes an idle tube.
    fn remove(&mut self, name: &TopicName) {
        let Some(place) = self.places.remove(name) else { return };
        self.in_order.swap_remove(place);
        self.idle -= 1;
        if let Some(moved) = self.in_order.get(place) {
            self.places.insert(moved.name.clone(), place);
        }
    }

    /// Removes the idle tubes that `keep` refuses.
    fn retain(&mut self, keep: impl Fn(&TopicName) -> bool) {
        let goes = |tube: &&Arc<Tube>| tube.is_idle() && !keep(&tube.name);
        let gone: Vec<_> = self.in_order.iter().filter(goes).map(|t| t.name.clone()).collect();
        gone.iter().for_each(|name| self.remove(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> TopicName {
        TopicName::new(name).unwrap()
    }

    fn names(tubes: &Tubes, with_jobs: &[&str]) -> Vec<String> {
        let with_jobs: Vec<_> = with_jobs.iter().map(|text| name(text)).collect();
        tubes.settle(&with_jobs, false).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_last_tube_takes_the_place_of_a_removed_one() {
        let tubes = Tubes::new();
        let tied =
            ["t1", "t2", "t3"].map(|text| tubes.attach(name(text), Attachment::Watches).unwrap());
        assert_eq!(names(&tubes, &[]), ["default", "t1", "t2", "t3"]);
        tubes.detach(&tied[0], Attachment::Watches);
        assert_eq!(names(&tubes, &[]), ["default", "t3", "t2"]);
        tubes.attach(name("t4"), Attachment::Uses).unwrap();
        assert_eq!(names(&tubes, &[]), ["default", "t3", "t2", "t4"]);
    }

    #[test]
    fn a_tube_with_jobs_stays() {
        let tubes = Tubes::new();
        let tube = tubes.attach(name("t1"), Attachment::Uses).unwrap();
        tubes.attach(name("t2"), Attachment::Uses).unwrap();
        tube.fill();
        tubes.detach(&tube, Attachment::Uses);
        assert!(!tubes.is_attached(&name("t1")));
        assert_eq!(names(&tubes, &["other", "t1"]), ["default", "t1", "t2", "other"]);
        assert_eq!(names(&tubes, &[]), ["default", "t2"], "its last job is gone");
        assert!(tubes.find(&name("t1")).is_none());
    }

    #[test]
    fn the_default_tube_always_exists() {
        let tubes = Tubes::new();
        let tube = tubes.attach(name(DEFAULT), Attachment::Uses).unwrap();
        tubes.detach(&tube, Attachment::Uses);
        tubes.forget(&name(DEFAULT));
        assert_eq!(names(&tubes, &[]), ["default"]);
        assert!(tubes.is_attached(&name(DEFAULT)));
    }

    #[test]
    fn idle_tubes_are_bounded() {
        let tubes = Tubes::new();
        for number in 0..=BEANSTALK_IDLE_TUBES_MAX {
            let tube = tubes.attach(name(&format!("t{number}")), Attachment::Uses).unwrap();
            tube.fill();
            tubes.detach(&tube, Attachment::Uses);
        }
        assert_eq!(tubes.lock().in_order.len(), 1);
        assert_eq!(tubes.lock().idle, 0);
    }
}
