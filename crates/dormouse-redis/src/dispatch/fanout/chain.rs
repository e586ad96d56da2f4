//! chain: acks a job and puts others. What goes to the partition of the job is one script, all or
//! nothing. Other partitions are other slots: they are asked first whether they would refuse
//! anything, then get their puts, then that script acks. So the job is never acked without the
//! puts. If something fails in between, the same chain can be sent again: jobs that have been put
//! are found by their keys, and those without one get a key for this.

use std::rc::Rc;

use bytes::Bytes;
use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::Error;
use dormouse_core::event::EventKind;
use dormouse_core::job::Token;
use dormouse_core::op::{Chain, ChainReply, EndReply, Put, PutOutcome, PutReply, refused_put};
use dormouse_core::refusal::lease_lost;

use super::Fanout;
use super::scatter::{Routed, Scatter};
use crate::clock::ANY_TIME;
use crate::codec::put;
use crate::events::EventDetails;
use crate::limits::CHAIN_KEY_TTL_MS;
use crate::partition::{Effect, Partition, PartitionRequest, PerItem, RawReply, registered_anew};
use crate::scheduler::{BATCH_BYTES_MAX, BATCH_JOBS_MAX};
use crate::wire::record::CHAIN_KEY_PREFIX;
use crate::wire::{Op, Reader, Writer, codes, flag, malformed};

/// Where the records are among the arguments of a put, every third.
const RECORD_AT: usize = 3;

/// A put, its index in the chain, and its partition.
struct Link {
    index: usize,
    put: Put,
    partition: Rc<Partition>,
}

/// What a script says of its part of a chain.
enum Part {
    /// Its puts, in order; none if it only looked.
    Done(Vec<PutReply>),
    Gone,
    Lost,
}

impl Fanout<'_> {
    pub(super) async fn chain(self, chain: Chain) -> Answer {
        chain.check(ANY_TIME)?;
        let (token, count) = (chain.token, chain.puts.len());
        let Some(home) = self.dispatcher.partition_of(token.id) else { return Ok(gone()) };
        let (links, others) = self.links(chain, &home)?;
        let mut puts: Vec<Option<PutReply>> = vec![None; count];
        if !others.is_empty() {
            match self.look(&home, token, &links, &others).await? {
                Part::Done(_) => {}
                Part::Gone => return self.end_chain(token, gone()),
                Part::Lost => return Err(lease_lost(token)),
            }
            for (index, reply) in self.put_others(others).await? {
                puts[index] = Some(reply);
            }
        }
        let has_others = puts.iter().any(Option::is_some);
        let (part, confirmed) = self.chain_part(&home, Some(token), &links, false).await?;
        let replies = match part {
            Part::Done(replies) => replies,
            Part::Gone if !has_others => return self.end_chain(token, gone()),
            Part::Lost if !has_others => return Err(lease_lost(token)),
            Part::Gone | Part::Lost => return Err(lost_on_the_way(token)),
        };
        for (link, reply) in links.iter().zip(replies) {
            home.note_number(reply.id);
            self.emit_put(&home, &reply);
            puts[link.index] = Some(reply);
        }
        let puts: Vec<_> = puts.into_iter().flatten().collect();
        if puts.len() != count {
            return Err(malformed("a chain with fewer answers than puts"));
        }
        self.emit_acked(&home, token);
        let reply = Reply::Chain(ChainReply { end: EndReply::Done, puts });
        let answer = self.if_confirmed(confirmed, reply, format!("job {} was acked", token.id));
        answer.and_then(|reply| self.end_chain(token, reply))
    }

    /// The lease has ended.
    fn end_chain(self, token: Token, reply: Reply) -> Answer {
        self.dispatcher.sessions.borrow_mut().drop_lease(token);
        Ok(reply)
    }

    /// The puts that go into the script of the ack, and all others, which have keys.
    fn links(self, chain: Chain, home: &Rc<Partition>) -> Result<(Vec<Link>, Vec<Link>), Error> {
        let (mut links, mut others, mut weight) = (Vec::new(), Vec::new(), 0);
        for (index, mut put) in chain.puts.into_iter().enumerate() {
            let topic = self.dispatcher.known(&put.topic).ok_or_else(registered_anew)?;
            let fits = weight + put::weight(&put) <= BATCH_BYTES_MAX;
            if put.key.is_none() && (home.topic.as_ref() != Some(&put.topic) || !fits) {
                let key = format!("{CHAIN_KEY_PREFIX}{}:{index}", chain.token);
                (put.key, put.key_ttl_ms) = (Some(Bytes::from(key)), Some(CHAIN_KEY_TTL_MS));
            }
            let partition = match &put.key {
                Some(key) => topic.partition_of_key(key).cloned(),
                None => Some(Rc::clone(home)),
            };
            let partition = partition.ok_or_else(registered_anew)?;
            if Rc::ptr_eq(&partition, home) {
                weight += put::weight(&put);
                links.push(Link { index, put, partition });
            } else {
                others.push(Link { index, put, partition });
            }
        }
        Ok((links, others))
    }

    /// Whether all would be done, as far as can be known. An error names the put that would not.
    async fn look(
        self,
        home: &Rc<Partition>,
        token: Token,
        links: &[Link],
        others: &[Link],
    ) -> Result<Part, Error> {
        // The token first: if it is not good, nothing else matters.
        let (part, _) = self.chain_part(home, Some(token), links, true).await?;
        if !matches!(part, Part::Done(_)) {
            return Ok(part);
        }
        let mut groups: Vec<Vec<&Link>> = Vec::new();
        for link in others {
            let of_its = |group: &&mut Vec<&Link>| {
                group.first().is_some_and(|first| Rc::ptr_eq(&first.partition, &link.partition))
            };
            match groups.iter_mut().find(of_its) {
                Some(group) => group.push(link),
                None => groups.push(vec![link]),
            }
        }
        for group in groups {
            if let Some(first) = group.first() {
                self.chain_part(&first.partition, None, group.iter().copied(), true).await?;
            }
        }
        Ok(part)
    }

    /// Puts what goes to other partitions.
    async fn put_others(self, others: Vec<Link>) -> Result<Vec<(usize, PutReply)>, Error> {
        let indexes: Vec<usize> = others.iter().map(|link| link.index).collect();
        let most = |put: &Put| (BATCH_BYTES_MAX / put::weight(put)).clamp(1, BATCH_JOBS_MAX / 2);
        let route = |link: Link| Ok(Routed::To(link.partition, link.put));
        let request = |puts, reply_to| PartitionRequest::Put { puts, reply_to };
        let replies: PerItem<PutReply> =
            Scatter::new(others, most, route)?.gather(self, request).await;
        let mut done = Vec::with_capacity(indexes.len());
        for (index, reply) in indexes.into_iter().zip(replies) {
            done.push((index, reply.map_err(|error| not_acked(index, error))?));
        }
        Ok(done)
    }

    /// Runs the script on the part of a chain that concerns a partition.
    async fn chain_part<'a>(
        self,
        partition: &Rc<Partition>,
        token: Option<Token>,
        links: impl IntoIterator<Item = &'a Link>,
        only_look: bool,
    ) -> Result<(Part, bool), Error> {
        let links: Vec<&Link> = links.into_iter().collect();
        let effect = if links.is_empty() { Effect::Change } else { Effect::Growth };
        let op = op(partition, token, &links, only_look);
        let raw = self.submit_op(partition, effect, op).await?;
        Ok((read(&raw, partition, &links, only_look)?, raw.confirmed))
    }

    fn emit_acked(self, home: &Partition, token: Token) {
        if let Some(topic) = &home.topic {
            let (kind, id) = (EventKind::Acked, Some(token.id));
            self.emit(topic, EventDetails { kind, id, due_at: None, attempt: 0 });
        }
    }

    fn emit_put(self, home: &Partition, reply: &PutReply) {
        let kind = match reply.outcome {
            PutOutcome::Created => EventKind::Put,
            PutOutcome::Replaced => EventKind::Replaced,
            PutOutcome::Duplicate => return,
        };
        if let Some(topic) = &home.topic {
            let (id, due_at) = (Some(reply.id), Some(reply.due_at));
            self.emit(topic, EventDetails { kind, id, due_at, attempt: 0 });
        }
    }
}

