//! Maps of RESP as jobs and topics.

use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::backoff::{Backoff, Delays};
use dormouse_core::error::Error;
use dormouse_core::image::Counts;
use dormouse_core::job::{BodyKind, Content, Job, JobId, Progress, State, TickOrigin, Token};
use dormouse_core::op::{JobView, LeasedJob, TopicStats};
use dormouse_core::schedule::ScheduleName;
use dormouse_core::topic::{Settings, TopicName};

use super::raw::Reply;

/// A server that breaks its contract.
pub(super) fn unexpected(what: &str, reply: &Reply) -> Error {
    Error::unavailable(format!("the server broke its contract: {what} in {reply:?}"))
}

/// The fields of a map.
pub(super) struct Fields<'r>(&'r [Reply]);

impl<'r> Fields<'r> {
    pub(super) fn of(reply: &'r Reply) -> Result<Fields<'r>, Error> {
        match reply {
            Reply::List(items) if items.len().is_multiple_of(2) => Ok(Fields(items)),
            other => Err(unexpected("no map", other)),
        }
    }

    pub(super) fn get(&self, name: &str) -> Result<&'r Reply, Error> {
        let found = self.0.chunks(2).find(|pair| pair[0] == Reply::Bytes(name.into()));
        let missing = || unexpected(&format!("no field {name}"), &Reply::List(self.0.to_vec()));
        found.map(|pair| &pair[1]).ok_or_else(missing)
    }

    pub(super) fn bytes(&self, name: &str) -> Result<Option<Bytes>, Error> {
        match self.get(name)? {
            Reply::Nil => Ok(None),
            Reply::Bytes(bytes) => Ok(Some(Bytes::from(bytes.clone()))),
            other => Err(unexpected(&format!("no string for {name}"), other)),
        }
    }

    pub(super) fn text<T: FromStr>(&self, name: &str) -> Result<T, Error> {
        text(self.get(name)?)
    }

    pub(super) fn count<T: TryFrom<i64>>(&self, name: &str) -> Result<Option<T>, Error> {
        match self.get(name)? {
            Reply::Nil => Ok(None),
            reply => number(reply).map(Some),
        }
    }

    pub(super) fn number<T: TryFrom<i64>>(&self, name: &str) -> Result<T, Error> {
        number(self.get(name)?)
    }

    pub(super) fn backoff(&self) -> Result<Option<Arc<Backoff>>, Error> {
        let Some(text) = self.bytes("backoff")? else { return Ok(None) };
        let text = String::from_utf8_lossy(&text);
        let backoff = read_backoff(&text);
        let broken = || unexpected("no backoff", &Reply::Bytes(text.as_bytes().to_vec()));
        backoff.map(Arc::new).map(Some).ok_or_else(broken)
    }

    pub(super) fn headers(&self) -> Result<Headers, Error> {
        let fields = Fields::of(self.get("headers")?)?;
        let pair = |pair: &[Reply]| Ok((text(&pair[0])?, text(&pair[1])?));
        let headers = fields.0.chunks(2).map(pair).collect::<Result<Vec<_>, Error>>()?;
        Ok((!headers.is_empty()).then(|| Arc::new(headers)))
    }

    /// All three fields, or none.
    fn tick(&self) -> Result<Option<Arc<TickOrigin>>, Error> {
        let Some(tick_ms) = self.count("tick")? else { return Ok(None) };
        let schedule = ScheduleName::new(&self.text::<String>("schedule")?)?;
        let missed = self.number("ticks_missed")?;
        Ok(Some(Arc::new(TickOrigin { schedule, tick_ms, missed })))
    }
}

/// Headers of a job as core has them.
type Headers = Option<Arc<Vec<(String, String)>>>;

/// A string that stands for something.
pub(super) fn text<T: FromStr>(reply: &Reply) -> Result<T, Error> {
    let text = match reply {
        Reply::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    };
    text.and_then(|text| text.parse().ok()).ok_or_else(|| unexpected("no such text", reply))
}

pub(super) fn number<T: TryFrom<i64>>(reply: &Reply) -> Result<T, Error> {
    let number = match reply {
        Reply::Int(number) => T::try_from(*number).ok(),
        _ => None,
    };
    number.ok_or_else(|| unexpected("no such number", reply))
}

pub(super) fn state(reply: &Reply) -> Result<State, Error> {
    let states = [State::Delayed, State::Ready, State::Leased, State::Dead];
    let known = states.into_iter().find(|state| *reply == Reply::Bytes(state.as_str().into()));
    known.ok_or_else(|| unexpected("no state", reply))
}

fn topic(reply: &Reply) -> Result<TopicName, Error> {
    TopicName::new(&text::<String>(reply)?)
}

