//! Finds where a reply ends, in input that comes in pieces.

use crate::limits::{LINE_BYTES_MAX, REPLY_BYTES_MAX, REPLY_DEPTH_MAX};

/// Why the rest of the input cannot be read: it is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Garbage(pub String);

/// The reply that is arriving. It remembers how far it got, so that a large reply in many pieces is
/// looked at once.
#[derive(Debug, Default)]
pub struct Scanner {
    /// The bytes that are passed.
    at: usize,
    /// Of each open list, how many values are missing.
    open: Vec<usize>,
}

impl Scanner {
    /// The length of the first reply; `None` if more input is needed. Call it again with the rest
    /// once the reply is taken off.
    pub fn next(&mut self, input: &[u8]) -> Result<Option<usize>, Garbage> {
        loop {
            if self.at > REPLY_BYTES_MAX {
                let text = format!("a reply of more than {REPLY_BYTES_MAX} bytes");
                return Err(Garbage(text));
            }
            let Some((head, end)) = head(input, self.at)? else { return Ok(None) };
            match head {
                Head::Line => self.at = end,
                Head::String(length) => {
                    if length > REPLY_BYTES_MAX {
                        return Err(Garbage(format!("a string of {length} bytes")));
                    }
                    // Its line break may not have come: then the reply is not whole.
                    if input.len() < end + length + 2 {
                        return Ok(None);
                    }
                    self.at = end + length + 2;
                }
                Head::List(items) => {
                    if self.open.len() == REPLY_DEPTH_MAX {
                        return Err(Garbage("lists too deep in lists".to_owned()));
                    }
                    self.at = end;
                    if items > 0 {
                        self.open.push(items);
                        continue;
                    }
                }
            }
            if self.is_complete() {
                self.open.clear();
                return Ok(Some(std::mem::take(&mut self.at)));
            }
        }
    }

    /// Counts one value, and the lists that it completes.
    fn is_complete(&mut self) -> bool {
        while let Some(missing) = self.open.last_mut() {
            *missing -= 1;
            if *missing > 0 {
                return false;
            }
            self.open.pop();
        }
        true
    }
}

/// The first line of a value.
enum Head {
    /// The line is all of it.
    Line,
    /// A string of so many bytes follows.
    String(usize),
    /// So many values follow.
    List(usize),
}

/// The line at this place and its end; `None` if it is not whole.
fn head(input: &[u8], at: usize) -> Result<Option<(Head, usize)>, Garbage> {
    let rest = input.get(at..).unwrap_or_default();
    let window = &rest[..rest.len().min(LINE_BYTES_MAX)];
    let Some(length) = window.iter().position(|byte| *byte == b'\n') else {
        // An answer of another protocol may have no line break for long.
        return match window.first() {
            Some(mark) if !b"+-:_#$*%".contains(mark) => Err(no_reply(window)),
            _ if window.len() == LINE_BYTES_MAX => Err(no_reply(window)),
            _ => Ok(None),
        };
    };
    let line = window[..length].strip_suffix(b"\r").ok_or_else(|| no_reply(window))?;
    let (mark, text) = line.split_first().ok_or_else(|| no_reply(window))?;
    let number = || {
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
        number.ok_or_else(|| no_reply(window))
    };
    // A negative length is null.
    let size = || number().map(|size| usize::try_from(size).ok());
    let head = match mark {
        b'+' | b'-' | b':' | b'_' | b'#' => Head::Line,
        b'$' => size()?.map_or(Head::Line, Head::String),
        b'*' => size()?.map_or(Head::Line, Head::List),
        b'%' => size()?.map_or(Head::Line, |fields| Head::List(fields.saturating_mul(2))),
        _ => return Err(no_reply(window)),
    };
    Ok(Some((head, at + length + 1)))
}

fn no_reply(bytes: &[u8]) -> Garbage {
    let begin = &bytes[..bytes.len().min(48)];
    Garbage(format!("{:?} is no reply", String::from_utf8_lossy(begin)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLIES: &[&str] = &[
        "+OK\r\n",
        "-LEASELOST it is over\r\n",
        ":-7\r\n",
        "_\r\n",
        "#t\r\n",
        "$-1\r\n",
        "$0\r\n\r\n",
        "$5\r\na\r\nb\n\r\n",
        "*0\r\n",
        "*-1\r\n",
        "%0\r\n",
        "*2\r\n*2\r\n:1\r\n$1\r\nx\r\n%1\r\n$1\r\na\r\n*0\r\n",
    ];

    /// The end is the same whatever pieces the input comes in.
    #[test]
    fn the_end_of_each_reply_is_found() {
        for reply in REPLIES {
            let input = format!("{reply}+NEXT\r\n");
            assert_eq!(Scanner::default().next(input.as_bytes()), Ok(Some(reply.len())), "{reply}");
            let mut scanner = Scanner::default();
            for end in 0..reply.len() {
                let seen = scanner.next(&input.as_bytes()[..end]);
                assert_eq!(seen, Ok(None), "{reply} after {end} bytes");
            }
            assert_eq!(scanner.next(input.as_bytes()), Ok(Some(reply.len())), "{reply}");
            assert_eq!(scanner.next(b"+NEXT\r\n"), Ok(Some(7)), "{reply}");
        }
    }

    #[test]
    fn other_input_is_refused() {
        let deep = "*1\r\n".repeat(REPLY_DEPTH_MAX + 1);
        let long = format!("+{}", "x".repeat(LINE_BYTES_MAX));
        for input in [
            "HTTP/1.1 400 Bad Request\r\n",
            "HTTP",
            "\u{16}\u{3}",
            "+OK\n",
            "\r\n",
            "$x\r\n",
            "*\r\n",
            "$99999999999\r\n",
            &deep,
            &long,
        ] {
            assert!(Scanner::default().next(input.as_bytes()).is_err(), "{input:?}");
        }
    }
}
