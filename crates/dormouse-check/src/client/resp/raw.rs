//! The bytes of RESP, versions 2 and 3: commands out, replies in.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A server that is stopped by a signal takes connections and does not answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A reply, as both versions have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing.
    Nil,
    /// A number.
    Int(i64),
    /// A status or a string.
    Bytes(Vec<u8>),
    /// An error, whole: `MOVED 1 127.0.0.1:7000`.
    Error(String),
    /// A list; a map is the list of its names and values, as in version 2.
    List(Vec<Reply>),
}

impl Reply {
    /// The text; panics at anything else.
    pub fn text(&self) -> String {
        match self {
            Reply::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("expected a text, the server says {other:?}"),
        }
    }

    /// The number; panics at anything else.
    pub fn int(&self) -> i64 {
        match self {
            Reply::Int(number) => *number,
            other => panic!("expected a number, the server says {other:?}"),
        }
    }

    /// The items; panics at anything else.
    pub fn list(&self) -> &[Reply] {
        match self {
            Reply::List(items) => items,
            other => panic!("expected a list, the server says {other:?}"),
        }
    }

    /// The bytes; panics at anything else.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Reply::Bytes(bytes) => bytes,
            other => panic!("expected bytes, the server says {other:?}"),
        }
    }

    /// The error, if it is one.
    pub fn error(&self) -> Option<&str> {
        match self {
            Reply::Error(text) => Some(text),
            _ => None,
        }
    }
}

/// Sends one command over a unix socket.
pub(crate) fn ask<W: AsRef<[u8]>>(socket: &Path, words: &[W]) -> io::Result<Reply> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(&encode(words))?;
    read(&mut BufReader::new(stream))
}

/// One command as an array of strings.
pub fn encode<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Reads one reply.
pub fn read(from: &mut impl BufRead) -> io::Result<Reply> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let line = line.trim_end();
    let (kind, rest) = line.split_at_checked(1).ok_or_else(|| wrong(line))?;
    let number = || rest.parse::<i64>().map_err(|_| wrong(line));
    match kind {
        "+" => Ok(Reply::Bytes(rest.as_bytes().to_vec())),
        "-" => Ok(Reply::Error(rest.to_owned())),
        ":" => Ok(Reply::Int(number()?)),
        "#" => Ok(Reply::Int(i64::from(rest == "t"))),
        "_" => Ok(Reply::Nil),
        "$" => match usize::try_from(number()?) {
            Ok(len) => read_bytes(from, len),
            Err(_) => Ok(Reply::Nil),
        },
        "*" => match usize::try_from(number()?) {
            Ok(len) => read_list(from, len),
            Err(_) => Ok(Reply::Nil),
        },
        "%" => read_list(from, 2 * usize::try_from(number()?).map_err(|_| wrong(line))?),
        _ => Err(wrong(line)),
    }
}

fn read_list(from: &mut impl BufRead, len: usize) -> io::Result<Reply> {
    (0..len).map(|_| read(from)).collect::<io::Result<_>>().map(Reply::List)
}

fn read_bytes(from: &mut impl Read, len: usize) -> io::Result<Reply> {
    let mut bytes = vec![0; len + 2];
    from.read_exact(&mut bytes)?;
    bytes.truncate(len);
    Ok(Reply::Bytes(bytes))
}

fn wrong(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not a reply: {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_replies_are_read() {
        let mut bytes: &[u8] = b"*5\r\n$3\r\na\r\n\r\n:-7\r\n$-1\r\n-ASK 1 h:2\r\n*1\r\n+OK\r\n";
        let list = Reply::List(vec![
            Reply::Bytes(b"a\r\n".to_vec()),
            Reply::Int(-7),
            Reply::Nil,
            Reply::Error("ASK 1 h:2".to_owned()),
            Reply::List(vec![Reply::Bytes(b"OK".to_vec())]),
        ]);
        assert_eq!(read(&mut bytes).unwrap(), list);
        assert!(bytes.is_empty());
        assert!(read(&mut bytes).is_err());
        assert!(read(&mut &b"what\r\n"[..]).is_err());
    }

    #[test]
    fn version_3_is_read_as_version_2() {
        let mut bytes: &[u8] = b"%2\r\n$1\r\na\r\n#t\r\n$1\r\nb\r\n_\r\n";
        let name = |text: &str| Reply::Bytes(text.as_bytes().to_vec());
        let list = Reply::List(vec![name("a"), Reply::Int(1), name("b"), Reply::Nil]);
        assert_eq!(read(&mut bytes).unwrap(), list);
    }

    #[test]
    fn words_are_sent_with_their_lengths() {
        assert_eq!(encode(&["GET", ""]), b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n");
    }
}
