//! The arguments of a command, read one after the other from the input.

use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, Token};
use dormouse_core::rate::Rate;

use super::decode::ByteRange;
use crate::units::{parse_backoff, parse_instant, parse_rate, parse_span};

/// An argument of at least this size is not copied; it keeps the buffer that it arrived in alive.
/// The socket is read in portions of this size, so the argument is a good part of that buffer.
const SLICED_BYTES_MIN: usize = 16 << 10;

/// The arguments that are still to be read.
#[derive(Clone)]
pub(super) struct Args<'a> {
    bytes: &'a [u8],
    ranges: &'a [ByteRange],
    /// The same bytes, if arguments may keep them.
    frame: Option<&'a Bytes>,
}

impl<'a> Args<'a> {
    pub(super) fn new(
        bytes: &'a [u8],
        ranges: &'a [ByteRange],
        frame: Option<&'a Bytes>,
    ) -> Args<'a> {
        Args { bytes, ranges, frame }
    }

    /// Whether one of these is too large to be copied.
    pub(super) fn are_large(ranges: &[ByteRange]) -> bool {
        ranges.iter().any(|place| (place.end - place.start) as usize >= SLICED_BYTES_MIN)
    }

    /// The number of arguments left.
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    fn at(&self, place: ByteRange) -> &'a [u8] {
        self.bytes.get(place.start as usize..place.end as usize).unwrap_or_default()
    }

    pub(super) fn next(&mut self) -> Option<&'a [u8]> {
        let (first, rest) = self.ranges.split_first()?;
        self.ranges = rest;
        Some(self.at(*first))
    }

    /// The next argument, which is not taken.
    pub(super) fn peek(&self) -> Option<&'a [u8]> {
        self.ranges.first().map(|place| self.at(*place))
    }

    /// Takes the next argument if it is this word.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let is_it = self.peek().is_some_and(|next| is(next, word));
        if is_it {
            self.next();
        }
        is_it
    }

    /// The next argument; it is an error if there is none.
    pub(super) fn must(&mut self, field: &str) -> Result<&'a [u8], Error> {
        self.next().ok_or_else(|| missing(field))
    }

    /// The next argument as bytes that outlive the input.
    pub(super) fn bytes(&mut self, field: &str) -> Result<Bytes, Error> {
        let place = *self.ranges.first().ok_or_else(|| missing(field))?;
        let value = self.must(field)?;
        match self.frame {
            Some(frame) if value.len() >= SLICED_BYTES_MIN => {
                Ok(frame.slice(place.start as usize..place.end as usize))
            }
            _ => Ok(Bytes::copy_from_slice(value)),
        }
    }

    pub(super) fn text(&mut self, field: &str) -> Result<&'a str, Error> {
        text(field, self.must(field)?)
    }

    pub(super) fn span(&mut self, field: &str) -> Result<i64, Error> {
        let value = self.must(field)?;
        time(field, value, parse_span)
    }

    pub(super) fn instant(&mut self, field: &str) -> Result<i64, Error> {
        let value = self.must(field)?;
        time(field, value, parse_instant)
    }

    /// The next argument as a number that fits the type.
    pub(super) fn number<T: TryFrom<u64>>(&mut self, field: &str) -> Result<T, Error> {
        let value = self.must(field)?;
        let number = digits(value).and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| {
            let shown = shown(value);
            Error::invalid(format!("{field} is {shown}; give a number from 0 to 4294967295"))
        })
    }

    pub(super) fn backoff(
        &mut self,
    ) -> Result<std::sync::Arc<dormouse_core::backoff::Backoff>, Error> {
        let form = parse_backoff(self.text("BACKOFF")?);
        form.map(|form| form.into_backoff())
            .map_err(|why| Error::invalid(format!("BACKOFF: {why}")))
    }

    pub(super) fn rate(&mut self, field: &str) -> Result<Rate, Error> {
        let rate = parse_rate(self.text(field)?);
        rate.map_err(|why| Error::invalid(format!("{field}: {why}")))
    }

    pub(super) fn token(&mut self) -> Result<Token, Error> {
        text("token", self.must("token")?)?.parse()
    }

    pub(super) fn id(&mut self) -> Result<JobId, Error> {
        let value = self.must("id")?;
        digits(value).map(JobId).ok_or_else(|| {
            let shown = shown(value);
            Error::invalid(format!("id {shown} is not a number; send the id that PUT answered"))
        })
    }

    /// Refuses an argument that is left.
    pub(super) fn finish(&mut self, options: &[&'static str]) -> Result<(), Error> {
        match self.next() {
            None => Ok(()),
            Some(word) => Err(unknown(word, options)),
        }
    }
}

/// Whether an argument is this word, in any case.
pub(super) fn is(value: &[u8], word: &str) -> bool {
    value.eq_ignore_ascii_case(word.as_bytes())
}

/// The error for an unknown option.
pub(super) fn unknown(word: &[u8], options: &[&'static str]) -> Error {
    let shown = shown(word);
    if options.is_empty() {
        return Error::invalid(format!("{shown} is one argument too many"));
    }
    let options = options.join(", ");
    Error::invalid(format!("{shown} is not an option here; the options are {options}"))
}

fn missing(field: &str) -> Error {
    Error::invalid(format!("{field} is missing"))
}

/// An argument as an error shows it, cut after 64 bytes.
pub(super) fn shown(value: &[u8]) -> String {
    let begin = value.get(..64.min(value.len())).unwrap_or_default();
    format!("{:?}", String::from_utf8_lossy(begin))
}

/// A number of nothing but decimal digits.
pub(super) fn digits(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 20 {
        return None;
    }
    value.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// An argument that must be text.
pub(super) fn text<'a>(field: &str, value: &'a [u8]) -> Result<&'a str, Error> {
    std::str::from_utf8(value)
        .map_err(|_| Error::invalid(format!("{field} {} is not UTF-8", shown(value))))
}

/// A time in ms, or in the notation for people.
fn time(field: &str, value: &[u8], parse: fn(&str) -> Result<i64, String>) -> Result<i64, Error> {
    parse(text(field, value)?).map_err(|why| Error::invalid(format!("{field}: {why}")))
}
