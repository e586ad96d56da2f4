//! put: add a job.

use std::collections::HashMap;
use std::sync::Arc;

use dormouse_core::error::Error;
use dormouse_core::job::BodyKind;
use dormouse_core::limits::HEADERS_BYTES_MAX;
use dormouse_core::op::{OnConflict, Put, PutOutcome, PutReply, check};

use super::ReplyKind;
use crate::access::Verb;
use crate::pipeline::Turn;
use crate::resp::args::{Args, is, shown, unknown};
use crate::resp::conn::{Conn, PendingReply};
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
    "EXPIRES_AFTER",
    "GROUP",
    "HEADER",
    "KIND",
    "FULL",
];

/// What a put is answered with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::resp) enum PutForm {
    /// The id.
    #[default]
    Id,
    /// The id, and what the put did.
    Outcome,
    /// The job's state and when it is due, too.
    Full,
}

pub(in crate::resp) fn run(
    conn: &mut Conn,
    args: &mut Args<'_>,
    turn: &mut Turn<PendingReply>,
) -> Result<(), Error> {
    let (put, form) = read(conn, args, |_| false)?;
    turn.put(put, conn.pending(ReplyKind::Put(form)));
    Ok(())
}

/// Reads a put, up to the word that ends it, and how it is to be answered.
pub(super) fn read(
    conn: &mut Conn,
    args: &mut Args<'_>,
    ends: impl Fn(&[u8]) -> bool,
) -> Result<(Put, PutForm), Error> {
    let topic = conn.topic(Verb::Put, args.must("topic")?)?;
    let mut put = Put::new(topic, args.bytes("body")?);
    let (mut headers, mut is_full) = (Headers::default(), false);
    while args.peek().is_some_and(|word| !ends(word))
        && let Some(word) = args.next()
    {
        if is(word, "FULL") {
            is_full = true;
        } else {
            read_option(&mut put, &mut headers, word, args)?;
        }
    }
    put.headers = headers.into_all().map(Arc::new);
    conn.check_ttr("TTR", put.ttr_ms, Some(put.topic.as_str()))?;
    let form = match put.key {
        _ if is_full => PutForm::Full,
        Some(_) => PutForm::Outcome,
        None => PutForm::Id,
    };
    Ok((put, form))
}

/// The headers read so far.
#[derive(Default)]
pub(super) struct Headers<'a> {
    all: Vec<(String, String)>,
    /// The index of each name in `all`.
    indexes: HashMap<&'a str, usize>,
    bytes: usize,
}

impl<'a> Headers<'a> {
    /// All of them, if there are some.
    pub(super) fn into_all(self) -> Option<Vec<(String, String)>> {
        (!self.all.is_empty()).then_some(self.all)
    }

    /// Adds a header; the last value of a name counts. Fails as soon as the headers are too large.
    pub(super) fn add(&mut self, name: &'a str, value: &str) -> Result<(), Error> {
        let index = *self.indexes.entry(name).or_insert(self.all.len());
        match self.all.get_mut(index) {
            Some((_, known)) => {
                self.bytes -= known.len();
                value.clone_into(known);
            }
            None => {
                self.bytes += name.len();
                self.all.push((name.to_owned(), value.to_owned()));
            }
        }
        self.bytes += value.len();
        if self.bytes > HEADERS_BYTES_MAX { check::headers(&self.all) } else { Ok(()) }
    }
}

fn read_option<'a>(
    put: &mut Put,
    headers: &mut Headers<'a>,
    word: &[u8],
    args: &mut Args<'a>,
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
    } else if is(word, "EXPIRES_AFTER") {
        put.expires_after_ms = Some(args.span("EXPIRES_AFTER")?);
    } else if is(word, "GROUP") {
        put.group = Some(args.bytes("GROUP")?);
    } else if is(word, "HEADER") {
        let name = args.text("HEADER")?;
        headers.add(name, args.text("the value of a HEADER")?)?;
    } else if is(word, "KIND") {
        put.body_kind = kind(args.must("KIND")?)?;
    } else {
        return Err(unknown(word, OPTIONS));
    }
    Ok(())
}

/// The form of a body: what HTTP hands it out as.
pub(super) fn kind(word: &[u8]) -> Result<BodyKind, Error> {
    BodyKind::ALL
        .into_iter()
        .find(|kind| is(word, kind.as_str()))
        .ok_or_else(|| Error::invalid(format!("KIND is {}; give bytes, text or json", shown(word))))
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

/// The id; of a put with a key, also what the put did; in full, what became of the job.
pub(super) fn write(out: &mut Out<'_>, reply: PutReply, form: PutForm) {
    match form {
        PutForm::Id => return out.digits(reply.id.0),
        PutForm::Outcome => out.list(2),
        PutForm::Full => out.list(4),
    }
    out.digits(reply.id.0);
    out.string(match reply.outcome {
        PutOutcome::Created => b"created",
        PutOutcome::Duplicate => b"duplicate",
        PutOutcome::Replaced => b"replaced",
    });
    if form == PutForm::Full {
        match reply.state {
            Some(state) => out.string(state.as_str().as_bytes()),
            None => out.null(),
        }
        out.number(reply.due_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_refused_beyond_their_limit() {
        let half = "x".repeat(HEADERS_BYTES_MAX / 2);
        let mut headers = Headers::default();
        for _ in 0..3 {
            headers.add("a", &half).unwrap();
        }
        headers.add("b", "").unwrap();
        headers.add("a", "y").unwrap();
        assert_eq!(headers.bytes, 3);
        headers.add("b", &half).unwrap();
        let error = headers.add("c", &half).unwrap_err();
        assert!(error.text.contains("give at most 4096"), "{error}");
        let names: Vec<_> = headers.all.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(headers.all[0].1, "y");
    }
}
