//! stats: counts of a topic, or of all.

use dormouse_core::error::Error;
use dormouse_core::op::{Stats, TopicStats};
use dormouse_core::topic::{Settings, TopicName};

use super::{ReplyKind, job};
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::Args;
use crate::resp::conn::{Conn, PendingReply};
use crate::resp::encode::Out;
use crate::units::rate_words;

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let topic = match args.next() {
        Some(name) => Some(conn.topic(Verb::Stats, name)?),
        None => {
            conn.grant().check_verb(Verb::Stats)?;
            None
        }
    };
    let of_all = topic.is_none();
    // It reads every run of its topics: the last of its turn, it lets other connections in between.
    conn.send_last(turn, Stats { topic }, ReplyKind::Stats { of_all });
    Ok(())
}

/// Counts as a map; with the name of the topic in a list of several.
pub(super) fn write(
    out: &mut Out<'_>,
    topic: Option<&TopicName>,
    stats: &TopicStats,
    of_all: bool,
) {
    let counts = &stats.counts;
    out.map(17 + usize::from(topic.is_some()) + if of_all { 2 } else { 4 });
    if let Some(topic) = topic {
        out.name("topic");
        out.string(topic.as_str().as_bytes());
    }
    if of_all {
        write_count(out, "topics", Some(stats.topics));
        write_count(out, "locks", Some(stats.locks));
    }
    // The backend does not tell delayed from ready across very many topics: too expensive.
    let is_split = stats.delayed + stats.ready == counts.waiting;
    for (name, value) in [
        ("waiting", Some(counts.waiting)),
        ("delayed", is_split.then_some(stats.delayed)),
        ("ready", is_split.then_some(stats.ready)),
        ("urgent", is_split.then_some(stats.urgent)),
        ("leased", Some(counts.leased)),
        ("dead", Some(counts.dead)),
        ("done", Some(counts.done)),
        ("bytes", Some(counts.bytes)),
        ("waiters", Some(stats.waiters)),
        ("puts", Some(counts.puts)),
        ("reserves", Some(counts.reserves)),
        ("acks", Some(counts.acks)),
        ("nacks", Some(counts.nacks)),
        ("releases", Some(counts.releases)),
        ("expiries", Some(counts.expiries)),
        ("kills", Some(counts.kills)),
        ("cancels", Some(counts.cancels)),
    ] {
        write_count(out, name, value);
    }
    if !of_all {
        write_count(out, "oldest_ready_ms", stats.oldest_ready_ms);
        out.name("paused");
        out.boolean(stats.paused.is_some());
        write_count(out, "paused_ms", stats.paused.flatten());
        out.name("settings");
        write_settings(out, &stats.settings);
    }
}

fn write_settings(out: &mut Out<'_>, settings: &Settings) {
    out.map(15);
    for (name, value) in [
        ("ttr_ms", settings.ttr_ms),
        ("attempts_max", settings.attempts_max.map(u64::from)),
        ("delay_ms", settings.delay_ms),
        ("expires_after_ms", settings.expires_after_ms),
        ("jobs_max", settings.jobs_max),
        ("bytes_max", settings.bytes_max),
        ("dead_ttl_ms", settings.dead_ttl_ms),
        ("dead_max", settings.dead_max),
        ("keep_done_ms", settings.keep_done_ms),
        ("leased_max", settings.leased_max),
        ("group_leased_max", settings.group_leased_max),
    ] {
        write_count(out, name, value);
    }
    for (name, rate) in [("rate", settings.rate), ("group_rate", settings.group_rate)] {
        out.name(name);
        match rate {
            Some(rate) => out.string(rate_words(rate).as_bytes()),
            None => out.null(),
        }
    }
    out.name("dead_topic");
    match &settings.dead_topic {
        Some(topic) => out.string(topic.as_str().as_bytes()),
        None => out.null(),
    }
    out.name("backoff");
    job::write_backoff(out, settings.backoff.as_deref());
}

fn write_count(out: &mut Out<'_>, name: &str, value: Option<u64>) {
    out.name(name);
    match value {
        Some(value) => out.number(value),
        None => out.null(),
    }
}
