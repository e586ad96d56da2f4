//! Replies.

use bytes::{BufMut as _, Bytes, BytesMut};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::JobId;

use super::{line, number};

pub(super) const BAD_FORMAT: &[u8] = b"BAD_FORMAT\r\n";
pub(super) const UNKNOWN_COMMAND: &[u8] = b"UNKNOWN_COMMAND\r\n";
pub(crate) const OUT_OF_MEMORY: &[u8] = b"OUT_OF_MEMORY\r\n";
pub(super) const INTERNAL_ERROR: &[u8] = b"INTERNAL_ERROR\r\n";
pub(super) const DRAINING: &[u8] = b"DRAINING\r\n";
pub(super) const EXPECTED_CRLF: &[u8] = b"EXPECTED_CRLF\r\n";
pub(super) const JOB_TOO_BIG: &[u8] = b"JOB_TOO_BIG\r\n";
pub(super) const NOT_FOUND: &[u8] = b"NOT_FOUND\r\n";
pub(super) const NOT_IGNORED: &[u8] = b"NOT_IGNORED\r\n";
pub(super) const TIMED_OUT: &[u8] = b"TIMED_OUT\r\n";
pub(super) const DEADLINE_SOON: &[u8] = b"DEADLINE_SOON\r\n";
pub(super) const DELETED: &[u8] = b"DELETED\r\n";
pub(super) const RELEASED: &[u8] = b"RELEASED\r\n";
pub(super) const BURIED: &[u8] = b"BURIED\r\n";
pub(super) const TOUCHED: &[u8] = b"TOUCHED\r\n";
pub(super) const KICKED: &[u8] = b"KICKED\r\n";
pub(super) const PAUSED: &[u8] = b"PAUSED\r\n";

/// A keyword and a number.
pub(super) fn numbered(word: &str, number: u64, out: &mut BytesMut) {
    out.extend_from_slice(word.as_bytes());
    out.put_u8(b' ');
    number::write(number, out);
    out.extend_from_slice(line::END);
}

/// A keyword and a name.
pub(super) fn named(word: &str, name: &str, out: &mut BytesMut) {
    for part in [word.as_bytes(), b" ", name.as_bytes(), line::END] {
        out.extend_from_slice(part);
    }
}

/// A job with its body.
pub(super) fn job(word: &str, id: JobId, body: &Bytes, out: &mut BytesMut) {
    out.reserve(word.len() + body.len() + 48);
    out.extend_from_slice(word.as_bytes());
    out.put_u8(b' ');
    number::write(id.0, out);
    out.put_u8(b' ');
    number::write(body.len() as u64, out);
    for part in [line::END, body, line::END] {
        out.extend_from_slice(part);
    }
}

/// A list or a map, as YAML.
pub(super) fn yaml(text: &str, out: &mut BytesMut) {
    numbered("OK", text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(line::END);
}

/// The reply for an error: most concern a job's state, or a job that does not exist.
pub(super) fn error(error: &Error, out: &mut BytesMut) {
    out.extend_from_slice(match error.code {
        Code::NotFound | Code::Conflict | Code::LeaseLost => NOT_FOUND,
        Code::Full => OUT_OF_MEMORY,
        Code::TooLarge => JOB_TOO_BIG,
        _ => {
            tracing::debug!(%error, "a beanstalkd client gets INTERNAL_ERROR");
            INTERNAL_ERROR
        }
    });
}
