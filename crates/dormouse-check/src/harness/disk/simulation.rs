//! A store on a simulated disk and the oracle beside it, through one history.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_core::job::JobId;
use dormouse_core::time::Now;
use dormouse_core::topic::TopicName;
use dormouse_disk::store::Sizes;

use crate::checker::answers::Checker;
use crate::faults::disk::{CrashMode, SimDisk};
use crate::generate::command::CommandSource;
use crate::generate::op::{Kind, Op};
use crate::generate::profile::DISK_VOCABULARY;
use crate::generate::rng::Rng;
use crate::harness::disk::driver::{Driver, SimTime, Trouble};
use crate::oracle::ticks::ticks_given;
use crate::oracle::{Known, Oracle, compare, compare_next};

/// The history decides when to freeze and merge; small sizes only let every structure be used that
/// a large store would use (a memtable's tree then takes three entries).
pub const SIZES: Sizes = Sizes { memtable_bytes: 9_216, segment_bytes: 1 << 30, merge_runs: 3 };

/// How often something happened, to know what a campaign has covered.
pub type Tally = BTreeMap<&'static str, u64>;

/// See the module.
pub struct World {
    pub(crate) driver: Driver,
    pub(crate) oracle: Oracle,
    pub(crate) disk: SimDisk,
    pub(crate) time: SimTime,
    pub(crate) source: CommandSource,
    pub(crate) checker: Checker,
    /// The last batch sealed.
    pub(crate) sealed: u64,
    pub(crate) relaxed: bool,
    pub(crate) fences: BTreeSet<u64>,
    pub(crate) tickets: u64,
    /// The topic of the request that was parked last.
    pub(crate) watched: Option<TopicName>,
    /// Counts of what the history covered.
    pub tally: Tally,
}

