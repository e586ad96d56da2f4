//! How the requests and polls of a script batch become the script's arguments (listed in
//! `lua/lib.lua`).
//!
//! Requests of one kind that are neighbours after sorting by phase become one operation, so that
//! the script parses one header for all. `deliver` takes the reply apart by the same groups.

use std::collections::HashSet;

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::limits::REPLY_BYTES_MAX;
use dormouse_core::topic::Settings;

use super::Partition;
use super::request::PartitionRequest;
use crate::cluster::Call;
use crate::codec::put::{Limits, SHARD_SHIFT};
use crate::codec::reserve::Poll;
use crate::codec::{ack, chain, extend, nack, put, reserve};
use crate::keys;
use crate::limits::{NUMBER_MARGIN, NUMBER_MAX, PRIORITIES_MAX};
use crate::scheduler::{Batch, Request as _, SharedPoll};
use crate::wire::config::Config;
use crate::wire::{self, Op, flow, optional, packed};

/// A batch as a call of a script.
#[derive(Debug)]
pub(crate) struct EncodedBatch {
    pub(crate) call: Call,
    /// The configuration it sets, if it sets one.
    pub(crate) config: Option<Config>,
}

pub(super) type ScriptBatch = Batch<PartitionRequest>;

/// The requests that become one operation: neighbours of one phase, unless their task decodes the
/// reply.
pub(super) fn groups(requests: &[PartitionRequest]) -> impl Iterator<Item = &[PartitionRequest]> {
    requests.chunk_by(|a, b| a.phase() == b.phase() && a.is_merged() && b.is_merged())
}

/// The poll for several waiters as an operation.
fn poll_op(poll: &SharedPoll) -> Op {
    let SharedPoll { max, ttr_ms, waits, .. } = *poll;
    reserve::op(Poll { max, ttr_ms, room: REPLY_BYTES_MAX, bound: None, waits })
}

impl Partition {
    /// The operations of a batch, one per group and poll.
    fn ops(&self, batch: &ScriptBatch, config: &Config, limits: Limits) -> Vec<Op> {
        let mut ops = Vec::with_capacity(batch.requests.len() + batch.polls.len());
        for group in groups(&batch.requests) {
            let all = group.iter();
            ops.push(match group.first() {
                None | Some(PartitionRequest::Configure { .. }) => continue,
                Some(PartitionRequest::Put { .. }) => {
                    put::op(all.flat_map(PartitionRequest::puts), &config.settings, limits)
                }
                Some(PartitionRequest::OwnPut { puts, .. }) => {
                    put::own_op(puts, &config.settings, limits)
                }
                Some(PartitionRequest::Chain { part, .. }) => {
                    chain::op(part, &config.settings, limits)
                }
                Some(PartitionRequest::Ack { .. }) => {
                    ack::op(all.flat_map(PartitionRequest::tokens).copied())
                }
                Some(PartitionRequest::End { spends, .. }) => {
                    let verb = if *spends { "nack" } else { "release" };
                    nack::op(verb, all.flat_map(PartitionRequest::endings))
                }
                Some(PartitionRequest::Extend { .. }) => {
                    extend::op(all.flat_map(PartitionRequest::leases))
                }
                Some(PartitionRequest::Reserve { poll, .. }) => reserve::op(*poll),
                Some(PartitionRequest::Other { op, .. }) => op.clone(),
            });
        }
        ops.extend(batch.polls.iter().map(poll_op));
        ops
    }

    /// This partition's share of the topic's limits.
    pub(crate) fn limits(&self, settings: &Settings) -> Limits {
        Limits {
            jobs_max: self.share(settings.jobs_max),
            bytes_max: self.share(settings.bytes_max),
        }
    }

    /// The id after which those of a new partition begin, as far as this server knows: beyond what
    /// it, and probably others, have seen.
    fn first_id(&self) -> Bytes {
        let number = match self.last_number.get() {
            0 => 0,
            last => (last + NUMBER_MARGIN).min(NUMBER_MAX),
        };
        let id = u64::from(self.shard_no) << SHARD_SHIFT | number;
        Bytes::copy_from_slice(&id.to_be_bytes())
    }

