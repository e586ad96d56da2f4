//! RESP replies as replies of a backend.

use bytes::Bytes;
use dormouse_core::backend::Answer;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::limits::REPLY_BYTES_MAX;
use dormouse_core::op::{
    ChainReply, ChangeReply, EndReply, ExtendReply, HeldLockView, JobView, LockReply, LocksPage,
    Page, PutOutcome, PutReply, SchedulesPage, Target, TopicsPage,
};
use dormouse_core::refusal::{does_not_fit, job_in_the_way, no_job};

use super::fields::{leased, named_stats, number, state, stats, text, unexpected, view};
use super::schedule;
use super::value::Value;

/// The code that a word stands for.
const CODES: [(&str, Code); 13] = [
    ("INVALID", Code::Invalid),
    ("ERR", Code::Invalid),
    ("NOAUTH", Code::Unauthorized),
    ("WRONGPASS", Code::Unauthorized),
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

/// Makes the answer to a command from the replies to its pipeline, as they come.
#[derive(Debug)]
pub struct ReplyReader {
    answer: Answer,
    missing: usize,
    /// Bytes of the jobs so far: a reply of many is bounded as it is on every backend.
    bytes: u64,
}

impl ReplyReader {
    /// For a command that was written as so many.
    pub fn new(command: &Command, replies: usize) -> ReplyReader {
        let reply = match command {
            Command::Put(puts) => Reply::Put(Vec::with_capacity(puts.len())),
            Command::Ack(_) | Command::Nack(_) | Command::Release(_) | Command::Kill(_) => {
                Reply::Ended(Vec::with_capacity(command.items()))
            }
            Command::Extend(items) => Reply::Extended(Vec::with_capacity(items.len())),
            Command::Cancel(_) | Command::Reschedule(_) | Command::Revive(_) => {
                Reply::Changed(Vec::with_capacity(command.items()))
            }
            Command::Get(targets) => Reply::Views(Vec::with_capacity(targets.len())),
            _ => Reply::Done,
        };
        ReplyReader { answer: Ok(reply), missing: replies, bytes: 0 }
    }

    /// How many replies have not come.
    pub fn missing(&self) -> usize {
        self.missing
    }

    /// Takes the next reply: the bytes that a [`Scanner`](super::Scanner) found to be one.
    pub fn add(&mut self, command: &Command, frame: &Bytes) {
        self.missing = self.missing.saturating_sub(1);
        let value = Value::parse(frame);
        let value = value.as_ref().ok_or_else(|| Error::unavailable("the reply is not whole"));
        let value = value.and_then(good);
        match (&mut self.answer, command) {
            (Ok(Reply::Ended(items)), Command::Ack(tokens)) if tokens.len() > 1 => {
                match value.and_then(list) {
                    Ok(values) => {
                        items.extend(values.iter().map(|value| good(value).and_then(ended)));
                    }
                    Err(error) => self.answer = Err(error),
                }
            }
            (Ok(Reply::Put(items)), Command::Put(_)) => items.push(value.and_then(put)),
            (Ok(Reply::Ended(items)), _) => items.push(value.and_then(ended)),
            (Ok(Reply::Extended(items)), _) => {
                items.push(value.and_then(|value| Ok(ExtendReply { expires_at: number(value)? })));
            }
            (Ok(Reply::Changed(items)), _) => items.push(value.and_then(changed)),
            (Ok(Reply::Views(items)), Command::Get(targets)) => {
                let view = value.and_then(|value| got(targets.get(items.len()), value, frame));
                items.push(view.and_then(|view| {
                    self.bytes += view.job.content.bytes();
                    let fits = items.is_empty() || self.bytes <= REPLY_BYTES_MAX;
                    if fits { Ok(view) } else { Err(does_not_fit(view.job.id)) }
                }));
            }
            (answer, command) => *answer = value.and_then(|value| whole(command, value, frame)),
        }
    }

    /// The answer, once no reply is missing.
    pub fn finish(self) -> Answer {
        self.answer
    }

    /// The answer if the rest never comes: items that have no reply get this error.
    pub fn finish_with(self, error: &Error) -> Answer {
        fn fill<T>(items: &mut Items<T>, missing: usize, error: &Error) {
            items.extend((0..missing).map(|_| Err(error.clone())));
        }
        let missing = self.missing;
        let mut answer = self.answer;
        match &mut answer {
            Ok(Reply::Put(items)) => fill(items, missing, error),
            Ok(Reply::Ended(items)) => fill(items, missing, error),
            Ok(Reply::Extended(items)) => fill(items, missing, error),
            Ok(Reply::Changed(items)) => fill(items, missing, error),
            Ok(Reply::Views(items)) => fill(items, missing, error),
            _ => return Err(error.clone()),
        }
        answer
    }
}

/// The value, unless it is an error.
fn good<'r, 'f>(value: &'r Value<'f>) -> Result<&'r Value<'f>, Error> {
    let Value::Error(line) = value else { return Ok(value) };
    let (word, text) = line.split_once(' ').unwrap_or((line, ""));
    let known = CODES.iter().find(|(known, _)| *known == word);
    let Some((_, code)) = known else { return Err(unexpected("an unknown error", value)) };
    let mut error = Error::new(*code, text.to_owned());
    if *code == Code::Conflict {
        error.job = job_in_the_way(text);
    }
    Err(error)
}

fn list<'r, 'f>(value: &'r Value<'f>) -> Result<&'r [Value<'f>], Error> {
    match value {
        Value::List(items) => Ok(items),
        other => Err(unexpected("no list", other)),
    }
}

