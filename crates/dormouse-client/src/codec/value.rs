//! A reply as values that borrow from the bytes it came in.

use bytes::Bytes;

use crate::limits::SLICED_BYTES_MIN;

/// One value, as both versions of the protocol have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'f> {
    /// Nothing.
    Null,
    /// A number or a boolean.
    Number(i64),
    /// A status or a string.
    Text(&'f [u8]),
    /// An error, whole: `CONFLICT job 7 is leased; ...`.
    Error(&'f str),
    /// A list; a map is the list of its names and values, as in version 2.
    List(Vec<Value<'f>>),
}

impl<'f> Value<'f> {
    /// The value of a reply that a [`Scanner`](super::Scanner) found to be whole; `None` = it is
    /// not.
    pub fn parse(frame: &'f [u8]) -> Option<Value<'f>> {
        let mut rest = frame;
        let value = parse(&mut rest)?;
        rest.is_empty().then_some(value)
    }
}

fn parse<'f>(rest: &mut &'f [u8]) -> Option<Value<'f>> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (line, behind) = rest.split_at(end + 1);
    *rest = behind;
    let (mark, text) = line.strip_suffix(b"\r\n")?.split_first()?;
    let number = || std::str::from_utf8(text).ok()?.parse::<i64>().ok();
    Some(match mark {
        b'+' => Value::Text(text),
        b'-' => Value::Error(std::str::from_utf8(text).unwrap_or("ERR an error that is no text")),
        b':' => Value::Number(number()?),
        b'#' => Value::Number(i64::from(text == b"t")),
        b'_' => Value::Null,
        b'$' => match usize::try_from(number()?) {
            Ok(length) => {
                let string = rest.get(..length)?;
                *rest = rest.get(length + 2..)?;
                Value::Text(string)
            }
            Err(_) => Value::Null,
        },
        b'*' | b'%' => match usize::try_from(number()?) {
            Ok(count) => {
                let count = if *mark == b'%' { 2 * count } else { count };
                // Every value has at least four bytes: a count that lies allocates nothing.
                let mut items = Vec::with_capacity(count.min(rest.len() / 4));
                for _ in 0..count {
                    items.push(parse(rest)?);
                }
                Value::List(items)
            }
            Err(_) => Value::Null,
        },
        _ => return None,
    })
}

/// A string that outlives its reply. A short one is copied: it would keep the whole buffer alive
/// for as long as its job is worked on.
pub(super) fn keep(frame: &Bytes, part: &[u8]) -> Bytes {
    if part.len() >= SLICED_BYTES_MIN {
        frame.slice_ref(part)
    } else {
        Bytes::copy_from_slice(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_replies_are_read() {
        let frame = b"*6\r\n$3\r\na\r\n\r\n:-7\r\n$-1\r\n-ASK 1 h:2\r\n*1\r\n+OK\r\n*-1\r\n";
        let list = Value::List(vec![
            Value::Text(b"a\r\n"),
            Value::Number(-7),
            Value::Null,
            Value::Error("ASK 1 h:2"),
            Value::List(vec![Value::Text(b"OK")]),
            Value::Null,
        ]);
        assert_eq!(Value::parse(frame), Some(list));
        for broken in [&b"what\r\n"[..], b"$3\r\na\r\n", b"*1\r\n", b"+a\r\n+b\r\n", b"", b"%-1"] {
            assert_eq!(Value::parse(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn version_3_is_read_as_version_2() {
        let frame = b"%2\r\n$1\r\na\r\n#t\r\n$1\r\nb\r\n_\r\n";
        let list =
            Value::List(vec![Value::Text(b"a"), Value::Number(1), Value::Text(b"b"), Value::Null]);
        assert_eq!(Value::parse(frame), Some(list));
    }

    #[test]
    fn only_long_strings_keep_their_buffer() {
        let frame = Bytes::from(vec![7; 2 * SLICED_BYTES_MIN]);
        let long = keep(&frame, &frame[1..=SLICED_BYTES_MIN]);
        assert_eq!(long.as_ptr(), frame[1..].as_ptr());
        let short = keep(&frame, &frame[1..SLICED_BYTES_MIN]);
        assert_ne!(short.as_ptr(), frame[1..].as_ptr());
        assert_eq!(short.len(), SLICED_BYTES_MIN - 1);
    }
}
