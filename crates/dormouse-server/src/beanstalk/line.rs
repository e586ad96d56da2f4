//! Lines end with CR LF, never with LF alone, and have at most 224 bytes.

use crate::limits::BEANSTALK_LINE_BYTES_MAX;
use bytes::{Buf, BytesMut};

/// The end of a line, and of a body.
pub(super) const END: &[u8] = b"\r\n";

/// The state of the first line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Complete; this is its length without its end.
    Whole(usize),
    /// Incomplete.
    Begun,
    /// Too long.
    Long,
}

/// Finds the end of the first line.
pub(super) fn find(input: &[u8]) -> Line {
    let near = &input[..input.len().min(BEANSTALK_LINE_BYTES_MAX)];
    match end_of(near) {
        Some(length) => Line::Whole(length),
        None if input.len() >= BEANSTALK_LINE_BYTES_MAX => Line::Long,
        None => Line::Begun,
    }
}

/// Discards the rest of a line that is too long; false if its end has not arrived yet.
pub(super) fn skim(input: &mut BytesMut) -> bool {
    match end_of(input) {
        Some(length) => {
            input.advance(length + END.len());
            true
        }
        None => {
            // The last byte may be the first one of the end.
            let kept = usize::from(input.last() == Some(&b'\r'));
            input.advance(input.len() - kept);
            false
        }
    }
}

fn end_of(input: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = input[from..].iter().position(|&byte| byte == b'\n') {
        let at = from + at;
        if at > 0 && input[at - 1] == b'\r' {
            return Some(at - 1);
        }
        from = at + 1;
    }
    None
}

/// Whether the line is HTTP: the body of a browser's request may contain commands that a foreign
/// page has chosen.
pub(super) fn is_http(line: &[u8]) -> bool {
    const METHODS: [&[u8]; 8] =
        [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"TRACE"];
    if !line.first().is_some_and(u8::is_ascii_uppercase) {
        return false;
    }
    METHODS.iter().any(|method| {
        let rest = line.strip_prefix(*method).unwrap_or_default();
        rest.starts_with(b" /") || rest.starts_with(b" *") || rest.starts_with(b" http")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cr_lf_ends_a_line() {
        assert_eq!(find(b"stats\r\nx"), Line::Whole(5));
        assert_eq!(find(b"\r\n"), Line::Whole(0));
        assert_eq!(find(b"use a\nb\rc\n\r\n"), Line::Whole(10));
        assert_eq!(find(b"\n\r\n"), Line::Whole(1));
        for begun in [&b""[..], b"stats", b"stats\n", b"stats\r", b"\n"] {
            assert_eq!(find(begun), Line::Begun, "{begun:?}");
        }
    }

    #[test]
    fn a_line_has_at_most_224_bytes() {
        let line = |length: usize| [vec![b'a'; length], END.to_vec()].concat();
        assert_eq!(find(&line(222)), Line::Whole(222));
        assert_eq!(find(&line(222)[..223]), Line::Begun);
        assert_eq!(find(&line(223)), Line::Long);
        assert_eq!(find(&line(500)), Line::Long);
    }

    #[test]
    fn a_long_line_is_discarded_up_to_its_end() {
        let mut input = BytesMut::from(&b"aaa\r"[..]);
        assert!(!skim(&mut input));
        assert_eq!(input, &b"\r"[..]);
        input.extend_from_slice(b"\nstats\r\n");
        assert!(skim(&mut input));
        assert_eq!(input, &b"stats\r\n"[..]);
        let mut input = BytesMut::from(&b"aaa\rb"[..]);
        assert!(!skim(&mut input));
        assert!(input.is_empty());
    }

    #[test]
    fn http_is_recognized() {
        for line in [&b"GET / HTTP/1.1"[..], b"POST /x HTTP/1.0", b"PUT /a", b"OPTIONS * HTTP/1.1"]
        {
            assert!(is_http(line), "{line:?}");
        }
        for line in [&b"GET"[..], b"GET x", b"put 0 0 0 1", b"PUT 0 0 0 1", b"", b"get / HTTP/1.1"]
        {
            assert!(!is_http(line), "{line:?}");
        }
    }
}
