//! Commands as RESP commands.

use dormouse_core::command::Command;
use dormouse_core::error::Error;
use dormouse_core::job::{BodyKind, State};
use dormouse_core::limits::{AT_MS_MAX, BATCH_MAX, CHAIN_PUTS_MAX};
use dormouse_core::op::{
    Forecast, Kill, KillTarget, ListOrder, Lock, Locks, Nack, OnConflict, Put, Reschedule, Reserve,
    ReserveId, SetTopic,
};

use super::schedule;
use super::text::{backoff_words, on_conflict_word, rate_words};
use super::words::{Commands, Words};

/// Writes a command as a pipeline, and tells how many replies it will have. What RESP cannot carry
/// is `invalid`, and what was written of it is to be thrown away.
pub fn encode(command: &Command, out: &mut Vec<u8>) -> Result<usize, Error> {
    let mut commands = Commands::new(out);
    let c = &mut commands;
    match command {
        Command::Put(puts) => each(puts, |one| put(&mut c.begin("PUT"), one))?,
        // It would be an ack.
        Command::Chain(chain) if chain.puts.is_empty() => {
            return Err(Error::invalid(format!(
                "the chain has 0 puts; give 1 to {CHAIN_PUTS_MAX}, or ack without any"
            )));
        }
        Command::Chain(chain) => {
            let mut words = c.begin("ACK");
            words.word(chain.token);
            chain.puts.iter().for_each(|one| put(words.word("PUT"), one));
        }
        Command::Ack(tokens) if tokens.is_empty() => {}
        Command::Ack(tokens) => {
            let mut words = c.begin("ACK");
            each(tokens, |token| {
                words.word(token);
            })?;
        }
        Command::Nack(items) => each(items, |item| nack(&mut c.begin("NACK"), item))?,
        Command::Release(items) => each(items, |item| {
            let mut words = c.begin("RELEASE");
            words.word(item.token);
            words.option("DELAY", item.delay_ms).option("PRIORITY", item.priority);
        })?,
        Command::Extend(items) => each(items, |item| {
            let mut words = c.begin("EXTEND");
            words.word(item.token);
            if let Some(ms) = item.ttr_ms {
                words.word(ms);
            }
        })?,
        Command::Kill(items) => each(items, |item| kill(&mut c.begin("KILL"), item))?,
        Command::Cancel(items) => each(items, |item| {
            c.begin("CANCEL").target(&item.target).flag("UNLESS_LEASED", item.unless_leased);
        })?,
        Command::Reschedule(items) => {
            each(items, |item| reschedule(&mut c.begin("RESCHEDULE"), item))?;
        }
        Command::Revive(targets) => each(targets, |target| {
            c.begin("REVIVE").target(target);
        })?,
        Command::Get(targets) => each(targets, |target| {
            c.begin("GET").target(target);
        })?,
        command => one(c, command)?,
    }
    commands.finish()
}

/// RESP has no way to say this.
fn not_carried(what: &str) -> Error {
    Error::invalid(format!(
        "a server cannot be asked for {what} over RESP; use a queue in the same process, or \
         another protocol of the server"
    ))
}

/// One command per item; a list that is too long is refused as every backend does.
fn each<T>(items: &[T], write: impl FnMut(&T)) -> Result<(), Error> {
    let count = items.len();
    if count > BATCH_MAX {
        return Err(Error::invalid(format!(
            "the batch has {count} items; send at most {BATCH_MAX} at once and the rest after"
        )));
    }
    items.iter().for_each(write);
    Ok(())
}