/// Reads `fixed:10000`, `exponential:1000:2:600000` or `list:1000,5000`, perhaps with a jitter.
fn read_backoff(text: &str) -> Option<Backoff> {
    if let Some((rule, jitter)) = text.split_once(":jitter=") {
        return Some(read_backoff(rule)?.with_jitter(jitter.parse().ok()?));
    }
    let (kind, rest) = text.split_once(':')?;
    let numbers = |by: char| -> Option<Vec<u64>> {
        rest.split(by).filter(|part| !part.is_empty()).map(|part| part.parse().ok()).collect()
    };
    let delays = match kind {
        "fixed" => Delays::Fixed { delay_ms: rest.parse().ok()? },
        "exponential" => match numbers(':')?[..] {
            [base_ms, factor, cap_ms] => {
                Delays::Exponential { base_ms, factor: u32::try_from(factor).ok()?, cap_ms }
            }
            _ => return None,
        },
        "list" => Delays::List { delays_ms: numbers(',')? },
        _ => return None,
    };
    Some(delays.into())
}

pub(super) fn leased(reply: &Reply) -> Result<LeasedJob, Error> {
    let fields = Fields::of(reply)?;
    Ok(LeasedJob {
        topic: topic(fields.get("topic")?)?,
        id: fields.text::<JobId>("id")?,
        key: fields.bytes("key")?,
        token: fields.text::<Token>("token")?,
        attempt: fields.number("attempt")?,
        due_at: fields.number("due_at")?,
        put_at: fields.number("put_at")?,
        late_ms: fields.number("late_ms")?,
        expires_at: fields.number("expires_at")?,
        ttr_ms: fields.number("ttr_ms")?,
        priority: fields.number("priority")?,
        headers: fields.headers()?,
        body: fields.bytes("body")?.unwrap_or_default(),
        body_kind: BodyKind::Bytes,
        tick: fields.tick()?,
    })
}

pub(super) fn view(reply: &Reply) -> Result<JobView, Error> {
    let fields = Fields::of(reply)?;
    let content = Content {
        key: fields.bytes("key")?,
        headers: fields.headers()?,
        body: fields.bytes("body")?.unwrap_or_default(),
        body_kind: BodyKind::Bytes,
        ttr_ms: fields.number("ttr_ms")?,
        attempts_max: fields.number("attempts_max")?,
        backoff: fields.backoff()?,
        key_ttl_ms: fields.number("key_ttl_ms")?,
        put_at: fields.number("put_at")?,
        tick: fields.tick()?,
    };
    let progress = Progress {
        priority: fields.number("priority")?,
        attempts: fields.number("attempts")?,
        reserves: fields.number("reserves")?,
        expiries: fields.number("expiries")?,
        releases: fields.number("releases")?,
        kills: fields.number("kills")?,
        kicks: fields.number("kicks")?,
        bytes: u32::try_from(content.bytes()).unwrap_or(u32::MAX),
        error: fields.bytes("error")?,
        ..Progress::default()
    };
    Ok(JobView {
        topic: topic(fields.get("topic")?)?,
        state: state(fields.get("state")?)?,
        due_at: fields.number("due_at")?,
        job: Job { id: fields.text("id")?, content, progress },
    })
}

/// A topic of a list, with its name.
pub(super) fn named_stats(reply: &Reply) -> Result<(TopicName, TopicStats), Error> {
    Ok((topic(Fields::of(reply)?.get("topic")?)?, stats(reply, false)?))
}

/// Counts of a topic, or of all.
pub(super) fn stats(reply: &Reply, of_all: bool) -> Result<TopicStats, Error> {
    let fields = Fields::of(reply)?;
    let counts = Counts {
        waiting: fields.number("waiting")?,
        leased: fields.number("leased")?,
        dead: fields.number("dead")?,
        bytes: fields.number("bytes")?,
        puts: fields.number("puts")?,
        reserves: fields.number("reserves")?,
        acks: fields.number("acks")?,
        nacks: fields.number("nacks")?,
        expiries: fields.number("expiries")?,
        releases: fields.number("releases")?,
        kills: fields.number("kills")?,
        cancels: fields.number("cancels")?,
    };
    let stats = TopicStats {
        delayed: fields.count("delayed")?.unwrap_or_default(),
        ready: fields.count("ready")?.unwrap_or_default(),
        urgent: fields.count("urgent")?.unwrap_or_default(),
        counts,
        waiters: fields.number("waiters")?,
        oldest_ready_ms: None,
        paused: None,
        settings: Settings::default(),
        topics: 1,
        locks: 0,
    };
    if of_all {
        let (topics, locks) = (fields.number("topics")?, fields.number("locks")?);
        return Ok(TopicStats { topics, locks, ..stats });
    }
    let is_paused = fields.number::<i64>("paused")? == 1;
    let paused_ms = fields.count("paused_ms")?;
    Ok(TopicStats {
        oldest_ready_ms: fields.count("oldest_ready_ms")?,
        paused: is_paused.then_some(paused_ms),
        settings: settings(fields.get("settings")?)?,
        ..stats
    })
}

fn settings(reply: &Reply) -> Result<Settings, Error> {
    let fields = Fields::of(reply)?;
    Ok(Settings {
        ttr_ms: fields.count("ttr_ms")?,
        attempts_max: fields.count("attempts_max")?,
        backoff: fields.backoff()?,
        jobs_max: fields.count("jobs_max")?,
        bytes_max: fields.count("bytes_max")?,
        dead_ttl_ms: fields.count("dead_ttl_ms")?,
        dead_max: fields.count("dead_max")?,
    })
}
