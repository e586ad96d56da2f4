//! The requests of a partition. One command becomes one or several of them; requests of one kind
//! are merged into one operation of a script.

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::Token;
use dormouse_core::op::{EndReply, ExtendReply, Put, PutReply};
use dormouse_core::topic::{Push, Settings};

use super::reply_to::ReplyTo;
use crate::codec::chain::ChainPart;
use crate::codec::extend::LeaseExtension;
use crate::codec::nack::EndRequest;
use crate::codec::put::{self, OwnPut};
use crate::codec::reserve::{Poll, PollReply};
use crate::scheduler::{Request, Weight};
use crate::wire::config::Config;
use crate::wire::{Op, Records};

/// A result per item of a request.
pub(crate) type PerItem<T> = Vec<Result<T, Error>>;

/// The reply to `PartitionRequest::Other` or `Chain`, to be decoded by the task that sent it.
#[derive(Debug)]
pub(crate) struct RawReply {
    pub(crate) answer: Bytes,
    pub(crate) records: Records,
    /// Redis' clock when the script ran.
    pub(crate) now_ms: u64,
    /// As many replicas have confirmed it as configured.
    pub(crate) confirmed: bool,
}

/// A request to one partition. Its items have been checked against all limits.
pub(crate) enum PartitionRequest {
    Put {
        puts: Vec<Put>,
        reply_to: ReplyTo<PerItem<PutReply>>,
    },
    /// Puts that the server makes. Like those of callers they are encoded with the settings that
    /// the partition has then: settings that were known before may be outdated.
    OwnPut {
        puts: Vec<OwnPut>,
        reply_to: ReplyTo<PerItem<PutReply>>,
    },
    /// The same for the puts of a chain, and the ack.
    Chain {
        part: ChainPart,
        reply_to: ReplyTo<RawReply>,
    },
    Ack {
        tokens: Vec<Token>,
        reply_to: ReplyTo<PerItem<EndReply>>,
    },
    /// nack (`spends`) or release.
    End {
        spends: bool,
        endings: Vec<EndRequest>,
        reply_to: ReplyTo<PerItem<EndReply>>,
    },
    Extend {
        leases: Vec<LeaseExtension>,
        reply_to: ReplyTo<PerItem<ExtendReply>>,
    },
    Reserve {
        poll: Poll,
        reply_to: ReplyTo<PollReply>,
    },
    Other {
        op: Op,
        effect: Effect,
        reply_to: ReplyTo<RawReply>,
    },
    /// Sets the topic's settings.
    Configure {
        change: SettingsChange,
        /// Gets whether the replicas have confirmed it.
        reply_to: ReplyTo<bool>,
    },
}

/// A change of a topic's settings. It is made of those that the partition has when the batch is
/// encoded.
#[derive(Clone, Debug)]
pub(crate) enum SettingsChange {
    /// All but its push.
    Set(Settings),
    /// Redis has lost them: only if the topic has no settings.
    Restore(Settings),
    /// Its push, unless a newer version is there; removals have versions, too.
    Push { push: Option<Arc<Push>>, version: u64 },
}

impl SettingsChange {
    /// Makes the change; `is_set` = the partition has settings.
    pub(crate) fn apply(&self, config: &mut Config, is_set: bool) {
        let settings = &mut config.settings;
        match self {
            SettingsChange::Set(wanted) => {
                *settings = Settings { push: settings.push.take(), ..wanted.clone() };
            }
            SettingsChange::Restore(wanted) if !is_set => {
                *settings = wanted.clone();
                let known = config.push_version;
                settings.push.take_if(|push| push.version < known);
                let restored = settings.push.as_ref().map_or(0, |push| push.version);
                config.push_version = known.max(restored);
            }
            SettingsChange::Restore(_) => {}
            SettingsChange::Push { push, version } if *version >= config.push_version => {
                settings.push.clone_from(push);
                config.push_version = *version;
            }
            SettingsChange::Push { .. } => {}
        }
    }
}

