//! Checks that several operations share. Each text names the field, its value, the limit and the
//! fix.

use jiff::Timestamp;
use std::sync::Arc;

use bytes::Bytes;

use crate::backoff::{Backoff, Delays};
use crate::error::{Code, Error};
use crate::limits::{
    AT_MS_MAX, BACKOFF_LIST_MAX, BATCH_MAX, BODY_BYTES_MAX, DEAD_TOPICS_MAX, DELAY_MS_MAX,
    ERROR_BYTES_MAX, GROUP_BYTES_MAX, HEADERS_BYTES_MAX, JITTER_PERMILLE_MAX, KEY_BYTES_MAX,
    KEY_PREFIX_RESERVED, LOCK_NAME_BYTES_MAX, TTL_MS_MAX, TTR_MS_MIN,
};
use crate::time::{Clock, Now};
use crate::topic::TopicName;

/// A span of time within its limits.
pub fn span(field: &str, value_ms: i64, min_ms: u64, max_ms: u64) -> Result<u64, Error> {
    match u64::try_from(value_ms) {
        Ok(ms) if (min_ms..=max_ms).contains(&ms) => Ok(ms),
        _ => Err(Error::invalid(format!("{field} is {value_ms} ms; give {min_ms} to {max_ms} ms"))),
    }
}

/// An instant within its limits, in wall ms.
pub fn instant(field: &str, value_ms: i64) -> Result<u64, Error> {
    let shown = match u64::try_from(value_ms) {
        Ok(ms) if ms <= AT_MS_MAX => return Ok(ms),
        Ok(ms) => rfc3339(ms),
        Err(_) => format!("{value_ms} ms"),
    };
    let (first, last) = (rfc3339(0), rfc3339(AT_MS_MAX));
    Err(Error::invalid(format!("{field} is {shown}; give an instant from {first} to {last}")))
}

/// An instant as people read it; one beyond the calendar in ms.
pub fn rfc3339(wall_ms: u64) -> String {
    let at = i64::try_from(wall_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.map_or_else(|| format!("{wall_ms} ms"), |at| format!("{at:.3}"))
}

/// A lease time within its limits.
pub fn ttr(value_ms: Option<i64>) -> Result<Option<u64>, Error> {
    value_ms.map(|ms| span("ttr", ms, TTR_MS_MIN, TTL_MS_MAX)).transpose()
}

/// A delay within its limits.
pub fn delay(value_ms: Option<i64>) -> Result<Option<u64>, Error> {
    value_ms.map(|ms| span("delay", ms, 0, DELAY_MS_MAX)).transpose()
}

/// When a job is due that asks for this delay or this time: neither means now.
pub fn due(now: Now, delay_ms: Option<i64>, at_ms: Option<i64>) -> Result<(Clock, u64), Error> {
    match (delay_ms, at_ms) {
        (None, None) => Ok((Clock::Steady, now.steady_ms)),
        (Some(ms), None) => Ok((Clock::Steady, now.after(span("delay", ms, 0, DELAY_MS_MAX)?))),
        (None, Some(ms)) => Ok((Clock::Wall, instant("at", ms)?)),
        (Some(delay_ms), Some(at_ms)) => Err(Error::invalid(format!(
            "delay ({delay_ms} ms) and at ({at_ms} ms) are both given; give one of them or neither"
        ))),
    }
}

/// A dead topic from which no job comes back: the dead topics after it do not lead to this topic.
/// `next` gives the dead topic of a topic.
pub fn dead_topics(
    topic: &TopicName,
    dead_topic: Option<&TopicName>,
    mut next: impl FnMut(&TopicName) -> Option<TopicName>,
) -> Result<(), Error> {
    let mut after = dead_topic.cloned();
    for _ in 0..DEAD_TOPICS_MAX {
        match after {
            None => return Ok(()),
            Some(name) if name == *topic => {
                return Err(Error::invalid(format!(
                    "jobs that die in topic {topic} would come back to it by its dead_topic; name \
                     a topic whose own dead_topic leads elsewhere"
                )));
            }
            Some(name) => after = next(&name),
        }
    }
    Err(Error::invalid(format!(
        "the dead_topic of topic {topic} is the first of more than {DEAD_TOPICS_MAX} in a row; \
         shorten the row"
    )))
}

/// The items of one request.
pub fn batch(items: usize) -> Result<(), Error> {
    if items <= BATCH_MAX {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the batch has {items} items; send at most {BATCH_MAX} at once and the rest after"
    )))
}

