//! A server that does exactly what a test says, byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Longer than anything takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(20);

const HELLO: &str = "%2\r\n$6\r\nserver\r\n$8\r\ndormouse\r\n$5\r\nproto\r\n:3\r\n";

/// A listener on a free port.
pub(crate) struct Fake {
    listener: TcpListener,
}

impl Fake {
    pub(crate) fn new() -> Fake {
        Fake { listener: TcpListener::bind("127.0.0.1:0").expect("a free port") }
    }

    pub(crate) fn url(&self) -> String {
        format!("dormouse://{}", self.listener.local_addr().expect("an address"))
    }

    /// Whether nobody has connected whose connection was not accepted.
    pub(crate) fn is_lonely(&self) -> bool {
        self.listener.set_nonblocking(true).expect("a socket");
        let accepted = self.listener.accept();
        self.listener.set_nonblocking(false).expect("a socket");
        accepted.is_err()
    }

    /// The next connection, before its greeting.
    pub(crate) fn accept(&self) -> Peer {
        let (stream, _) = self.listener.accept().expect("a connection");
        stream.set_read_timeout(Some(LONG)).expect("a timeout");
        Peer { stream: BufReader::new(stream) }
    }

    /// The next connection, greeted.
    pub(crate) fn greet(&self) -> Peer {
        let mut peer = self.accept();
        assert_eq!(peer.command().first().map(String::as_str), Some("HELLO"));
        peer.say(HELLO);
        peer
    }
}

/// One connection of the client.
pub(crate) struct Peer {
    stream: BufReader<TcpStream>,
}

impl Peer {
    /// The words of the next command; none if the client has closed.
    pub(crate) fn command(&mut self) -> Vec<String> {
        let Some(count) = self.number('*') else { return Vec::new() };
        (0..count)
            .map(|_| {
                let length = self.number('$').expect("a word");
                let mut word = vec![0; length + 2];
                self.stream.read_exact(&mut word).expect("the bytes of a word");
                word.truncate(length);
                String::from_utf8(word).expect("text")
            })
            .collect()
    }

    /// The next command, whose verb is this.
    pub(crate) fn expect(&mut self, verb: &str) -> Vec<String> {
        let command = self.command();
        assert_eq!(command.first().map(String::as_str), Some(verb), "{command:?}");
        command
    }

    fn number(&mut self, mark: char) -> Option<usize> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => None,
            // A client that gives up resets the connection.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            read => {
                read.expect("a line");
                Some(line.trim_end().strip_prefix(mark).expect("a mark").parse().expect("a number"))
            }
        }
    }

    /// Sends bytes; a client that has gone does not hear them.
    pub(crate) fn say(&mut self, bytes: &str) {
        let _ = self.stream.get_mut().write_all(bytes.as_bytes());
    }

    /// Sends a part again and again, with pauses, until the client has gone.
    pub(crate) fn drip(&mut self, part: &str) {
        while self.stream.get_mut().write_all(part.as_bytes()).is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends the reply to a put.
    pub(crate) fn created(&mut self, id: u64) {
        let id = id.to_string();
        let length = id.len();
        self.say(&format!("*4\r\n${length}\r\n{id}\r\n+created\r\n+ready\r\n:1800000000000\r\n"));
    }
}
