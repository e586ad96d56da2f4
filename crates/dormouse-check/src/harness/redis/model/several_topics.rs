//! A reserve over several topics while other servers put: a server knows what it has seen, so which
//! of the topics it takes from first, and how many, is its own affair. What it gives must be right
//! all the same.

use std::collections::HashMap;

use dormouse_core::backend::Ticket;
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::State;
use dormouse_core::op::*;
use dormouse_core::topic::TopicName;

use crate::harness::redis::model::lockstep::World;
use crate::oracle::answers::judge;

impl World<'_> {
    /// Takes what Redis gives, and lets the rules give the same.
    pub(crate) fn reserve_several(
        &mut self,
        server: usize,
        reserve: Reserve,
    ) -> Result<(), String> {
        let command = Command::Reserve(reserve.clone());
        let shown = format!("{command:?}");
        let (ttr_ms, session) = (reserve.ttr_ms, reserve.session);
        self.log.push(format!("server {server}: {shown}"));
        self.steps += 1;
        let answer = self.subject.ask(server, self.names.to_redis(command))?;
        let mut known = answer.clone();
        self.names.to_rules(&mut known)?;
        let (Ok(Reply::Jobs(redis)), Ok(Reply::Jobs(jobs))) = (answer, known) else {
            return Err(format!("{shown} is refused"));
        };
        if jobs.is_empty() || jobs.len() > reserve.max {
            return Err(format!("{shown} gives {} jobs", jobs.len()));
        }
        self.check_order(&jobs).map_err(|why| format!("{shown} gives {jobs:?}: {why}"))?;
        for (job, redis) in jobs.iter().zip(redis) {
            let ticket = Ticket::next();
            let command = Command::ReserveId(ReserveId { id: job.id, ttr_ms, session });
            self.oracle.step(ticket, command)?;
            for (_, rules) in self.oracle.answers() {
                let redis = Ok(Reply::Jobs(vec![redis.clone()]));
                judge(&mut self.names, None, &rules, redis)
                    .map_err(|why| format!("{shown}: {why}"))?;
                self.note(ticket, &rules);
            }
        }
        self.oracle.tick()?;
        self.settle()
    }

    /// Each topic gives its first ones, in their order, and only if it is not paused.
    fn check_order(&mut self, jobs: &[LeasedJob]) -> Result<(), String> {
        let mut ready: HashMap<TopicName, Vec<_>> = HashMap::new();
        for job in jobs {
            if !ready.contains_key(&job.topic) {
                if self.oracle.is_paused(&job.topic) {
                    return Err(format!("{} is paused", job.topic));
                }
                let mut all = self.oracle.all(&job.topic, State::Ready);
                all.sort_by_key(|view| (view.job.progress.priority, view.due_at, view.job.id));
                ready.insert(job.topic.clone(), all.iter().rev().map(|view| view.job.id).collect());
            }
            let next = ready.get_mut(&job.topic).and_then(Vec::pop);
            if next != Some(job.id) {
                return Err(format!("the next of {} is {next:?}", job.topic));
            }
        }
        Ok(())
    }

    /// Whether these topics have something to give.
    pub(crate) fn has_ready(&mut self, topics: &[TopicName]) -> bool {
        topics.iter().any(|topic| {
            !self.oracle.is_paused(topic) && !self.oracle.all(topic, State::Ready).is_empty()
        })
    }
}
