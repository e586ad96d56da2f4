//! Writes commands: lists of strings, straight into an outbox.

use bytes::Bytes;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{JobId, State, Token};
use dormouse_core::op::Target;
use dormouse_core::schedule::ScheduleName;
use dormouse_core::topic::TopicName;

use crate::limits::{COMMAND_BYTES_MAX, COMMAND_WORDS_MAX};

/// Digits of the number of words, which is written last.
const COUNT_DIGITS: usize = 10;

/// Writes one command after the other.
pub(super) struct Commands<'o> {
    out: &'o mut Vec<u8>,
    count: usize,
    is_too_large: bool,
}

impl<'o> Commands<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>) -> Commands<'o> {
        Commands { out, count: 0, is_too_large: false }
    }

    /// Begins a command; it is complete when the words are dropped.
    pub(super) fn begin<'c>(&'c mut self, verb: &str) -> Words<'c, 'o> {
        self.count += 1;
        let head_at = self.out.len();
        self.out.extend_from_slice(b"*0000000000\r\n");
        let mut words = Words { commands: self, head_at, count: 0 };
        words.word(verb);
        words
    }

    /// How many there are: each has one reply. A server closes its connection, which others use,
    /// at a command that is far too large: it is refused here.
    pub(super) fn finish(self) -> Result<usize, Error> {
        if self.is_too_large {
            let text = format!(
                "a command to a server has at most {COMMAND_BYTES_MAX} bytes and \
                 {COMMAND_WORDS_MAX} words; send less at once, and keep large bodies elsewhere"
            );
            return Err(Error::new(Code::TooLarge, text));
        }
        Ok(self.count)
    }
}

/// The words of one command.
pub(super) struct Words<'c, 'o> {
    commands: &'c mut Commands<'o>,
    head_at: usize,
    count: usize,
}

impl Words<'_, '_> {
    pub(super) fn word(&mut self, word: impl Word) -> &mut Self {
        word.write(self);
        self
    }

    /// A name and its value, if it has one.
    pub(super) fn option(&mut self, name: &str, value: Option<impl Word>) -> &mut Self {
        if let Some(value) = value {
            self.word(name).word(value);
        }
        self
    }

    pub(super) fn flag(&mut self, name: &str, is_set: bool) -> &mut Self {
        if is_set {
            self.word(name);
        }
        self
    }

    pub(super) fn target(&mut self, target: &Target) -> &mut Self {
        match target {
            Target::Id(id) => self.word(id),
            Target::Key { topic, key } => self.word(topic).word("KEY").word(key),
        }
    }

    pub(super) fn headers(&mut self, headers: Option<&[(String, String)]>) -> &mut Self {
        for (name, value) in headers.unwrap_or_default() {
            self.word("HEADER").word(name.as_str()).word(value.as_str());
        }
        self
    }

