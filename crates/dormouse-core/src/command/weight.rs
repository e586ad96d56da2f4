//! About how much memory a queued command takes, and whether it takes long. Nothing in it has been
//! checked against its limit yet, so every part that a caller can make long counts.

use bytes::Bytes;

use super::Command;
use crate::limits::{BACKFILL_TICKS_MAX, BATCH_MAX};
use crate::op::{Kill, KillTarget, Put, PutSchedule, Stats, Target};

/// Bytes of any command or item besides those it points to.
const ITEM_BYTES: usize = 64;
/// The same of a put.
const PUT_BYTES: usize = 256;

impl Command {
    /// Bytes that it takes while it is queued, about.
    pub fn weight(&self) -> usize {
        let items = match self {
            Command::Put(puts) => puts.iter().map(weigh_put).sum(),
            Command::Reserve(reserve) => reserve.topics.len() * ITEM_BYTES,
            Command::Ack(tokens) => size_of_val(tokens.as_slice()),
            Command::Chain(chain) => chain.puts.iter().map(weigh_put).sum(),
            Command::Nack(nacks) => {
                nacks.iter().map(|nack| ITEM_BYTES + length(nack.error.as_ref())).sum()
            }
            Command::Release(releases) => releases.len() * ITEM_BYTES,
            Command::Extend(extends) => extends.len() * ITEM_BYTES,
            Command::Kill(kills) => kills.iter().map(weigh_kill).sum(),
            Command::Cancel(cancels) => {
                cancels.iter().map(|cancel| weigh_target(&cancel.target)).sum()
            }
            Command::Reschedule(moves) => moves.iter().map(|due| weigh_target(&due.target)).sum(),
            Command::Revive(targets) | Command::Get(targets) => {
                targets.iter().map(weigh_target).sum()
            }
            Command::TopicsOf(ids) => size_of_val(ids.as_slice()),
            Command::PutSchedule(put) => weigh_put_schedule(put),
            Command::Schedules(page) => page.cursor.as_ref().map_or(0, String::len),
            Command::List(list) => list.cursor.as_ref().map_or(0, String::len),
            Command::Lock(lock) => lock.name.len() + lock.owner.len(),
            Command::RenewLock(renew) => renew.name.len() + renew.owner.len(),
            Command::Unlock(unlock) => unlock.name.len() + unlock.owner.len(),
            Command::BreakLock(broken) => broken.name.len(),
            Command::SetPush(set) => set.push.as_ref().map_or(0, |push| push.record.len()),
            Command::Locks(page) => page.prefix.len() + page.cursor.as_ref().map_or(0, String::len),
            _ => 0,
        };
        ITEM_BYTES + items
    }

    /// Whether its cost grows with what is stored, whatever it names.
    pub fn is_long(&self) -> bool {
        matches!(
            self,
            Command::List(_)
                | Command::Topics(_)
                | Command::Stats(Stats { topic: None })
                | Command::Purge(_)
                | Command::Kick(_)
                | Command::ReviveTopic(_)
                | Command::ReleaseTopic(_)
                | Command::Forecast(_)
                | Command::Peek(_)
                | Command::CloseSession(_)
        )
    }

    /// How many jobs it may concern, about.
    pub fn items(&self) -> usize {
        match self {
            Command::Put(puts) => puts.len(),
            // It has not been checked yet.
            Command::Reserve(reserve) => reserve.max.min(BATCH_MAX),
            Command::Ack(tokens) => tokens.len(),
            Command::Chain(chain) => 1 + chain.puts.len(),
            Command::Nack(nacks) => nacks.len(),
            Command::Release(releases) => releases.len(),
            Command::Extend(extends) => extends.len(),
            Command::Kill(kills) => kills.len(),
            Command::Cancel(cancels) => cancels.len(),
            Command::Reschedule(moves) => moves.len(),
            Command::Revive(targets) | Command::Get(targets) => targets.len(),
            Command::TopicsOf(ids) => ids.len(),
            Command::RunSchedule(run) if run.ticks.is_some() => BACKFILL_TICKS_MAX,
            _ => 1,
        }
    }
}

fn weigh_put(put: &Put) -> usize {
    let headers = put.headers.as_ref().map_or(0, |headers| {
        headers.iter().map(|(name, value)| ITEM_BYTES + name.len() + value.len()).sum()
    });
    PUT_BYTES + put.body.len() + length(put.key.as_ref()) + headers
}

fn weigh_put_schedule(put: &PutSchedule) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let template = put.template.put(put.topic.clone());
    text(&put.cron) + text(&put.zone) + weigh_put(&template)
}

fn weigh_kill(kill: &Kill) -> usize {
    let target = match &kill.target {
        KillTarget::Token(_) => ITEM_BYTES,
        KillTarget::Resting(target) => weigh_target(target),
    };
    target + length(kill.error.as_ref())
}

fn weigh_target(target: &Target) -> usize {
    match target {
        Target::Id(_) => ITEM_BYTES,
        Target::Key { key, .. } => ITEM_BYTES + key.len(),
    }
}

fn length(bytes: Option<&Bytes>) -> usize {
    bytes.map_or(0, Bytes::len)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::job::{JobId, Token};
    use crate::op::Nack;
    use crate::topic::TopicName;

    use super::*;

    #[track_caller]
    fn check(command: &Command, least: usize) {
        let bytes = command.weight();
        assert!((least..least + 1_000).contains(&bytes), "{bytes} for {least}");
    }

    #[test]
    fn everything_that_can_be_long_counts() {
        let long = || Some(Bytes::from(vec![b'x'; 10_000]));
        let topic = TopicName::new("t").expect("a name");
        let token = Token { id: JobId(1), fence: 1 };
        let put = Put::new(topic.clone(), vec![0; 10_000]);
        check(&Command::Put(vec![put.clone()]), 10_000);
        check(&Command::Put(vec![Put { key: long(), ..put.clone() }]), 20_000);
        let headers = Some(Arc::new(vec![("n".repeat(5_000), "v".repeat(5_000))]));
        check(&Command::Put(vec![Put { headers, ..put }]), 20_000);
        check(&Command::Ack(vec![token; 1_000]), 16_000);
        let nack = Nack { token, delay_ms: None, priority: None, error: long() };
        check(&Command::Nack(vec![nack]), 10_000);
        let target = Target::Key { topic, key: Bytes::from(vec![b'x'; 10_000]) };
        check(&Command::Get(vec![target.clone()]), 10_000);
        let kill = Kill { target: KillTarget::Resting(target), error: long(), priority: None };
        check(&Command::Kill(vec![kill]), 20_000);
    }
}
