//! Maps of RESP as jobs and topics.

use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::backoff::{Backoff, Delays};
use dormouse_core::error::Error;
use dormouse_core::image::Counts;
use dormouse_core::job::{BodyKind, Content, Job, JobId, Progress, State, TickOrigin, Token};
use dormouse_core::op::{HeldBy, JobView, LeasedJob, TopicStats};
use dormouse_core::rate::Rate;
use dormouse_core::schedule::ScheduleName;
use dormouse_core::topic::{Settings, TopicName};

use super::value::{Value, keep};

/// The characters of a reply that an error shows.
const SHOWN_CHARS_MAX: usize = 200;

/// The beginning of a text: a reply that nobody understands can be large.
struct ShortText(String);

impl fmt::Write for ShortText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = SHOWN_CHARS_MAX.saturating_sub(self.0.chars().count());
        self.0.extend(text.chars().take(left));
        // The rest is not even formatted.
        if text.chars().nth(left).is_some() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// A server of another version, or another server.
pub(super) fn unexpected(what: &str, value: &dyn fmt::Debug) -> Error {
    let mut shown = ShortText(String::new());
    let _ = write!(shown, "{value:?}");
    let shown = shown.0;
    Error::unavailable(format!(
        "the server answers otherwise than this client expects ({what} in {shown}); use versions \
         that belong together"
    ))
}

/// The fields of a map. Fields that this client does not know are passed over.
pub(super) struct Fields<'r, 'f> {
    items: &'r [Value<'f>],
    /// Where the next field is looked for first: they are asked for in their order, mostly.
    next: Cell<usize>,
    /// The bytes that the values borrow from.
    frame: &'r Bytes,
}

impl<'r, 'f> Fields<'r, 'f> {
    pub(super) fn of(value: &'r Value<'f>, frame: &'r Bytes) -> Result<Fields<'r, 'f>, Error> {
        match value {
            Value::List(items) if items.len() % 2 == 0 => {
                Ok(Fields { items, next: Cell::new(0), frame })
            }
            other => Err(unexpected("no map", other)),
        }
    }

    fn pairs(&self) -> impl Iterator<Item = (&'r Value<'f>, &'r Value<'f>)> + use<'r, 'f> {
        self.items.chunks_exact(2).map(|pair| (&pair[0], &pair[1]))
    }

    pub(super) fn get(&self, name: &str) -> Result<&'r Value<'f>, Error> {
        let next = self.next.get();
        let is_name = |value: &Value<'f>| *value == Value::Text(name.as_bytes());
        let names = (next..self.items.len()).step_by(2).chain((0..next).step_by(2));
        for at in names {
            if is_name(&self.items[at]) {
                self.next.set(at + 2);
                return Ok(&self.items[at + 1]);
            }
        }
        Err(unexpected(&format!("no field {name}"), &self.items))
    }

    pub(super) fn bytes(&self, name: &str) -> Result<Option<Bytes>, Error> {
        match self.get(name)? {
            Value::Null => Ok(None),
            Value::Text(bytes) => Ok(Some(keep(self.frame, bytes))),
            other => Err(unexpected(&format!("no string for {name}"), other)),
        }
    }

    /// The kind of the body; of a kind that this client does not know, bytes.
    pub(super) fn kind(&self) -> Result<BodyKind, Error> {
        let word = self.get("kind")?;
        let is_it = |kind: &BodyKind| *word == Value::Text(kind.as_str().as_bytes());
        Ok(BodyKind::ALL.into_iter().find(is_it).unwrap_or_default())
    }

    pub(super) fn text<T: FromStr>(&self, name: &str) -> Result<T, Error> {
        text(self.get(name)?)
    }