    fn push(&mut self, word: &[u8]) {
        self.count += 1;
        let mut room = [0; 20];
        let length = digits(word.len() as u64, &mut room);
        let out = &mut *self.commands.out;
        out.reserve(word.len() + 8 + length.len());
        out.push(b'$');
        out.extend_from_slice(length);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

impl Drop for Words<'_, '_> {
    fn drop(&mut self) {
        let (mut count, out) = (self.count, &mut *self.commands.out);
        let bytes = out.len() - self.head_at;
        self.commands.is_too_large |= count > COMMAND_WORDS_MAX || bytes > COMMAND_BYTES_MAX;
        let head = &mut out[self.head_at + 1..][..COUNT_DIGITS];
        for digit in head.iter_mut().rev() {
            *digit = b'0' + (count % 10) as u8;
            count /= 10;
        }
    }
}

/// A value that can be a word of a command.
pub(super) trait Word {
    fn write(&self, words: &mut Words<'_, '_>);
}

impl<T: Word + ?Sized> Word for &T {
    fn write(&self, words: &mut Words<'_, '_>) {
        (**self).write(words);
    }
}

impl Word for [u8] {
    fn write(&self, words: &mut Words<'_, '_>) {
        words.push(self);
    }
}

impl Word for Bytes {
    fn write(&self, words: &mut Words<'_, '_>) {
        words.push(self);
    }
}

impl Word for str {
    fn write(&self, words: &mut Words<'_, '_>) {
        words.push(self.as_bytes());
    }
}

impl Word for String {
    fn write(&self, words: &mut Words<'_, '_>) {
        words.push(self.as_bytes());
    }
}

impl Word for TopicName {
    fn write(&self, words: &mut Words<'_, '_>) {
        words.push(self.as_str().as_bytes());
    }
}

impl Word for ScheduleName {
    fn write(&self, words: &mut Words<'_, '_>) {
        words.push(self.as_str().as_bytes());
    }
}

impl Word for State {
    fn write(&self, words: &mut Words<'_, '_>) {
        words.push(self.as_str().as_bytes());
    }
}

impl Word for u64 {
    fn write(&self, words: &mut Words<'_, '_>) {
        words.push(digits(*self, &mut [0; 20]));
    }
}

impl Word for u32 {
    fn write(&self, words: &mut Words<'_, '_>) {
        u64::from(*self).write(words);
    }
}

impl Word for usize {
    fn write(&self, words: &mut Words<'_, '_>) {
        (*self as u64).write(words);
    }
}

impl Word for i64 {
    fn write(&self, words: &mut Words<'_, '_>) {
        match u64::try_from(*self) {
            Ok(number) => number.write(words),
            // Only a mistake is negative; the server says so.
            Err(_) => words.push(self.to_string().as_bytes()),
        }
    }
}

impl Word for JobId {
    fn write(&self, words: &mut Words<'_, '_>) {
        self.0.write(words);
    }
}

impl Word for Token {
    fn write(&self, words: &mut Words<'_, '_>) {
        let (mut id, mut fence, mut text) = ([0; 20], [0; 20], [0; 41]);
        let (id, fence) = (digits(self.id.0, &mut id), digits(self.fence, &mut fence));
        let length = id.len() + 1 + fence.len();
        text[..id.len()].copy_from_slice(id);
        text[id.len()] = b'.';
        text[id.len() + 1..length].copy_from_slice(fence);
        words.push(&text[..length]);
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
    use super::*;

    #[test]
    fn words_are_written_with_their_number_and_lengths() {
        let mut out = b"before".to_vec();
        let mut commands = Commands::new(&mut out);
        commands.begin("GET").word("").word(u64::MAX).word(-7_i64);
        let token = Token { id: JobId(12), fence: u64::MAX };
        commands.begin("ACK").option("A", Some(token)).option("B", None::<u64>).flag("C", false);
        assert_eq!(commands.finish(), Ok(2));
        let expected = "before*0000000004\r\n$3\r\nGET\r\n$0\r\n\r\n$20\r\n\
                        18446744073709551615\r\n$2\r\n-7\r\n\
                        *0000000003\r\n$3\r\nACK\r\n$1\r\nA\r\n$23\r\n\
                        12.18446744073709551615\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn what_would_close_the_connection_is_refused() {
        let refused = |write: &dyn Fn(&mut Words<'_, '_>)| {
            let mut out = Vec::new();
            let mut commands = Commands::new(&mut out);
            write(&mut commands.begin("PUT"));
            commands.finish().map_err(|error| error.code)
        };
        let many = |words: &mut Words<'_, '_>| {
            for _ in 1..COMMAND_WORDS_MAX {
                words.word("");
            }
        };
        assert_eq!(refused(&many), Ok(1));
        assert_eq!(refused(&|words| many(words.word("x"))), Err(Code::TooLarge));
        let large = |words: &mut Words<'_, '_>| {
            words.word(&vec![0; COMMAND_BYTES_MAX][..]);
        };
        assert_eq!(refused(&large), Err(Code::TooLarge));
    }
}
