//! RESP replies as replies of a backend.

use dormouse_core::backend::Answer;
use dormouse_core::command::{self, Command};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::State;
use dormouse_core::op::{
    ChangeReply, EndReply, ExtendReply, HeldLockView, JobView, LockReply, LocksPage, Page,
    PutOutcome, PutReply, SchedulesPage, Target, TopicsPage,
};

use super::Replies;
use super::fields::{leased, named_stats, number, state, stats, text, unexpected, view};
use super::raw::Reply;
use super::schedule;

/// The code that a word stands for.
const CODES: [(&str, Code); 12] = [
    ("INVALID", Code::Invalid),
    ("ERR", Code::Invalid),
    ("NOAUTH", Code::Unauthorized),
    ("NOPERM", Code::Forbidden),
    ("NOTFOUND", Code::NotFound),
    ("CONFLICT", Code::Conflict),
    ("LEASELOST", Code::LeaseLost),
    ("TOOLARGE", Code::TooLarge),
    ("OVERLOADED", Code::Busy),
    ("FULL", Code::Full),
    ("UNCONFIRMED", Code::Unconfirmed),
    ("UNAVAILABLE", Code::Unavailable),
];

type Items<T> = Vec<Result<T, Error>>;

/// The reply to a command from the replies to its pipeline.
pub(super) fn read(command: &Command, replies: Replies) -> Answer {
    let Replies { replies, views } = replies;
    match command {
        Command::Put(_) => {
            let pairs = replies.iter().zip(&views);
            Ok(command::Reply::Put(pairs.map(|(reply, view)| put(reply, view)).collect()))
        }
        Command::Ack(tokens) if tokens.len() > 1 => {
            Ok(command::Reply::Ended(each(list(one(&replies)?)?, ended)))
        }
        Command::Ack(_) | Command::Nack(_) | Command::Release(_) | Command::Kill(_) => {
            Ok(command::Reply::Ended(each(&replies, ended)))
        }
        Command::Extend(_) => Ok(command::Reply::Extended(each(&replies, |reply| {
            Ok(ExtendReply { expires_at: number(reply)? })
        }))),
        Command::Cancel(_) | Command::Reschedule(_) | Command::Revive(_) => {
            Ok(command::Reply::Changed(each(&replies, changed)))
        }
        Command::Get(targets) => {
            let pairs = targets.iter().zip(&replies);
            Ok(command::Reply::Views(pairs.map(|(target, reply)| got(target, reply)).collect()))
        }
        command => whole(command, one(&replies)?),
    }
}

/// The only reply, unless it is an error.
fn one(replies: &[Reply]) -> Result<&Reply, Error> {
    match replies {
        [reply] => good(reply),
        other => Err(unexpected("not one reply", &Reply::List(other.to_vec()))),
    }
}

fn each<T>(replies: &[Reply], read: impl Fn(&Reply) -> Result<T, Error>) -> Items<T> {
    replies.iter().map(|reply| good(reply).and_then(&read)).collect()
}

fn good(reply: &Reply) -> Result<&Reply, Error> {
    let Reply::Error(line) = reply else { return Ok(reply) };
    let (word, text) = line.split_once(' ').unwrap_or((line, ""));
    let known = CODES.iter().find(|(known, _)| *known == word);
    Err(known.map_or_else(
        || unexpected("an unknown error", reply),
        |(_, code)| Error::new(*code, text.to_owned()),
    ))
}

fn list(reply: &Reply) -> Result<&[Reply], Error> {
    match reply {
        Reply::List(items) => Ok(items),
        other => Err(unexpected("no list", other)),
    }
}

fn whole(command: &Command, reply: &Reply) -> Answer {
    use command::Reply as R;
    Ok(match command {
        Command::Reserve(_) | Command::ReserveId(_) => {
            R::Jobs(list(reply)?.iter().map(leased).collect::<Result<_, _>>()?)
        }
        Command::ReviveTopic(_)
        | Command::ReleaseTopic(_)
        | Command::Kick(_)
        | Command::Purge(_) => R::Count(number(reply)?),
        Command::Locks(_) => {
            let (cursor, locks) = page(reply)?;
            let locks = locks.iter().map(held_lock).collect::<Result<_, _>>()?;
            R::Locks(LocksPage { locks, cursor })
        }
        Command::Peek(_) => R::View(optional_view(reply)?),
        Command::List(_) => {
            let (cursor, jobs) = page(reply)?;
            R::Page(Page { jobs: jobs.iter().map(view).collect::<Result<_, _>>()?, cursor })
        }
        Command::Topics(_) => {
            let (after, topics) = page(reply)?;
            let topics = topics.iter().map(named_stats).collect::<Result<Vec<_>, _>>()?;
            let last = topics.last().map(|(name, _)| name.as_str().to_owned());
            if after.is_some() && after != last {
                return Err(unexpected("the next page does not begin where this one ends", reply));
            }
            R::Topics(TopicsPage { topics, more: after.is_some() })
        }
        Command::PutSchedule(_) => R::PutSchedule(schedule::put_reply(reply)?),
        Command::GetSchedule(_) | Command::ChangeSchedule(_) => {
            R::Schedule(Box::new(schedule::view(reply)?))
        }
        Command::Schedules(_) => {
            let (cursor, schedules) = page(reply)?;
            let schedules = schedules.iter().map(schedule::view).collect::<Result<_, _>>()?;
            R::Schedules(SchedulesPage { schedules, cursor })
        }
        Command::RunSchedule(_) => R::Put(schedule::ran(reply)?),
        Command::Stats(asked) => R::Stats(stats(reply, asked.topic.is_none())?),
        Command::Forecast(_) => match list(reply)? {
            [.., counts] => {
                R::Forecast(list(counts)?.iter().map(number).collect::<Result<_, _>>()?)
            }
            [] => return Err(unexpected("no counts", reply)),
        },
        Command::Lock(_) | Command::RenewLock(_) => match list(reply)? {
            [fence, expires_at, depth] => R::Lock(LockReply {
                fence: text(fence)?,
                expires_at: number(expires_at)?,
                depth: number(depth)?,
            }),
            _ => return Err(unexpected("no lock", reply)),
        },
        Command::Unlock(_) => match status(reply) {
            "OK" => R::Unlocked(true),
            "HELD" => R::Unlocked(false),
            _ => return Err(unexpected("neither free nor held", reply)),
        },
        _ if status(reply) == "OK" => R::Done,
        _ => return Err(unexpected("not OK", reply)),
    })
}

