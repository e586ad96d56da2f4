//! The metrics page as OpenMetrics text.

use std::fmt;

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::meter::{Meter, MeterValue};
use dormouse_core::op::TopicStats;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;

use super::commands::CommandCount;
use super::connections::{ConnectionCounts, ProtocolKind};
use super::histogram::HistogramCounts;
use super::process::Process;
use super::push::PushCounts;
use super::topics::{COUNTERS, TopicFigures, is_split_by_due, states};
use super::traffic::TrafficCounts;
use super::{Levels, OTHER};

/// Everything on the page.
#[derive(Debug)]
pub(super) struct Page {
    /// The backend replies, even if only with `busy`.
    pub(super) up: bool,
    /// `None` = the backend did not reply.
    pub(super) figures: Option<TopicFigures>,
    pub(super) others: Option<[u64; COUNTERS.len()]>,
    pub(super) lateness: Vec<(String, HistogramCounts)>,
    pub(super) meters: Vec<Meter>,
    pub(super) connections: [ConnectionCounts; ProtocolKind::ALL.len()],
    pub(super) traffic: TrafficCounts,
    pub(super) resp: Vec<CommandCount>,
    pub(super) full: u64,
    pub(super) push: Option<PushCounts>,
    pub(super) reloads: Vec<(&'static str, &'static str, u64)>,
    pub(super) levels: Levels,
    pub(super) process: Process,
}

impl Page {
    /// As text.
    pub(super) fn text(self) -> Result<Bytes, Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry)
            .map_err(|_| Error::unavailable("the metrics cannot be written; try again"))?;
        Ok(Bytes::from(text))
    }
}

impl Collector for Page {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Out(encoder);
        out.gauge("dormouse_up", "Whether the store answers", u64::from(self.up))?;
        if let Some(figures) = &self.figures {
            write_topics(&mut out, figures, self.others.as_ref())?;
            write_totals(&mut out, &figures.total)?;
        }
        write_lateness(&mut out, &self.lateness)?;
        for meter in &self.meters {
            write_meter(&mut out, meter)?;
        }
        for counts in &self.connections {
            write_connections(&mut out, counts)?;
        }
        write_traffic(&mut out, &self.traffic)?;
        write_commands(&mut out, "dormouse_resp_commands", "RESP commands answered", &self.resp)?;
        if let Some(push) = &self.push {
            write_push(&mut out, push)?;
        }
        self.write_server(&mut out)?;
        write_process(&mut out, &self.process)
    }
}

/// Writes metric families.
struct Out<'a>(DescriptorEncoder<'a>);

impl Out<'_> {
    fn family<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, &format!("{help}."), None, kind)
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.family(name, help, MetricType::Gauge)?.encode_gauge(&value)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        count(&mut self.family(name, help, MetricType::Counter)?, value)
    }
}

const NO_EXEMPLAR: Option<&Exemplar<NoLabelSet, f64>> = None;

fn count(encoder: &mut MetricEncoder<'_>, value: u64) -> fmt::Result {
    encoder.encode_counter(&value, NO_EXEMPLAR)
}

fn histogram(encoder: &mut MetricEncoder<'_>, counts: &HistogramCounts) -> fmt::Result {
    encoder.encode_histogram::<NoLabelSet>(counts.sum, counts.count, &counts.buckets, None)
}

fn of_topic(topic: &str) -> impl EncodeLabelSet {
    [("topic", topic.to_owned())]
}

