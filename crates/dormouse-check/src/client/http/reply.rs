//! Answers as replies.

use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Error;
use dormouse_core::op::{HeldLockView, LockReply, LocksPage};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::client::Response;
use super::item::{Item, items, problem, ran};
use super::job::{JobsIn, PageIn, ViewIn};
use super::schedule::{PutScheduleIn, ScheduleIn, SchedulesIn};
use super::time::{At, unexpected};
use super::topic::{TopicIn, TopicsIn};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CountIn {
    count: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForecastIn {
    #[serde(rename = "from")]
    _from: At,
    #[serde(rename = "to")]
    _to: At,
    #[serde(rename = "step_ms")]
    _step_ms: u64,
    counts: Vec<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LockIn {
    fence: String,
    expires_at: At,
    depth: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LocksIn {
    locks: Vec<HeldLockIn>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeldLockIn {
    name: String,
    owner: String,
    fence: String,
    expires_at: At,
    depth: u32,
}

impl HeldLockIn {
    fn view(self) -> Result<HeldLockView, Error> {
        let HeldLockIn { name, owner, fence, expires_at: At(expires_at), depth } = self;
        let fence = fence.parse().map_err(|_| unexpected("no fence", fence.as_bytes()))?;
        Ok(HeldLockView { name: name.into(), owner: owner.into(), fence, depth, expires_at })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CodeIn {
    code: String,
}

/// The reply to a command from the responses to its requests, each with its number of items.
pub(super) fn read(command: &Command, parts: Vec<(usize, Response)>) -> Answer {
    match command {
        Command::Put(_) => list(parts, Item::put).map(Reply::Put),
        Command::Ack(_) | Command::Nack(_) | Command::Release(_) | Command::Kill(_) => {
            list(parts, Item::ended).map(Reply::Ended)
        }
        Command::Extend(_) => list(parts, Item::extended).map(Reply::Extended),
        Command::Cancel(_) | Command::Reschedule(_) | Command::Revive(_) => {
            list(parts, Item::changed).map(Reply::Changed)
        }
        Command::Get(_) => {
            let view = |response| one::<ViewIn>(&response).and_then(ViewIn::view);
            Ok(Reply::Views(parts.into_iter().map(|(_, response)| view(response)).collect()))
        }
        command => match parts.first() {
            Some((_, response)) => whole(command, response),
            None => Err(Error::unavailable("nothing was asked")),
        },
    }
}

/// A problem concerns the whole command if one request stood for many items.
fn list<T>(
    parts: Vec<(usize, Response)>,
    read: impl Fn(Item) -> Result<T, Error>,
) -> Result<Vec<Result<T, Error>>, Error> {
    let is_one = parts.len() == 1;
    let mut all = Vec::new();
    for (count, response) in parts {
        match items(count, &response) {
            Ok(items) => all.extend(items.into_iter().map(&read)),
            Err(error) if is_one => return Err(error),
            Err(error) => all.extend((0..count).map(|_| Err(error.clone()))),
        }
    }
    Ok(all)
}

fn whole(command: &Command, response: &Response) -> Answer {
    Ok(match command {
        Command::Reserve(_) => Reply::Jobs(one::<JobsIn>(response)?.jobs()?),
        Command::ReserveId(_) => Reply::Jobs(one::<JobsIn>(response)?.jobs()?),
        Command::Locks(_) => {
            let LocksIn { locks, cursor } = one(response)?;
            let locks = locks.into_iter().map(HeldLockIn::view).collect::<Result<_, _>>()?;
            Reply::Locks(LocksPage { locks, cursor })
        }
        Command::ReviveTopic(_)
        | Command::ReleaseTopic(_)
        | Command::Kick(_)
        | Command::Purge(_) => Reply::Count(one::<CountIn>(response)?.count),
        Command::PutSchedule(_) => one::<PutScheduleIn>(response)?.reply()?.into(),
        Command::GetSchedule(_) | Command::ChangeSchedule(_) => {
            Reply::Schedule(Box::new(one::<ScheduleIn>(response)?.view()?))
        }
        Command::Schedules(_) => Reply::Schedules(one::<SchedulesIn>(response)?.page()?),
        Command::RunSchedule(_) => {
            let replies = ran(response)?.into_iter().map(Item::put);
            Reply::Put(replies.collect())
        }
        Command::Chain(_) => Reply::Chain(one::<Item>(response)?.chained()?),
        Command::List(_) => Reply::Page(one::<PageIn>(response)?.page()?),
        Command::Topics(_) => Reply::Topics(one::<TopicsIn>(response)?.page()?),
        Command::Stats(_) => Reply::Stats(Box::new(one::<TopicIn>(response)?.stats().1)),
        Command::Forecast(_) => Reply::Forecast(one::<ForecastIn>(response)?.counts),
        Command::Lock(_) | Command::RenewLock(_) => {
            let LockIn { fence, expires_at: At(expires_at), depth } = one(response)?;
            let fence = fence.parse().map_err(|_| unexpected("no fence", &response.body))?;
            Reply::Lock(LockReply { fence, expires_at, depth })
        }
        Command::Unlock(_) => match one::<CodeIn>(response)?.code.as_str() {
            "free" => Reply::Unlocked(true),
            "held" => Reply::Unlocked(false),
            _ => return Err(unexpected("neither free nor held", &response.body)),
        },
        _ if response.is_good() => Reply::Done,
        _ => return Err(problem(response)),
    })
}

/// The one thing a response is, or the problem it is.
fn one<T: DeserializeOwned>(response: &Response) -> Result<T, Error> {
    if !response.is_good() {
        return Err(problem(response));
    }
    serde_json::from_slice(&response.body)
        .map_err(|error| unexpected(&error.to_string(), &response.body))
}
