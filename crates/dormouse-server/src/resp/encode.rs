//! Encodes replies in both versions of the protocol.

use bytes::{BufMut, BytesMut};
use dormouse_core::job::Token;

/// The version that a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Version {
    /// Every connection begins with it.
    #[default]
    Two,
    /// Has maps, booleans and a null of its own.
    Three,
}

/// Writes replies.
pub(super) struct Out<'a> {
    bytes: &'a mut BytesMut,
    version: Version,
}

impl<'a> Out<'a> {
    pub(super) fn new(bytes: &'a mut BytesMut, version: Version) -> Out<'a> {
        Out { bytes, version }
    }

    /// A simple string.
    pub(super) fn status(&mut self, word: &str) {
        self.line(b'+', word.as_bytes());
    }

    /// A code and a text on one line: line breaks in the text become blanks.
    pub(super) fn error(&mut self, code: &str, text: &str) {
        self.bytes.reserve(code.len() + text.len() + 4);
        self.bytes.put_u8(b'-');
        self.bytes.put_slice(code.as_bytes());
        self.bytes.put_u8(b' ');
        let start = self.bytes.len();
        self.bytes.put_slice(text.as_bytes());
        for byte in self.bytes.get_mut(start..).unwrap_or_default() {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.bytes.put_slice(b"\r\n");
    }

    pub(super) fn number(&mut self, value: u64) {
        // The protocol's numbers are signed.
        let value = value.min(i64::MAX as u64);
        self.line(b':', digits(value, &mut [0; 20]));
    }

    /// A number that may be negative.
    pub(super) fn signed(&mut self, value: i64) {
        self.line(b':', value.to_string().as_bytes());
    }

    pub(super) fn string(&mut self, value: &[u8]) {
        self.bytes.reserve(value.len() + 26);
        self.line(b'$', digits(value.len() as u64, &mut [0; 20]));
        self.bytes.put_slice(value);
        self.bytes.put_slice(b"\r\n");
    }

    /// A number as a string: many languages have no exact 64-bit numbers.
    pub(super) fn digits(&mut self, value: u64) {
        self.string(digits(value, &mut [0; 20]));
    }

    pub(super) fn token(&mut self, token: Token) {
        let mut text = [0; 41];
        let (mut id, mut fence) = ([0; 20], [0; 20]);
        let (id, fence) = (digits(token.id.0, &mut id), digits(token.fence, &mut fence));
        let length = id.len() + 1 + fence.len();
        let (head, tail) = text.split_at_mut(id.len());
        head.copy_from_slice(id);
        tail[0] = b'.';
        tail[1..=fence.len()].copy_from_slice(fence);
        self.string(&text[..length]);
    }

    pub(super) fn null(&mut self) {
        self.bytes.put_slice(match self.version {
            Version::Two => b"$-1\r\n",
            Version::Three => b"_\r\n",
        });
    }

    /// A boolean.
    pub(super) fn boolean(&mut self, value: bool) {
        self.bytes.put_slice(match (self.version, value) {
            (Version::Two, false) => b":0\r\n",
            (Version::Two, true) => b":1\r\n",
            (Version::Three, false) => b"#f\r\n",
            (Version::Three, true) => b"#t\r\n",
        });
    }

    /// The header of a list; its items follow.
    pub(super) fn list(&mut self, items: usize) {
        self.line(b'*', digits(items as u64, &mut [0; 20]));
    }

    /// The header of a map; its fields follow, each a name and a value.
    pub(super) fn map(&mut self, fields: usize) {
        match self.version {
            Version::Two => self.list(2 * fields),
            Version::Three => self.line(b'%', digits(fields as u64, &mut [0; 20])),
        }
    }

    /// The name of a field.
    pub(super) fn name(&mut self, name: &str) {
        self.string(name.as_bytes());
    }

    fn line(&mut self, mark: u8, text: &[u8]) {
        self.bytes.reserve(text.len() + 3);
        self.bytes.put_u8(mark);
        self.bytes.put_slice(text);
        self.bytes.put_slice(b"\r\n");
    }
}

/// The decimal digits of a number.
fn digits(mut value: u64, room: &mut [u8; 20]) -> &[u8] {
    let mut start = room.len();
    loop {
        start -= 1;
        room[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return &room[start..];
        }
    }
}

#[cfg(test)]
mod tests {
    use dormouse_core::job::JobId;

    use super::*;

    fn written(version: Version, write: impl FnOnce(&mut Out<'_>)) -> String {
        let mut bytes = BytesMut::new();
        write(&mut Out::new(&mut bytes, version));
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn every_type_is_encoded_in_both_versions() {
        let check = |write: fn(&mut Out<'_>), two: &str, three: &str| {
            assert_eq!(written(Version::Two, write), two);
            assert_eq!(written(Version::Three, write), three);
        };
        let same = |write: fn(&mut Out<'_>), text: &str| check(write, text, text);
        same(|out| out.status("OK"), "+OK\r\n");
        same(|out| out.number(0), ":0\r\n");
        same(|out| out.number(u64::MAX), ":9223372036854775807\r\n");
        same(|out| out.digits(u64::MAX), "$20\r\n18446744073709551615\r\n");
        same(|out| out.string(b""), "$0\r\n\r\n");
        same(|out| out.list(2), "*2\r\n");
        check(|out| out.map(2), "*4\r\n", "%2\r\n");
        check(|out| out.null(), "$-1\r\n", "_\r\n");
        check(|out| out.boolean(true), ":1\r\n", "#t\r\n");
        check(|out| out.boolean(false), ":0\r\n", "#f\r\n");
    }

    #[test]
    fn tokens_are_written_as_they_are_read() {
        for token in [
            Token { id: JobId(1), fence: 2 },
            Token { id: JobId(u64::MAX), fence: u64::MAX },
            Token { id: JobId(0), fence: 10 },
        ] {
            let text = token.to_string();
            let expected = format!("${}\r\n{text}\r\n", text.len());
            assert_eq!(written(Version::Two, |out| out.token(token)), expected);
        }
    }

    #[test]
    fn an_error_is_one_line() {
        let text = written(Version::Two, |out| out.error("INVALID", "a\r\n+OK\nb"));
        assert_eq!(text, "-INVALID a  +OK b\r\n");
    }
}
