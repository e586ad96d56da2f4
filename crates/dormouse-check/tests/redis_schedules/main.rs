//! Schedules on a real Redis: the verbs, what ends the wait for a job, and several servers that
//! meet the same ticks.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod servers;
mod verbs;
mod waits;

use std::sync::Arc;

use dormouse_check::conformance::client::Client;
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::State;
use dormouse_core::op::{
    GetSchedule, JobView, LeasedJob, List, ListRange, PutSchedule, PutScheduleReply, Reserve,
    ScheduleView,
};
use dormouse_core::schedule::{Overlap, ScheduleName, Template};
use dormouse_core::topic::TopicName;
use dormouse_redis::{ManualClock, Options, RedisBackend};

/// A Redis whose time stands still, and a Dormouse server on it.
struct Rig {
    client: Client,
    clock: ManualClock,
    _redis: RedisServer,
}

impl Rig {
    fn start(partitions: u16) -> Rig {
        let redis = RedisServer::start(RedisConfig::default());
        let clock = ManualClock::new(1_767_225_600_000);
        let options = Options {
            partitions: Some(partitions),
            clock: Some(clock.clone()),
            ..Options::default()
        };
        let backend = RedisBackend::open(&redis.url(), options).unwrap();
        Rig { client: Client::new(Arc::new(backend)), clock, _redis: redis }
    }

    fn ask(&self, command: Command) -> Answer {
        self.client.ask(command)
    }

    fn put(&self, put: PutSchedule) -> PutScheduleReply {
        match self.ask(Command::PutSchedule(Box::new(put))) {
            Ok(Reply::PutSchedule(reply)) => *reply,
            other => panic!("{other:?}"),
        }
    }

    /// The schedule; what was due is done then.
    fn get(&self, name: &str) -> ScheduleView {
        match self.ask(get(name)) {
            Ok(Reply::Schedule(view)) => *view,
            other => panic!("{other:?}"),
        }
    }

    fn jobs(&self, state: State) -> Vec<JobView> {
        let list =
            List { topic: topic(), state, cursor: None, limit: 1_000, range: ListRange::default() };
        match self.ask(Command::List(list)) {
            Ok(Reply::Page(page)) => page.jobs,
            other => panic!("{other:?}"),
        }
    }

    fn reserve(&self, ttr_ms: i64) -> Vec<LeasedJob> {
        reserve(&self.client, 1, 0, Some(ttr_ms))
    }

    /// Time passes, and the schedule does what is due.
    fn pass(&self, ms: u64, name: &str) -> ScheduleView {
        self.clock.advance(ms);
        self.get(name)
    }
}

fn reserve(client: &Client, max: usize, wait_ms: i64, ttr_ms: Option<i64>) -> Vec<LeasedJob> {
    let topics = vec![topic()];
    match client.ask(Command::Reserve(Reserve { topics, max, wait_ms, ttr_ms, session: None })) {
        Ok(Reply::Jobs(jobs)) => jobs,
        other => panic!("{other:?}"),
    }
}

fn topic() -> TopicName {
    TopicName::new("t").unwrap()
}

fn name(text: &str) -> ScheduleName {
    ScheduleName::new(text).unwrap()
}

fn get(text: &str) -> Command {
    Command::GetSchedule(GetSchedule { topic: topic(), name: name(text) })
}

/// A schedule that ticks every 100 ms.
fn every(text: &str, overlap: Overlap) -> PutSchedule {
    let template = Template { body: "tick".into(), ..Template::default() };
    let put = PutSchedule::new(topic(), name(text), template);
    PutSchedule { every_ms: Some(100), overlap: Some(overlap), ..put }
}
