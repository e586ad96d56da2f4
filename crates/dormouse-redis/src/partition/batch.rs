//! A script batch: the requests and polls that go to a partition in one script, and how they become
//! the script's arguments (listed in `lua/lib.lua`).
//!
//! Requests of one kind that are neighbours after sorting by phase become one operation, so that
//! the script parses one header for all. `deliver` takes the reply apart by the same groups.

use std::collections::HashSet;
use std::rc::Rc;

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::limits::REPLY_BYTES_MAX;

use super::Partition;
use super::request::{PartitionRequest, Weight};
use super::waiter::Waiter;
use crate::cluster::Call;
use crate::codec::put::Limits;
use crate::codec::reserve::Poll;
use crate::codec::{ack, extend, nack, put, reserve};
use crate::keys;
use crate::limits::PRIORITIES_MAX;
use crate::wire::config::Config;
use crate::wire::{self, Op, optional, packed};

/// One poll for several waiters with the same ttr, which share its jobs.
pub(crate) struct SharedPoll {
    pub(crate) waiters: Vec<Rc<Waiter>>,
    pub(crate) poll: Poll,
    /// The partition's poll epoch when the batch was filled.
    pub(crate) epoch: u64,
}

#[derive(Default)]
pub(crate) struct ScriptBatch {
    /// Sorted by phase.
    pub(crate) requests: Vec<PartitionRequest>,
    pub(crate) polls: Vec<SharedPoll>,
    pub(crate) weight: Weight,
    /// Redis did not answer in time, so its requests have been answered without it.
    pub(crate) is_timed_out: bool,
}

/// A batch as a call of a script.
#[derive(Debug)]
pub(crate) struct EncodedBatch {
    pub(crate) call: Call,
    /// The configuration it sets, if it sets one.
    pub(crate) config: Option<Config>,
}