/// Commands without items.
fn one(c: &mut Commands<'_>, command: &Command) -> Result<(), Error> {
    match command {
        Command::Reserve(reserve) => self::reserve(c, reserve)?,
        Command::ReserveId(reserve) => reserve_id(c, reserve)?,
        Command::ReviveTopic(revive) => {
            c.begin("REVIVE").word(&revive.topic).option("MAX", Some(revive.max));
        }
        Command::Kick(kick) => {
            c.begin("KICK").word(&kick.topic).option("MAX", Some(kick.max));
        }
        Command::ReleaseTopic(release) => {
            c.begin("RELEASE").word(&release.topic).option("MAX", Some(release.max));
        }
        Command::Peek(peek) => {
            c.begin("PEEK").word(&peek.topic).word(peek.state);
        }
        Command::List(list) => {
            let mut words = c.begin("LIST");
            words.word(&list.topic).word(list.state);
            words.option("CURSOR", list.cursor.as_ref()).option("LIMIT", Some(list.limit));
            words.option("FROM", list.range.from_ms).option("TO", list.range.to_ms);
            match list.range.order {
                ListOrder::Usual => {}
                ListOrder::Due => drop(words.word("DUE")),
                ListOrder::Newest => drop(words.word("NEWEST")),
            }
        }
        Command::Topics(page) => {
            let mut words = c.begin("TOPICS");
            words.option("AFTER", page.after.as_ref()).option("LIMIT", Some(page.limit));
        }
        Command::Stats(stats) => {
            let mut words = c.begin("STATS");
            if let Some(topic) = &stats.topic {
                words.word(topic);
            }
        }
        Command::SetTopic(set) => set_topic(&mut c.begin("SETTOPIC"), set),
        Command::Pause(pause) => {
            let mut words = c.begin("PAUSE");
            words.word(&pause.topic);
            if let Some(ms) = pause.for_ms {
                words.word(ms);
            }
        }
        Command::Resume(topic) => {
            c.begin("RESUME").word(topic);
        }
        Command::Purge(purge) => {
            let mut words = c.begin("PURGE");
            words.word(&purge.topic).option("STATE", purge.state.map(State::as_str));
            words.option("AT_MOST", purge.at_most);
        }
        Command::Forecast(forecast) => self::forecast(&mut c.begin("FORECAST"), forecast),
        Command::Lock(lock) => acquire(&mut c.begin("LOCK"), lock),
        Command::RenewLock(renew) => {
            c.begin("RENEW").word(&renew.name).word(&renew.owner).option("TTL", renew.ttl_ms);
        }
        Command::Unlock(unlock) => {
            c.begin("UNLOCK").word(&unlock.name).word(&unlock.owner);
        }
        Command::BreakLock(broken) => {
            c.begin("BREAK").word(&broken.name).option("FENCE", broken.fence);
        }
        Command::Locks(page) => locks(&mut c.begin("LOCKS"), page),
        Command::OpenSession | Command::CloseSession(_) => return Err(not_carried("sessions")),
        Command::TopicsOf(_) => return Err(not_carried("the topics of jobs")),
        command if schedule::write(c, command) => {}
        _ => return Err(not_carried("this command")),
    }
    Ok(())
}

fn put(words: &mut Words<'_, '_>, put: &Put) {
    let on_conflict = Some(put.on_conflict).filter(|mode| *mode != OnConflict::Keep);
    let kind = Some(put.body_kind).filter(|kind| *kind != BodyKind::Bytes);
    words
        .word(&put.topic)
        .word(&put.body)
        .option("DELAY", put.delay_ms)
        .option("AT", put.at_ms)
        .option("KEY", put.key.as_ref())
        .option("ON_CONFLICT", on_conflict.map(on_conflict_word))
        .option("KEY_TTL", put.key_ttl_ms)
        .option("PRIORITY", put.priority)
        .option("TTR", put.ttr_ms)
        .option("ATTEMPTS", put.attempts_max)
        .option("BACKOFF", put.backoff.as_deref().map(backoff_words))
        .option("EXPIRES_AFTER", put.expires_after_ms)
        .option("GROUP", put.group.as_ref())
        .headers(put.headers.as_ref().map(|headers| headers.as_slice()))
        .option("KIND", kind.map(BodyKind::as_str))
        .word("FULL");
}