    /// The configuration that this batch needs, if it is not the present one, and the priorities to
    /// give up: unused ones make room for new ones.
    fn needed_config(
        &self,
        batch: &ScriptBatch,
        free: Option<&[u32]>,
    ) -> Option<(Config, Vec<u32>)> {
        let present = self.config.borrow();
        let is_new = |priority: u32| present.priorities.binary_search(&priority).is_err();
        let brings_news = |request: &PartitionRequest| {
            matches!(request, PartitionRequest::Configure { .. })
                || request.priorities().any(is_new)
        };
        if !batch.requests.iter().any(brings_news) {
            return None;
        }
        let mut wanted = present.clone();
        for request in &batch.requests {
            if let PartitionRequest::Configure { change, .. } = request {
                // Others may have set the topic since Redis lost its data.
                let is_set = present.version != 0 && present.settings != Settings::default();
                change.apply(&mut wanted, is_set);
            }
            for priority in request.priorities() {
                if let Err(index) = wanted.priorities.binary_search(&priority) {
                    wanted.priorities.insert(index, priority);
                }
            }
        }
        // Version 0: nothing of it is in Redis.
        if wanted == *present && present.version != 0 {
            return None;
        }
        let mut dropped = Vec::new();
        if wanted.priorities.len() > PRIORITIES_MAX {
            let needed: HashSet<u32> =
                batch.requests.iter().flat_map(PartitionRequest::priorities).collect();
            dropped = present.priorities.clone();
            dropped.retain(|priority| !needed.contains(priority));
            // The script refused the others: they are in use.
            if let Some(free) = free {
                dropped.retain(|priority| free.contains(priority));
            }
            wanted.priorities.retain(|priority| !dropped.contains(priority));
        }
        wanted.version = self.shared.next_version();
        wanted.shard = self.shard_no;
        Some((wanted, dropped))
    }

    /// Refuses the requests that need a priority beyond the limit; the others remain.
    pub(super) fn refuse_new_priorities(&self, batch: &mut ScriptBatch, error: &Error) {
        let known = self.config.borrow().priorities.clone();
        let is_known = |priority: u32| known.binary_search(&priority).is_ok();
        for mut request in
            batch.requests.extract_if(.., |request| !request.priorities().all(is_known))
        {
            request.fail(error.clone());
        }
    }

    /// The call for this batch; an error if it needs more priorities than allowed. If the script
    /// has named `free` priorities, only those are given up.
    pub(super) fn encode(
        &self,
        batch: &ScriptBatch,
        sequence: u8,
        number: u64,
        free: Option<&[u32]>,
    ) -> Result<EncodedBatch, Error> {
        let present = self.config.borrow();
        let (config, dropped) = match self.needed_config(batch, free) {
            None => (None, Vec::new()),
            Some((config, dropped)) => (Some(config), dropped),
        };
        let using = config.as_ref().unwrap_or(&*present);
        if using.priorities.len() > PRIORITIES_MAX {
            return Err(Error::invalid(format!(
                "the topic would have {} priorities in use; on Redis use at most \
                 {PRIORITIES_MAX}",
                using.priorities.len()
            )));
        }
        let mut keys = self.keys.to_vec();
        let in_order = using.priorities.iter().chain(&dropped);
        keys.extend(in_order.map(|&priority| keys::priority(&self.tag, priority)));
        // ARGV 1 to 15, as listed in `lua/lib.lua`; then every operation with its argument count.
        let mut args = vec![
            Bytes::from(format!("{}{sequence}", self.shared.server)),
            wire::number(number),
            wire::number(present.version),
            clock(self),
            config.as_ref().map_or_else(Bytes::new, Config::encode_with_version),
            packed(&using.priorities),
            packed(&dropped),
            if present.version == 0 { self.first_id() } else { self.shard.clone() },
            optional(using.settings.dead_ttl_ms),
            optional(self.share(using.settings.dead_max)),
            self.channel.clone(),
            optional(using.settings.keep_done_ms),
            dead_topic(&using.settings),
            flow::encode(&using.settings, self.position),
            Bytes::from_static(flow::change(&present.settings, &using.settings).as_bytes()),
        ];
        for op in self.ops(batch, using, self.limits(&using.settings)) {
            args.push(Bytes::from_static(op.verb.as_bytes()));
            args.push(wire::number(op.args.len() as u64));
            args.extend(op.args);
        }
        // Only a script without puts may run when Redis is out of memory.
        let needs_memory = batch.requests.first().is_some_and(|request| request.phase() == 0);
        let scripts = &self.shared.scripts;
        let script = if needs_memory { &scripts.put } else { &scripts.relief };
        let replicas = if batch.requests.iter().any(PartitionRequest::is_change) {
            self.shared.replicas
        } else {
            0
        };
        let call = Call { slot: self.slot, script: script.clone(), keys, args, replicas };
        Ok(EncodedBatch { call, config })
    }
}

/// The name of the dead topic; empty = there is none.
fn dead_topic(settings: &Settings) -> Bytes {
    let name = settings.dead_topic.as_ref();
    name.map_or_else(Bytes::new, |name| Bytes::copy_from_slice(name.as_str().as_bytes()))
}

/// The time argument: a test's time, or `~` and the expected time, by which the script recognises a
/// batch that was delayed on its way.
fn clock(partition: &Partition) -> Bytes {
    let clock = &partition.shared.clock;
    match (clock.override_ms(), clock.now_ms()) {
        (Some(now_ms), _) => wire::number(now_ms),
        (None, 0) => Bytes::new(),
        (None, now_ms) => Bytes::from(format!("~{now_ms}")),
    }
}
