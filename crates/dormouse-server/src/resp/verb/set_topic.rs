//! set_topic: all settings of a topic at once.

use dormouse_core::error::Error;
use dormouse_core::op::SetTopic;
use dormouse_core::topic::{Settings, TopicName};

use super::ReplyKind;
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, unknown};
use crate::resp::conn::{Conn, PendingReply};

const OPTIONS: &[&str] = &[
    "TTR",
    "ATTEMPTS",
    "BACKOFF",
    "DELAY",
    "EXPIRES_AFTER",
    "JOBS_MAX",
    "BYTES_MAX",
    "DEAD_TTL",
    "DEAD_MAX",
    "DEAD_TOPIC",
    "KEEP_DONE",
    "LEASED_MAX",
    "RATE",
    "GROUP_LEASED_MAX",
    "GROUP_RATE",
];

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let topic = conn.topic(Verb::SetTopic, args.must("topic")?)?;
    let mut settings = Settings::default();
    while let Some(word) = args.next() {
        read_option(&mut settings, word, args)?;
    }
    // Its letters go there.
    if let Some(dead_topic) = &settings.dead_topic {
        conn.grant().check(Verb::SetTopic, dead_topic.as_str())?;
    }
    conn.send(turn, SetTopic { topic, settings }, None, ReplyKind::Done);
    Ok(())
}

fn read_option(settings: &mut Settings, word: &[u8], args: &mut Args<'_>) -> Result<(), Error> {
    // A negative span becomes one beyond every limit, so that the rules refuse it.
    let span = |args: &mut Args<'_>, option| {
        args.span(option).map(|ms| Some(u64::try_from(ms).unwrap_or(u64::MAX)))
    };
    if is(word, "TTR") {
        settings.ttr_ms = span(args, "TTR")?;
    } else if is(word, "ATTEMPTS") {
        settings.attempts_max = Some(args.number("ATTEMPTS")?);
    } else if is(word, "BACKOFF") {
        settings.backoff = Some(args.backoff()?);
    } else if is(word, "DELAY") {
        settings.delay_ms = span(args, "DELAY")?;
    } else if is(word, "EXPIRES_AFTER") {
        settings.expires_after_ms = span(args, "EXPIRES_AFTER")?;
    } else if is(word, "JOBS_MAX") {
        settings.jobs_max = Some(args.number("JOBS_MAX")?);
    } else if is(word, "BYTES_MAX") {
        settings.bytes_max = Some(args.number("BYTES_MAX")?);
    } else if is(word, "DEAD_TTL") {
        settings.dead_ttl_ms = span(args, "DEAD_TTL")?;
    } else if is(word, "DEAD_MAX") {
        settings.dead_max = Some(args.number("DEAD_MAX")?);
    } else if is(word, "DEAD_TOPIC") {
        settings.dead_topic = Some(TopicName::new(args.text("DEAD_TOPIC")?)?);
    } else if is(word, "KEEP_DONE") {
        settings.keep_done_ms = span(args, "KEEP_DONE")?.filter(|&ms| ms > 0);
    } else if is(word, "LEASED_MAX") {
        settings.leased_max = Some(args.number("LEASED_MAX")?);
    } else if is(word, "RATE") {
        settings.rate = Some(args.rate("RATE")?);
    } else if is(word, "GROUP_LEASED_MAX") {
        settings.group_leased_max = Some(args.number("GROUP_LEASED_MAX")?);
    } else if is(word, "GROUP_RATE") {
        settings.group_rate = Some(args.rate("GROUP_RATE")?);
    } else {
        return Err(unknown(word, OPTIONS));
    }
    Ok(())
}
