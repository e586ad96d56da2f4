//! Commands as requests.

use dormouse_core::command::Command;
use dormouse_core::error::Error;
use dormouse_core::job::Token;
use dormouse_core::limits::AT_MS_MAX;
use dormouse_core::op::{
    Cancel, Forecast, Kill, KillTarget, List, ListOrder, Lock, Locks, Nack, Purge, Release,
    RenewLock, Reschedule, Reserve, ReserveId, Target, Topics, Unlock,
};
use serde_json::{Map, Value, json};

use super::client::Call;
use super::put::{self, PutForm};
use super::query::{Query, encode};
use super::schedule;
use super::topic::settings_out;
use crate::client::backend::{self, at_most_i64, check_batch};

pub(super) type Part = backend::Part<Call>;

/// The API has no way to say this.
pub(super) fn not_carried(what: &str) -> Error {
    Error::invalid(format!("HTTP does not carry {what} like this"))
}

/// Bytes that the API carries as text.
pub(super) fn text<'b>(what: &str, bytes: &'b [u8]) -> Result<&'b str, Error> {
    std::str::from_utf8(bytes).map_err(|_| not_carried(what))
}

/// The requests that a command comes to.
pub(super) fn parts(command: &Command, form: PutForm) -> Result<Vec<Part>, Error> {
    Ok(match command {
        Command::Put(puts) => put::parts(puts, form)?,
        Command::Reserve(reserve) => Part::whole(self::reserve(reserve)?),
        Command::ReserveId(reserve) => Part::whole(reserve_id(reserve)?),
        Command::Ack(tokens) => with_tokens("ack", tokens, |token| (*token, Ok(Map::new())))?,
        Command::Chain(chain) => Part::whole(put::chain(chain)?),
        Command::Nack(items) => with_tokens("nack", items, nack)?,
        Command::Release(items) => with_tokens("release", items, release)?,
        Command::Extend(items) => with_tokens("extend", items, |item| {
            (item.token, Ok(fields([("ttr", item.ttr_ms.map(Value::from))])))
        })?,
        Command::Kill(items) => kill(items)?,
        Command::Cancel(items) => each(items, cancel)?,
        Command::Reschedule(items) => each(items, reschedule)?,
        Command::Revive(targets) => {
            each(targets, |target| Ok(post(format!("{}/revive", job(target)?), &json!({}))))?
        }
        Command::Get(targets) => each(targets, |target| Ok(get(job(target)?)))?,
        Command::ReviveTopic(revive) => {
            Part::whole(in_topic(&revive.topic, "revive", &json!({ "max": revive.max })))
        }
        Command::Kick(kick) => {
            Part::whole(in_topic(&kick.topic, "kick", &json!({ "max": kick.max })))
        }
        Command::List(list) => Part::whole(get(self::list(list))),
        Command::Topics(topics) => Part::whole(get(self::topics(topics))),
        Command::SetTopic(set) => {
            let body = settings_out(&set.settings);
            Part::whole(Call { method: "PUT", ..post(topic(&set.topic), &body) })
        }
        Command::Stats(stats) => Part::whole(match &stats.topic {
            Some(name) => get(topic(name)),
            None => get("/v1/stats".to_owned()),
        }),
        Command::Pause(pause) => {
            let body = Value::Object(fields([("for", pause.for_ms.map(Value::from))]));
            Part::whole(in_topic(&pause.topic, "pause", &body))
        }
        Command::Resume(name) => Part::whole(in_topic(name, "resume", &json!({}))),
        Command::Purge(purge) => Part::whole(Call { method: "DELETE", ..get(self::purge(purge)) }),
        Command::Forecast(forecast) => Part::whole(get(self::forecast(forecast))),
        Command::Lock(lock) => Part::whole(acquire(lock)?),
        Command::RenewLock(renew) => Part::whole(self::renew(renew)?),
        Command::Unlock(unlock) => Part::whole(self::unlock(unlock)?),
        Command::BreakLock(broken) => {
            let name = encode(text("a lock's name", &broken.name)?);
            let query = broken.fence.map(|fence| format!("?fence={fence}")).unwrap_or_default();
            Part::whole(Call { method: "DELETE", ..get(format!("/v1/locks/{name}{query}")) })
        }
        Command::Locks(page) => Part::whole(get(locks(page)?)),
        Command::ReleaseTopic(release) => {
            Part::whole(in_topic(&release.topic, "release", &json!({ "max": release.max })))
        }
        Command::PutSchedule(put) => Part::whole(schedule::put(put)?),
        Command::GetSchedule(one) => Part::whole(get(schedule::path(&one.topic, &one.name))),
        Command::Schedules(page) => Part::whole(get(schedule::page(page))),
        Command::RemoveSchedule(remove) => Part::whole(schedule::remove(remove)),
        Command::ChangeSchedule(one) => {
            Part::whole(schedule::change(&schedule::path(&one.topic, &one.name), one.change))
        }
        Command::RunSchedule(run) => Part::whole(schedule::run(run)),
        // What a push is made of has another form there.
        Command::SetPush(_)
        | Command::GetPush(_)
        | Command::Pushes(_)
        | Command::Peek(_)
        | Command::TopicsOf(_)
        | Command::OpenSession
        | Command::CloseSession(_)
        | Command::Withdraw(_) => return Err(not_carried("this command")),
    })
}

