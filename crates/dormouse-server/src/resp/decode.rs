//! Decodes commands: lists of strings as clients send them, or lines of words as people type them.
//!
//! `Decoder::next` is called whenever input has arrived, and remembers between calls how far it
//! got: `at` bytes of the input are decoded, `missing` arguments and the `length` of the current
//! one are known. So a command that arrives in many pieces is decoded once, and its cost does not
//! depend on the pieces. The bytes stay in the input; only the range of each argument is noted.
//!
//! Nothing is allocated from a declared length: memory grows with the input that has arrived. A
//! command above its bounds is discarded as it arrives (`skipped` counts its bytes), so that its
//! client can be told and go on; one far above them closes the connection.

use crate::limits::{
    RESP_ARGUMENTS_MAX, RESP_COMMAND_BYTES_MAX, RESP_GUEST_ARGUMENTS_MAX, RESP_GUEST_BYTES_MAX,
    RESP_LINE_BYTES_MAX, RESP_SKIPPED_BYTES_MAX,
};
use bytes::{Buf, BytesMut};

use super::inline;

/// The longest header of a list or string: a type byte and a 64-bit number fit well.
const HEAD_BYTES_MAX: usize = 32;

/// The range of an argument in the bytes of its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteRange {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// A complete command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Its arguments are in the first bytes of the input; this is their number.
    List(usize),
    /// Its words are in `Decoder::words`; they took this number of bytes of the input.
    Line(usize),
    /// It was larger than a command may be, and has been discarded.
    TooLarge,
}

/// Why the rest of the input cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProtocolError {
    /// The input violates the protocol.
    Malformed(String),
    /// The input is HTTP.
    Http,
}

/// The bounds of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    arguments: usize,
    bytes: usize,
    skipped: usize,
}

impl Bounds {
    /// For callers that are authenticated, or need not be.
    pub(super) const KNOWN: Bounds = Bounds {
        arguments: RESP_ARGUMENTS_MAX,
        bytes: RESP_COMMAND_BYTES_MAX,
        skipped: RESP_SKIPPED_BYTES_MAX,
    };
    /// For callers that are not authenticated yet: enough for AUTH.
    pub(super) const GUEST: Bounds =
        Bounds { arguments: RESP_GUEST_ARGUMENTS_MAX, bytes: RESP_GUEST_BYTES_MAX, skipped: 0 };

    /// Checks the number of arguments, the name included.
    fn check_arguments(self, count: usize) -> Result<(), ProtocolError> {
        let max = self.arguments;
        if count <= max {
            return Ok(());
        }
        malformed(format!("{count} arguments; send at most {max} in a command"))
    }
}

/// What is known of the command that is arriving.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The number of bytes of the input that are decoded.
    at: usize,
    /// The number of arguments that are still to be decoded; `None` if it is not known yet.
    missing: Option<usize>,
    /// The length of the current argument; `None` if its header is not decoded yet.
    length: Option<usize>,
    /// Bytes that were discarded because the command is too large.
    skipped: usize,
    pub(super) ranges: Vec<ByteRange>,
    /// The words of a line, concatenated.
    pub(super) words: Vec<u8>,
}

impl Decoder {
    /// The next complete command; `None` if more input is needed. Call `clear` once it is taken off
    /// the input.
    pub(super) fn next(
        &mut self,
        input: &mut BytesMut,
        bounds: Bounds,
    ) -> Result<Option<Frame>, ProtocolError> {
        loop {
            let missing = match self.missing {
                Some(missing) => missing,
                None => match input.first() {
                    None => return Ok(None),
                    Some(b'*') => match self.count(input, bounds)? {
                        None => return Ok(None),
                        // An empty list: clients send it to keep a connection alive.
                        Some(0) => continue,
                        Some(count) => count,
                    },
                    Some(_) => return self.line(input, bounds),
                },
            };
            if missing == 0 {
                return Ok(Some(self.found()));
            }
            if !self.argument(input, bounds)? {
                return Ok(None);
            }
            self.missing = Some(missing - 1);
        }
    }

    /// Begins the next command.
    pub(super) fn clear(&mut self) {
        // The memory that a large command needed is not kept.
        if self.ranges.capacity() > RESP_GUEST_ARGUMENTS_MAX * 16 {
            self.ranges = Vec::new();
        }
        self.ranges.clear();
        self.words = Vec::new();
        (self.at, self.missing, self.length, self.skipped) = (0, None, None, 0);
    }

    fn found(&mut self) -> Frame {
        if self.skipped == 0 {
            return Frame::List(self.at);
        }
        self.clear();
        Frame::TooLarge
    }

