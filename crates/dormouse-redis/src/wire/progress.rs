//! A job's progress, as `write_progress` in job.lua packs it: numbers, the group if there is one,
//! the last error.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::Progress;

use super::Reader;
use super::codes::{GROUPED, KEY_LOST};

/// The fields of a progress in order, and their bytes.
pub(crate) const FIELDS: &[(&str, usize)] = &[
    ("fence", 8),
    ("attempts", 4),
    ("priority", 4),
    ("reserves", 4),
    ("expiries", 4),
    ("releases", 4),
    ("kills", 4),
    ("kicks", 4),
    ("bytes", 4),
    ("ttr", 6),
    ("flags", 1),
];

/// The bytes of these fields.
pub(crate) fn bytes(fields: &[(&str, usize)]) -> usize {
    fields.iter().map(|(_, bytes)| bytes).sum()
}

/// A format of Lua's `struct` that reads the wanted ones of these fields.
pub(crate) fn format(fields: &[(&str, usize)], is_wanted: impl Fn(&str) -> bool) -> String {
    let part = |(name, bytes): &(&str, usize)| match bytes {
        _ if !is_wanted(name) => "x".repeat(*bytes),
        1 => "B".to_owned(),
        bytes => format!("I{bytes}"),
    };
    std::iter::once(">".to_owned()).chain(fields.iter().map(part)).collect()
}

/// What a new lease takes over.
pub(crate) fn is_for_lease(field: &str) -> bool {
    !["fence", "priority", "bytes", "ttr"].contains(&field)
}

/// What an ack reads.
pub(crate) fn is_for_ack(field: &str) -> bool {
    ["attempts", "priority", "bytes", "flags"].contains(&field)
}

/// The progress of a job that was never reserved, kicked or killed: Redis stores none.
pub(crate) fn fresh(bytes: u32, priority: u32) -> Progress {
    Progress { priority, bytes, ..Progress::default() }
}

/// `lapsed`: its lease has expired, which no script has recorded yet.
pub(crate) fn decode(text: &[u8], lapsed: bool) -> Result<Progress, Error> {
    let mut from = Reader::new(text);
    let mut progress = Progress {
        fence: from.u64()?,
        attempts: from.u32()?,
        priority: from.u32()?,
        reserves: from.u32()?,
        expiries: from.u32()?,
        releases: from.u32()?,
        kills: from.u32()?,
        kicks: from.u32()?,
        bytes: from.u32()?,
        lapsed,
        ..Progress::default()
    };
    from.u48()?;
    let flags = from.u8()?;
    progress.key_lost = flags & KEY_LOST != 0;
    if flags & GROUPED != 0 {
        // The record has it, too.
        from.short_bytes()?;
    }
    if lapsed {
        progress.expiries = progress.expiries.saturating_add(1);
    }
    if !from.is_empty() {
        progress.error = Some(Bytes::copy_from_slice(from.rest()));
    }
    Ok(progress)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_skip_what_is_not_wanted() {
        assert_eq!(format(FIELDS, |_| true), ">I8I4I4I4I4I4I4I4I4I6B");
        assert_eq!(format(&FIELDS[1..], is_for_ack), ">I4I4xxxxxxxxxxxxxxxxxxxxI4xxxxxxB");
        let lease = format(FIELDS, is_for_lease);
        assert_eq!(lease, ">xxxxxxxxI4xxxxI4I4I4I4I4xxxxxxxxxxB");
        assert_eq!(bytes(FIELDS), 47);
    }

    /// Each field has its number as its value.
    #[test]
    fn fields_are_decoded_in_their_order() {
        let mut text = Vec::new();
        for (number, (_, bytes)) in (1_u64..).zip(FIELDS) {
            text.extend_from_slice(&number.to_be_bytes()[8 - bytes..]);
        }
        text.extend_from_slice(b"error");
        let read = decode(&text, false).unwrap();
        let field = |name: &str| FIELDS.iter().position(|(field, _)| *field == name).unwrap() + 1;
        for (name, value) in [
            ("fence", read.fence),
            ("attempts", read.attempts.into()),
            ("priority", read.priority.into()),
            ("reserves", read.reserves.into()),
            ("expiries", read.expiries.into()),
            ("releases", read.releases.into()),
            ("kills", read.kills.into()),
            ("kicks", read.kicks.into()),
            ("bytes", read.bytes.into()),
        ] {
            assert_eq!(value, field(name) as u64, "{name}");
        }
        assert_eq!(read.key_lost, field("flags") & usize::from(KEY_LOST) != 0);
        assert_eq!(read.error.as_deref(), Some(&b"error"[..]));
    }
}
