//! The jobs and topics that a command names, and whether it may wait.

use super::Command;
use crate::job::JobId;
use crate::op::{KillTarget, Target};
use crate::topic::TopicName;

/// A job or a topic as a command names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'c> {
    /// A job, by id or token.
    Job(JobId),
    /// A topic: where a job is put or reserved, where a key is looked up, or the topic itself.
    Topic(&'c TopicName),
}

impl<'c> From<&'c Target> for Name<'c> {
    fn from(target: &'c Target) -> Name<'c> {
        match target {
            Target::Id(id) => Name::Job(*id),
            Target::Key { topic, .. } => Name::Topic(topic),
        }
    }
}

impl Command {
    /// Its name, as it is written in logs.
    pub fn verb(&self) -> &'static str {
        match self {
            Command::Put(_) => "put",
            Command::Reserve(_) => "reserve",
            Command::ReserveId(_) => "reserve_id",
            Command::Ack(_) => "ack",
            Command::Chain(_) => "chain",
            Command::Nack(_) => "nack",
            Command::Release(_) => "release",
            Command::ReleaseTopic(_) => "release_topic",
            Command::Extend(_) => "extend",
            Command::Kill(_) => "kill",
            Command::Cancel(_) => "cancel",
            Command::Reschedule(_) => "reschedule",
            Command::Revive(_) => "revive",
            Command::ReviveTopic(_) => "revive_topic",
            Command::Kick(_) => "kick",
            Command::Get(_) => "get",
            Command::TopicsOf(_) => "topics_of",
            Command::Peek(_) => "peek",
            Command::List(_) => "list",
            Command::Topics(_) => "topics",
            Command::SetTopic(_) => "set_topic",
            Command::SetPush(_) => "set_push",
            Command::GetPush(_) => "get_push",
            Command::Pushes(_) => "pushes",
            Command::Stats(_) => "stats",
            Command::Pause(_) => "pause",
            Command::Resume(_) => "resume",
            Command::Purge(_) => "purge",
            Command::Forecast(_) => "forecast",
            Command::OpenSession => "open_session",
            Command::CloseSession(_) => "close_session",
            Command::Lock(_) => "lock",
            Command::RenewLock(_) => "renew_lock",
            Command::Unlock(_) => "unlock",
            Command::BreakLock(_) => "break_lock",
            Command::Locks(_) => "locks",
            Command::PutSchedule(_) => "put_schedule",
            Command::GetSchedule(_) => "get_schedule",
            Command::Schedules(_) => "schedules",
            Command::RemoveSchedule(_) => "remove_schedule",
            Command::ChangeSchedule(_) => "change_schedule",
            Command::RunSchedule(_) => "run_schedule",
            Command::Withdraw(_) => "withdraw",
        }
    }

    /// Whether a backend may hold the answer back until something happens.
    pub fn may_wait(&self) -> bool {
        match self {
            Command::Reserve(reserve) => reserve.wait_ms > 0,
            Command::Lock(lock) => lock.wait_ms > 0,
            _ => false,
        }
    }

    /// Visits every job and topic it names, in order, repetitions included.
    pub fn names<'c>(&'c self, mut visit: impl FnMut(Name<'c>)) {
        match self {
            Command::Put(puts) => puts.iter().for_each(|put| visit(Name::Topic(&put.topic))),
            Command::Reserve(reserve) => reserve.topics.iter().map(Name::Topic).for_each(visit),
            Command::ReserveId(reserve) => visit(Name::Job(reserve.id)),
            Command::Ack(tokens) => tokens.iter().for_each(|token| visit(Name::Job(token.id))),
            Command::Chain(chain) => {
                visit(Name::Job(chain.token.id));
                chain.puts.iter().for_each(|put| visit(Name::Topic(&put.topic)));
            }
            Command::Nack(items) => items.iter().for_each(|item| visit(Name::Job(item.token.id))),
            Command::Release(items) => {
                items.iter().for_each(|item| visit(Name::Job(item.token.id)));
            }
            Command::Extend(items) => items.iter().for_each(|item| visit(Name::Job(item.token.id))),
            Command::Kill(items) => items.iter().for_each(|item| match &item.target {
                KillTarget::Token(token) => visit(Name::Job(token.id)),
                KillTarget::Resting(target) => visit(target.into()),
            }),
            Command::Cancel(items) => items.iter().for_each(|item| visit((&item.target).into())),
            Command::Reschedule(items) => {
                items.iter().for_each(|item| visit((&item.target).into()));
            }
            Command::Revive(targets) | Command::Get(targets) => {
                targets.iter().map(Name::from).for_each(visit);
            }
            Command::TopicsOf(ids) => ids.iter().for_each(|id| visit(Name::Job(*id))),
            Command::ReviveTopic(revive) => visit(Name::Topic(&revive.topic)),
            Command::ReleaseTopic(release) => visit(Name::Topic(&release.topic)),
            Command::Kick(kick) => visit(Name::Topic(&kick.topic)),
            Command::Peek(peek) => visit(Name::Topic(&peek.topic)),
            Command::List(list) => visit(Name::Topic(&list.topic)),
            Command::SetTopic(set) => visit(Name::Topic(&set.topic)),
            Command::SetPush(set) => visit(Name::Topic(&set.topic)),
            Command::Stats(stats) => stats.topic.iter().map(Name::Topic).for_each(visit),
            Command::Pause(pause) => visit(Name::Topic(&pause.topic)),
            Command::Resume(topic) | Command::GetPush(topic) => visit(Name::Topic(topic)),
            Command::Purge(purge) => visit(Name::Topic(&purge.topic)),
            Command::Forecast(forecast) => visit(Name::Topic(&forecast.topic)),
            Command::PutSchedule(put) => visit(Name::Topic(&put.topic)),
            Command::GetSchedule(get) => visit(Name::Topic(&get.topic)),
            Command::Schedules(page) => visit(Name::Topic(&page.topic)),
            Command::RemoveSchedule(remove) => visit(Name::Topic(&remove.topic)),
            Command::ChangeSchedule(change) => visit(Name::Topic(&change.topic)),
            Command::RunSchedule(run) => visit(Name::Topic(&run.topic)),
            Command::Topics(_)
            | Command::Pushes(_)
            | Command::OpenSession
            | Command::CloseSession(_)
            | Command::Lock(_)
            | Command::RenewLock(_)
            | Command::Unlock(_)
            | Command::BreakLock(_)
            | Command::Locks(_)
            | Command::Withdraw(_) => {}
        }
    }

    /// Visits the id of every job that it names by id or token, to change it.
    pub fn ids_mut(&mut self, mut visit: impl FnMut(&mut JobId)) {
        let mut visit_target = |target: &mut Target| match target {
            Target::Id(id) => visit(id),
            Target::Key { .. } => {}
        };
        match self {
            Command::Cancel(items) => {
                items.iter_mut().for_each(|item| visit_target(&mut item.target));
            }
            Command::Reschedule(items) => {
                items.iter_mut().for_each(|item| visit_target(&mut item.target));
            }
            Command::Revive(targets) | Command::Get(targets) => {
                targets.iter_mut().for_each(visit_target);
            }
            Command::Kill(items) => items.iter_mut().for_each(|item| match &mut item.target {
                KillTarget::Token(token) => visit(&mut token.id),
                KillTarget::Resting(Target::Id(id)) => visit(id),
                KillTarget::Resting(Target::Key { .. }) => {}
            }),
            Command::Ack(tokens) => tokens.iter_mut().for_each(|token| visit(&mut token.id)),
            Command::Chain(chain) => visit(&mut chain.token.id),
            Command::Nack(items) => items.iter_mut().for_each(|item| visit(&mut item.token.id)),
            Command::Release(items) => items.iter_mut().for_each(|item| visit(&mut item.token.id)),
            Command::Extend(items) => items.iter_mut().for_each(|item| visit(&mut item.token.id)),
            Command::TopicsOf(ids) => ids.iter_mut().for_each(visit),
            Command::ReserveId(reserve) => visit(&mut reserve.id),
            _ => {}
        }
    }
}
