//! A beat of the pulse, as far as its reader may see it.

use std::collections::BTreeMap;

use dormouse_core::meter::{Meter, MeterValue};
use dormouse_core::topic::TopicName;
use serde::Serialize;
use serde_json::{Number, Value};
use utoipa::ToSchema;

use super::{LatenessOut, StatsOut, TopicOut};
use crate::access::{Grant, Verb};
use crate::limits::PULSE_VERDICTS_MAX;
use crate::pulse::{Beat, Rates, TopicBeat, Verdict};
use crate::units::At;

/// The figures of the server at one time.
#[derive(Serialize, ToSchema)]
#[schema(as = Pulse)]
pub(crate) struct PulseOut<'a> {
    at: At,
    /// The store answers.
    up: bool,
    /// All topics together; needs `stats` on all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    all: Option<StatsOut>,
    /// Of all topics; absent in the first pulse.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    rates: Option<RatesOut>,
    /// Of all topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    lateness: Option<LatenessOut>,
    /// Of the store; needs `metrics` on all topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    meters: Option<Vec<MeterOut<'a>>>,
    /// Those that were asked for.
    topics: Vec<TopicPulseOut<'a>>,
    /// What is wrong, the worst first.
    verdicts: Vec<VerdictOut<'a>>,
    /// The number of topics that the verdicts know; needs `stats` on all topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    looked_at: Option<usize>,
}

/// Changes per second.
#[derive(Serialize, ToSchema)]
#[schema(as = Rates)]
pub(crate) struct RatesOut {
    put: f64,
    reserve: f64,
    ack: f64,
    nack: f64,
    dead: f64,
}

/// A topic, and what changes in it.
#[derive(Serialize, ToSchema)]
#[schema(as = TopicPulse)]
pub(crate) struct TopicPulseOut<'a> {
    #[serde(flatten)]
    topic: TopicOut<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    rates: Option<RatesOut>,
}

/// Something that is wrong.
#[derive(Serialize, ToSchema)]
#[schema(as = Verdict)]
pub(crate) struct VerdictOut<'a> {
    code: &'static str,
    /// Absent if it is about the server or its store.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    topic: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    for_ms: Option<u64>,
    text: &'a str,
}

/// A measurement of the store: it has `value`; or `label` and `values`; or `bounds`, `counts` and
/// `sum`.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = Meter)]
pub(crate) struct MeterOut<'a> {
    name: &'a str,
    /// `counter`, `gauge` or `histogram`.
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<f64>)]
    value: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    label: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    values: Option<BTreeMap<&'a str, u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    bounds: Option<&'static [f64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    counts: Option<&'a [u64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sum: Option<f64>,
}

impl From<Rates> for RatesOut {
    fn from(Rates([put, reserve, ack, nack, dead]): Rates) -> RatesOut {
        RatesOut { put, reserve, ack, nack, dead }
    }
}

impl<'a> From<&'a Meter> for MeterOut<'a> {
    fn from(meter: &'a Meter) -> MeterOut<'a> {
        let named = |kind| MeterOut { name: meter.name, kind, ..MeterOut::default() };
        match &meter.value {
            MeterValue::Counter(value) => {
                MeterOut { value: Some((*value).into()), ..named("counter") }
            }
            MeterValue::Gauge(value) => MeterOut { value: Some((*value).into()), ..named("gauge") },
            MeterValue::Seconds(value) => {
                let value = Number::from_f64(*value).map(Value::Number);
                MeterOut { value, ..named("gauge") }
            }
            MeterValue::Gauges { label, values } => {
                let values = values.iter().map(|(of, value)| (of.as_str(), *value)).collect();
                MeterOut { label: Some(label), values: Some(values), ..named("gauge") }
            }
            MeterValue::Counters { label, values } => {
                let values = values.iter().map(|(of, value)| (*of, *value)).collect();
                MeterOut { label: Some(label), values: Some(values), ..named("counter") }
            }
            MeterValue::Histogram { bounds, counts, sum } => {
                let (bounds, counts) = (Some(*bounds), Some(counts.as_slice()));
                MeterOut { bounds, counts, sum: Some(*sum), ..named("histogram") }
            }
        }
    }
}

impl<'a> PulseOut<'a> {
    /// What a reader with these rights sees of a beat, with these topics.
    pub(crate) fn new(beat: &'a Beat, grant: &Grant, topics: &'a [TopicName]) -> PulseOut<'a> {
        let sees_all = grant.covers_all(Verb::Stats);
        let sees_meters = grant.covers_all(Verb::Metrics);
        let sees = |topic: &TopicName| grant.allows(Verb::Stats, topic.as_str());
        let figures = topics.iter().filter(|topic| sees(topic)).filter_map(|topic| {
            let TopicBeat { stats, rates } = beat.topics.get(topic)?;
            let rates = rates.map(RatesOut::from);
            Some(TopicPulseOut { topic: TopicOut::new(topic.as_str(), stats), rates })
        });
        let verdicts = beat.verdicts.iter().filter(|verdict| match &verdict.topic {
            Some(topic) => sees(topic),
            None => sees_meters || verdict.code == "unavailable",
        });
        let verdict = |verdict: &'a Verdict| VerdictOut {
            code: verdict.code,
            topic: verdict.topic.as_ref().map(TopicName::as_str),
            for_ms: verdict.for_ms,
            text: &verdict.text,
        };
        PulseOut {
            at: At(beat.at),
            up: beat.up,
            all: beat.all.as_ref().filter(|_| sees_all).map(StatsOut::from),
            rates: beat.rates.filter(|_| sees_all).map(RatesOut::from),
            lateness: sees_all.then(|| LatenessOut::from(&beat.lateness)),
            meters: sees_meters.then(|| beat.meters.iter().map(MeterOut::from).collect()),
            topics: figures.collect(),
            verdicts: verdicts.take(PULSE_VERDICTS_MAX).map(verdict).collect(),
            looked_at: sees_all.then_some(beat.looked_at),
        }
    }
}
