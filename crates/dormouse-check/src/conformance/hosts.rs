//! Hosts of the engine: in memory, and on a directory with or without turmoil.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dormouse_core::backend::Backend;
use dormouse_core::command::Command;
use dormouse_core::op::Put;
use dormouse_core::topic::TopicName;
use dormouse_disk::clock::{TimeSource, VirtualClock};
use dormouse_disk::disk::RealDisk;
use dormouse_disk::engine::{Engine, Options};
use dormouse_disk::manifest;
use dormouse_disk::store::Sizes;
use tempfile::TempDir;

use super::client::Client;
use super::subject::{Host, Subject};

impl Subject {
    /// Everything in memory.
    pub fn memory() -> Subject {
        Subject::new(memory())
    }

    /// On a directory, in production sizes, restarted only by cases about restarts.
    pub fn disk() -> Subject {
        Subject::new(DiskHost::new(Sizes::default(), false, false))
    }

    /// On a directory, restarted wherever a case allows it: all comes from the journal.
    pub fn disk_reopened() -> Subject {
        Subject::new(disk_reopened())
    }

    /// On a directory, flushed, merged and restarted wherever a case allows it: most jobs come
    /// from runs.
    pub fn disk_churned() -> Subject {
        Subject::new(DiskHost::new(TINY, true, true))
    }
}

/// The host of [`Subject::memory`].
pub(super) fn memory() -> impl Host + 'static {
    MemoryHost::new()
}

/// The host of [`Subject::disk_reopened`].
pub(super) fn disk_reopened() -> impl Host + 'static {
    DiskHost::new(Sizes::default(), false, true)
}

/// A few dozen jobs fill a memtable, and two runs make a merge.
const TINY: Sizes = Sizes { memtable_bytes: 4 << 10, segment_bytes: 16 << 10, merge_runs: 2 };

fn options(clock: &VirtualClock, sizes: Sizes) -> Options {
    Options { clock: Arc::new(clock.clone()), sizes, ..Options::default() }
}

/// The engine without files.
struct MemoryHost {
    engine: Engine,
    clock: VirtualClock,
}

impl MemoryHost {
    fn new() -> MemoryHost {
        let clock = VirtualClock::new();
        let engine = Engine::memory(options(&clock, Sizes::default()));
        MemoryHost { engine, clock }
    }
}

impl Host for MemoryHost {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(self.engine.clone())
    }

    fn now_ms(&self) -> u64 {
        self.clock.read().wall_ms
    }

    fn advance(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }

    fn step_wall_ms(&self, by_ms: i64) -> bool {
        self.clock.step_wall_ms(by_ms);
        true
    }

    fn bytes_are_cheap(&self) -> bool {
        true
    }
}

/// The engine on a directory that goes with the host.
struct DiskHost {
    engine: Engine,
    clock: VirtualClock,
    sizes: Sizes,
    churns: bool,
    reopens: bool,
    // Last, so that the engine has ended before its directory goes.
    dir: TempDir,
}

impl DiskHost {
    fn new(sizes: Sizes, churns: bool, reopens: bool) -> DiskHost {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let clock = VirtualClock::new();
        let engine = open(dir.path(), &clock, sizes);
        DiskHost { engine, clock, sizes, churns, reopens, dir }
    }

    /// Where the journal begins; it moves on with every flush that is complete.
    fn first_segment(&self) -> u64 {
        let disk = RealDisk::open(self.dir.path()).expect("the data directory");
        let manifest = manifest::read(&disk).expect("a readable manifest");
        manifest.expect("a manifest").first_segment
    }
}

fn open(dir: &Path, clock: &VirtualClock, sizes: Sizes) -> Engine {
    let opened = Engine::open(dir, options(clock, sizes));
    opened.unwrap_or_else(|error| panic!("the store does not open: {error}"))
}

