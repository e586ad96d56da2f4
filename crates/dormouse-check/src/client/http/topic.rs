//! Topics as they come, and settings as they go.

use std::sync::Arc;

use dormouse_core::backoff::{Backoff, Delays};
use dormouse_core::error::Error;
use dormouse_core::image::Counts;
use dormouse_core::op::{TopicStats, TopicsPage};
use dormouse_core::rate::Rate;
use dormouse_core::topic::{Settings, TopicName};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::client::backend::at_most_i64;

/// A page of topics.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TopicsIn {
    topics: Vec<TopicIn>,
    next: Option<String>,
}

/// A topic, or all together.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TopicIn {
    topic: Option<String>,
    waiting: u64,
    /// Absent, with the two that follow, from the totals of many topics.
    delayed: Option<u64>,
    ready: Option<u64>,
    urgent: Option<u64>,
    leased: u64,
    dead: u64,
    done: u64,
    bytes: u64,
    waiters: u64,
    oldest_ready_ms: Option<u64>,
    /// Absent in the totals.
    paused: Option<bool>,
    paused_ms: Option<u64>,
    settings: Option<SettingsIn>,
    topics: Option<u64>,
    locks: Option<u64>,
    totals: TotalsIn,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TotalsIn {
    puts: u64,
    reserves: u64,
    acks: u64,
    nacks: u64,
    releases: u64,
    expiries: u64,
    kills: u64,
    cancels: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsIn {
    ttr_ms: Option<u64>,
    attempts_max: Option<u32>,
    backoff: Option<BackoffIn>,
    jobs_max: Option<u64>,
    bytes_max: Option<u64>,
    dead_ttl_ms: Option<u64>,
    dead_max: Option<u64>,
    delay_ms: Option<u64>,
    expires_after_ms: Option<u64>,
    dead_topic: Option<String>,
    keep_done_ms: Option<u64>,
    leased_max: Option<u64>,
    rate: Option<RateIn>,
    group_leased_max: Option<u64>,
    group_rate: Option<RateIn>,
}

/// A rate, in ms.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RateIn {
    jobs: u64,
    per: u64,
    burst: u64,
}

impl RateIn {
    fn rate(self) -> Rate {
        Rate { jobs: self.jobs, per_ms: self.per, burst: self.burst }
    }
}

