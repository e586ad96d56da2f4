//! A store on a simulated disk and the oracle beside it, through one history.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_core::backend::{Answer, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::fact::{Fact, Whereto};
use dormouse_core::job::JobId;
use dormouse_core::machine::When;
use dormouse_core::op::Reserve;
use dormouse_core::time::Now;
use dormouse_core::timeline::Timeline;
use dormouse_core::topic::TopicName;
use dormouse_disk::store::Sizes;

use super::asking::{KEYS, PRIORITIES, Seen};
use super::disk::{CrashMode, SimDisk};
use super::driver::{Driver, SimTime, Trouble};
use super::op::{Kind, Op};
use super::rng::Rng;
use crate::history::Checker;
use crate::model::{Known, Oracle, compare, compare_next};

/// Sizes at which the store does nothing by itself: the history decides.
pub const SIZES: Sizes = Sizes { memtable_bytes: 1 << 30, segment_bytes: 1 << 30, merge_runs: 3 };

/// Places each job has had are remembered up to so many.
const DUES_MAX: usize = 8;

/// How often something happened, to know what a campaign has covered.
pub type Tally = BTreeMap<&'static str, u64>;

/// See the module.
pub struct World {
    pub(super) driver: Driver,
    pub(super) oracle: Oracle,
    pub(super) disk: SimDisk,
    pub(super) time: SimTime,
    pub(super) seen: Seen,
    pub(super) checker: Checker,
    /// The last batch sealed.
    pub(super) sealed: u64,
    pub(super) relaxed: bool,
    fences: BTreeSet<u64>,
    tickets: u64,
    /// What the last one who began to wait waits for.
    watched: Option<TopicName>,
    /// What happened.
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
            seen: Seen::default(),
            checker: Checker::default(),
            sealed: 1,
            relaxed,
            fences: BTreeSet::new(),
            tickets: 0,
            watched: None,
            tally: Tally::new(),
        })
    }

    pub(super) fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    pub(super) fn now(&self) -> Now {
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

    fn ask(&mut self, op: &Op, now: Now) -> Result<(), Trouble> {
        let Some(mut command) = self.seen.command(op, now) else { return Ok(()) };
        if let Command::Reserve(reserve) = &mut command {
            self.wait_in_line(reserve);
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.do_command(now, ticket, command)?;
        if op.args[4] % 4 != 0 {
            self.tick(now)?;
        }
        Ok(())
    }

    /// In which order topics are looked at for those who wait depends on lower bounds that each
    /// timeline chooses for itself. So while somebody waits, others wait for the same topic only.
    fn wait_in_line(&mut self, reserve: &mut Reserve) {
        if reserve.wait_ms == 0 {
            return;
        }
        match &self.watched {
            Some(topic) if self.oracle.machine.waiting_requests() > 0 => {
                reserve.topics = vec![topic.clone()];
            }
            _ => self.watched = reserve.topics.first().cloned(),
        }
    }

    /// Gives a command to both, ticks and compares.
    pub fn command(&mut self, command: Command) -> Result<(), String> {
        self.tickets += 1;
        let (now, ticket) = (self.now(), Ticket(self.tickets));
        let done = self.do_command(now, ticket, command).and_then(|()| self.tick(now));
        done.map_err(|trouble| format!("{trouble:?}"))?;
        self.check(false)
    }

    /// Tokens that were given, in order.
    pub fn tokens(&self) -> &[dormouse_core::job::Token] {
        &self.seen.tokens
    }

    fn do_command(&mut self, now: Now, ticket: Ticket, command: Command) -> Result<(), Trouble> {
        let prompt_is_safe = self.may_be_prompt(&command);
        let facts = self.oracle.open_facts().len();
        let have = self.driver.step(now, ticket, command.clone())?;
        let stepped = self.oracle.step(now, ticket, command.clone());
        stepped.map_err(|error| Trouble::Bug(error.to_string()))?;
        self.checker.asked(ticket, &command);
        self.take_answers(now, have, facts, prompt_is_safe)?;
        if matches!(command, Command::Reserve(_) | Command::Lock(_)) {
            self.seen.tickets.push(ticket);
        }
        Ok(())
    }

    /// Whether the answer to taking a job by id may leave at once: its put is durable.
    fn may_be_prompt(&mut self, command: &Command) -> bool {
        let Command::ReserveId(reserve) = command else { return true };
        let found = self.oracle.machine.timeline_mut().find(reserve.id);
        found.is_ok_and(|found| found.is_none_or(|found| found.born <= self.driver.reported))
    }

    pub(super) fn tick(&mut self, now: Now) -> Result<(), Trouble> {
        let facts = self.oracle.open_facts().len();
        let have = self.driver.tick(now)?;
        self.oracle.tick(now).map_err(|error| Trouble::Bug(error.to_string()))?;
        self.take_answers(now, have, facts, true)
    }

    fn take_answers(
        &mut self,
        now: Now,
        have: Vec<(Ticket, Answer, When)>,
        facts: usize,
        prompt_is_safe: bool,
    ) -> Result<(), Trouble> {
        let want = self.oracle.answers();
        let bare = |answers: &[(Ticket, Answer, When)]| {
            answers.iter().map(|(ticket, answer, _)| (*ticket, answer.clone())).collect::<Vec<_>>()
        };
        if bare(&have) != bare(&want) {
            return Err(Trouble::Bug(format!("answers {have:?}, should be {want:?}")));
        }
        for ((_, answer, have), (.., want)) in have.iter().zip(&want) {
            // The store may know that a put is durable where the oracle does not say so.
            let fits = have == want || (*have == When::Prompt && prompt_is_safe);
            if !fits {
                let what = format!("{answer:?} leaves {have:?}, should {want:?}");
                return Err(Trouble::Bug(what));
            }
        }
        let learnt: Vec<Fact> = self.oracle.open_facts()[facts..].to_vec();
        learnt.iter().for_each(|fact| self.learn(fact));
        let batch = self.sealed + 1;
        for (ticket, answer, _) in have {
            self.learn_answer(&answer).map_err(Trouble::Bug)?;
            let checked = self.checker.answered(now, ticket, &answer, batch);
            checked.map_err(Trouble::Bug)?;
        }
        Ok(())
    }

    fn learn(&mut self, fact: &Fact) {
        let place = match fact {
            Fact::Put { at, .. } => *at,
            Fact::Move { to: Whereto::Rest(place), .. } if place.class.is_waiting() => *place,
            _ => return,
        };
        if !self.seen.ids.contains(&place.id) {
            self.seen.ids.push(place.id);
        }
        let dues = self.seen.dues.entry(place.id).or_default();
        if dues.len() < DUES_MAX {
            dues.push((place.class.clock(), place.due_at));
        }
    }

    fn learn_answer(&mut self, answer: &Answer) -> Result<(), String> {
        match answer {
            Ok(Reply::Jobs(jobs)) => {
                for job in jobs {
                    self.seen.tokens.push(job.token);
                    if !self.fences.insert(job.token.fence) {
                        return Err(format!("fence of token {} was given before", job.token));
                    }
                }
            }
            Ok(Reply::Session(session)) => self.seen.sessions.push(*session),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn seal(&mut self) {
        if let Some(batch) = self.driver.seal(self.now()) {
            self.sealed = batch;
            self.oracle.seal(batch);
        }
    }

    pub(super) fn report(&mut self) {
        let reported = self.driver.report(self.relaxed);
        self.oracle.synced(reported);
        self.checker.set_durable(reported);
    }

    pub(super) fn commit(&mut self) -> Result<(), Trouble> {
        self.seal();
        self.driver.write(usize::MAX)?;
        self.driver.sync()?;
        self.report();
        Ok(())
    }

    pub(super) fn freeze(&mut self) -> Result<(), Trouble> {
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

    pub(super) fn flush(&mut self) -> Result<(), Trouble> {
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
            let stale = run.is_some_and(|no| manifest.runs.iter().all(|run| run.no != no))
                || segment.is_some_and(|no| no < manifest.first_segment)
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
    fn stop(&mut self, args: [u16; 5]) -> Result<(), Trouble> {
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

    fn crash(&mut self, args: [u16; 5]) -> Result<(), String> {
        let [a, b, c, d, e] = args;
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

    pub(super) fn known(&self) -> Known {
        Known {
            ids: self.seen.ids.clone(),
            keys: KEYS.iter().map(|key| key.as_bytes().to_vec()).collect(),
            priorities: PRIORITIES.to_vec(),
        }
    }

    /// Every id ever seen.
    pub fn ids(&self) -> &[JobId] {
        &self.seen.ids
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