fn write_topics(
    out: &mut Out<'_>,
    figures: &TopicFigures,
    others: Option<&[u64; COUNTERS.len()]>,
) -> fmt::Result {
    let is_split = is_split_by_due(&figures.total);
    let rest = (!figures.complete).then(|| figures.rest());
    let shown = figures.shown.iter().map(|(name, stats)| (name.as_str(), stats));

    let mut jobs = out.family("dormouse_jobs", "Jobs of a topic by state", MetricType::Gauge)?;
    let each = shown.clone().map(|(name, stats)| (name, stats, true));
    for (name, stats, is_split) in each.chain(rest.iter().map(|r| (OTHER, r, is_split))) {
        for (state, value) in states(stats, is_split) {
            let labels = [("topic", name), ("state", state)];
            jobs.encode_family(&labels)?.encode_gauge(&value)?;
        }
    }
    let help = "Bytes of a topic's jobs: bodies, keys and headers";
    let mut bytes = out.family("dormouse_job_bytes", help, MetricType::Gauge)?;
    for (name, stats) in shown.clone().chain(rest.iter().map(|rest| (OTHER, rest))) {
        bytes.encode_family(&of_topic(name))?.encode_gauge(&stats.counts.bytes)?;
    }
    for (index, (name, help, value)) in COUNTERS.iter().enumerate() {
        let (name, help) = (format!("dormouse_{name}"), format!("{help}, of a topic"));
        let mut family = out.family(&name, &help, MetricType::Counter)?;
        for (topic, stats) in shown.clone() {
            count(&mut family.encode_family(&of_topic(topic))?, value(&stats.counts))?;
        }
        if let Some(others) = others {
            count(&mut family.encode_family(&of_topic(OTHER))?, others[index])?;
        }
    }
    type GaugeOf = (&'static str, &'static str, fn(&TopicStats) -> Option<f64>);
    let gauges: [GaugeOf; 3] = [
        (
            "dormouse_oldest_ready_seconds",
            "How long the job that a reserve would give next has been ready; absent if none is",
            |stats| stats.oldest_ready_ms.map(|ms| ms as f64 / 1_000.0),
        ),
        ("dormouse_paused", "Whether the topic is paused", |stats| {
            Some(f64::from(u8::from(stats.paused.is_some())))
        }),
        ("dormouse_waiters", "Reserves that wait on the topic", |stats| Some(stats.waiters as f64)),
    ];
    for (index, (name, help, value)) in gauges.into_iter().enumerate() {
        let mut family = out.family(name, help, MetricType::Gauge)?;
        for (topic, stats) in shown.clone() {
            if let Some(value) = value(stats) {
                family.encode_family(&of_topic(topic))?.encode_gauge(&value)?;
            }
        }
        if let (0, Some(ms)) = (index, figures.hidden_oldest_ms) {
            family.encode_family(&of_topic(OTHER))?.encode_gauge(&(ms as f64 / 1_000.0))?;
        }
    }
    let help = "Topics without series of their own, which are added up in _other";
    out.gauge("dormouse_topics_hidden", help, figures.hidden())
}

fn write_totals(out: &mut Out<'_>, total: &TopicStats) -> fmt::Result {
    let help = "Jobs of all topics by state";
    let mut jobs = out.family("dormouse_all_jobs", help, MetricType::Gauge)?;
    for (state, value) in states(total, is_split_by_due(total)) {
        jobs.encode_family(&[("state", state)])?.encode_gauge(&value)?;
    }
    out.gauge("dormouse_all_job_bytes", "Bytes of all jobs", total.counts.bytes)?;
    for (name, help, value) in COUNTERS {
        let help = format!("{help}, of all topics that are and were");
        out.counter(&format!("dormouse_all_{name}"), &help, value(&total.counts))?;
    }
    out.gauge("dormouse_all_waiters", "Reserves and locks that wait", total.waiters)
}

fn write_lateness(out: &mut Out<'_>, lateness: &[(String, HistogramCounts)]) -> fmt::Result {
    let help = "How long after their due time jobs were handed out";
    let mut family = out.family("dormouse_lateness_seconds", help, MetricType::Histogram)?;
    for (topic, counts) in lateness {
        histogram(&mut family.encode_family(&of_topic(topic))?, counts)?;
    }
    Ok(())
}

fn write_meter(out: &mut Out<'_>, meter: &Meter) -> fmt::Result {
    // The encoder appends `_total` to counters.
    let name = format!("dormouse_{}", meter.name);
    match &meter.value {
        MeterValue::Counter(value) => {
            out.counter(name.strip_suffix("_total").unwrap_or(&name), meter.help, *value)
        }
        MeterValue::Gauge(value) => out.gauge(&name, meter.help, *value),
        MeterValue::Gauges { label, values } => {
            let mut family = out.family(&name, meter.help, MetricType::Gauge)?;
            for (of, value) in values {
                family.encode_family(&[(*label, of.as_str())])?.encode_gauge(value)?;
            }
            Ok(())
        }
        MeterValue::Counters { label, values } => {
            let name = name.strip_suffix("_total").unwrap_or(&name);
            let mut family = out.family(name, meter.help, MetricType::Counter)?;
            for (of, value) in values {
                count(&mut family.encode_family(&[(*label, *of)])?, *value)?;
            }
            Ok(())
        }
        MeterValue::Seconds(value) => {
            out.family(&name, meter.help, MetricType::Gauge)?.encode_gauge(value)
        }
        MeterValue::Histogram { bounds, counts, sum } => {
            let ends = bounds.iter().copied().chain([f64::INFINITY]);
            let buckets = ends.zip(counts.iter().copied()).collect();
            let counts = HistogramCounts { buckets, count: counts.iter().sum(), sum: *sum };
            histogram(&mut out.family(&name, meter.help, MetricType::Histogram)?, &counts)
        }
    }
}

fn write_connections(out: &mut Out<'_>, counts: &ConnectionCounts) -> fmt::Result {
    let name = format!("dormouse_{}_connections", counts.kind.as_str());
    out.gauge(&name, "Connections open", counts.open)?;
    out.counter(&format!("{name}_accepted"), "Connections accepted", counts.accepted)?;
    let help = "Connections refused because there were too many, or too many without a token";
    out.counter(&format!("{name}_refused"), help, counts.refused)
}

