//! Reads the head of an HTTP/1.1 response. Just enough for the answers of Dormouse, which all
//! come with their length: no part of a request is allocated for it.

/// A head beyond this is none.
const HEAD_MAX: usize = 16 * 1024;
const END: &[u8] = b"\r\n\r\n";

/// The fields needed to find the body and the next reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    /// The body begins here.
    pub(super) head_len: usize,
    pub(super) body_len: usize,
    /// The server closes the connection after the body.
    pub(super) closes: bool,
}

impl Head {
    /// Head and body together.
    pub(super) fn len(&self) -> usize {
        self.head_len + self.body_len
    }
}

/// The head at the start of `bytes`; `None` if it is incomplete.
pub(super) fn read(bytes: &[u8]) -> Result<Option<Head>, &'static str> {
    let Some(end) = bytes.windows(END.len()).position(|window| window == END) else {
        return if bytes.len() > HEAD_MAX { Err("the head has no end") } else { Ok(None) };
    };
    let mut lines = bytes[..end].split(|&byte| byte == b'\n').map(|line| line.trim_ascii());
    let status = lines.next().and_then(status_of).ok_or("this is not HTTP/1.1")?;
    let (mut length, mut closes) = (None, false);
    for line in lines {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            return Err("a header has no colon");
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            length = Some(number(value).ok_or("content-length is not a number")?);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return Err("the answer is chunked; the benchmark reads only what has a length");
        } else if name.eq_ignore_ascii_case(b"connection") {
            closes = value.eq_ignore_ascii_case(b"close");
        }
    }
    let body_len = match length {
        _ if status == 204 => 0,
        Some(length) => length,
        None => return Err("the answer has no content-length"),
    };
    Ok(Some(Head { status, head_len: end + END.len(), body_len, closes }))
}

/// Of `HTTP/1.1 200 OK`.
fn status_of(line: &[u8]) -> Option<u16> {
    let rest = line.strip_prefix(b"HTTP/1.")?;
    let digits = rest.get(2..5)?;
    let apart = rest[1] == b' ' && rest.get(5).is_none_or(|&byte| byte == b' ');
    number(digits).filter(|_| apart).and_then(|status| u16::try_from(status).ok())
}

/// Digits only: no sign, no blank.
fn number(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<Option<(u16, usize, bool)>, &str>) {
        let head = read(text.as_bytes());
        let short = head.map(|head| head.map(|head| (head.status, head.body_len, head.closes)));
        assert_eq!(short, expected, "{text:?}");
    }

    #[test]
    fn a_head_is_read() {
        check("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n", Ok(Some((200, 12, false))));
        check("HTTP/1.1 201\r\nContent-Length:0\r\n\r\nmore", Ok(Some((201, 0, false))));
        check("HTTP/1.1 204 No Content\r\ndate: x\r\n\r\n", Ok(Some((204, 0, false))));
        let closing = "HTTP/1.1 503 Busy\r\nconnection: Close\r\nCONTENT-LENGTH:  7 \r\n\r\n";
        check(closing, Ok(Some((503, 7, true))));
    }

    #[test]
    fn other_bytes_are_not_a_head() {
        check("SSH-2.0-OpenSSH\r\n\r\n", Err("this is not HTTP/1.1"));
        check("HTTP/1.1 20 OK\r\n\r\n", Err("this is not HTTP/1.1"));
        check("HTTP/1.1 200 OK\r\n\r\n", Err("the answer has no content-length"));
        let length = Err("content-length is not a number");
        check("HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\n", length);
        check("HTTP/1.1 200 OK\r\ncontent-length\r\n\r\n", Err("a header has no colon"));
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        assert!(read(chunked.as_bytes()).is_err_and(|error| error.contains("chunked")));
        check(&"x".repeat(HEAD_MAX + 1), Err("the head has no end"));
    }

    #[test]
    fn a_head_may_arrive_in_two_pieces() {
        let text = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ndate: today\r\n\r\nhello";
        let head_len = text.len() - 5;
        for split in 0..=text.len() {
            let head = read(&text[..split]);
            if split < head_len {
                assert_eq!(head, Ok(None), "{split}");
            } else {
                let expected = Head { status: 200, head_len, body_len: 5, closes: false };
                assert_eq!(head, Ok(Some(expected)), "{split}");
            }
        }
    }
}
