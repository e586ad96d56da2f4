//! Two names for everything: the rules and Redis number jobs, leases, locks and sessions each in
//! their own way. Commands are made with the numbers of the rules, and answers are compared in
//! them.

use std::collections::HashMap;

use bytes::Bytes;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::*;

/// Added to a job's id it gives one that nobody has, in the same partition.
pub(crate) const NO_JOB: u64 = 1 << 30;
/// In a fence it gives one that nobody was given: of the rules, too large; to Redis, one less than
/// the real one.
pub(crate) const NO_FENCE: u64 = 1 << 39;

/// The names of both sides.
#[derive(Default)]
pub(crate) struct Names {
    jobs: HashMap<JobId, JobId>,
    jobs_back: HashMap<JobId, JobId>,
    fences: HashMap<Token, u64>,
    fences_back: HashMap<Token, u64>,
    newest: HashMap<JobId, u64>,
    /// The fences of a lock's last grant.
    locks: HashMap<Bytes, (u64, u64)>,
    sessions: HashMap<SessionId, SessionId>,
}

impl Names {
    /// Both made a job of the same put.
    pub(crate) fn pair_jobs(&mut self, rules: JobId, redis: JobId) -> Result<(), String> {
        self.jobs.insert(rules, redis);
        match self.jobs_back.insert(redis, rules) {
            None => Ok(()),
            Some(before) => Err(format!("id {redis} is given again; it was {before} before")),
        }
    }

    /// Both have this job as the newest of a schedule.
    pub(crate) fn pair_newest(&mut self, rules: JobId, redis: JobId) -> Result<(), String> {
        match self.jobs_back.get(&redis) {
            Some(known) if *known == rules => Ok(()),
            _ => self.pair_jobs(rules, redis),
        }
    }

    /// Both gave the same job.
    pub(crate) fn pair_tokens(&mut self, rules: Token, redis: Token) -> Result<(), String> {
        let newest = self.newest.entry(rules.id).or_default();
        if redis.fence <= *newest {
            return Err(format!("fence {} comes after {newest}", redis.fence));
        }
        *newest = redis.fence;
        self.fences.insert(rules, redis.fence);
        self.fences_back.insert(Token { id: rules.id, ..redis }, rules.fence);
        Ok(())
    }

    /// Both opened a session.
    pub(crate) fn pair_sessions(&mut self, rules: SessionId, redis: SessionId) {
        self.sessions.insert(rules, redis);
    }

    /// Both granted this lock, or prolonged it.
    pub(crate) fn pair_locks(
        &mut self,
        name: &Bytes,
        rules: u64,
        redis: u64,
    ) -> Result<(), String> {
        let (last_rules, last_redis) = self.locks.get(name).copied().unwrap_or_default();
        let fits = if rules == last_rules { redis == last_redis } else { redis > last_redis };
        if !fits {
            return Err(format!("fence {redis} of a lock comes after {last_redis}"));
        }
        self.locks.insert(name.clone(), (rules, redis));
        Ok(())
    }

    /// Redis' id of this job.
    pub(crate) fn job(&self, rules: JobId) -> JobId {
        let real = JobId(rules.0.wrapping_sub(NO_JOB));
        match (self.jobs.get(&rules), self.jobs.get(&real)) {
            (Some(id), _) => *id,
            (None, Some(id)) => JobId(id.0 + NO_JOB),
            (None, None) => rules,
        }
    }

    fn token(&self, rules: Token) -> Token {
        let real = Token { fence: rules.fence & !NO_FENCE, ..rules };
        let fence = match self.fences.get(&real) {
            Some(fence) if real == rules => *fence,
            Some(fence) => fence - 1,
            None => rules.fence,
        };
        Token { id: self.job(rules.id), fence }
    }

    fn target(&self, target: &mut Target) {
        if let Target::Id(id) = target {
            *id = self.job(*id);
        }
    }

    fn session(&self, session: &mut Option<SessionId>) {
        if let Some(id) = session {
            *id = self.sessions.get(id).copied().unwrap_or(*id);
        }
    }

