//! put: add a job.

use std::sync::Arc;

use dormouse_core::error::Error;
use dormouse_core::op::{OnConflict, Put, PutOutcome, PutReply};

use super::What;
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, shown, unknown};
use crate::resp::conn::{Conn, Then};
use crate::resp::encode::Out;

const OPTIONS: &[&str] = &[
    "DELAY",
    "AT",
    "KEY",
    "ON_CONFLICT",
    "KEY_TTL",
    "PRIORITY",
    "TTR",
    "ATTEMPTS",
    "BACKOFF",
    "HEADER",
];

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<Then>,
) -> Result<(), Error> {
    let topic = conn.topic(Verb::Put, args.must("topic")?)?;
    let mut put = Put::new(topic, args.bytes("body")?);
    let mut headers = Vec::new();
    while let Some(word) = args.next() {
        read_option(&mut put, &mut headers, word, args)?;
    }
    put.headers = (!headers.is_empty()).then(|| Arc::new(headers));
    let keyed = put.key.is_some();
    turn.put(put, conn.then(What::Put { keyed }));
    Ok(())
}

fn read_option(
    put: &mut Put,
    headers: &mut Vec<(String, String)>,
    word: &[u8],
    args: &mut Args<'_>,
) -> Result<(), Error> {
    if is(word, "DELAY") {
        put.delay_ms = Some(args.span("DELAY")?);
    } else if is(word, "AT") {
        put.at_ms = Some(args.instant("AT")?);
    } else if is(word, "KEY") {
        put.key = Some(args.bytes("KEY")?);
    } else if is(word, "ON_CONFLICT") {
        put.on_conflict = on_conflict(args.must("ON_CONFLICT")?)?;
    } else if is(word, "KEY_TTL") {
        put.key_ttl_ms = Some(args.span("KEY_TTL")?);
    } else if is(word, "PRIORITY") {
        put.priority = Some(args.number("PRIORITY")?);
    } else if is(word, "TTR") {
        put.ttr_ms = Some(args.span("TTR")?);
    } else if is(word, "ATTEMPTS") {
        put.attempts_max = Some(args.number("ATTEMPTS")?);
    } else if is(word, "BACKOFF") {
        put.backoff = Some(args.backoff()?);
    } else if is(word, "HEADER") {
        let name = args.text("HEADER")?.to_owned();
        let value = args.text("the value of a HEADER")?.to_owned();
        match headers.iter_mut().find(|(known, _)| *known == name) {
            Some(header) => header.1 = value,
            None => headers.push((name, value)),
        }
    } else {
        return Err(unknown(word, OPTIONS));
    }
    Ok(())
}

fn on_conflict(word: &[u8]) -> Result<OnConflict, Error> {
    const MODES: [(&str, OnConflict); 5] = [
        ("keep", OnConflict::Keep),
        ("reject", OnConflict::Reject),
        ("replace", OnConflict::Replace),
        ("earliest", OnConflict::Earliest),
        ("latest", OnConflict::Latest),
    ];
    let known = MODES.iter().find(|(mode, _)| is(word, mode)).map(|(_, mode)| *mode);
    known.ok_or_else(|| {
        let shown = shown(word);
        let text =
            format!("ON_CONFLICT is {shown}; give keep, reject, replace, earliest or latest");
        Error::invalid(text)
    })
}

/// The id; of a put with a key, and what became of it.
pub(super) fn write(out: &mut Out<'_>, reply: PutReply, keyed: bool) {
    if !keyed {
        return out.digits(reply.id.0);
    }
    out.list(2);
    out.digits(reply.id.0);
    out.string(match reply.outcome {
        PutOutcome::Created => b"created",
        PutOutcome::Duplicate => b"duplicate",
        PutOutcome::Replaced => b"replaced",
    });
}
