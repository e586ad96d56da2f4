//! Connections that each ask, wait for all replies, and ask again.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use crate::Result;

/// A server that is silent for this long has failed.
const SILENCE_SECONDS: i64 = 30;
const INPUT: usize = 64 * 1_024;

/// The work of connections, by their numbers.
pub(in crate::peers) trait Work {
    /// Adds the next requests; returns the number of replies to expect. None = it is done.
    fn ask(&mut self, connection: usize, out: &mut Vec<u8>) -> usize;

    /// Takes one whole reply off the input: its length, or `None` if it is not whole.
    fn reply(&mut self, connection: usize, input: &[u8]) -> Result<Option<usize>>;
}

pub(in crate::peers) struct ConnectionPool {
    epoll: OwnedFd,
    connections: Vec<Connection>,
    events: Vec<Event>,
}

struct Connection {
    stream: TcpStream,
    /// Filled up to `filled`.
    input: Vec<u8>,
    filled: usize,
    out: Vec<u8>,
    /// So much of `out` is sent.
    sent: usize,
    /// Replies that will come.
    expected: usize,
}

impl ConnectionPool {
    pub(in crate::peers) fn connect(address: SocketAddr, count: usize) -> Result<ConnectionPool> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let mut connections = Vec::with_capacity(count);
        for number in 0..count {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            epoll::add(&epoll, &stream, EventData::new_u64(number as u64), EventFlags::IN)?;
            let (input, out) = (vec![0; INPUT], Vec::new());
            connections.push(Connection { stream, input, filled: 0, out, sent: 0, expected: 0 });
        }
        Ok(ConnectionPool { epoll, connections, events: Vec::with_capacity(count.max(1)) })
    }

    /// Until none of them has anything more to ask.
    pub(in crate::peers) fn run(&mut self, work: &mut impl Work) -> Result<()> {
        let mut busy = 0;
        for number in 0..self.connections.len() {
            busy += usize::from(self.ask(number, work)?);
        }
        while busy > 0 {
            for number in self.wait()? {
                if self.serve(number, work)? {
                    busy -= 1;
                }
            }
        }
        Ok(())
    }

    /// Connections with something to do.
    fn wait(&mut self) -> Result<Vec<usize>> {
        let timeout = Timespec { tv_sec: SILENCE_SECONDS, tv_nsec: 0 };
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Ok(0) => return Err(format!("no reply for {SILENCE_SECONDS} s").into()),
            other => other?,
        };
        let number = |event: &Event| usize::try_from({ event.data }.u64()).unwrap_or(usize::MAX);
        Ok(self.events.iter().map(number).collect())
    }

    /// Sends the next requests; whether there are any.
    fn ask(&mut self, number: usize, work: &mut impl Work) -> Result<bool> {
        let connection = &mut self.connections[number];
        connection.out.clear();
        connection.sent = 0;
        connection.expected = work.ask(number, &mut connection.out);
        if connection.expected == 0 {
            return Ok(false);
        }
        self.send(number)?;
        Ok(true)
    }

    fn send(&mut self, number: usize) -> Result<()> {
        let connection = &mut self.connections[number];
        let was_waiting = connection.sent > 0;
        while connection.sent < connection.out.len() {
            match connection.stream.write(&connection.out[connection.sent..]) {
                Ok(written) => connection.sent += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        let is_waiting = connection.sent < connection.out.len();
        if was_waiting != is_waiting {
            let flags = if is_waiting { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            let data = EventData::new_u64(number as u64);
            epoll::modify(&self.epoll, &connection.stream, data, flags)?;
        }
        Ok(())
    }

    /// Reads the replies and goes on; returns whether the connection is done.
    fn serve(&mut self, number: usize, work: &mut impl Work) -> Result<bool> {
        let connection = &mut self.connections[number];
        if connection.sent < connection.out.len() {
            self.send(number)?;
        }
        let connection = &mut self.connections[number];
        if connection.filled == connection.input.len() {
            connection.input.resize(2 * connection.filled, 0);
        }
        match connection.stream.read(&mut connection.input[connection.filled..]) {
            Ok(0) => return Err("the server closed a connection".into()),
            Ok(read) => connection.filled += read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        connection.take_replies(number, work)?;
        if connection.expected > 0 {
            return Ok(false);
        }
        Ok(!self.ask(number, work)?)
    }
}

impl Connection {
    fn take_replies(&mut self, number: usize, work: &mut impl Work) -> Result<()> {
        let mut at = 0;
        while self.expected > 0 {
            let Some(len) = work.reply(number, &self.input[at..self.filled])? else { break };
            at += len;
            self.expected -= 1;
        }
        if self.expected == 0 && at < self.filled {
            return Err("the server said more than it was asked".into());
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
        Ok(())
    }
}