/// What an operation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing that a caller relies on.
    Read,
    /// Jobs or topics: confirmed by as many replicas as configured.
    Change,
    /// The same, and it needs memory: refused when Redis has none.
    Growth,
    /// A lease, whose loss only costs another delivery.
    Lease,
}

impl Request for PartitionRequest {
    fn weight(&self) -> Weight {
        let jobs = match self {
            Self::Put { puts, .. } => puts.len(),
            Self::OwnPut { puts, .. } => puts.len(),
            Self::Chain { part, .. } => 1 + 2 * part.puts.len(),
            Self::Ack { tokens, .. } => tokens.len().max(1),
            Self::End { endings, .. } => 2 * endings.len().max(1),
            Self::Extend { leases, .. } => 2 * leases.len().max(1),
            Self::Reserve { poll, .. } => poll.max,
            Self::Other { effect: Effect::Growth, op, .. } => op.args.len(),
            Self::Other { .. } | Self::Configure { .. } => 64,
        };
        let args = match self {
            Self::Other { op, .. } => op.args.iter().map(Bytes::len).sum(),
            _ => 0,
        };
        let puts = self.all_puts().map(put::weight).sum::<usize>();
        // Of records that are only looked at, the size is sent.
        let is_look = matches!(self, Self::Chain { part, .. } if part.only_look);
        Weight { jobs, bytes: args + if is_look { 0 } else { puts } }
    }

    fn items(&self) -> usize {
        match self {
            Self::Put { puts, .. } => puts.len(),
            Self::OwnPut { puts, .. } => puts.len(),
            Self::Ack { tokens, .. } => tokens.len(),
            Self::End { endings, .. } => endings.len(),
            Self::Extend { leases, .. } => leases.len(),
            Self::Chain { .. }
            | Self::Reserve { .. }
            | Self::Other { .. }
            | Self::Configure { .. } => 1,
        }
    }

    /// The order within a script: writes before reads and polls. Puts are first, because Redis
    /// refuses only the first write of a script when it is out of memory.
    fn phase(&self) -> u8 {
        match self {
            Self::Put { .. } | Self::OwnPut { .. } => 0,
            Self::Other { effect: Effect::Growth, .. } => 0,
            Self::Chain { part, .. } if !part.puts.is_empty() => 0,
            Self::Ack { .. } => 1,
            Self::End { spends: true, .. } => 2,
            Self::End { spends: false, .. } => 3,
            Self::Extend { .. } => 4,
            Self::Configure { .. } => 5,
            Self::Chain { .. } | Self::Other { .. } => 6,
            Self::Reserve { .. } => 7,
        }
    }

    /// Whether it can make a job visible, so that waiters must be polled for.
    fn may_make_visible(&self) -> bool {
        match self {
            Self::Put { .. } | Self::OwnPut { .. } | Self::Chain { .. } | Self::End { .. } => true,
            // Other limits may hold fewer jobs.
            Self::Configure { .. } => true,
            Self::Other { effect, .. } => matches!(effect, Effect::Change | Effect::Growth),
            _ => false,
        }
    }
}

impl PartitionRequest {
    pub(crate) fn release(endings: Vec<EndRequest>, reply_to: ReplyTo<PerItem<EndReply>>) -> Self {
        Self::End { spends: false, endings, reply_to }
    }

    /// The puts; none if it is another request.
    pub(crate) fn puts(&self) -> &[Put] {
        if let Self::Put { puts, .. } = self { puts } else { &[] }
    }

    /// The puts of all kinds.
    fn all_puts(&self) -> impl Iterator<Item = &Put> {
        let own: &[OwnPut] = match self {
            Self::OwnPut { puts, .. } => puts,
            Self::Chain { part, .. } => &part.puts,
            _ => &[],
        };
        self.puts().iter().chain(own.iter().map(|own| &own.put))
    }

    /// The tokens of an ack.
    pub(crate) fn tokens(&self) -> &[Token] {
        if let Self::Ack { tokens, .. } = self { tokens } else { &[] }
    }