/// A backoff, in ms.
#[derive(Deserialize)]
pub(super) struct BackoffIn {
    #[serde(flatten)]
    delays: DelaysIn,
    jitter: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum DelaysIn {
    Fixed(u64),
    Exponential { base: u64, factor: u32, cap: u64 },
    List(Vec<u64>),
}

impl BackoffIn {
    pub(super) fn backoff(self) -> Arc<Backoff> {
        let delays = match self.delays {
            DelaysIn::Fixed(delay_ms) => Delays::Fixed { delay_ms },
            DelaysIn::Exponential { base, factor, cap } => {
                Delays::Exponential { base_ms: base, factor, cap_ms: cap }
            }
            DelaysIn::List(delays_ms) => Delays::List { delays_ms },
        };
        Arc::new(Backoff::from(delays).with_jitter(self.jitter))
    }
}

impl TopicIn {
    /// The name of a topic; the totals have none.
    pub(super) fn stats(self) -> (Option<String>, TopicStats) {
        let totals = self.totals;
        let counts = Counts {
            waiting: self.waiting,
            leased: self.leased,
            dead: self.dead,
            done: self.done,
            bytes: self.bytes,
            puts: totals.puts,
            reserves: totals.reserves,
            acks: totals.acks,
            nacks: totals.nacks,
            expiries: totals.expiries,
            releases: totals.releases,
            kills: totals.kills,
            cancels: totals.cancels,
        };
        let stats = TopicStats {
            delayed: self.delayed.unwrap_or_default(),
            ready: self.ready.unwrap_or_default(),
            urgent: self.urgent.unwrap_or_default(),
            counts,
            waiters: self.waiters,
            oldest_ready_ms: self.oldest_ready_ms,
            paused: self.paused.unwrap_or_default().then_some(self.paused_ms),
            settings: self.settings.map(SettingsIn::settings).unwrap_or_default(),
            topics: self.topics.unwrap_or(1),
            locks: self.locks.unwrap_or_default(),
        };
        (self.topic, stats)
    }
}

impl SettingsIn {
    fn settings(self) -> Settings {
        Settings {
            ttr_ms: self.ttr_ms,
            attempts_max: self.attempts_max,
            backoff: self.backoff.map(BackoffIn::backoff),
            jobs_max: self.jobs_max,
            bytes_max: self.bytes_max,
            dead_ttl_ms: self.dead_ttl_ms,
            dead_max: self.dead_max,
            delay_ms: self.delay_ms,
            expires_after_ms: self.expires_after_ms,
            dead_topic: self.dead_topic.and_then(|name| TopicName::new(&name).ok()),
            keep_done_ms: self.keep_done_ms,
            leased_max: self.leased_max,
            rate: self.rate.map(RateIn::rate),
            group_leased_max: self.group_leased_max,
            group_rate: self.group_rate.map(RateIn::rate),
            push: None,
        }
    }
}

impl TopicsIn {
    pub(super) fn page(self) -> Result<TopicsPage, Error> {
        let more = self.next.is_some();
        let named = |topic: TopicIn| {
            let (name, stats) = topic.stats();
            Ok((TopicName::new(name.as_deref().unwrap_or_default())?, stats))
        };
        let topics = self.topics.into_iter().map(named).collect::<Result<Vec<_>, Error>>()?;
        let last = topics.last().map(|(name, _)| name.as_str().to_owned());
        if more && self.next != last {
            return Err(Error::unavailable("the next page does not begin where this one ends"));
        }
        Ok(TopicsPage { topics, more })
    }
}

/// A backoff going out, in ms.
pub(super) fn backoff_out(backoff: &Backoff) -> Value {
    let mut fields = match &backoff.delays {
        Delays::Fixed { delay_ms } => json!({ "fixed": delay_ms }),
        Delays::Exponential { base_ms, factor, cap_ms } => {
            json!({ "exponential": { "base": base_ms, "factor": factor, "cap": cap_ms } })
        }
        Delays::List { delays_ms } => json!({ "list": delays_ms }),
    };
    if backoff.jitter_permille != backoff.delays.default_jitter_permille() {
        fields["jitter"] = json!(backoff.jitter());
    }
    fields
}

/// A rate going out, in words if it has no burst.
fn rate_out(rate: Rate) -> Value {
    if rate.burst == 1 {
        return Value::from(rate.to_string());
    }
    json!({ "jobs": rate.jobs, "per": rate.per_ms, "burst": rate.burst })
}

/// Settings going out: only those that are set.
pub(super) fn settings_out(settings: &Settings) -> Value {
    let mut fields = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        value.map(|value| fields.insert(name.to_owned(), value));
    };
    add("ttr", settings.ttr_ms.map(at_most_i64).map(Value::from));
    add("attempts_max", settings.attempts_max.map(Value::from));
    add("backoff", settings.backoff.as_deref().map(backoff_out));
    add("jobs_max", settings.jobs_max.map(Value::from));
    add("bytes_max", settings.bytes_max.map(Value::from));
    add("dead_ttl", settings.dead_ttl_ms.map(at_most_i64).map(Value::from));
    add("dead_max", settings.dead_max.map(Value::from));
    add("delay", settings.delay_ms.map(at_most_i64).map(Value::from));
    add("expires_after", settings.expires_after_ms.map(at_most_i64).map(Value::from));
    add("dead_topic", settings.dead_topic.as_ref().map(|name| Value::from(name.as_str())));
    add("keep_done", settings.keep_done_ms.map(at_most_i64).map(Value::from));
    add("leased_max", settings.leased_max.map(Value::from));
    add("rate", settings.rate.map(rate_out));
    add("group_leased_max", settings.group_leased_max.map(Value::from));
    add("group_rate", settings.group_rate.map(rate_out));
    Value::Object(fields)
}