fn write_traffic(out: &mut Out<'_>, counts: &TrafficCounts) -> fmt::Result {
    let help = "Requests answered, by the template of their path";
    let mut family = out.family("dormouse_http_requests", help, MetricType::Counter)?;
    for (route, method, status, value) in &counts.requests {
        let labels = [("route", route.as_str()), ("method", method), ("status", status)];
        count(&mut family.encode_family(&labels)?, *value)?;
    }
    let help = "Time until the response was ready; requests that may wait are apart";
    let name = "dormouse_http_request_seconds";
    let mut family = out.family(name, help, MetricType::Histogram)?;
    for (may_wait, counts) in [("false", &counts.prompt), ("true", &counts.waiting)] {
        histogram(&mut family.encode_family(&[("may_wait", may_wait)])?, counts)?;
    }
    Ok(())
}

fn write_commands(
    out: &mut Out<'_>,
    name: &str,
    help: &str,
    commands: &[CommandCount],
) -> fmt::Result {
    let mut family = out.family(name, help, MetricType::Counter)?;
    for (verb, code, value) in commands {
        count(&mut family.encode_family(&[("verb", *verb), ("code", *code)])?, *value)?;
    }
    Ok(())
}

fn write_push(out: &mut Out<'_>, counts: &PushCounts) -> fmt::Result {
    let help = "Pushes that ended, by what the receiver answered or what went wrong";
    let mut family = out.family("dormouse_push", help, MetricType::Counter)?;
    for topic in &counts.topics {
        for (outcome, value) in &topic.outcomes {
            let labels = [("topic", topic.name.as_str()), ("outcome", outcome)];
            count(&mut family.encode_family(&labels)?, *value)?;
        }
    }
    let help = "Time of a push, from its connection to the end of the reply";
    let name = "dormouse_push_seconds";
    histogram(&mut out.family(name, help, MetricType::Histogram)?, &counts.seconds)?;
    out.gauge("dormouse_push_in_flight", "Pushes under way", counts.in_flight)?;
    let help = "Whether the receiver of a topic is called: 0 = yes, 1 = a probe, 2 = no";
    let mut family = out.family("dormouse_push_breaker", help, MetricType::Gauge)?;
    for topic in &counts.topics {
        family.encode_family(&of_topic(&topic.name))?.encode_gauge(&topic.breaker)?;
    }
    let help = "Whether pushes of a topic are disabled until an operator resumes them";
    let mut family = out.family("dormouse_push_disabled", help, MetricType::Gauge)?;
    for topic in &counts.topics {
        family
            .encode_family(&of_topic(&topic.name))?
            .encode_gauge(&u64::from(topic.is_disabled))?;
    }
    Ok(())
}

impl Page {
    fn write_server(&self, out: &mut Out<'_>) -> fmt::Result {
        let levels = &self.levels;
        let help = "Puts refused because a topic or the disk is full";
        out.counter("dormouse_puts_full", help, self.full)?;
        let help = "Bytes of request bodies that are being read or served";
        out.gauge("dormouse_http_bodies_bytes", help, levels.bodies_bytes as u64)?;
        let help = "Bytes of responses that clients have not read yet";
        out.gauge("dormouse_http_answers_bytes", help, levels.answers_bytes as u64)?;
        let help = "Open event streams";
        out.gauge("dormouse_event_streams", help, levels.event_streams as u64)?;
        let help = "Events that were dropped before a slow client read them";
        out.counter("dormouse_events_lost", help, levels.events_lost)?;
        if let Some(expires_s) = levels.certificate_expires_s {
            let name = "dormouse_tls_certificate_expires_timestamp_seconds";
            let help = "When the certificate of HTTP and RESP expires, in seconds since 1970";
            out.family(name, help, MetricType::Gauge)?.encode_gauge(&expires_s)?;
        }
        let help = "Times that tokens or the certificate were read again";
        let mut family = out.family("dormouse_reloads", help, MetricType::Counter)?;
        for (part, result, value) in &self.reloads {
            count(&mut family.encode_family(&[("part", *part), ("result", *result)])?, *value)?;
        }
        let mut build =
            out.family("dormouse_build", "The version of the server", MetricType::Info)?;
        build.encode_info(&[("version", env!("CARGO_PKG_VERSION"))])
    }
}

/// Under the names that all Prometheus exporters use.
fn write_process(out: &mut Out<'_>, process: &Process) -> fmt::Result {
    if let Some(bytes) = process.resident_bytes {
        out.gauge("process_resident_memory_bytes", "Memory in use", bytes)?;
    }
    if let Some(fds) = process.fds {
        out.gauge("process_open_fds", "Open file descriptors", fds)?;
    }
    if let Some(start_s) = process.start_s {
        let help = "When the process started, in seconds since 1970";
        let mut family = out.family("process_start_time_seconds", help, MetricType::Gauge)?;
        family.encode_gauge(&start_s)?;
    }
    Ok(())
}