fn whole(command: &Command, reply: &Value<'_>, frame: &Bytes) -> Answer {
    use Reply as R;
    Ok(match command {
        Command::Reserve(_) | Command::ReserveId(_) => {
            R::Jobs(list(reply)?.iter().map(|job| leased(job, frame)).collect::<Result<_, _>>()?)
        }
        Command::Chain(_) => R::Chain(chain(reply)?),
        Command::ReviveTopic(_)
        | Command::ReleaseTopic(_)
        | Command::Kick(_)
        | Command::Purge(_) => R::Count(number(reply)?),
        Command::Locks(_) => {
            let (cursor, locks) = page(reply)?;
            let locks = locks.iter().map(held_lock).collect::<Result<_, _>>()?;
            R::Locks(LocksPage { locks, cursor })
        }
        Command::Peek(_) => R::View(optional_view(reply, frame)?.map(Box::new)),
        Command::List(_) => {
            let (cursor, jobs) = page(reply)?;
            R::Page(Page {
                jobs: jobs.iter().map(|job| view(job, frame)).collect::<Result<_, _>>()?,
                cursor,
            })
        }
        Command::Topics(_) => {
            let (after, topics) = page(reply)?;
            let topics = topics
                .iter()
                .map(|topic| named_stats(topic, frame))
                .collect::<Result<Vec<_>, _>>()?;
            let last = topics.last().map(|(name, _)| name.as_str().to_owned());
            if after.is_some() && after != last {
                return Err(unexpected("the next page does not begin where this one ends", reply));
            }
            R::Topics(TopicsPage { topics, more: after.is_some() })
        }
        Command::PutSchedule(_) => schedule::put_reply(reply, frame)?.into(),
        Command::GetSchedule(_) | Command::ChangeSchedule(_) => {
            R::Schedule(Box::new(schedule::view(reply, frame)?))
        }
        Command::Schedules(_) => {
            let (cursor, schedules) = page(reply)?;
            let schedules =
                schedules.iter().map(|one| schedule::view(one, frame)).collect::<Result<_, _>>()?;
            R::Schedules(SchedulesPage { schedules, cursor })
        }
        Command::RunSchedule(_) => R::Put(schedule::ran(reply)?),
        Command::Stats(asked) => R::Stats(Box::new(stats(reply, asked.topic.is_none(), frame)?)),
        Command::Forecast(_) => R::Forecast(forecast(reply)?),
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

fn chain(reply: &Value<'_>) -> Result<ChainReply, Error> {
    let [end, puts @ ..] = list(reply)? else { return Err(unexpected("no chain", reply)) };
    let puts = puts.iter().map(put).collect::<Result<_, _>>()?;
    Ok(ChainReply { end: ended(end)?, puts })
}

/// The counts are the last field.
fn forecast(reply: &Value<'_>) -> Result<Vec<u64>, Error> {
    let [.., counts] = list(reply)? else { return Err(unexpected("no counts", reply)) };
    list(counts)?.iter().map(number).collect()
}

fn held_lock(reply: &Value<'_>) -> Result<HeldLockView, Error> {
    let [Value::Text(name), Value::Text(owner), fence, expires_at, depth] = list(reply)? else {
        return Err(unexpected("no lock", reply));
    };
    Ok(HeldLockView {
        name: Bytes::copy_from_slice(name),
        owner: Bytes::copy_from_slice(owner),
        fence: text(fence)?,
        expires_at: number(expires_at)?,
        depth: number(depth)?,
    })
}

fn status<'f>(reply: &Value<'f>) -> &'f str {
    match reply {
        Value::Text(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
        _ => "",
    }
}

/// Where the next page begins, and the items of this one.
fn page<'r, 'f>(reply: &'r Value<'f>) -> Result<(Option<String>, &'r [Value<'f>]), Error> {
    match list(reply)? {
        [Value::Null, items] => Ok((None, list(items)?)),
        [next, items] => Ok((Some(text(next)?), list(items)?)),
        _ => Err(unexpected("no page", reply)),
    }
}

fn optional_view(reply: &Value<'_>, frame: &Bytes) -> Result<Option<JobView>, Error> {
    match reply {
        Value::Null => Ok(None),
        reply => view(reply, frame).map(Some),
    }
}

/// `GET` answers nothing where a backend answers `not_found`.
fn got(target: Option<&Target>, reply: &Value<'_>, frame: &Bytes) -> Result<JobView, Error> {
    match (optional_view(reply, frame)?, target) {
        (Some(view), _) => Ok(view),
        (None, Some(target)) => Err(no_job(target)),
        (None, None) => Err(unexpected("a reply too many", reply)),
    }
}

fn put(reply: &Value<'_>) -> Result<PutReply, Error> {
    let [id, outcome, its_state, due_at] = list(reply)? else {
        return Err(unexpected("no put", reply));
    };
    let outcome = match status(outcome) {
        "created" => PutOutcome::Created,
        "duplicate" => PutOutcome::Duplicate,
        "replaced" => PutOutcome::Replaced,
        _ => return Err(unexpected("no outcome", reply)),
    };
    let state = match its_state {
        Value::Null => None,
        word => Some(state(word)?),
    };
    Ok(PutReply { id: text(id)?, outcome, state, due_at: number(due_at)? })
}

fn ended(reply: &Value<'_>) -> Result<EndReply, Error> {
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
fn changed(reply: &Value<'_>) -> Result<ChangeReply, Error> {
    match list(reply)? {
        [id, was] => Ok(ChangeReply { id: text(id)?, was: state(was)?, due_at: 0 }),
        [id, was, due_at] => {
            Ok(ChangeReply { id: text(id)?, was: state(was)?, due_at: number(due_at)? })
        }
        _ => Err(unexpected("no change", reply)),
    }
}