impl Host for DiskHost {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(self.engine.clone())
    }

    fn now_ms(&self) -> u64 {
        self.clock.read().wall_ms
    }

    fn advance(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }

    fn step_wall_ms(&self, by_ms: i64) -> bool {
        self.clock.step_wall_ms(by_ms);
        true
    }

    fn reopen(&mut self, off_ms: u64) -> bool {
        self.engine.close().expect("the store ends well");
        self.advance(off_ms);
        self.engine = open(self.dir.path(), &self.clock, self.sizes);
        true
    }

    fn reboot(&mut self, wall_ms: i64) -> bool {
        self.engine.close().expect("the store ends well");
        self.clock.reboot(Duration::ZERO);
        self.clock.step_wall_ms(wall_ms);
        self.engine = open(self.dir.path(), &self.clock, self.sizes);
        true
    }

    /// Fills the memtable with jobs nobody asked for, takes them away, and waits until a flush is
    /// complete: what rested in memory before now rests in a run.
    fn churn(&mut self) {
        if !self.churns {
            return;
        }
        let client = Client::new(self.backend());
        let topic = TopicName::new("churn").expect("a good name");
        let before = self.first_segment();
        for _ in 0..10_000 {
            let fillers = (0..32).map(|_| Put::new(topic.clone(), vec![b'.'; 200])).collect();
            client.ask(Command::Put(fillers)).expect("puts of fillers");
            client.ask(Command::Purge(topic.clone().into())).expect("a purge of fillers");
            if self.first_segment() > before {
                return;
            }
        }
        panic!("the memtable was filled again and again and never flushed");
    }

    fn reopens_often(&self) -> bool {
        self.reopens
    }
}

#[cfg(test)]
mod tests {
    use dormouse_core::command::Reply;
    use dormouse_core::op::Stats;
    use dormouse_disk::clock::Reading;

    use super::super::prelude::{delayed, job};
    use super::*;

    /// Always in the middle of a millisecond, as real time is.
    struct Between(VirtualClock);

    impl TimeSource for Between {
        fn read(&self) -> Reading {
            Reading { into_ms_us: 500, ..self.0.read() }
        }

        fn boot_id(&self) -> [u8; 16] {
            self.0.boot_id()
        }

        fn on_change(&self, wake: Arc<dyn Fn() + Send + Sync>) {
            self.0.on_change(wake);
        }

        fn jumps_are_pauses(&self) -> bool {
            false
        }
    }

    #[test]
    fn due_is_rounded_up_and_now_down() {
        let clock = VirtualClock::new();
        let between = Arc::new(Between(clock.clone()));
        let engine = Engine::memory(Options { clock: between, ..Options::default() });
        let subject = Subject::new(MemoryHost { engine, clock });
        subject.put(delayed("mail", 5));
        subject.advance(5);
        assert_eq!(subject.reserve("mail", 1), [], "by its whole milliseconds it would be early");
        subject.advance(1);
        assert_eq!(subject.reserve("mail", 1).len(), 1);
        subject.put(job("mail"));
        assert_eq!(subject.reserve("mail", 1).len(), 1, "no delay is none");
    }

    #[test]
    fn churn_makes_runs_and_takes_its_jobs_away() {
        let mut host = DiskHost::new(TINY, true, true);
        let runs = |host: &DiskHost| {
            let entries = std::fs::read_dir(host.dir.path()).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name());
            names.filter(|name| name.to_string_lossy().ends_with(".dmr")).count()
        };
        let client = Client::new(host.backend());
        let put = Put::new(TopicName::new("mail").unwrap(), "work");
        client.ask(Command::Put(vec![put; 100])).unwrap();
        host.churn();
        assert!(runs(&host) > 0, "or the suite sees memtables only");
        host.reopen(0);
        assert!(runs(&host) > 0);
        let stats = Stats { topic: None };
        let Ok(Reply::Stats(stats)) = Client::new(host.backend()).ask(Command::Stats(stats)) else {
            panic!("no stats");
        };
        assert_eq!((stats.counts.waiting, stats.topics), (100, 1));
    }
}
