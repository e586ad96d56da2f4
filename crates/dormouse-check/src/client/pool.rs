//! Connections that stay open between exchanges, whatever they speak.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, PoisonError};

/// One connection to a server.
pub(super) trait Connection: Sized + Send + 'static {
    /// A request.
    type Call: Send + 'static;
    /// Its response.
    type Response: Send + 'static;

    /// The socket, to end the conversation from outside.
    fn socket(&self) -> io::Result<TcpStream>;

    /// Whether the server keeps it open after the last response.
    fn is_open(&self) -> bool;

    /// One request, one response.
    fn exchange(&mut self, call: &Self::Call) -> io::Result<Self::Response>;
}

type Open<C> = Box<dyn Fn(TcpStream) -> io::Result<C> + Send + Sync>;

/// Idle connections to one server.
pub(super) struct Pool<C> {
    addr: SocketAddr,
    open: Open<C>,
    idle: Mutex<Vec<C>>,
}

impl<C: Connection> Pool<C> {
    /// `open` makes a connection of a socket.
    pub(super) fn new(
        addr: SocketAddr,
        open: impl Fn(TcpStream) -> io::Result<C> + Send + Sync + 'static,
    ) -> Pool<C> {
        Pool { addr, open: Box::new(open), idle: Mutex::default() }
    }

    /// An idle connection, or a new one.
    pub(super) fn take(&self) -> io::Result<C> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| self.connect(), Ok)
    }

    fn connect(&self) -> io::Result<C> {
        let stream = TcpStream::connect(self.addr)?;
        stream.set_nodelay(true)?;
        (self.open)(stream)
    }

    /// Keeps a connection for the next exchange; only after a whole response.
    pub(super) fn give_back(&self, connection: C) {
        if connection.is_open() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }

    /// One request, one response.
    pub(super) fn exchange(&self, call: &C::Call) -> io::Result<C::Response> {
        let mut connection = self.take()?;
        let response = connection.exchange(call)?;
        self.give_back(connection);
        Ok(response)
    }
}
