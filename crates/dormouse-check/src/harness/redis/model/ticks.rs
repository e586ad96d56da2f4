//! Schedules in lockstep. The rules give a tick when its instant comes; on Redis a server does,
//! soon. So after every step the schedules are looked at, which lets Redis do what is due, and
//! compared; their newest jobs are the same job.

use dormouse_core::command::{Command, Reply};
use dormouse_core::op::*;
use dormouse_core::schedule::ScheduleName;
use dormouse_core::topic::{Settings, TopicName};

use crate::harness::redis::model::lockstep::World;
use crate::oracle::answers::judge;

/// While there are schedules, every tick is a step: time passes in small portions.
const BOUNDED_MS: u64 = 2_000;

/// A topic has one schedule, so that the order of its jobs does not depend on chance.
fn name() -> ScheduleName {
    ScheduleName::new("s").expect("a good name")
}

fn get(topic: &TopicName) -> GetSchedule {
    GetSchedule { topic: topic.clone(), name: name() }
}

impl World<'_> {
    pub(crate) fn bounded_ms(&self, ms: u64) -> u64 {
        if self.scheduled.is_empty() { ms } else { ms.min(BOUNDED_MS) }
    }

    /// Changes what cannot be compared while there are schedules; false = it is left out.
    pub(crate) fn fit_to_schedules(
        &mut self,
        server: usize,
        command: &mut Command,
    ) -> Result<bool, String> {
        match command {
            Command::PutSchedule(put) => {
                if !self.parked.is_empty() {
                    return Ok(false);
                }
                put.name = name();
                put.template.expires_after_ms = None;
                if self.scheduled.insert(put.topic.clone()) {
                    let (topic, settings) = (put.topic.clone(), Settings::default());
                    self.ask(server, vec![Command::from(SetTopic { topic, settings })])?;
                }
            }
            Command::Schedules(page) => *command = Command::GetSchedule(get(&page.topic)),
            Command::GetSchedule(get) => get.name = name(),
            Command::RemoveSchedule(remove) => remove.name = name(),
            Command::ChangeSchedule(change) => change.name = name(),
            Command::RunSchedule(run) => run.name = name(),
            Command::Reserve(reserve) if !self.scheduled.is_empty() => reserve.wait_ms = 0,
            Command::SetTopic(set) if self.scheduled.contains(&set.topic) => {
                (set.settings.jobs_max, set.settings.bytes_max) = (None, None);
                set.settings.expires_after_ms = None;
            }
            _ => {}
        }
        Ok(true)
    }

    /// Compares all schedules, after Redis has done what is due.
    pub(crate) fn settle_schedules(&mut self) -> Result<(), String> {
        for topic in self.scheduled.clone() {
            let rules = self.oracle.schedule(get(&topic));
            let redis = self.subject.ask(0, Command::GetSchedule(get(&topic)))?;
            match (rules, redis) {
                (Some(rules), redis) => {
                    let rules = Ok(Reply::Schedule(Box::new(rules)));
                    judge(&mut self.names, None, &rules, redis)?;
                }
                (None, Err(_)) => {}
                (None, Ok(redis)) => return Err(format!("Redis still has {redis:?}")),
            }
        }
        Ok(())
    }

    /// All schedules go.
    pub(crate) fn remove_schedules(&mut self) -> Result<(), String> {
        for topic in self.scheduled.clone() {
            let remove = RemoveSchedule { topic, name: name(), cancel_job: false };
            self.command(0, Command::RemoveSchedule(remove))?;
        }
        self.scheduled.clear();
        Ok(())
    }
}