    /// The nacks or releases.
    pub(crate) fn endings(&self) -> &[EndRequest] {
        if let Self::End { endings, .. } = self { endings } else { &[] }
    }

    /// The leases to extend.
    pub(crate) fn leases(&self) -> &[LeaseExtension] {
        if let Self::Extend { leases, .. } = self { leases } else { &[] }
    }

    /// Whether neighbours of its kind become one operation: their replies are read item by item.
    pub(crate) fn is_merged(&self) -> bool {
        matches!(self, Self::Put { .. } | Self::Ack { .. } | Self::End { .. } | Self::Extend { .. })
    }

    /// Whether the replicas must confirm it before it is answered.
    pub(crate) fn is_change(&self) -> bool {
        match self {
            Self::Put { .. } | Self::OwnPut { .. } | Self::Ack { .. } => true,
            Self::End { .. } | Self::Configure { .. } => true,
            Self::Chain { part, .. } => !part.only_look,
            Self::Other { effect, .. } => matches!(effect, Effect::Change | Effect::Growth),
            Self::Extend { .. } | Self::Reserve { .. } => false,
        }
    }

    /// The priorities it uses; the partition's configuration must list them.
    pub(crate) fn priorities(&self) -> impl Iterator<Item = u32> {
        let others = if let Self::Other { op, .. } = self { &op.priorities[..] } else { &[] };
        let given = self.endings().iter().filter_map(|ending| ending.priority);
        self.all_puts().map(put::priority).chain(given).chain(others.iter().copied())
    }

    /// Answers with an error. A later result goes to no one.
    pub(crate) fn fail(&mut self, error: Error) {
        match self {
            Self::Put { puts, reply_to } => reply_to.fail_items(puts.len(), &error),
            Self::OwnPut { puts, reply_to } => reply_to.fail_items(puts.len(), &error),
            Self::Chain { reply_to, .. } => reply_to.fail(error),
            Self::Ack { tokens, reply_to } => reply_to.fail_items(tokens.len(), &error),
            Self::End { endings, reply_to, .. } => reply_to.fail_items(endings.len(), &error),
            Self::Extend { leases, reply_to } => reply_to.fail_items(leases.len(), &error),
            Self::Reserve { reply_to, .. } => reply_to.fail(error),
            Self::Other { reply_to, .. } => reply_to.fail(error),
            Self::Configure { reply_to, .. } => reply_to.fail(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(push: Option<u64>, version: u64) -> SettingsChange {
        let push = push.map(|version| {
            let record = Bytes::new();
            Arc::new(Push { version, concurrency: 3, is_disabled: false, record })
        });
        SettingsChange::Push { push, version }
    }

    /// The push after servers told these changes, in this order.
    #[track_caller]
    fn check(changes: &[SettingsChange], expected: Option<u64>) {
        let mut config = Config::default();
        for change in changes {
            change.apply(&mut config, true);
            // As the next server reads it.
            config = Config::decode(config.version, &config.encode()).unwrap();
        }
        assert_eq!(config.settings.push.map(|push| push.version), expected, "{changes:?}");
    }

    #[test]
    fn of_the_changes_of_a_push_the_newest_counts_in_any_order() {
        check(&[told(Some(1), 1), told(Some(2), 2)], Some(2));
        check(&[told(Some(2), 2), told(Some(1), 1)], Some(2));
        check(&[told(Some(1), 1), told(None, 2)], None);
        check(&[told(None, 2), told(Some(1), 1)], None);
        check(&[told(None, 2), told(Some(3), 3), told(None, 2)], Some(3));
        check(&[told(None, 2), told(Some(1), 1), told(Some(3), 3)], Some(3));
        let set = SettingsChange::Set(Settings::default());
        check(&[told(None, 2), set.clone(), told(Some(1), 1)], None);
        check(&[told(Some(2), 2), set], Some(2));
    }
}
