//! One connection to one server.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};

use crate::server::TIMEOUT;

pub(crate) struct Client {
    socket: TcpStream,
    /// Received bytes that were not taken yet.
    input: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(addr: SocketAddr) -> Client {
        let socket = TcpStream::connect(addr).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        socket.set_write_timeout(Some(TIMEOUT)).unwrap();
        // Pieces of a command are to arrive as pieces.
        socket.set_nodelay(true).unwrap();
        Client { socket, input: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.socket.write_all(bytes).map_err(|error| format!("cannot send: {error}"))
    }

    /// The next whole reply: a line, and the body that it announces.
    pub(crate) fn reply(&mut self) -> Result<Vec<u8>, String> {
        loop {
            if let Some(length) = reply_length(&self.input) {
                return Ok(self.input.drain(..length).collect());
            }
            if !self.fill()? {
                return Err(format!("closed after {:?}", self.input.escape_ascii().to_string()));
            }
        }
    }

    /// Everything up to the end of the connection, which the server is to close.
    pub(crate) fn rest(mut self) -> Result<Vec<u8>, String> {
        while self.fill()? {}
        Ok(self.input)
    }

    /// Nothing more is sent; what the server says to that does not matter.
    pub(crate) fn leave(self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// False at the end of the connection.
    fn fill(&mut self) -> Result<bool, String> {
        let mut bytes = [0; 16 << 10];
        let count = self.socket.read(&mut bytes).map_err(|error| {
            format!("no reply ({error}) after {:?}", self.input.escape_ascii().to_string())
        })?;
        self.input.extend_from_slice(&bytes[..count]);
        Ok(count > 0)
    }
}

/// How many bytes the first reply has, if all of it is there.
fn reply_length(input: &[u8]) -> Option<usize> {
    let line = input.windows(2).position(|pair| pair == b"\r\n")? + 2;
    let text = String::from_utf8_lossy(&input[..line]);
    let mut words = text.split_whitespace();
    let body = match words.next() {
        Some("OK" | "FOUND" | "RESERVED") => words.last()?.parse::<usize>().ok()? + 2,
        _ => 0,
    };
    (input.len() >= line + body).then_some(line + body)
}