    /// The same command to Redis.
    pub(crate) fn to_redis(&self, mut command: Command) -> Command {
        match &mut command {
            Command::Reserve(reserve) => self.session(&mut reserve.session),
            Command::ReserveId(reserve) => {
                reserve.id = self.job(reserve.id);
                self.session(&mut reserve.session);
            }
            Command::Ack(all) => all.iter_mut().for_each(|token| *token = self.token(*token)),
            Command::Chain(chain) => chain.token = self.token(chain.token),
            Command::Nack(all) => all.iter_mut().for_each(|one| one.token = self.token(one.token)),
            Command::Release(all) => {
                all.iter_mut().for_each(|one| one.token = self.token(one.token));
            }
            Command::Extend(all) => {
                all.iter_mut().for_each(|one| one.token = self.token(one.token));
            }
            Command::Kill(all) => all.iter_mut().for_each(|one| match &mut one.target {
                KillTarget::Token(token) => *token = self.token(*token),
                KillTarget::Resting(target) => self.target(target),
            }),
            Command::Cancel(all) => all.iter_mut().for_each(|one| self.target(&mut one.target)),
            Command::Reschedule(all) => all.iter_mut().for_each(|one| self.target(&mut one.target)),
            Command::Revive(all) | Command::Get(all) => {
                all.iter_mut().for_each(|target| self.target(target));
            }
            Command::BreakLock(BreakLock { name, fence: Some(fence) }) => {
                let last = self.locks.get(name).filter(|(rules, _)| rules == fence);
                // Nobody has 0.
                *fence = last.map_or(0, |(_, redis)| *redis);
            }
            Command::TopicsOf(all) => all.iter_mut().for_each(|id| *id = self.job(*id)),
            Command::CloseSession(session) => {
                *session = self.sessions.get(session).copied().unwrap_or(*session);
            }
            _ => {}
        }
        command
    }

    fn back(&self, id: &mut JobId) -> Result<(), String> {
        let rules = self.jobs_back.get(id).ok_or_else(|| format!("nobody knows job {id}"))?;
        *id = *rules;
        Ok(())
    }

    fn view_back(&self, view: &mut JobView) -> Result<(), String> {
        self.back(&mut view.job.id)?;
        let progress = &mut view.job.progress;
        if progress.fence == 0 {
            return Ok(());
        }
        let token = Token { id: view.job.id, fence: progress.fence };
        let fence = self.fences_back.get(&token);
        progress.fence = *fence.ok_or_else(|| format!("nobody was given fence {token}"))?;
        Ok(())
    }

    fn error_back(&self, error: &mut Error) -> Result<(), String> {
        match &mut error.job {
            Some((id, _)) => self.back(id),
            None => Ok(()),
        }
    }

    /// The jobs of an answer in the numbers of the rules; tokens of leases are left as they are.
    pub(crate) fn to_rules(&self, answer: &mut Result<Reply, Error>) -> Result<(), String> {
        let reply = match answer {
            Ok(reply) => reply,
            Err(error) => return self.error_back(error),
        };
        match reply {
            Reply::Put(items) => {
                items.iter_mut().try_for_each(|item| self.item_back(item, |put| &mut put.id))
            }
            Reply::Chain(chain) => chain.puts.iter_mut().try_for_each(|put| self.back(&mut put.id)),
            Reply::Jobs(jobs) => jobs.iter_mut().try_for_each(|job| {
                self.back(&mut job.id)?;
                self.back(&mut job.token.id)
            }),
            Reply::Changed(items) => {
                items.iter_mut().try_for_each(|item| self.item_back(item, |item| &mut item.id))
            }
            Reply::Ended(items) => {
                items.iter_mut().try_for_each(|item| self.error_of(item.as_mut().err()))
            }
            Reply::Extended(items) => {
                items.iter_mut().try_for_each(|item| self.error_of(item.as_mut().err()))
            }
            Reply::Views(items) => items.iter_mut().try_for_each(|item| match item {
                Ok(view) => self.view_back(view),
                Err(error) => self.error_back(error),
            }),
            Reply::View(view) => view.iter_mut().try_for_each(|view| self.view_back(view)),
            Reply::Locks(page) => {
                for lock in &mut page.locks {
                    let last = self.locks.get(&lock.name).filter(|(_, redis)| *redis == lock.fence);
                    let nobody = || format!("nobody was given fence {} of a lock", lock.fence);
                    lock.fence = last.ok_or_else(nobody)?.0;
                }
                Ok(())
            }
            Reply::Schedule(view) => {
                view.last.iter_mut().try_for_each(|last| self.back(&mut last.id))
            }
            Reply::Page(page) => page.jobs.iter_mut().try_for_each(|view| self.view_back(view)),
            _ => Ok(()),
        }
    }

    fn error_of(&self, error: Option<&mut Error>) -> Result<(), String> {
        error.map_or(Ok(()), |error| self.error_back(error))
    }

    fn item_back<T>(
        &self,
        item: &mut Result<T, Error>,
        id: impl FnOnce(&mut T) -> &mut JobId,
    ) -> Result<(), String> {
        match item {
            Ok(item) => self.back(id(item)),
            Err(error) => self.error_back(error),
        }
    }
}
