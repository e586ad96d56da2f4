//! chain: acks a job and puts others. What goes to the partition of the job is one script, all or
//! nothing. Other partitions are other slots: they are asked first whether they would refuse
//! anything, then get their puts, then that script acks. So the job is never acked without the
//! puts. If something fails in between, the same chain can be sent again, also by whoever gets the
//! job next: each put elsewhere has a marker, by which the script recognises it.

use std::rc::Rc;

use bytes::Bytes;
use dormouse_core::backend::Answer;
use dormouse_core::command::Reply;
use dormouse_core::error::{Code, Error};
use dormouse_core::event::EventKind;
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::{Chain, ChainReply, EndReply, Put, PutOutcome, PutReply, refused_put};
use dormouse_core::refusal::lease_lost;

use super::Fanout;
use super::scatter::{Routed, Scatter};
use crate::clock::ANY_TIME;
use crate::codec::chain::ChainPart;
use crate::codec::put::{self, Marker, OwnPut};
use crate::dispatch::{check_place, place_of};
use crate::events::EventDetails;
use crate::limits::CHAIN_MARKER_TTL_MS;
use crate::partition::{Partition, PartitionRequest, PerItem, RawReply, registered_anew};
use crate::scheduler::{BATCH_BYTES_MAX, BATCH_JOBS_MAX};
use crate::wire::{Reader, codes, malformed};

/// A put, its index in the chain, and its partition.
struct Link {
    index: usize,
    own: OwnPut,
    partition: Rc<Partition>,
}

impl Link {
    fn goes_to(&self, partition: &Rc<Partition>) -> bool {
        Rc::ptr_eq(&self.partition, partition)
    }
}

/// The puts of a chain.
#[derive(Default)]
struct Links {
    /// Those that go into the script of the ack.
    home: Vec<Link>,
    /// Those that are made before it; they have markers.
    others: Vec<Link>,
}

/// What a script says of its part of a chain.
enum Part {
    /// Its puts, in order; none if it only looked.
    Done(Vec<PutReply>),
    Gone,
    Lost,
    /// The put with this index in the chain is refused, so nothing was done.
    Refused(usize, Error),
}

