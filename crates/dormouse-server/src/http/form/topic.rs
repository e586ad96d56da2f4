//! A topic: its settings and its counts.

use dormouse_core::error::Error;
use dormouse_core::op::TopicStats;
use dormouse_core::topic::{Settings, TopicName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::units::{BackoffForm, BackoffOut, RateForm, RateOut, SpanMs};

/// A topic's name.
#[derive(Deserialize, ToSchema)]
#[schema(
    as = TopicName,
    value_type = String,
    min_length = 1,
    max_length = 200,
    pattern = "^[A-Za-z0-9+/;.$_():][A-Za-z0-9+/;.$_():-]*$"
)]
pub(crate) struct TopicText(String);

/// All settings of a topic; an absent one is reset to its default.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewSettings)]
pub(crate) struct SettingsForm {
    /// Lease time of jobs put without one.
    ttr: Option<SpanMs>,
    /// Attempts of jobs put without a number.
    #[schema(minimum = 0, maximum = 4294967295u32)]
    attempts_max: Option<u32>,
    /// Backoff of jobs put without one.
    backoff: Option<BackoffForm>,
    /// Delay of jobs put without a delay or a time.
    delay: Option<SpanMs>,
    /// Jobs put without such a span die if nobody takes them so long after they were due.
    expires_after: Option<SpanMs>,
    /// The largest number of jobs in all states; a put beyond it is answered with `full`.
    jobs_max: Option<u64>,
    /// The largest number of bytes; a put beyond it is answered with `full`.
    bytes_max: Option<u64>,
    /// Dead jobs older than this are removed.
    dead_ttl: Option<SpanMs>,
    /// The largest number of dead jobs; beyond it the oldest are removed.
    dead_max: Option<u64>,
    /// Jobs that die are put into this topic instead of resting as dead.
    dead_topic: Option<TopicText>,
    /// How long acked jobs are kept as done; 0 = not at all.
    keep_done: Option<SpanMs>,
    /// The largest number of jobs leased at once; others stay ready.
    #[schema(minimum = 1, maximum = 1_000_000)]
    leased_max: Option<u64>,
    /// How fast jobs are taken; others stay ready.
    rate: Option<RateForm>,
    /// The largest number of jobs of a group leased at once; others of it stay ready.
    #[schema(minimum = 1, maximum = 1_000_000)]
    group_leased_max: Option<u64>,
    /// How fast jobs of a group are taken; others of it stay ready.
    group_rate: Option<RateForm>,
}

impl TryFrom<SettingsForm> for Settings {
    type Error = Error;

    fn try_from(form: SettingsForm) -> Result<Settings, Error> {
        // A negative span becomes one beyond every limit, so that the rules refuse it.
        let ms = |span: SpanMs| u64::try_from(span.0).unwrap_or(u64::MAX);
        let dead_topic = form.dead_topic.map(|name| TopicName::new(&name.0)).transpose()?;
        Ok(Settings {
            ttr_ms: form.ttr.map(ms),
            attempts_max: form.attempts_max,
            backoff: form.backoff.map(BackoffForm::into_backoff),
            delay_ms: form.delay.map(ms),
            expires_after_ms: form.expires_after.map(ms),
            jobs_max: form.jobs_max,
            bytes_max: form.bytes_max,
            dead_ttl_ms: form.dead_ttl.map(ms),
            dead_max: form.dead_max,
            dead_topic,
            keep_done_ms: form.keep_done.map(ms).filter(|&ms| ms > 0),
            leased_max: form.leased_max,
            rate: form.rate.map(|rate| rate.0),
            group_leased_max: form.group_leased_max,
            group_rate: form.group_rate.map(|rate| rate.0),
            push: None,
        })
    }
}

/// The settings of a topic; absent ones have their default.
#[derive(Serialize, ToSchema)]
#[schema(as = Settings)]
pub(crate) struct SettingsOut {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    ttr_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    attempts_max: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    backoff: Option<BackoffOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    delay_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    jobs_max: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    bytes_max: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    dead_ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    dead_max: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    dead_topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    keep_done_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    leased_max: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    rate: Option<RateOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    group_leased_max: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    group_rate: Option<RateOut>,
}