    /// Decodes the number of arguments.
    fn count(
        &mut self,
        input: &mut BytesMut,
        bounds: Bounds,
    ) -> Result<Option<usize>, ProtocolError> {
        let Some((count, end)) = head(input, "invalid multibulk length")? else { return Ok(None) };
        if count <= 0 {
            input.advance(end);
            return Ok(Some(0));
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        bounds.check_arguments(count)?;
        self.at = end;
        self.missing = Some(count);
        Ok(Some(count))
    }

    /// Decodes one argument; false if more input is needed.
    fn argument(&mut self, input: &mut BytesMut, bounds: Bounds) -> Result<bool, ProtocolError> {
        let length = match self.length {
            Some(length) => length,
            None => match self.open_argument(input, bounds)? {
                Some(length) => length,
                None => return Ok(false),
            },
        };
        if self.skipped > 0 {
            return self.skip(input, length);
        }
        let end = self.at + length;
        let Some(closing) = input.get(end..end + 2) else { return Ok(false) };
        if closing != b"\r\n" {
            return malformed("a string is longer than its length says");
        }
        // A command is far below 4 GiB.
        self.ranges.push(ByteRange { start: self.at as u32, end: end as u32 });
        self.at = end + 2;
        self.length = None;
        Ok(true)
    }

    /// Decodes the header of an argument.
    fn open_argument(
        &mut self,
        input: &mut BytesMut,
        bounds: Bounds,
    ) -> Result<Option<usize>, ProtocolError> {
        let rest = input.get(self.at..).unwrap_or_default();
        match rest.first() {
            None => return Ok(None),
            Some(b'$') => {}
            Some(&other) => {
                let other = char::from(other).escape_default();
                return malformed(format!("expected '$', got '{other}'"));
            }
        }
        let Some((length, end)) = head(rest, "invalid bulk length")? else { return Ok(None) };
        let Ok(length) = usize::try_from(length) else { return malformed("invalid bulk length") };
        self.at += end;
        if self.skipped > 0 || self.at.saturating_add(length) > bounds.bytes {
            self.discard(input, length, bounds)?;
        }
        self.length = Some(length);
        Ok(Some(length))
    }

    /// Discards a command that is too large. Unless it is far too large, its client is told once it
    /// has sent all of it, and may go on.
    fn discard(
        &mut self,
        input: &mut BytesMut,
        length: usize,
        bounds: Bounds,
    ) -> Result<(), ProtocolError> {
        let total = self.skipped.saturating_add(self.at).saturating_add(length);
        if total > bounds.skipped.max(bounds.bytes) {
            let max = bounds.bytes;
            return malformed(format!("invalid bulk length: a command has at most {max} bytes"));
        }
        self.skipped = total;
        self.ranges = Vec::new();
        input.advance(self.at);
        self.at = 0;
        Ok(())
    }

    /// Discards the bytes of an argument as they arrive.
    fn skip(&mut self, input: &mut BytesMut, length: usize) -> Result<bool, ProtocolError> {
        let gone = length.min(input.len());
        input.advance(gone);
        self.length = Some(length - gone);
        if gone < length || input.len() < 2 {
            return Ok(false);
        }
        if !input.starts_with(b"\r\n") {
            return malformed("a string is longer than its length says");
        }
        input.advance(2);
        self.length = None;
        Ok(true)
    }

    /// Decodes a command that a person typed.
    fn line(&mut self, input: &BytesMut, bounds: Bounds) -> Result<Option<Frame>, ProtocolError> {
        let bytes_max = RESP_LINE_BYTES_MAX.min(bounds.bytes);
        let first = input.first().copied().unwrap_or_default();
        if !(first.is_ascii_graphic() || first.is_ascii_whitespace()) {
            return malformed("this is no command; this port does not speak TLS either");
        }
        let unseen = input.get(self.at..).unwrap_or_default();
        let Some(end) = unseen.iter().position(|&byte| byte == b'\n') else {
            self.at = input.len();
            if self.at > bytes_max {
                return malformed("too big inline request");
            }
            return Ok(None);
        };
        let end = self.at + end + 1;
        let line = input.get(..end - 1).unwrap_or_default();
        if line.len() > bytes_max {
            return malformed("too big inline request");
        }
        if inline::is_http(line) {
            return Err(ProtocolError::Http);
        }
        if inline::split(line, &mut self.words, &mut self.ranges).is_none() {
            return malformed("unbalanced quotes in request");
        }
        bounds.check_arguments(self.ranges.len())?;
        Ok(Some(Frame::Line(end)))
    }
}

fn malformed<T>(text: impl Into<String>) -> Result<T, ProtocolError> {
    Err(ProtocolError::Malformed(text.into()))
}

/// The number behind a type byte, and the end of its line; `None` if the line is incomplete.
fn head(bytes: &[u8], wrong: &str) -> Result<Option<(i64, usize)>, ProtocolError> {
    let window = bytes.get(..HEAD_BYTES_MAX.min(bytes.len())).unwrap_or_default();
    let Some(end) = window.iter().position(|&byte| byte == b'\n') else {
        if window.len() == HEAD_BYTES_MAX {
            return malformed(wrong);
        }
        return Ok(None);
    };
    let number = window.get(1..end).and_then(|line| line.strip_suffix(b"\r")).and_then(number);
    match number {
        Some(number) => Ok(Some((number, end + 1))),
        None => malformed(wrong),
    }
}

/// A decimal 64-bit number.
fn number(digits: &[u8]) -> Option<i64> {
    let is_plain = matches!(digits.first(), Some(b'-' | b'0'..=b'9'));
    std::str::from_utf8(digits).ok().filter(|_| is_plain)?.parse().ok()
}

#[cfg(test)]
mod tests;