impl Fanout<'_> {
    pub(super) async fn chain(self, chain: Chain) -> Answer {
        chain.check(ANY_TIME)?;
        let (token, count) = (chain.token, chain.puts.len());
        let Some(home) = self.dispatcher.partition_of(token.id) else { return Ok(gone()) };
        let links = self.links(chain, &home)?;
        let mut puts: Vec<Option<PutReply>> = vec![None; count];
        if !links.others.is_empty() {
            match self.look(&home, token, &links).await? {
                Part::Done(_) => {}
                Part::Gone => return self.end_chain(token, gone()),
                Part::Lost => return Err(lease_lost(token)),
                Part::Refused(index, error) => return Err(refused_put(index, error)),
            }
            for (index, reply) in self.put_others(links.others).await? {
                puts[index] = Some(reply);
            }
        }
        let has_others = puts.iter().any(Option::is_some);
        let links = links.home;
        let (part, confirmed) = self.chain_part(&home, Some(token), links.iter(), false).await?;
        let replies = match part {
            Part::Done(replies) => replies,
            Part::Gone if !has_others => return self.end_chain(token, gone()),
            Part::Lost if !has_others => return Err(lease_lost(token)),
            Part::Refused(index, error) if !has_others => return Err(refused_put(index, error)),
            Part::Refused(index, error) => return Err(not_acked(index, error)),
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

    /// Which puts go into the script of the ack. Those with keys must: the job to ack may have the
    /// key of one of them until then.
    fn links(self, chain: Chain, home: &Rc<Partition>) -> Result<Links, Error> {
        let (mut links, mut keyless) = (Links::default(), Vec::new());
        let mut bytes = 0;
        for (index, put) in chain.puts.into_iter().enumerate() {
            check_place(&put, self.partition_count(&put.topic))?;
            let place = place_of(&put);
            let Some(key) = put.key.as_ref().and(place.as_ref()) else {
                keyless.push((index, put, place));
                continue;
            };
            let partition = self.chained_partition(&put, key)?;
            if Rc::ptr_eq(&partition, home) {
                bytes += put::weight(&put);
                links.home.push(Link { index, own: put.into(), partition });
            } else {
                let marker = Some(marker(chain.token.id, index, &put));
                links.others.push(Link { index, own: OwnPut { marker, ..put.into() }, partition });
            }
        }
        if bytes > BATCH_BYTES_MAX {
            return Err(too_large(bytes));
        }
        for (index, put, group) in keyless {
            let weight = put::weight(&put);
            let of_group = group.map(|group| self.chained_partition(&put, &group)).transpose()?;
            let is_at_home = of_group.as_ref().is_none_or(|partition| Rc::ptr_eq(partition, home));
            let is_near = is_at_home && home.topic.as_ref() == Some(&put.topic);
            if is_near && bytes + weight <= BATCH_BYTES_MAX {
                bytes += weight;
                links.home.push(Link { index, own: put.into(), partition: Rc::clone(home) });
                continue;
            }
            let marker = marker(chain.token.id, index, &put);
            let partition = match of_group {
                Some(partition) => partition,
                None => self.chained_partition(&put, &marker.name)?,
            };
            let own = OwnPut { marker: Some(marker), ..put.into() };
            links.others.push(Link { index, own, partition });
        }
        links.home.sort_by_key(|link| link.index);
        Ok(links)
    }

    fn chained_partition(self, put: &Put, key: &Bytes) -> Result<Rc<Partition>, Error> {
        let topic = self.dispatcher.known(&put.topic).ok_or_else(registered_anew)?;
        topic.partition_of_key(key).cloned().ok_or_else(registered_anew)
    }

    /// Whether all would be done, as far as can be known.
    async fn look(self, home: &Rc<Partition>, token: Token, links: &Links) -> Result<Part, Error> {
        // The token first: if it is not good, nothing else matters.
        let at_home = links.home.iter().chain(links.others.iter().filter(|it| it.goes_to(home)));
        let (part, _) = self.chain_part(home, Some(token), at_home, true).await?;
        if !matches!(part, Part::Done(_)) {
            return Ok(part);
        }
        let mut groups: Vec<Vec<&Link>> = Vec::new();
        for link in links.others.iter().filter(|link| !link.goes_to(home)) {
            let of_its = |group: &&mut Vec<&Link>| {
                group.first().is_some_and(|first| first.goes_to(&link.partition))
            };
            match groups.iter_mut().find(of_its) {
                Some(group) => group.push(link),
                None => groups.push(vec![link]),
            }
        }
        for group in groups {
            let Some(first) = group.first() else { continue };
            let its = group.iter().copied();
            let (part, _) = self.chain_part(&first.partition, None, its, true).await?;
            if !matches!(part, Part::Done(_)) {
                return Ok(part);
            }
        }
        Ok(part)
    }

    /// Makes the puts that come before the ack.
    async fn put_others(self, others: Vec<Link>) -> Result<Vec<(usize, PutReply)>, Error> {
        let indexes: Vec<usize> = others.iter().map(|link| link.index).collect();
        let most =
            |own: &OwnPut| (BATCH_BYTES_MAX / put::weight(&own.put)).clamp(1, BATCH_JOBS_MAX / 2);
        let route = |link: Link| Ok(Routed::To(link.partition, link.own));
        let request = |puts, reply_to| PartitionRequest::OwnPut { puts, reply_to };
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
        links: impl Iterator<Item = &'a Link>,
        only_look: bool,
    ) -> Result<(Part, bool), Error> {
        let links: Vec<&Link> = links.collect();
        let puts = links.iter().map(|link| link.own.clone()).collect();
        let part = ChainPart { token, puts, only_look };
        let request = |reply_to| PartitionRequest::Chain { part, reply_to };
        let raw: RawReply = self.submit(partition, request).await?;
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

/// By this the put of a job's chain is recognised. A chain that puts something else at this index
/// is another one.
fn marker(id: JobId, index: usize, put: &Put) -> Marker {
    let name = format!("dormouse:chain:{id}:{index}:{:016x}", put::fingerprint(put));
    Marker { name: Bytes::from(name), ttl_ms: CHAIN_MARKER_TTL_MS }
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
    let mut reply = |link: &Link| {
        let put = &link.own.put;
        put::read(&mut from, &put.topic, put.bytes(), settings)
    };
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
                Err(error) => Ok(Part::Refused(link.index, error)),
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

/// The puts with keys that lead to the partition of the job are too large for one script.
fn too_large(bytes: usize) -> Error {
    Error::new(
        Code::TooLarge,
        format!(
            "the puts of the chain whose keys lead to the partition of its job have {bytes} bytes; \
             on Redis {BATCH_BYTES_MAX} at most: send fewer or smaller ones, or none of them with \
             a key; nothing was done"
        ),
    )
}

/// A put failed after all were asked.
fn not_acked(index: usize, mut error: Error) -> Error {
    error.text = format!(
        "put {} of the chain: {}; the job is not acked, and other puts of the chain may be done: \
         send the same chain again within ten minutes, which repeats none of them",
        index + 1,
        error.text
    )
    .into();
    error
}

/// The lease was good, then puts were made elsewhere, then it was not.
fn lost_on_the_way(token: Token) -> Error {
    let mut error = lease_lost(token);
    error.text = format!(
        "{}; puts of the chain to other partitions are done: if the job is given to another \
         consumer, the same chain repeats none of them within ten minutes",
        error.text
    )
    .into();
    error
}