    pub(super) fn count<T: TryFrom<i64>>(&self, name: &str) -> Result<Option<T>, Error> {
        match self.get(name)? {
            Value::Null => Ok(None),
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
        let broken = || unexpected("no backoff", &Value::Text(text.as_bytes()));
        backoff.map(Arc::new).map(Some).ok_or_else(broken)
    }

    fn rate(&self, name: &str) -> Result<Option<Rate>, Error> {
        let Some(text) = self.bytes(name)? else { return Ok(None) };
        let text = String::from_utf8_lossy(&text);
        let broken = || unexpected("no rate", &Value::Text(text.as_bytes()));
        read_rate(&text).map(Some).ok_or_else(broken)
    }

    /// The limit that holds the job; of one that this client does not know, none.
    fn held_by(&self) -> Result<Option<HeldBy>, Error> {
        let word = self.get("held_by")?;
        let is_it = |limit: &HeldBy| *word == Value::Text(limit.as_str().as_bytes());
        Ok(HeldBy::ALL.into_iter().find(is_it))
    }

    pub(super) fn headers(&self) -> Result<Headers, Error> {
        let fields = Fields::of(self.get("headers")?, self.frame)?;
        let pair = |(name, value)| Ok((text(name)?, text(value)?));
        let headers = fields.pairs().map(pair).collect::<Result<Vec<_>, Error>>()?;
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
pub(super) fn text<T: FromStr>(reply: &Value<'_>) -> Result<T, Error> {
    let text = match reply {
        Value::Text(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    };
    text.and_then(|text| text.parse().ok()).ok_or_else(|| unexpected("no such text", reply))
}

pub(super) fn number<T: TryFrom<i64>>(reply: &Value<'_>) -> Result<T, Error> {
    let number = match reply {
        Value::Number(number) => T::try_from(*number).ok(),
        _ => None,
    };
    number.ok_or_else(|| unexpected("no such number", reply))
}

pub(super) fn state(reply: &Value<'_>) -> Result<State, Error> {
    let states = [State::Delayed, State::Ready, State::Leased, State::Dead, State::Done];
    let known = states.into_iter().find(|state| *reply == Value::Text(state.as_str().as_bytes()));
    known.ok_or_else(|| unexpected("no state", reply))
}

fn topic(reply: &Value<'_>) -> Result<TopicName, Error> {
    match reply {
        Value::Text(name) => {
            let name = std::str::from_utf8(name).map_err(|_| unexpected("no topic", reply))?;
            TopicName::new(name)
        }
        other => Err(unexpected("no topic", other)),
    }
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

/// Reads `100/1m`, perhaps with a burst.
fn read_rate(text: &str) -> Option<Rate> {
    match text.split_once(":burst=") {
        Some((rate, burst)) => Some(Rate { burst: burst.parse().ok()?, ..rate.parse().ok()? }),
        None => text.parse().ok(),
    }
}

pub(super) fn leased(reply: &Value<'_>, frame: &Bytes) -> Result<LeasedJob, Error> {
    let fields = Fields::of(reply, frame)?;
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
        tick: fields.tick()?,
        body_kind: fields.kind()?,
        body: fields.bytes("body")?.unwrap_or_default(),
        group: fields.bytes("group")?,
        expires_after_ms: fields.number("expires_after_ms")?,
    })
}

pub(super) fn view(reply: &Value<'_>, frame: &Bytes) -> Result<JobView, Error> {
    let fields = Fields::of(reply, frame)?;
    let content = Content {
        key: fields.bytes("key")?,
        headers: fields.headers()?,
        body: fields.bytes("body")?.unwrap_or_default(),
        body_kind: fields.kind()?,
        ttr_ms: fields.number("ttr_ms")?,
        attempts_max: fields.number("attempts_max")?,
        backoff: fields.backoff()?,
        key_ttl_ms: fields.number("key_ttl_ms")?,
        expires_after_ms: fields.number("expires_after_ms")?,
        put_at: fields.number("put_at")?,
        tick: fields.tick()?,
        group: fields.bytes("group")?,
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
        held_by: fields.held_by()?,
    })
}

/// A topic of a list, with its name.
pub(super) fn named_stats(
    reply: &Value<'_>,
    frame: &Bytes,
) -> Result<(TopicName, TopicStats), Error> {
    let fields = Fields::of(reply, frame)?;
    Ok((topic(fields.get("topic")?)?, stats(reply, false, frame)?))
}

/// Counts of a topic, or of all.
pub(super) fn stats(reply: &Value<'_>, of_all: bool, frame: &Bytes) -> Result<TopicStats, Error> {
    let fields = Fields::of(reply, frame)?;
    let counts = Counts {
        waiting: fields.number("waiting")?,
        leased: fields.number("leased")?,
        dead: fields.number("dead")?,
        done: fields.number("done")?,
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
        settings: settings(fields.get("settings")?, frame)?,
        ..stats
    })
}

fn settings(reply: &Value<'_>, frame: &Bytes) -> Result<Settings, Error> {
    let fields = Fields::of(reply, frame)?;
    Ok(Settings {
        ttr_ms: fields.count("ttr_ms")?,
        attempts_max: fields.count("attempts_max")?,
        backoff: fields.backoff()?,
        jobs_max: fields.count("jobs_max")?,
        bytes_max: fields.count("bytes_max")?,
        dead_ttl_ms: fields.count("dead_ttl_ms")?,
        dead_max: fields.count("dead_max")?,
        delay_ms: fields.count("delay_ms")?,
        expires_after_ms: fields.count("expires_after_ms")?,
        dead_topic: match fields.get("dead_topic")? {
            Value::Null => None,
            name => Some(topic(name)?),
        },
        keep_done_ms: fields.count("keep_done_ms")?,
        leased_max: fields.count("leased_max")?,
        rate: fields.rate("rate")?,
        group_leased_max: fields.count("group_leased_max")?,
        group_rate: fields.rate("group_rate")?,
        push: None,
    })
}
