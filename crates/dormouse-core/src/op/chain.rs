//! chain: ack a job and put others, all or nothing.

use bytes::Bytes;

use crate::Set;
use crate::command::{Command, Reply, operation};
use crate::error::{Error, Fatal};
use crate::job::{JobId, Token};
use crate::limits::CHAIN_PUTS_MAX;
use crate::machine::{KeyOwner, Machine, Output, PortionBudget, Rule, Stop, TokenState};
use crate::op::put::PutContext;
use crate::op::{EndReply, Put, PutReply, PutRoom, RoomNeed};
use crate::place::{Class, Place};
use crate::refusal::lease_lost;
use crate::time::Now;
use crate::timeline::Timeline;
use crate::topic::TopicName;

/// Finish a leased job, and put those that come after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Proof of the lease.
    pub token: Token,
    /// The jobs to add, 1 to `limits::CHAIN_PUTS_MAX`.
    pub puts: Vec<Put>,
}

/// The answer to a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainReply {
    /// What became of the job: done; or gone, as for a chain that is sent again. Then nothing was
    /// put.
    pub end: EndReply,
    /// Per put.
    pub puts: Vec<PutReply>,
}

operation! {
    Chain => ChainReply,
        request => Command::Chain(request), Reply::Chain(reply) => Ok(reply);
}

impl Chain {
    /// Checks what can be told without the store.
    pub fn check(&self, now: Now) -> Result<(), Error> {
        if !(1..=CHAIN_PUTS_MAX).contains(&self.puts.len()) {
            return Err(Error::invalid(format!(
                "the chain has {} puts; give 1 to {CHAIN_PUTS_MAX}, or ack without any",
                self.puts.len()
            )));
        }
        let mut keys: Set<(&TopicName, &Bytes)> = Set::default();
        for (index, put) in self.puts.iter().enumerate() {
            put.check(now).map_err(|error| refused_put(index, error))?;
            if let Some(key) = &put.key
                && !keys.insert((&put.topic, key))
            {
                let error = Error::invalid("an earlier put of the chain has the same key");
                return Err(refused_put(index, error));
            }
        }
        Ok(())
    }
}

/// The refusal of a chain for one of its puts, which it names.
pub fn refused_put(index: usize, mut error: Error) -> Error {
    error.text = format!("put {} of the chain: {}; nothing was done", index + 1, error.text).into();
    error
}

/// The room that the puts of a chain need in one topic, after the ack.
struct TopicNeed {
    topic: TopicName,
    need: RoomNeed,
}

/// The job that a chain acks.
struct Acked {
    id: JobId,
    /// Its key stays taken.
    hold: Option<Place>,
}

impl Acked {
    /// Who has its key after the ack.
    fn leaves(&self) -> KeyOwner {
        self.hold.map_or(KeyOwner::Nobody(None), KeyOwner::Held)
    }
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn chain(&mut self, now: Now, chain: Chain, out: &mut Output) -> Rule<Reply> {
        chain.check(now)?;
        let ending = match self.token_state(chain.token)? {
            TokenState::Gone => {
                let reply = ChainReply { end: EndReply::Gone, puts: Vec::new() };
                return Ok(Reply::Chain(reply));
            }
            TokenState::Lost(_) => return Err(lease_lost(chain.token).into()),
            TokenState::Leased(lease) => (lease.topic, lease.job.key_ttl_ms(), lease.job.bytes()),
            TokenState::Lapsed(resting) => {
                let content = &resting.job.content;
                (resting.place.topic, content.key_ttl_ms, u64::from(resting.job.progress.bytes))
            }
        };
        let (topic, key_ttl_ms, bytes) = ending;
        let name = self.topics.get(topic).map(|value| value.name.clone());
        let mut needs: Vec<TopicNeed> = Vec::new();
        if let Some(topic) = name {
            let need = RoomNeed { left_jobs: 1, left_bytes: bytes, ..RoomNeed::default() };
            needs.push(TopicNeed { topic, need });
        }
        // One without a key has no hold either, and owns no key that a put could meet.
        let due_at = now.after(key_ttl_ms);
        let hold = Place { topic, class: Class::HOLD, due_at, id: chain.token.id };
        let acked = Acked { id: chain.token.id, hold: (key_ttl_ms > 0).then_some(hold) };
        let mut read_bytes = 0;
        for (index, put) in chain.puts.iter().enumerate() {
            self.check_chained(now, put, &acked, &mut read_bytes, &mut needs).map_err(|stop| {
                match stop {
                    Stop::Refused(error) => Stop::Refused(refused_put(index, error)),
                    fatal @ Stop::Fatal(_) => fatal,
                }
            })?;
        }
        self.check_births(&needs)?;
        self.commit_chain(now, chain, out)
    }

    /// Whether a put will be done after the ack and the puts before it.
    fn check_chained(
        &mut self,
        now: Now,
        put: &Put,
        acked: &Acked,
        read_bytes: &mut u64,
        needs: &mut Vec<TopicNeed>,
    ) -> Rule<()> {
        let PutContext { owner, due_wall_ms, .. } = self.put_context(now, put, read_bytes)?;
        let owner = match owner {
            KeyOwner::Leased(id) if id == acked.id => acked.leaves(),
            KeyOwner::Resting(resting) if resting.job.id == acked.id => acked.leaves(),
            owner => owner,
        };
        let resolution = self.resolve_conflict(now, put.on_conflict, due_wall_ms, owner)?;
        let Some(left_bytes) = resolution.replaced_bytes() else { return Ok(()) };
        let more_jobs = u64::from(left_bytes.is_none());
        let known = needs.iter().position(|one| one.topic == put.topic);
        let index = known.unwrap_or_else(|| {
            needs.push(TopicNeed { topic: put.topic.clone(), need: RoomNeed::default() });
            needs.len() - 1
        });
        let need = &mut needs[index].need;
        need.jobs += more_jobs;
        need.bytes += put.bytes();
        need.left_bytes += left_bytes.unwrap_or(0);
        let need = *need;
        Ok(self.check_room_of(&put.topic, need)?)
    }

    /// Whether the topics of a chain can be born.
    fn check_births(&mut self, needs: &[TopicNeed]) -> Result<(), Error> {
        let unknown: Vec<_> =
            needs.iter().filter(|one| self.topics.find(&one.topic).is_none()).collect();
        match unknown.first() {
            Some(first) => self.check_birth(&first.topic, unknown.len()),
            None => Ok(()),
        }
    }

    /// Everything was checked: the facts of the ack and of all puts follow each other, in one
    /// batch.
    fn commit_chain(&mut self, now: Now, chain: Chain, out: &mut Output) -> Rule<Reply> {
        let end = self.ack_one(now, chain.token, &mut PortionBudget::new(), out)?;
        let mut puts = Vec::with_capacity(chain.puts.len());
        for put in chain.puts {
            // The bytes that are read were bounded above; the acked job, which may be done and have
            // a key now, is one more.
            let reply = self.put_checked(now, put, PutRoom::Checked, &mut 0, out);
            puts.push(reply.map_err(|stop| match stop {
                // The ack is done already: going on would keep a part of the chain.
                Stop::Refused(error) => Stop::Fatal(Fatal::new(error.text)),
                fatal @ Stop::Fatal(_) => fatal,
            })?);
        }
        Ok(Reply::Chain(ChainReply { end, puts }))
    }
}
