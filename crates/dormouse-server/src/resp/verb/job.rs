//! Jobs with all their fields.

use std::sync::Arc;

use bytes::Bytes;
use dormouse_core::backoff::Backoff;
use dormouse_core::job::TickOrigin;
use dormouse_core::op::{JobView, LeasedJob};

use crate::resp::encode::Out;
use crate::units::backoff_words;

type Headers = Option<Arc<Vec<(String, String)>>>;

/// A job that the client has leased. Every job has the same fields.
pub(super) fn write_leased(out: &mut Out<'_>, job: &LeasedJob) {
    out.map(19);
    out.name("topic");
    out.string(job.topic.as_str().as_bytes());
    out.name("id");
    out.digits(job.id.0);
    out.name("key");
    write_optional(out, job.key.as_ref());
    out.name("token");
    out.token(job.token);
    for (name, value) in [
        ("attempt", u64::from(job.attempt)),
        ("due_at", job.due_at),
        ("put_at", job.put_at),
        ("late_ms", job.late_ms),
        ("expires_at", job.expires_at),
        ("ttr_ms", job.ttr_ms),
        ("priority", u64::from(job.priority)),
        ("expires_after_ms", job.expires_after_ms),
    ] {
        out.name(name);
        out.number(value);
    }
    out.name("headers");
    write_headers(out, &job.headers);
    out.name("group");
    write_optional(out, job.group.as_ref());
    write_tick(out, job.tick.as_deref());
    out.name("kind");
    out.string(job.body_kind.as_str().as_bytes());
    out.name("body");
    out.string(&job.body);
}

/// A job that was only read. Every job has the same fields, except for the body.
pub(super) fn write_view(out: &mut Out<'_>, view: &JobView, body: bool) {
    let (content, progress) = (&view.job.content, &view.job.progress);
    out.map(if body { 27 } else { 26 });
    out.name("topic");
    out.string(view.topic.as_str().as_bytes());
    out.name("id");
    out.digits(view.job.id.0);
    out.name("key");
    write_optional(out, view.job.key());
    out.name("state");
    out.string(view.state.as_str().as_bytes());
    for (name, value) in [
        ("due_at", view.due_at),
        ("put_at", content.put_at),
        ("priority", u64::from(progress.priority)),
        ("ttr_ms", content.ttr_ms),
        ("attempts", u64::from(progress.attempts)),
        ("attempts_max", u64::from(content.attempts_max)),
        ("key_ttl_ms", content.key_ttl_ms),
        ("expires_after_ms", content.expires_after_ms),
        ("reserves", u64::from(progress.reserves)),
        ("expiries", u64::from(progress.expiries)),
        ("releases", u64::from(progress.releases)),
        ("kills", u64::from(progress.kills)),
        ("kicks", u64::from(progress.kicks)),
    ] {
        out.name(name);
        out.number(value);
    }
    out.name("backoff");
    write_backoff(out, content.backoff.as_deref());
    out.name("error");
    write_optional(out, progress.error.as_ref());
    out.name("headers");
    write_headers(out, &content.headers);
    out.name("group");
    write_optional(out, content.group.as_ref());
    out.name("held_by");
    match view.held_by {
        Some(limit) => out.string(limit.as_str().as_bytes()),
        None => out.null(),
    }
    write_tick(out, content.tick.as_deref());
    out.name("kind");
    out.string(content.body_kind.as_str().as_bytes());
    if body {
        out.name("body");
        out.string(&content.body);
    }
}

/// The tick that put the job; nulls if none did.
fn write_tick(out: &mut Out<'_>, tick: Option<&TickOrigin>) {
    out.name("schedule");
    match tick {
        Some(tick) => out.string(tick.schedule.as_str().as_bytes()),
        None => out.null(),
    }
    for (name, number) in
        [("tick", tick.map(|tick| tick.tick_ms)), ("ticks_missed", tick.map(|tick| tick.missed))]
    {
        out.name(name);
        match number {
            Some(number) => out.number(number),
            None => out.null(),
        }
    }
}

pub(super) fn write_optional(out: &mut Out<'_>, value: Option<&Bytes>) {
    match value {
        Some(value) => out.string(value),
        None => out.null(),
    }
}

pub(super) fn write_headers(out: &mut Out<'_>, headers: &Headers) {
    let headers = headers.as_ref().map_or(&[][..], |headers| headers.as_slice());
    out.map(headers.len());
    for (name, value) in headers {
        out.name(name);
        out.string(value.as_bytes());
    }
}

/// A backoff as `PUT` reads it; null for the default.
pub(super) fn write_backoff(out: &mut Out<'_>, backoff: Option<&Backoff>) {
    match backoff {
        None => out.null(),
        Some(backoff) => out.string(backoff_words(backoff).as_bytes()),
    }
}