fn op(partition: &Partition, token: Option<Token>, links: &[&Link], only_look: bool) -> Op {
    let settings = &partition.config.borrow().settings;
    let mut to = Writer::default();
    if let Some(token) = token {
        to.id(token.id).u64(token.fence);
    }
    let mut args = vec![to.take(), Bytes::new(), flag(only_look)];
    let puts = links.iter().map(|link| &link.put);
    let mut put_args = put::args(puts.clone(), settings, partition.limits(settings));
    if only_look {
        // Of records only the size is looked at.
        put_args.iter_mut().skip(RECORD_AT).step_by(3).for_each(|record| record.truncate(4));
    }
    args.extend(put_args);
    Op { priorities: puts.map(put::priority).collect(), ..Op::new("chain", args) }
}

fn read(
    raw: &RawReply,
    partition: &Partition,
    links: &[&Link],
    only_look: bool,
) -> Result<Part, Error> {
    let mut from = Reader::new(&raw.answer);
    let (code, _attempts, refused) = (from.u8()?, from.u32()?, usize::from(from.u16()?));
    let settings = &partition.config.borrow().settings;
    let mut reply = |link: &Link| put::read(&mut from, &link.put.topic, link.put.bytes(), settings);
    match code {
        codes::DONE if only_look => Ok(Part::Done(Vec::new())),
        codes::DONE => {
            let replies: Result<_, Error> = links.iter().map(|link| reply(link)?).collect();
            Ok(Part::Done(replies?))
        }
        codes::GONE => Ok(Part::Gone),
        codes::LOST => Ok(Part::Lost),
        codes::CONFLICT => match links.get(refused.wrapping_sub(1)) {
            Some(link) => match reply(link)? {
                Err(error) => Err(refused_put(link.index, error)),
                Ok(_) => Err(malformed("a refused put without a reason")),
            },
            None => Err(malformed("a refusal of no put")),
        },
        _ => Err(malformed("unknown result of a chain")),
    }
}

fn gone() -> Reply {
    Reply::Chain(ChainReply { end: EndReply::Gone, puts: Vec::new() })
}

/// A put to another partition failed after all were asked.
fn not_acked(index: usize, mut error: Error) -> Error {
    error.text = format!(
        "put {} of the chain: {}; the job is not acked, and other puts of the chain may be done: \
         send the chain again, which repeats none of them",
        index + 1,
        error.text
    )
    .into();
    error
}

/// The lease was good, then puts were made elsewhere, then it was not.
fn lost_on_the_way(token: Token) -> Error {
    let mut error = lease_lost(token);
    error.text = format!("{}; puts of the chain to other partitions are done", error.text).into();
    error
}
