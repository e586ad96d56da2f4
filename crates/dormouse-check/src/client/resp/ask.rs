//! Commands as RESP commands.

use dormouse_core::command::Command;
use dormouse_core::error::Error;
use dormouse_core::limits::AT_MS_MAX;
use dormouse_core::op::{
    Cancel, Forecast, Kill, KillTarget, List, Lock, Nack, Put, Release, RenewLock, Reschedule,
    Reserve, ReserveId, Target, Topics,
};

use super::schedule;
use crate::client::backend::{Part, at_most_i64, check_batch};
use crate::client::words::{backoff_words, on_conflict_word};

/// A pipeline of commands.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) commands: Vec<Vec<Vec<u8>>>,
    /// Puts, whose jobs are read with `GET` afterwards.
    pub(super) are_puts: bool,
}

/// The words of one command.
pub(super) struct Words(Vec<Vec<u8>>);

impl Words {
    pub(super) fn new(verb: &str) -> Words {
        Words(vec![verb.as_bytes().to_vec()])
    }

    pub(super) fn bytes(mut self, word: &[u8]) -> Words {
        self.0.push(word.to_vec());
        self
    }

    pub(super) fn word(self, word: impl ToString) -> Words {
        self.bytes(word.to_string().as_bytes())
    }

    /// A name and its value, if it has one.
    pub(super) fn option(self, name: &str, value: Option<impl ToString>) -> Words {
        match value {
            Some(value) => self.word(name).word(value),
            None => self,
        }
    }

    pub(super) fn bytes_option(self, name: &str, value: Option<&[u8]>) -> Words {
        match value {
            Some(value) => self.word(name).bytes(value),
            None => self,
        }
    }

    pub(super) fn flag(self, name: &str, is_set: bool) -> Words {
        if is_set { self.word(name) } else { self }
    }

    pub(super) fn target(self, target: &Target) -> Words {
        match target {
            Target::Id(id) => self.word(id),
            Target::Key { topic, key } => self.word(topic).word("KEY").bytes(key),
        }
    }
}

/// RESP has no way to say this.
fn not_carried(what: &str) -> Error {
    Error::invalid(format!("RESP does not carry {what}"))
}

/// The pipeline that carries a command.
pub(super) fn parts(command: &Command) -> Result<Vec<Part<Call>>, Error> {
    let commands = match command {
        Command::Put(puts) => each(puts, put)?,
        Command::Ack(tokens) => {
            check_batch(tokens.len())?;
            let all = || tokens.iter().fold(Words::new("ACK"), Words::word);
            if tokens.is_empty() { Vec::new() } else { vec![all()] }
        }
        Command::Nack(items) => each(items, nack)?,
        Command::Release(items) => each(items, release)?,
        Command::Extend(items) => each(items, |item| {
            let words = Words::new("EXTEND").word(item.token);
            item.ttr_ms.into_iter().fold(words, Words::word)
        })?,
        Command::Kill(items) => each(items, kill)?,
        Command::Cancel(items) => each(items, cancel)?,
        Command::Reschedule(items) => each(items, reschedule)?,
        Command::Revive(targets) => each(targets, |target| Words::new("REVIVE").target(target))?,
        Command::Get(targets) => each(targets, |target| Words::new("GET").target(target))?,
        command => vec![one(command)?],
    };
    let are_puts = matches!(command, Command::Put(_));
    let commands = commands.into_iter().map(|words| words.0).collect();
    Ok(Part::whole(Call { commands, are_puts }))
}

/// One command per item.
fn each<T>(items: &[T], words: impl Fn(&T) -> Words) -> Result<Vec<Words>, Error> {
    check_batch(items.len())?;
    Ok(items.iter().map(words).collect())
}

/// Commands without items.
fn one(command: &Command) -> Result<Words, Error> {
    Ok(match command {
        Command::Reserve(reserve) => self::reserve(reserve)?,
        Command::ReserveId(reserve) => reserve_id(reserve)?,
        Command::ReviveTopic(revive) => {
            Words::new("REVIVE").word(&revive.topic).option("MAX", Some(revive.max))
        }
        Command::Kick(kick) => Words::new("KICK").word(&kick.topic).option("MAX", Some(kick.max)),
        Command::Peek(peek) => Words::new("PEEK").word(&peek.topic).word(peek.state),
        Command::List(list) => self::list(list),
        Command::Topics(topics) => self::topics(topics),
        Command::Stats(stats) => stats.topic.iter().fold(Words::new("STATS"), Words::word),
        Command::Pause(pause) => {
            pause.for_ms.into_iter().fold(Words::new("PAUSE").word(&pause.topic), Words::word)
        }
        Command::Resume(topic) => Words::new("RESUME").word(topic),
        Command::Purge(topic) => Words::new("PURGE").word(topic),
        Command::Forecast(forecast) => self::forecast(forecast),
        Command::Lock(lock) => acquire(lock),
        Command::RenewLock(renew) => self::renew(renew),
        Command::Unlock(unlock) => Words::new("UNLOCK").bytes(&unlock.name).bytes(&unlock.owner),
        Command::BreakLock(broken) => {
            Words::new("BREAK").bytes(&broken.name).option("FENCE", broken.fence)
        }
        Command::Locks(page) => Words::new("LOCKS")
            .option("CURSOR", page.cursor.as_ref())
            .option("LIMIT", Some(page.limit))
            .word("PREFIX")
            .bytes(&page.prefix),
        Command::ReleaseTopic(release) => {
            Words::new("RELEASE").word(&release.topic).option("MAX", Some(release.max))
        }
        Command::SetTopic(_) => return Err(not_carried("settings of topics")),
        Command::OpenSession | Command::CloseSession(_) => return Err(not_carried("sessions")),
        command => schedule::words(command).ok_or_else(|| not_carried("this command"))?,
    })
}