impl World {
    /// An empty store on an empty disk. Relaxed, answers leave before the sync.
    pub fn new(relaxed: bool) -> Result<World, String> {
        let (disk, time) = (SimDisk::new(), SimTime::new());
        let driver = Driver::open(&disk, SIZES, time).map_err(|error| error.to_string())?;
        Ok(World {
            driver,
            oracle: Oracle::new(),
            disk,
            time,
            source: CommandSource::new(&DISK_VOCABULARY),
            checker: Checker::default(),
            sealed: 1,
            relaxed,
            fences: BTreeSet::new(),
            tickets: 0,
            watched: None,
            tally: Tally::new(),
        })
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    pub(crate) fn now(&self) -> Now {
        self.driver.now(self.time)
    }

    /// The disk, to let it fail.
    pub fn disk(&self) -> &SimDisk {
        &self.disk
    }

    /// The time, to move it.
    pub fn time(&mut self) -> &mut SimTime {
        &mut self.time
    }

    /// Lets one thing happen, and if the power went off by it, crashes and starts again.
    pub fn run(&mut self, op: &Op) -> Result<(), String> {
        match self.act(op) {
            Ok(()) => Ok(()),
            Err(Trouble::Off) => {
                self.count("power off within a call");
                self.crash(op.args)
            }
            Err(Trouble::Bug(what)) => Err(what),
        }
    }

    /// Lets one thing happen.
    pub fn act(&mut self, op: &Op) -> Result<(), Trouble> {
        let [a, b, ..] = op.args;
        let now = self.now();
        match op.kind {
            Kind::Tick => self.tick(now)?,
            Kind::Advance => self.advance(a, b),
            Kind::AdvanceTick => self.time.advance(u64::from(60 + a % 80), b % 4 == 0),
            Kind::AdvanceFar => self.time.advance(u64::from(900 + a % 400), b % 4 == 0),
            Kind::StepWall => self.time.step_wall(step_ms(a)),
            Kind::Seal => self.seal(),
            Kind::Write => self.driver.write(usize::from(1 + a % 3))?,
            Kind::Sync => self.driver.sync()?,
            Kind::Report => self.report(),
            Kind::Commit => self.commit()?,
            Kind::Freeze => self.freeze()?,
            Kind::FlushAction => {
                self.driver.flush_action()?;
            }
            Kind::Flush => self.flush()?,
            Kind::MergeBegin => self.begin_merge(a, b),
            Kind::MergeAction => {
                self.driver.merge_action()?;
            }
            Kind::Merge => {
                self.begin_merge(a, b);
                while self.driver.merge_action()? {}
            }
            Kind::Stop => self.stop(op.args)?,
            Kind::Crash => self.crash(op.args).map_err(Trouble::Bug)?,
            Kind::PowerOffIn => self.disk.crash_at_call(self.disk.calls() + 1 + u64::from(a % 24)),
            _ => self.ask(op, now)?,
        }
        Ok(())
    }

    /// A little, or to the very instant at which something ends: there things meet.
    fn advance(&mut self, a: u16, b: u16) {
        let wake_ms = self.oracle.machine.next_wake(self.now());
        let wake_ms = wake_ms.filter(|ms| a % 3 == 0 && (1..=60).contains(ms));
        self.time.advance(wake_ms.unwrap_or(u64::from(1 + a / 4 % 6)), b % 4 == 0);
    }

    pub(crate) fn seal(&mut self) {
        if let Some(batch) = self.driver.seal(self.now()) {
            self.sealed = batch;
            self.oracle.seal(batch);
        }
    }

    pub(crate) fn report(&mut self) {
        let reported = self.driver.report(self.relaxed);
        self.oracle.synced(reported);
        self.checker.set_durable(reported);
    }

    pub(crate) fn commit(&mut self) -> Result<(), Trouble> {
        self.seal();
        self.driver.write(usize::MAX)?;
        self.driver.sync()?;
        self.report();
        Ok(())
    }

    pub(crate) fn freeze(&mut self) -> Result<(), Trouble> {
        // The engine waits before a third.
        if self.driver.flushes >= 2 {
            return Ok(());
        }
        self.seal();
        let now = self.now();
        let (segment, batch) = self.driver.freeze(now)?;
        self.sealed = batch;
        self.oracle.checkpoint(segment, batch);
        self.count("freeze");
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> Result<(), Trouble> {
        self.freeze()?;
        self.commit()?;
        self.driver.flush_all()?;
        self.check_files().map_err(Trouble::Bug)
    }

    /// Once nothing is under way, no file is there that belongs to nobody.
    fn check_files(&mut self) -> Result<(), String> {
        if !self.driver.is_quiet() {
            return Ok(());
        }
        self.count("quiet");
        let manifest = dormouse_disk::manifest::read(&self.disk).map_err(|e| e.to_string())?;
        let manifest = manifest.ok_or("the manifest is gone")?;
        for name in self.disk.names() {
            let run = dormouse_disk::manifest::run_number(&name);
            let segment = dormouse_disk::journal::segment_number(&name);
            let checkpoint = dormouse_disk::checkpoint::checkpoint_number(&name);
            let stale = run.is_some_and(|no| manifest.runs.iter().all(|run| run.no != no))
                || segment.is_some_and(|no| no < manifest.first_segment)
                || checkpoint.is_some_and(|no| manifest.checkpoint != Some(no))
                || name.contains(".tmp");
            if stale {
                return Err(format!("{name} belongs to nobody: {:?}", self.disk.names()));
            }
        }
        Ok(())
    }

    fn begin_merge(&mut self, a: u16, b: u16) {
        let runs = self.driver.store.mergeable_runs();
        let chosen = if b % 8 == 0 || runs == 0 {
            None
        } else {
            let start = usize::from(a) % runs;
            Some(start..(start + 1 + usize::from(b) % 3).min(runs))
        };
        if self.driver.begin_merge(chosen) {
            self.count("merge");
        }
    }

    /// A clean stop and a start: nothing may be lost.
    fn stop(&mut self, args: [u16; 6]) -> Result<(), Trouble> {
        self.commit()?;
        let sealed = self.sealed;
        self.count("clean stop");
        self.crash(args).map_err(Trouble::Bug)?;
        let first = self.sealed;
        if first <= sealed {
            return Err(Trouble::Bug(format!("batch {sealed} was synced, start is {first}")));
        }
        Ok(())
    }

    fn crash(&mut self, args: [u16; 6]) -> Result<(), String> {
        let [a, b, c, d, e, _] = args;
        let mut rng = Rng::new(u64::from(b) << 16 | u64::from(c));
        let mode = CrashMode::ALL[usize::from(a % 4)];
        let reboot = mode != CrashMode::Kill && e % 2 == 0;
        // Some starts are cut short too, at any of their calls.
        let cuts: Vec<u64> = match d % 4 {
            0 => vec![u64::from(d / 4 % 10)],
            1 => vec![u64::from(d / 4 % 10), u64::from(d / 40 % 10)],
            _ => Vec::new(),
        };
        self.restart(mode, reboot.then_some(u64::from(e / 2 % 50)), &cuts, &mut rng)
    }

    /// Compares everything.
    pub fn check(&mut self, with_next: bool) -> Result<(), String> {
        let now = self.now();
        let known = self.known();
        if self.disk.is_off() {
            return Ok(());
        }
        compare(&mut self.driver.store, &mut self.oracle, now, &known)?;
        if with_next {
            compare_next(&mut self.driver.store, &mut self.oracle, now)?;
        }
        Ok(())
    }

    pub(crate) fn known(&self) -> Known {
        Known {
            ids: self.source.ids.clone(),
            keys: DISK_VOCABULARY.keys.iter().map(|key| key.as_bytes().to_vec()).collect(),
            priorities: DISK_VOCABULARY.priorities.iter().flatten().copied().collect(),
        }
    }

    /// Ticks that the present schedules have given.
    pub fn ticks_given(&self) -> u64 {
        ticks_given(&self.oracle.machine)
    }

    /// Every id ever seen.
    pub fn ids(&self) -> &[JobId] {
        &self.source.ids
    }
}

/// An hour forth or back, or a little.
fn step_ms(number: u16) -> i64 {
    match number % 4 {
        0 => 3_600_000,
        1 => -3_600_000,
        _ => i64::from(number / 4 % 40) - 20,
    }
}
