//! A flight: the asks that go to a partition in one script, and the script's arguments.

use std::collections::HashSet;
use std::rc::Rc;

use crate::limits::PRIORITIES_MAX;
use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::limits::REPLY_BYTES_MAX;

use super::Partition;
use super::request::{Ask, Weight};
use super::waiter::Demand;
use crate::cluster::Call;
use crate::codec::put::Limits;
use crate::codec::reserve::Look;
use crate::codec::{ack, extend, nack, put, reserve};
use crate::keys;
use crate::wire::config::Config;
use crate::wire::{Op, Writer};

/// Demands that one look serves.
pub(crate) struct Claim {
    pub(crate) demands: Vec<Rc<Demand>>,
    pub(crate) look: Look,
    /// The last reason to look, when it began.
    pub(crate) reason: u64,
}

/// Asks of one kind become one operation, in this order.
#[derive(Default)]
pub(crate) struct Flight {
    /// Sorted by phase; asks of one phase that are merged lie side by side.
    pub(crate) asks: Vec<Ask>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) weight: Weight,
}

/// A flight in words of the script.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) call: Call,
    /// The configuration after it, if it changes.
    pub(crate) config: Option<Config>,
}

impl Flight {
    pub(crate) fn is_empty(&self) -> bool {
        self.asks.is_empty() && self.claims.is_empty()
    }

    /// A demand comes on board: looks that are alike become one.
    pub(crate) fn claim(&mut self, demand: &Rc<Demand>, max: usize, reason: u64) {
        let (ttr_ms, waits) = (demand.ttr_ms, demand.waits);
        match self.claims.last_mut() {
            Some(claim) if claim.look.ttr_ms == ttr_ms => {
                claim.look.max += max;
                claim.look.waits |= waits;
                claim.demands.push(Rc::clone(demand));
            }
            _ => {
                let look = Look { max, ttr_ms, room: REPLY_BYTES_MAX, bound: None, waits };
                self.claims.push(Claim { demands: vec![Rc::clone(demand)], look, reason });
            }
        }
    }

    /// How many jobs and callers are on board.
    pub(crate) fn items(&self) -> usize {
        let claimed = self.claims.iter().map(|claim| claim.demands.len());
        self.asks.iter().map(Ask::items).chain(claimed).sum()
    }

    /// Whether somebody on board waits.
    pub(crate) fn has_waiters(&self) -> bool {
        self.claims.iter().any(|claim| claim.look.waits)
    }

    pub(crate) fn is_change(&self) -> bool {
        self.asks.iter().any(Ask::is_change)
    }

