//! A schedule while the primary of its partition dies: every tick is accounted for, none is given
//! twice, at every level. The job of a tick and what the schedule knows of it are one write, so a
//! failover loses both or neither.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use dormouse_check::conformance::client::Client;
use dormouse_check::harness::redis::RedisCluster;
use dormouse_core::command::{Command, Reply};
use dormouse_core::op::{
    ChangeSchedule, GetSchedule, LeasedJob, PutSchedule, Reserve, ScheduleChange, ScheduleView,
};
use dormouse_core::schedule::{Catchup, Overlap, ScheduleName, Template};
use dormouse_core::topic::TopicName;
use dormouse_redis::Level;

use crate::failover::fail_over;
use crate::{Took, open, work};

const EVERY_MS: u64 = 100;
/// Generous: the machine may be busy.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

struct Ticking {
    clients: [Client; 2],
    topic: TopicName,
    name: ScheduleName,
}

impl Ticking {
    /// Asks until it is answered: a primary may be on its way.
    fn ask(&self, server: usize, command: &Command) -> Reply {
        let began = Instant::now();
        loop {
            match self.clients[server].ask(command.clone()) {
                Ok(reply) => return reply,
                Err(error) if began.elapsed() > ANSWERED_WITHIN => panic!("{command:?}: {error}"),
                Err(_) => work(20),
            }
        }
    }

    fn look(&self) -> ScheduleView {
        let (topic, name) = (self.topic.clone(), self.name.clone());
        match self.ask(0, &Command::GetSchedule(GetSchedule { topic, name })) {
            Reply::Schedule(view) => *view,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until so many ticks more were given.
    fn await_ticks(&self, more: u64) {
        let (before, began) = (self.look().counts.given, Instant::now());
        while self.look().counts.given < before + more {
            assert!(began.elapsed() < ANSWERED_WITHIN, "no tick comes");
            work(20);
        }
    }

    /// All jobs there are. None was taken before, so none is missing but by a loss.
    fn take_all(&self) -> Vec<LeasedJob> {
        let mut jobs = Vec::new();
        loop {
            let topics = vec![self.topic.clone()];
            let ttr_ms = Some(600_000);
            let reserve = Reserve { topics, max: 100, wait_ms: 0, ttr_ms, session: None };
            match self.ask(1, &Command::Reserve(reserve)) {
                Reply::Jobs(more) if more.is_empty() => return jobs,
                Reply::Jobs(more) => jobs.extend(more),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// `given + missed + overlapped + skipped` is the number of ticks that passed.
fn check_law(cluster: &mut RedisCluster, level: Level, catchup: Catchup) {
    let url = cluster.url();
    let backend = || open(&url, level, Some(1));
    let topic = format!("ticks-{catchup:?}-{}", level == Level::Applied);
    let (topic, name) = (TopicName::new(&topic).unwrap(), ScheduleName::new("s").unwrap());
    let clients = [backend(), backend()].map(Client::new);
    let ticking = Ticking { clients, topic: topic.clone(), name: name.clone() };
    let template = Template { body: "tick".into(), ..Template::default() };
    let put = PutSchedule {
        every_ms: Some(EVERY_MS as i64),
        overlap: Some(Overlap::Allow),
        catchup: Some(catchup),
        ..PutSchedule::new(topic.clone(), name.clone(), template)
    };
    ticking.ask(0, &Command::PutSchedule(Box::new(put)));
    ticking.await_ticks(3);
    let slot = cluster.slot_of(&format!("{{{topic}/0}}"));
    fail_over(cluster, slot);
    ticking.await_ticks(3);
    let change = ScheduleChange::Pause { for_ms: None };
    let pause = Command::ChangeSchedule(ChangeSchedule { topic, name, change });
    let Reply::Schedule(view) = ticking.ask(0, &pause) else { panic!("it is paused") };
    let jobs = ticking.take_all();
    let ticks: Vec<u64> = jobs.iter().map(|job| job.tick.as_ref().unwrap().tick_ms).collect();
    let distinct: BTreeSet<u64> = ticks.iter().copied().collect();
    assert_eq!(distinct.len(), ticks.len(), "a tick is given twice: {ticks:?}");
    assert_eq!(view.counts.given, jobs.len() as u64, "{view:?}");
    let last_ms = *distinct.last().unwrap();
    let passed = (last_ms - view.created_at) / EVERY_MS;
    eprintln!("ticks, failover, {level:?}, {catchup:?}: {passed} passed, {:?}", view.counts);
    assert_eq!(view.counts.total(), passed, "up to the last job: {view:?}");
    let missed: u64 = jobs.iter().map(|job| job.tick.as_ref().unwrap().missed).sum();
    assert_eq!(missed + jobs.len() as u64, passed, "jobs tell of all ticks before them");
    if catchup == Catchup::All {
        assert_eq!(missed, 0, "each tick has its job: {view:?}");
    }
}

#[test]
fn a_real_process_failover_accounts_for_every_tick() {
    let _took = Took::new("failover of ticks");
    let mut cluster = RedisCluster::start(3, 1);
    check_law(&mut cluster, Level::Replicated(1), Catchup::All);
    check_law(&mut cluster, Level::Applied, Catchup::One);
}