impl ScriptBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.polls.is_empty()
    }

    /// Adds a poll for a waiter, or joins it to the last one.
    pub(crate) fn add_poll(&mut self, waiter: &Rc<Waiter>, max: usize, epoch: u64) {
        let (ttr_ms, waits) = (waiter.ttr_ms, waiter.is_blocking);
        match self.polls.last_mut() {
            Some(shared) if shared.poll.ttr_ms == ttr_ms => {
                shared.poll.max += max;
                shared.poll.waits |= waits;
                shared.waiters.push(Rc::clone(waiter));
            }
            _ => {
                let poll = Poll { max, ttr_ms, room: REPLY_BYTES_MAX, bound: None, waits };
                self.polls.push(SharedPoll { waiters: vec![Rc::clone(waiter)], poll, epoch });
            }
        }
    }

    /// How many jobs and callers it stands for.
    pub(crate) fn items(&self) -> usize {
        let claimed = self.polls.iter().map(|shared| shared.waiters.len());
        self.requests.iter().map(PartitionRequest::items).chain(claimed).sum()
    }

    /// Whether it polls for a blocking waiter.
    pub(crate) fn has_blocking(&self) -> bool {
        self.polls.iter().any(|shared| shared.poll.waits)
    }

    pub(crate) fn is_change(&self) -> bool {
        self.requests.iter().any(PartitionRequest::is_change)
    }

    /// The requests that become one operation: neighbours of one phase, unless their task decodes
    /// the reply (phase 5 and later).
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[PartitionRequest]> {
        self.requests.chunk_by(|a, b| a.phase() == b.phase() && a.phase() < 5)
    }

    /// The operations, one per group and poll.
    fn ops(&self, config: &Config, limits: Limits) -> Vec<Op> {
        let mut ops = Vec::with_capacity(self.requests.len() + self.polls.len());
        for group in self.groups() {
            let all = group.iter();
            ops.push(match group.first() {
                None | Some(PartitionRequest::Configure { .. }) => continue,
                Some(PartitionRequest::Put { .. }) => {
                    put::op(all.flat_map(PartitionRequest::puts), &config.settings, limits)
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
        ops.extend(self.polls.iter().map(|shared| reserve::op(shared.poll)));
        ops
    }

    /// The configuration that this batch needs, if it is not the present one, and the priorities to
    /// give up: unused ones make room for new ones.
    fn needed_config(
        &self,
        partition: &Partition,
        free: Option<&[u32]>,
    ) -> Option<(Config, Vec<u32>)> {
        let present = partition.config.borrow();
        let is_new = |priority: u32| present.priorities.binary_search(&priority).is_err();
        let brings_news = |request: &PartitionRequest| {
            matches!(request, PartitionRequest::Configure { .. })
                || request.priorities().any(is_new)
        };
        if !self.requests.iter().any(brings_news) {
            return None;
        }
        let mut wanted = present.clone();
        for request in &self.requests {
            if let PartitionRequest::Configure { settings, .. } = request {
                wanted.settings = settings.clone();
            }
            for priority in request.priorities() {
                if let Err(index) = wanted.priorities.binary_search(&priority) {
                    wanted.priorities.insert(index, priority);
                }
            }
        }
        if wanted == *present {
            return None;
        }
        let mut dropped = Vec::new();
        if wanted.priorities.len() > PRIORITIES_MAX {
            let needed: HashSet<u32> =
                self.requests.iter().flat_map(PartitionRequest::priorities).collect();
            dropped = present.priorities.clone();
            dropped.retain(|priority| !needed.contains(priority));
            // The script refused the others: they are in use.
            if let Some(free) = free {
                dropped.retain(|priority| free.contains(priority));
            }
            wanted.priorities.retain(|priority| !dropped.contains(priority));
        }
        wanted.version = partition.shared.next_version();
        Some((wanted, dropped))
    }

    /// Refuses the requests that need a priority beyond the limit; the others remain.
    pub(crate) fn refuse_new_priorities(&mut self, partition: &Partition, error: &Error) {
        let known = partition.config.borrow().priorities.clone();
        let is_known = |priority: u32| known.binary_search(&priority).is_ok();
        for mut request in
            self.requests.extract_if(.., |request| !request.priorities().all(is_known))
        {
            request.fail(error.clone());
        }
    }

    /// The call for this batch; an error if it needs more priorities than allowed. If the script
    /// has named `free` priorities, only those are given up.
    pub(crate) fn encode(
        &self,
        partition: &Partition,
        sequence: u8,
        number: u64,
        free: Option<&[u32]>,
    ) -> Result<EncodedBatch, Error> {
        let present = partition.config.borrow();
        let (config, dropped) = match self.needed_config(partition, free) {
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
        let mut keys = partition.keys.to_vec();
        let in_order = using.priorities.iter().chain(&dropped);
        keys.extend(in_order.map(|&priority| keys::priority(&partition.tag, priority)));
        // ARGV 1 to 11, as listed in `lua/lib.lua`; then every operation with its argument count.
        let mut args = vec![
            Bytes::from(format!("{}{sequence}", partition.shared.server)),
            wire::number(number),
            wire::number(present.version),
            clock(partition),
            config.as_ref().map_or_else(Bytes::new, Config::encode_with_version),
            packed(&using.priorities),
            packed(&dropped),
            partition.shard.clone(),
            optional(using.settings.dead_ttl_ms),
            optional(partition.share(using.settings.dead_max)),
            partition.channel.clone(),
        ];
        let limits = Limits {
            jobs_max: partition.share(using.settings.jobs_max),
            bytes_max: partition.share(using.settings.bytes_max),
        };
        for op in self.ops(using, limits) {
            args.push(Bytes::from_static(op.verb.as_bytes()));
            args.push(wire::number(op.args.len() as u64));
            args.extend(op.args);
        }
        // Only a script without puts may run when Redis is out of memory.
        let puts = matches!(self.requests.first(), Some(PartitionRequest::Put { .. }));
        let scripts = &partition.shared.scripts;
        let script = if puts { &scripts.put } else { &scripts.relief };
        let replicas = if self.is_change() { partition.shared.replicas } else { 0 };
        let call = Call { slot: partition.slot, script: script.clone(), keys, args, replicas };
        Ok(EncodedBatch { call, config })
    }

    pub(crate) fn fail(&mut self, error: &Error) {
        for request in &mut self.requests {
            request.fail(error.clone());
        }
    }
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