fn get(path: String) -> Call {
    Call { method: "GET", path, content_type: "application/json", body: Vec::new() }
}

fn post(path: String, body: &Value) -> Call {
    let body = body.to_string().into_bytes();
    Call { method: "POST", path, content_type: "application/json", body }
}

fn topic(name: &dormouse_core::topic::TopicName) -> String {
    format!("/v1/topics/{}", encode(name.as_str()))
}

fn in_topic(name: &dormouse_core::topic::TopicName, verb: &str, body: &Value) -> Call {
    post(format!("{}/{verb}", topic(name)), body)
}

fn job(target: &Target) -> Result<String, Error> {
    match target {
        Target::Id(id) => Ok(format!("/v1/jobs/{id}")),
        Target::Key { topic: name, key } => {
            Ok(format!("{}/keys/{}", topic(name), encode(text("a key", key)?)))
        }
    }
}

/// An object of the fields that have a value.
fn fields<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    given.collect()
}

/// One request per item, because there is no form for many. So the limit is kept here.
fn each<T>(items: &[T], call: impl Fn(&T) -> Result<Call, Error>) -> Result<Vec<Part>, Error> {
    check_batch(items.len())?;
    items.iter().map(|item| Ok(Part { call: call(item)?, items: 1 })).collect()
}

type Options = Result<Map<String, Value>, Error>;

/// One request for each run of items with the same options.
fn with_tokens<T>(
    verb: &str,
    items: &[T],
    split: impl Fn(&T) -> (Token, Options),
) -> Result<Vec<Part>, Error> {
    let mut pairs = Vec::with_capacity(items.len());
    for item in items {
        let (token, options) = split(item);
        pairs.push((token, options?));
    }
    let runs = pairs.chunk_by(|(_, a), (_, b)| a == b);
    let part = |run: &[(Token, Map<String, Value>)]| {
        let mut body = run.first().map(|(_, options)| options.clone()).unwrap_or_default();
        let tokens: Vec<String> = run.iter().map(|(token, _)| token.to_string()).collect();
        match &tokens[..] {
            [token] => body.insert("token".to_owned(), json!(token)),
            tokens => body.insert("tokens".to_owned(), json!(tokens)),
        };
        Part { call: post(format!("/v1/{verb}"), &Value::Object(body)), items: tokens.len() }
    };
    Ok(runs.map(part).collect())
}

fn nack(item: &Nack) -> (Token, Options) {
    let error = item.error.as_ref().map(|error| text("an error text", error)).transpose();
    let options = error.map(|error| {
        fields([
            ("delay", item.delay_ms.map(Value::from)),
            ("priority", item.priority.map(Value::from)),
            ("error", error.map(Value::from)),
        ])
    });
    (item.token, options)
}

fn release(item: &Release) -> (Token, Options) {
    let delay = item.delay_ms.map(Value::from);
    let priority = item.priority.map(Value::from);
    (item.token, Ok(fields([("delay", delay), ("priority", priority)])))
}

/// Leased jobs by their tokens, in lists; resting ones one by one.
fn kill(items: &[Kill]) -> Result<Vec<Part>, Error> {
    let options = |kill: &Kill| -> Options {
        let error = kill.error.as_ref().map(|error| text("an error text", error)).transpose()?;
        let priority = kill.priority.map(Value::from);
        Ok(fields([("error", error.map(Value::from)), ("priority", priority)]))
    };
    let is_held = |kill: &Kill| matches!(kill.target, KillTarget::Token(_));
    let mut parts = Vec::new();
    for run in items.chunk_by(|a, b| is_held(a) == is_held(b)) {
        let held: Vec<(Token, &Kill)> = run
            .iter()
            .filter_map(|kill| match kill.target {
                KillTarget::Token(token) => Some((token, kill)),
                KillTarget::Resting(_) => None,
            })
            .collect();
        parts.extend(with_tokens("kill", &held, |(token, kill)| (*token, options(kill)))?);
        for kill in run {
            if let KillTarget::Resting(target) = &kill.target {
                let call = post(format!("{}/kill", job(target)?), &Value::Object(options(kill)?));
                parts.push(Part { call, items: 1 });
            }
        }
    }
    Ok(parts)
}