impl From<&Settings> for SettingsOut {
    fn from(settings: &Settings) -> SettingsOut {
        SettingsOut {
            ttr_ms: settings.ttr_ms,
            attempts_max: settings.attempts_max,
            backoff: settings.backoff.as_deref().map(BackoffOut::from),
            delay_ms: settings.delay_ms,
            expires_after_ms: settings.expires_after_ms,
            jobs_max: settings.jobs_max,
            bytes_max: settings.bytes_max,
            dead_ttl_ms: settings.dead_ttl_ms,
            dead_max: settings.dead_max,
            dead_topic: settings.dead_topic.as_ref().map(ToString::to_string),
            keep_done_ms: settings.keep_done_ms,
            leased_max: settings.leased_max,
            rate: settings.rate.map(RateOut::from),
            group_leased_max: settings.group_leased_max,
            group_rate: settings.group_rate.map(RateOut::from),
        }
    }
}

/// Counts of what happened to a topic's jobs since the topic was created.
#[derive(Serialize, ToSchema)]
#[schema(as = Totals)]
pub(crate) struct TotalsOut {
    puts: u64,
    reserves: u64,
    acks: u64,
    nacks: u64,
    releases: u64,
    expiries: u64,
    /// Jobs that became dead.
    kills: u64,
    cancels: u64,
}

/// Numbers of jobs.
#[derive(Serialize, ToSchema)]
#[schema(as = Counts)]
pub(crate) struct CountsOut {
    /// Delayed and ready.
    waiting: u64,
    /// Absent, with ready and urgent, from the totals of more than 100 topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    delayed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    ready: Option<u64>,
    /// Ready, with a priority below 1024.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    urgent: Option<u64>,
    leased: u64,
    dead: u64,
    /// Acked, and kept for a while.
    done: u64,
    /// Bytes of bodies, keys and headers.
    bytes: u64,
    /// Waiting reserves.
    waiters: u64,
    totals: TotalsOut,
}

impl From<&TopicStats> for CountsOut {
    fn from(stats: &TopicStats) -> CountsOut {
        let counts = &stats.counts;
        let told_apart = stats.delayed + stats.ready == counts.waiting;
        CountsOut {
            waiting: counts.waiting,
            delayed: told_apart.then_some(stats.delayed),
            ready: told_apart.then_some(stats.ready),
            urgent: told_apart.then_some(stats.urgent),
            leased: counts.leased,
            dead: counts.dead,
            done: counts.done,
            bytes: counts.bytes,
            waiters: stats.waiters,
            totals: TotalsOut {
                puts: counts.puts,
                reserves: counts.reserves,
                acks: counts.acks,
                nacks: counts.nacks,
                releases: counts.releases,
                expiries: counts.expiries,
                kills: counts.kills,
                cancels: counts.cancels,
            },
        }
    }
}

/// One topic.
#[derive(Serialize, ToSchema)]
#[schema(as = Topic)]
pub(crate) struct TopicOut<'a> {
    topic: &'a str,
    #[serde(flatten)]
    counts: CountsOut,
    /// How long the job that a reserve would take next has been ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    oldest_ready_ms: Option<u64>,
    paused: bool,
    /// The rest of the pause; absent if it lasts until a resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    paused_ms: Option<u64>,
    settings: SettingsOut,
}

impl<'a> TopicOut<'a> {
    pub(crate) fn new(topic: &'a str, stats: &TopicStats) -> TopicOut<'a> {
        TopicOut {
            topic,
            counts: CountsOut::from(stats),
            oldest_ready_ms: stats.oldest_ready_ms,
            paused: stats.paused.is_some(),
            paused_ms: stats.paused.flatten(),
            settings: SettingsOut::from(&stats.settings),
        }
    }
}

/// All topics together.
#[derive(Serialize, ToSchema)]
#[schema(as = Stats)]
pub(crate) struct StatsOut {
    /// The number of topics.
    topics: u64,
    /// The number of held locks.
    locks: u64,
    #[serde(flatten)]
    counts: CountsOut,
}

impl From<&TopicStats> for StatsOut {
    fn from(stats: &TopicStats) -> StatsOut {
        StatsOut { topics: stats.topics, locks: stats.locks, counts: CountsOut::from(stats) }
    }
}