fn put(put: &Put) -> Words {
    let words = Words::new("PUT")
        .word(&put.topic)
        .bytes(&put.body)
        .option("DELAY", put.delay_ms)
        .option("AT", put.at_ms)
        .bytes_option("KEY", put.key.as_deref())
        .option("ON_CONFLICT", Some(on_conflict_word(put.on_conflict)))
        .option("KEY_TTL", put.key_ttl_ms)
        .option("PRIORITY", put.priority)
        .option("TTR", put.ttr_ms)
        .option("ATTEMPTS", put.attempts_max)
        .option("BACKOFF", put.backoff.as_deref().map(backoff_words));
    let headers = put.headers.iter().flat_map(|headers| headers.iter());
    headers.fold(words, |words, (name, value)| words.word("HEADER").word(name).word(value))
}

fn nack(item: &Nack) -> Words {
    Words::new("NACK")
        .word(item.token)
        .option("DELAY", item.delay_ms)
        .option("PRIORITY", item.priority)
        .bytes_option("ERROR", item.error.as_deref())
}

fn release(item: &Release) -> Words {
    let words = Words::new("RELEASE").word(item.token);
    words.option("DELAY", item.delay_ms).option("PRIORITY", item.priority)
}

fn kill(kill: &Kill) -> Words {
    let words = match &kill.target {
        KillTarget::Token(token) => Words::new("KILL").word(token),
        KillTarget::Resting(target) => Words::new("KILL").target(target),
    };
    words.option("PRIORITY", kill.priority).bytes_option("ERROR", kill.error.as_deref())
}

fn cancel(cancel: &Cancel) -> Words {
    Words::new("CANCEL").target(&cancel.target).flag("UNLESS_LEASED", cancel.unless_leased)
}

fn reschedule(item: &Reschedule) -> Words {
    let is_now = item.delay_ms.is_none() && item.at_ms.is_none();
    Words::new("RESCHEDULE")
        .target(&item.target)
        .option("DELAY", item.delay_ms)
        .option("AT", item.at_ms)
        .flag("NOW", is_now)
}

fn reserve(reserve: &Reserve) -> Result<Words, Error> {
    if reserve.session.is_some() {
        return Err(not_carried("sessions"));
    }
    let words = reserve.topics.iter().fold(Words::new("RESERVE"), Words::word);
    let words = words.option("MAX", Some(reserve.max)).option("WAIT", Some(reserve.wait_ms));
    Ok(words.option("TTR", reserve.ttr_ms).word("FULL"))
}

fn reserve_id(reserve: &ReserveId) -> Result<Words, Error> {
    if reserve.session.is_some() {
        return Err(not_carried("sessions"));
    }
    Ok(Words::new("RESERVEID").word(reserve.id).option("TTR", reserve.ttr_ms).word("FULL"))
}

fn list(list: &List) -> Words {
    let words = Words::new("LIST").word(&list.topic).word(list.state);
    words.option("CURSOR", list.cursor.as_ref()).option("LIMIT", Some(list.limit))
}

fn topics(topics: &Topics) -> Words {
    let words = Words::new("TOPICS").option("AFTER", topics.after.as_ref());
    words.option("LIMIT", Some(topics.limit))
}

fn forecast(forecast: &Forecast) -> Words {
    Words::new("FORECAST")
        .word(&forecast.topic)
        .option("FROM", Some(forecast.from_ms.min(AT_MS_MAX)))
        .option("TO", Some(forecast.to_ms.min(AT_MS_MAX)))
        .option("STEP", Some(at_most_i64(forecast.step_ms)))
}

fn acquire(lock: &Lock) -> Words {
    let words = Words::new("LOCK").bytes(&lock.name).bytes(&lock.owner);
    words.option("TTL", Some(lock.ttl_ms)).option("WAIT", Some(lock.wait_ms))
}

fn renew(renew: &RenewLock) -> Words {
    Words::new("RENEW").bytes(&renew.name).bytes(&renew.owner).option("TTL", renew.ttl_ms)
}