fn set_topic(words: &mut Words<'_, '_>, set: &SetTopic) {
    let settings = &set.settings;
    words
        .word(&set.topic)
        .option("TTR", settings.ttr_ms.map(at_most_i64))
        .option("ATTEMPTS", settings.attempts_max)
        .option("BACKOFF", settings.backoff.as_deref().map(backoff_words))
        .option("DELAY", settings.delay_ms.map(at_most_i64))
        .option("EXPIRES_AFTER", settings.expires_after_ms.map(at_most_i64))
        .option("JOBS_MAX", settings.jobs_max)
        .option("BYTES_MAX", settings.bytes_max)
        .option("DEAD_TTL", settings.dead_ttl_ms.map(at_most_i64))
        .option("DEAD_MAX", settings.dead_max)
        .option("DEAD_TOPIC", settings.dead_topic.as_ref())
        .option("KEEP_DONE", settings.keep_done_ms.map(at_most_i64))
        .option("LEASED_MAX", settings.leased_max)
        .option("RATE", settings.rate.map(rate_words))
        .option("GROUP_LEASED_MAX", settings.group_leased_max)
        .option("GROUP_RATE", settings.group_rate.map(rate_words));
}

fn nack(words: &mut Words<'_, '_>, item: &Nack) {
    words
        .word(item.token)
        .option("DELAY", item.delay_ms)
        .option("PRIORITY", item.priority)
        .option("ERROR", item.error.as_ref());
}

fn kill(words: &mut Words<'_, '_>, kill: &Kill) {
    match &kill.target {
        KillTarget::Token(token) => words.word(token),
        KillTarget::Resting(target) => words.target(target),
    };
    words.option("PRIORITY", kill.priority).option("ERROR", kill.error.as_ref());
}

fn reschedule(words: &mut Words<'_, '_>, item: &Reschedule) {
    let is_now = item.delay_ms.is_none() && item.at_ms.is_none();
    words
        .target(&item.target)
        .option("DELAY", item.delay_ms)
        .option("AT", item.at_ms)
        .flag("NOW", is_now);
}

fn reserve(c: &mut Commands<'_>, reserve: &Reserve) -> Result<(), Error> {
    if reserve.session.is_some() {
        return Err(not_carried("sessions"));
    }
    if reserve.topics.is_empty() {
        // The first word is a topic, whatever it is: the server could not tell.
        reserve.check()?;
    }
    let mut words = c.begin("RESERVE");
    for topic in &reserve.topics {
        words.word(topic);
    }
    let wait_ms = Some(reserve.wait_ms).filter(|ms| *ms != 0);
    words.option("MAX", Some(reserve.max)).option("WAIT", wait_ms).option("TTR", reserve.ttr_ms);
    words.word("FULL");
    Ok(())
}

fn reserve_id(c: &mut Commands<'_>, reserve: &ReserveId) -> Result<(), Error> {
    if reserve.session.is_some() {
        return Err(not_carried("sessions"));
    }
    c.begin("RESERVEID").word(reserve.id).option("TTR", reserve.ttr_ms).word("FULL");
    Ok(())
}

fn forecast(words: &mut Words<'_, '_>, forecast: &Forecast) {
    words
        .word(&forecast.topic)
        .option("FROM", Some(forecast.from_ms.min(AT_MS_MAX)))
        .option("TO", Some(forecast.to_ms.min(AT_MS_MAX)))
        .option("STEP", Some(at_most_i64(forecast.step_ms)));
}

fn acquire(words: &mut Words<'_, '_>, lock: &Lock) {
    let wait_ms = Some(lock.wait_ms).filter(|ms| *ms != 0);
    words.word(&lock.name).word(&lock.owner);
    words.option("TTL", Some(lock.ttl_ms)).option("WAIT", wait_ms);
}

fn locks(words: &mut Words<'_, '_>, page: &Locks) {
    words.option("CURSOR", page.cursor.as_ref()).option("LIMIT", Some(page.limit));
    words.word("PREFIX").word(&page.prefix);
}

/// The largest span that can be written; it is beyond every limit, too.
fn at_most_i64(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}
