//! Bytes into commands: lists of strings as clients send them, or a line of words as people type.
//!
//! Nothing is allocated from a declared length: memory grows with what has come. What was
//! understood once is not looked at again, in however many pieces the rest comes.

use crate::limits::{
    RESP_ARGUMENTS_MAX, RESP_COMMAND_BYTES_MAX, RESP_GUEST_ARGUMENTS_MAX, RESP_GUEST_BYTES_MAX,
    RESP_LINE_BYTES_MAX, RESP_SKIPPED_BYTES_MAX,
};
use bytes::{Buf, BytesMut};

use super::inline;

/// The longest head of a list or string: a mark and a number of 64 bits fit well.
const HEAD_BYTES_MAX: usize = 32;

/// Where an argument stands in the bytes of its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteRange {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// A whole command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Its arguments stand in the first so many bytes of the input.
    List(usize),
    /// Its words stand in `Decoder::words`, and so many bytes of the input made them.
    Line(usize),
    /// It was larger than any command may be. It is not kept, and off the input already.
    TooLarge,
}

/// Why nothing that comes can be understood any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProtocolError {
    /// Not as the protocol wants it.
    Malformed(String),
    /// This is HTTP.
    Http,
}

/// How much a caller may send in one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    arguments: usize,
    bytes: usize,
    skipped: usize,
}

impl Bounds {
    /// Of who has shown a token, or needs none.
    pub(super) const KNOWN: Bounds = Bounds {
        arguments: RESP_ARGUMENTS_MAX,
        bytes: RESP_COMMAND_BYTES_MAX,
        skipped: RESP_SKIPPED_BYTES_MAX,
    };
    /// Of who has still to show one: enough for that.
    pub(super) const GUEST: Bounds =
        Bounds { arguments: RESP_GUEST_ARGUMENTS_MAX, bytes: RESP_GUEST_BYTES_MAX, skipped: 0 };

    /// A command, its name included, has so many arguments.
    fn check_arguments(self, count: usize) -> Result<(), ProtocolError> {
        let max = self.arguments;
        if count <= max {
            return Ok(());
        }
        breach(format!("{count} arguments; send at most {max} in a command"))
    }
}

/// What has been understood of the command that comes.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// So many bytes of the input are understood.
    at: usize,
    /// Arguments that are still to come; `None` = their number is.
    missing: Option<usize>,
    /// The length of the argument that comes, if its head has come.
    length: Option<usize>,
    /// Bytes that were let go because the command is too large.
    skipped: usize,
    /// Where the arguments are.
    pub(super) ranges: Vec<ByteRange>,
    /// The words of a line, one behind the other.
    pub(super) words: Vec<u8>,
}

impl Decoder {
    /// The next whole command; `None` = the rest of it has still to come. After one was found,
    /// `clear` makes ready for the next.
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
                        // Nothing is asked: clients send it to keep a connection alive.
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

    /// The command was taken: the next one begins.
    pub(super) fn clear(&mut self) {
        // What a large command needed is not kept.
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

    /// How many arguments a command has.
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

    /// Reads one argument; false = the rest of it has still to come.
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
            return breach("a string is longer than its length says");
        }
        // A command is far below 4 GiB.
        self.ranges.push(ByteRange { start: self.at as u32, end: end as u32 });
        self.at = end + 2;
        self.length = None;
        Ok(true)
    }

    /// Reads the head of an argument.
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
                return breach(format!("expected '$', got '{other}'"));
            }
        }
        let Some((length, end)) = head(rest, "invalid bulk length")? else { return Ok(None) };
        let Ok(length) = usize::try_from(length) else { return breach("invalid bulk length") };
        self.at += end;
        if self.skipped > 0 || self.at.saturating_add(length) > bounds.bytes {
            self.let_go(input, length, bounds)?;
        }
        self.length = Some(length);
        Ok(Some(length))
    }

    /// The command is too large to be kept. If it is not by far, its client hears so when it has
    /// sent it all, and may go on.
    fn let_go(
        &mut self,
        input: &mut BytesMut,
        length: usize,
        bounds: Bounds,
    ) -> Result<(), ProtocolError> {
        let total = self.skipped.saturating_add(self.at).saturating_add(length);
        if total > bounds.skipped.max(bounds.bytes) {
            let max = bounds.bytes;
            return breach(format!("invalid bulk length: a command has at most {max} bytes"));
        }
        self.skipped = total;
        self.ranges = Vec::new();
        input.advance(self.at);
        self.at = 0;
        Ok(())
    }

    /// Lets the bytes of an argument go as they come.
    fn skip(&mut self, input: &mut BytesMut, length: usize) -> Result<bool, ProtocolError> {
        let gone = length.min(input.len());
        input.advance(gone);
        self.length = Some(length - gone);
        if gone < length || input.len() < 2 {
            return Ok(false);
        }
        if !input.starts_with(b"\r\n") {
            return breach("a string is longer than its length says");
        }
        input.advance(2);
        self.length = None;
        Ok(true)
    }

    /// A command that a person typed.
    fn line(&mut self, input: &BytesMut, bounds: Bounds) -> Result<Option<Frame>, ProtocolError> {
        let bytes_max = RESP_LINE_BYTES_MAX.min(bounds.bytes);
        let first = input.first().copied().unwrap_or_default();
        if !(first.is_ascii_graphic() || first.is_ascii_whitespace()) {
            return breach("this is no command; no TLS is spoken here either");
        }
        let unseen = input.get(self.at..).unwrap_or_default();
        let Some(end) = unseen.iter().position(|&byte| byte == b'\n') else {
            self.at = input.len();
            if self.at > bytes_max {
                return breach("too big inline request");
            }
            return Ok(None);
        };
        let end = self.at + end + 1;
        let line = input.get(..end - 1).unwrap_or_default();
        if line.len() > bytes_max {
            return breach("too big inline request");
        }
        if inline::is_http(line) {
            return Err(ProtocolError::Http);
        }
        if inline::split(line, &mut self.words, &mut self.ranges).is_none() {
            return breach("unbalanced quotes in request");
        }
        bounds.check_arguments(self.ranges.len())?;
        Ok(Some(Frame::Line(end)))
    }
}

fn breach<T>(text: impl Into<String>) -> Result<T, ProtocolError> {
    Err(ProtocolError::Malformed(text.into()))
}

/// The number behind a mark, and where its line ends; `None` = the line is not all there.
fn head(bytes: &[u8], wrong: &str) -> Result<Option<(i64, usize)>, ProtocolError> {
    let window = bytes.get(..HEAD_BYTES_MAX.min(bytes.len())).unwrap_or_default();
    let Some(end) = window.iter().position(|&byte| byte == b'\n') else {
        if window.len() == HEAD_BYTES_MAX {
            return breach(wrong);
        }
        return Ok(None);
    };
    let number = window.get(1..end).and_then(|line| line.strip_suffix(b"\r")).and_then(number);
    match number {
        Some(number) => Ok(Some((number, end + 1))),
        None => breach(wrong),
    }
}

/// A decimal number of 64 bits.
fn number(digits: &[u8]) -> Option<i64> {
    let is_plain = matches!(digits.first(), Some(b'-' | b'0'..=b'9'));
    std::str::from_utf8(digits).ok().filter(|_| is_plain)?.parse().ok()
}

#[cfg(test)]
mod tests;