/// A body within its limit.
pub fn body(body: &Bytes) -> Result<(), Error> {
    if body.len() <= BODY_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(
        Code::TooLarge,
        format!(
            "body has {} bytes; give at most {BODY_BYTES_MAX} and keep more elsewhere",
            body.len()
        ),
    ))
}

/// A key within its limits.
pub fn key(key: &Bytes) -> Result<(), Error> {
    if key.starts_with(KEY_PREFIX_RESERVED) {
        return Err(Error::invalid(
            "keys that start with dormouse: are the server's own; put something before it",
        ));
    }
    named_bytes("key", key, KEY_BYTES_MAX)
}

/// A group within its limits.
pub fn group(group: &Bytes) -> Result<(), Error> {
    named_bytes("group", group, GROUP_BYTES_MAX)
}

/// A lock's name within its limits.
pub fn lock_name(name: &Bytes) -> Result<(), Error> {
    named_bytes("lock name", name, LOCK_NAME_BYTES_MAX)
}

/// A lock's name and owner within their limits.
pub fn lock_names(name: &Bytes, owner: &Bytes) -> Result<(), Error> {
    lock_name(name)?;
    named_bytes("lock owner", owner, LOCK_NAME_BYTES_MAX)
}

fn named_bytes(field: &str, value: &Bytes, max: usize) -> Result<(), Error> {
    if (1..=max).contains(&value.len()) {
        return Ok(());
    }
    Err(Error::invalid(format!("{field} has {} bytes; give 1 to {max}", value.len())))
}

/// Headers within their limit, each with a name.
pub fn headers(headers: &[(String, String)]) -> Result<(), Error> {
    if headers.iter().any(|(name, _)| name.is_empty()) {
        return Err(Error::invalid("headers has an empty name; give each header a name"));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes <= HEADERS_BYTES_MAX {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "headers has {bytes} bytes of names and values; give at most {HEADERS_BYTES_MAX}, the \
         rest in the body"
    )))
}

/// A backoff within its limits.
pub fn backoff(backoff: &Backoff) -> Result<(), Error> {
    let wait = |field: &str, ms: u64| {
        span(field, i64::try_from(ms).unwrap_or(i64::MAX), 0, DELAY_MS_MAX).map(drop)
    };
    if backoff.jitter_permille > JITTER_PERMILLE_MAX {
        return Err(Error::invalid("backoff jitter is out of range; give 0 to 1"));
    }
    match &backoff.delays {
        Delays::Fixed { delay_ms } => wait("backoff delay", *delay_ms),
        Delays::Exponential { factor: 0, .. } => {
            Err(Error::invalid("backoff factor is 0; give at least 1"))
        }
        Delays::Exponential { base_ms, cap_ms, .. } => {
            wait("backoff base", *base_ms)?;
            wait("backoff cap", *cap_ms)
        }
        Delays::List { delays_ms } if (1..=BACKOFF_LIST_MAX).contains(&delays_ms.len()) => {
            delays_ms.iter().try_for_each(|&ms| wait("backoff list entry", ms))
        }
        Delays::List { delays_ms } => Err(Error::invalid(format!(
            "backoff list has {} entries; give 1 to {BACKOFF_LIST_MAX}, the last one repeats",
            delays_ms.len()
        ))),
    }
}

/// A backoff within its limits, if there is one.
pub fn optional_backoff(value: Option<&Arc<Backoff>>) -> Result<(), Error> {
    value.map_or(Ok(()), |value| backoff(value))
}

/// An error text as it is kept: cut to its limit, between characters.
pub fn error_text(text: Bytes) -> Bytes {
    if text.len() <= ERROR_BYTES_MAX {
        return text;
    }
    let is_inside_char = |byte: &u8| byte & 0xc0 == 0x80;
    let mut end = ERROR_BYTES_MAX;
    while end > ERROR_BYTES_MAX - 4 && text.get(end).is_some_and(is_inside_char) {
        end -= 1;
    }
    // A copy, because a slice would keep the whole text in memory.
    Bytes::copy_from_slice(text.get(..end).unwrap_or_default())
}