    /// Asks that become one operation: neighbours of one phase, except those that are read by who
    /// asked.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[Ask]> {
        self.asks.chunk_by(|a, b| a.phase() == b.phase() && a.phase() < 5)
    }

    /// The operations, one per group and claim.
    fn ops(&self, config: &Config, limits: Limits) -> Vec<Op> {
        let mut ops = Vec::with_capacity(self.asks.len() + self.claims.len());
        for group in self.groups() {
            match group.first() {
                None | Some(Ask::Configure { .. }) => {}
                Some(Ask::Put { .. }) => {
                    let puts = group.iter().flat_map(|ask| match ask {
                        Ask::Put { puts, .. } => &puts[..],
                        _ => &[],
                    });
                    ops.push(put::op(puts, &config.settings, limits));
                }
                Some(Ask::Ack { .. }) => {
                    let tokens = group.iter().flat_map(|ask| match ask {
                        Ask::Ack { tokens, .. } => &tokens[..],
                        _ => &[],
                    });
                    ops.push(ack::op(tokens.copied()));
                }
                Some(Ask::End { spends, .. }) => {
                    let endings = group.iter().flat_map(|ask| match ask {
                        Ask::End { endings, .. } => &endings[..],
                        _ => &[],
                    });
                    ops.push(nack::op(if *spends { "nack" } else { "release" }, endings));
                }
                Some(Ask::Extend { .. }) => {
                    let leases = group.iter().flat_map(|ask| match ask {
                        Ask::Extend { leases, .. } => &leases[..],
                        _ => &[],
                    });
                    ops.push(extend::op(leases));
                }
                Some(Ask::Take { look, .. }) => ops.push(reserve::op(*look)),
                Some(Ask::Other { op, .. }) => ops.push(op.clone()),
            }
        }
        ops.extend(self.claims.iter().map(|claim| reserve::op(claim.look)));
        ops
    }

    /// The configuration that this flight needs, if it is not the present one. Priorities that
    /// nobody has any more make room.
    fn wanted_config(
        &self,
        partition: &Partition,
        free: Option<&[u32]>,
    ) -> Option<(Config, Vec<u32>)> {
        let present = partition.config.borrow();
        let is_new = |priority: u32| present.priorities.binary_search(&priority).is_err();
        let brings_news =
            |ask: &Ask| matches!(ask, Ask::Configure { .. }) || ask.priorities().any(is_new);
        if !self.asks.iter().any(brings_news) {
            return None;
        }
        let mut wanted = present.clone();
        for ask in &self.asks {
            if let Ask::Configure { settings, .. } = ask {
                wanted.settings = settings.clone();
            }
            for priority in ask.priorities() {
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
            let needed: HashSet<u32> = self.asks.iter().flat_map(Ask::priorities).collect();
            dropped = present.priorities.clone();
            dropped.retain(|priority| !needed.contains(priority));
            // The script says which of them are in use.
            if let Some(free) = free {
                dropped.retain(|priority| free.contains(priority));
            }
            wanted.priorities.retain(|priority| !dropped.contains(priority));
        }
        wanted.version = partition.shared.next_version();
        Some((wanted, dropped))
    }

    /// Those who bring more priorities than there may be are refused; the others go on.
    pub(crate) fn shed(&mut self, partition: &Partition, error: &Error) {
        let known = partition.config.borrow().priorities.clone();
        let is_known = |priority: u32| known.binary_search(&priority).is_ok();
        for mut ask in self.asks.extract_if(.., |ask| !ask.priorities().all(is_known)) {
            ask.fail(error.clone());
        }
    }

    /// The call of this flight, or why there cannot be one. Priorities that a script has named
    /// `free` are the only ones that can be given up.
    pub(crate) fn encode(
        &self,
        partition: &Partition,
        runway: u8,
        number: u64,
        free: Option<&[u32]>,
    ) -> Result<Encoded, Error> {
        let present = partition.config.borrow();
        let (config, dropped) = match self.wanted_config(partition, free) {
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
        let text = |number: u64| Bytes::from(number.to_string());
        let optional = |number: Option<u64>| number.map_or_else(Bytes::new, text);
        let mut args = vec![
            Bytes::from(format!("{}{runway}", partition.shared.server)),
            text(number),
            text(present.version),
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
            args.push(text(op.args.len() as u64));
            args.extend(op.args);
        }
        let puts = matches!(self.asks.first(), Some(Ask::Put { .. }));
        let scripts = &partition.shared.scripts;
        let script = if puts { &scripts.put } else { &scripts.relief };
        let replicas = if self.is_change() { partition.shared.replicas } else { 0 };
        let call = Call { slot: partition.slot, script: script.clone(), keys, args, replicas };
        Ok(Encoded { call, config })
    }

    /// Everybody on board is answered with this error.
    pub(crate) fn fail(&mut self, error: &Error) {
        for ask in &mut self.asks {
            ask.fail(error.clone());
        }
    }
}

/// What the script takes for the present: a test's time, or Redis' own and about what it shows.
fn clock(partition: &Partition) -> Bytes {
    let clock = &partition.shared.clock;
    match (clock.told(), clock.now_ms()) {
        (Some(now_ms), _) => Bytes::from(now_ms.to_string()),
        (None, 0) => Bytes::new(),
        (None, now_ms) => Bytes::from(format!("~{now_ms}")),
    }
}

fn packed(priorities: &[u32]) -> Bytes {
    let mut to = Writer::default();
    for &priority in priorities {
        to.u32(priority);
    }
    to.take()
}