fn held_lock(reply: &Reply) -> Result<HeldLockView, Error> {
    let [Reply::Bytes(name), Reply::Bytes(owner), fence, expires_at, depth] = list(reply)? else {
        return Err(unexpected("no lock", reply));
    };
    Ok(HeldLockView {
        name: name.clone().into(),
        owner: owner.clone().into(),
        fence: text(fence)?,
        expires_at: number(expires_at)?,
        depth: number(depth)?,
    })
}

fn status(reply: &Reply) -> &str {
    match reply {
        Reply::Bytes(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
        _ => "",
    }
}

/// Where the next page begins, and the items of this one.
fn page(reply: &Reply) -> Result<(Option<String>, &[Reply]), Error> {
    match list(reply)? {
        [Reply::Nil, items] => Ok((None, list(items)?)),
        [next, items] => Ok((Some(text(next)?), list(items)?)),
        _ => Err(unexpected("no page", reply)),
    }
}

fn optional_view(reply: &Reply) -> Result<Option<JobView>, Error> {
    match reply {
        Reply::Nil => Ok(None),
        reply => view(reply).map(Some),
    }
}

/// `GET` answers nothing where a backend answers `not_found`.
fn got(target: &Target, reply: &Reply) -> Result<JobView, Error> {
    let name = match target {
        Target::Id(id) => format!("job {id}"),
        Target::Key { topic, key } => format!("job with key {key:?} in topic {topic}"),
    };
    let missing = || Error::new(Code::NotFound, format!("there is no {name}"));
    optional_view(good(reply)?)?.ok_or_else(missing)
}

/// The id that a put was answered with.
pub(super) fn id_of_put(reply: &Reply) -> Option<Vec<u8>> {
    match reply {
        Reply::Bytes(id) => Some(id.clone()),
        Reply::List(items) => items.first().map(|id| id.bytes().to_vec()),
        _ => None,
    }
}

fn put(reply: &Reply, view: &Reply) -> Result<PutReply, Error> {
    let reply = good(reply)?;
    let (id, outcome) = match reply {
        Reply::List(items) => match &items[..] {
            [id, outcome] => (id, status(outcome)),
            _ => return Err(unexpected("no put", reply)),
        },
        id => (id, "created"),
    };
    let outcome = match outcome {
        "created" => PutOutcome::Created,
        "duplicate" => PutOutcome::Duplicate,
        "replaced" => PutOutcome::Replaced,
        _ => return Err(unexpected("no outcome", reply)),
    };
    let found = optional_view(good(view)?)?;
    let state: Option<State> = found.as_ref().map(|view| view.state);
    Ok(PutReply { id: text(id)?, outcome, state, due_at: found.map_or(0, |view| view.due_at) })
}

fn ended(reply: &Reply) -> Result<EndReply, Error> {
    if let Ok([word, due_at]) = list(reply)
        && status(word) == "RETRY"
    {
        return Ok(EndReply::Retry { due_at: number(due_at)? });
    }
    match status(reply) {
        "OK" => Ok(EndReply::Done),
        "DEAD" => Ok(EndReply::Dead),
        "GONE" => Ok(EndReply::Gone),
        _ => Err(unexpected("not an end", reply)),
    }
}

/// A cancelled job has no due time any more.
fn changed(reply: &Reply) -> Result<ChangeReply, Error> {
    match list(reply)? {
        [id, was] => Ok(ChangeReply { id: text(id)?, was: state(was)?, due_at: 0 }),
        [id, was, due_at] => {
            Ok(ChangeReply { id: text(id)?, was: state(was)?, due_at: number(due_at)? })
        }
        _ => Err(unexpected("no change", reply)),
    }
}