fn cancel(cancel: &Cancel) -> Result<Call, Error> {
    let mut query = Query::default();
    query.add("unless_leased", cancel.unless_leased.then_some(true));
    Ok(Call { method: "DELETE", ..get(query.after(job(&cancel.target)?)) })
}

/// Without a time it is a run.
fn reschedule(item: &Reschedule) -> Result<Call, Error> {
    let path = job(&item.target)?;
    let body =
        fields([("delay", item.delay_ms.map(Value::from)), ("at", item.at_ms.map(Value::from))]);
    if body.is_empty() {
        return Ok(post(format!("{path}/run"), &json!({})));
    }
    Ok(Call { method: "PATCH", ..post(path, &Value::Object(body)) })
}

fn reserve(reserve: &Reserve) -> Result<Call, Error> {
    if reserve.session.is_some() {
        return Err(not_carried("a session"));
    }
    let mut body = fields([
        ("max", Some(reserve.max.into())),
        ("wait", Some(reserve.wait_ms.into())),
        ("ttr", reserve.ttr_ms.map(Value::from)),
    ]);
    match &reserve.topics[..] {
        [name] => Ok(in_topic(name, "reserve", &Value::Object(body))),
        names => {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            body.insert("topics".to_owned(), json!(names));
            Ok(post("/v1/reserve".to_owned(), &Value::Object(body)))
        }
    }
}

fn reserve_id(reserve: &ReserveId) -> Result<Call, Error> {
    if reserve.session.is_some() {
        return Err(not_carried("a session"));
    }
    let body = fields([("ttr", reserve.ttr_ms.map(Value::from))]);
    Ok(post(format!("/v1/jobs/{}/reserve", reserve.id), &Value::Object(body)))
}

fn list(list: &List) -> String {
    let mut query = Query::default();
    query.add("state", Some(list.state));
    query.add("cursor", list.cursor.as_ref());
    query.add("limit", Some(list.limit));
    query.add("from", list.range.from_ms);
    query.add("to", list.range.to_ms);
    match list.range.order {
        ListOrder::Usual => {}
        ListOrder::Due => query.add("order", Some("due")),
        ListOrder::Newest => query.add("newest", Some(true)),
    }
    query.after(format!("{}/jobs", topic(&list.topic)))
}

fn purge(purge: &Purge) -> String {
    let mut query = Query::default();
    query.add("state", purge.state);
    query.add("at_most", purge.at_most);
    query.after(topic(&purge.topic))
}

fn topics(topics: &Topics) -> String {
    let mut query = Query::default();
    query.add("after", topics.after.as_ref());
    query.add("limit", Some(topics.limit));
    query.after("/v1/topics".to_owned())
}

fn forecast(forecast: &Forecast) -> String {
    let mut query = Query::default();
    query.add("from", Some(forecast.from_ms.min(AT_MS_MAX)));
    query.add("to", Some(forecast.to_ms.min(AT_MS_MAX)));
    query.add("step", Some(at_most_i64(forecast.step_ms)));
    query.after(format!("{}/forecast", topic(&forecast.topic)))
}

fn acquire(lock: &Lock) -> Result<Call, Error> {
    let owner = text("an owner", &lock.owner)?;
    let body = json!({ "owner": owner, "ttl": lock.ttl_ms, "wait": lock.wait_ms });
    Ok(post(lock_path(&lock.name, "acquire")?, &body))
}

fn renew(renew: &RenewLock) -> Result<Call, Error> {
    let owner = text("an owner", &renew.owner)?;
    let body = fields([("owner", Some(owner.into())), ("ttl", renew.ttl_ms.map(Value::from))]);
    Ok(post(lock_path(&renew.name, "renew")?, &Value::Object(body)))
}

fn unlock(unlock: &Unlock) -> Result<Call, Error> {
    let body = json!({ "owner": text("an owner", &unlock.owner)? });
    Ok(post(lock_path(&unlock.name, "release")?, &body))
}

fn locks(page: &Locks) -> Result<String, Error> {
    let prefix = encode(text("a prefix", &page.prefix)?);
    let cursor = page.cursor.iter().map(|cursor| format!("&cursor={}", encode(cursor)));
    let cursor: String = cursor.collect();
    Ok(format!("/v1/locks?limit={}&prefix={prefix}{cursor}", page.limit))
}

fn lock_path(name: &[u8], verb: &str) -> Result<String, Error> {
    Ok(format!("/v1/locks/{}/{verb}", encode(text("a lock's name", name)?)))
}
