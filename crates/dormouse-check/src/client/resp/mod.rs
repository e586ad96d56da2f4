//! The RESP API as a backend; `backend.rs` has what all protocols share, dormouse-client the codec.
//! It is simple where the client is clever: a connection for each command under way, no repeats.

pub mod raw;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use dormouse_client::codec::{self, Garbage, ReplyReader, Scanner};
use dormouse_core::backend::{Answer, Backend, Request, Sink};
use dormouse_core::command::Command;
use dormouse_core::error::Error;

use super::ParkObserver;
use super::backend::{Part, Protocol, ProtocolBackend};
use super::pool::{Connection, Pool};
use super::waiting::Waiting;

/// A server behind RESP.
pub struct RespBackend(ProtocolBackend<Resp>);

struct Resp;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Maps are lists.
    Two,
    /// Chosen with `HELLO 3`.
    Three,
}

impl RespBackend {
    /// The server at this address. With an observer behind the server, requests after one that
    /// waits arrive after it, and an answer that a request causes is delivered before its own.
    pub fn new(
        addr: SocketAddr,
        version: Version,
        observer: Option<Arc<ParkObserver>>,
    ) -> RespBackend {
        let open = move |stream| RespConnection::open(stream, version);
        RespBackend(ProtocolBackend {
            protocol: Resp,
            pool: Arc::new(Pool::new(addr, open)),
            waiting: Arc::new(Waiting::new(observer)),
        })
    }
}

impl Backend for RespBackend {
    fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        self.0.submit(batch, sink)
    }
}

impl Protocol for Resp {
    type Connection = RespConnection;

    fn parts(&self, command: &Command) -> Result<Vec<Part<Command>>, Error> {
        // A command that RESP cannot carry is refused here.
        codec::encode(command, &mut Vec::new())?;
        Ok(Part::whole(command.clone()))
    }

    fn read(_: &Command, parts: Vec<(usize, Answer)>) -> Answer {
        let nothing = || Err(Error::invalid("there is nothing to ask"));
        parts.into_iter().next().map_or_else(nothing, |(_, answer)| answer)
    }
}

struct RespConnection {
    stream: TcpStream,
    input: BytesMut,
    scanner: Scanner,
}

impl RespConnection {
    fn open(stream: TcpStream, version: Version) -> io::Result<RespConnection> {
        let (input, scanner) = (BytesMut::new(), Scanner::default());
        let mut connection = RespConnection { stream, input, scanner };
        if version == Version::Three {
            connection.stream.write_all(&raw::encode(&["HELLO", "3"]))?;
            connection.frame()?;
        }
        Ok(connection)
    }

    /// The bytes of the next reply.
    fn frame(&mut self) -> io::Result<Bytes> {
        loop {
            let found = self.scanner.next(&self.input);
            let found = found.map_err(|Garbage(text)| io::Error::other(text))?;
            if let Some(length) = found {
                return Ok(self.input.split_to(length).freeze());
            }
            let mut portion = [0; 4_096];
            let read = self.stream.read(&mut portion)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.input.extend_from_slice(&portion[..read]);
        }
    }
}

impl Connection for RespConnection {
    type Call = Command;
    type Response = Answer;

    fn socket(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }

    fn is_open(&self) -> bool {
        true
    }

    fn exchange(&mut self, command: &Command) -> io::Result<Answer> {
        let mut bytes = Vec::new();
        let replies = match codec::encode(command, &mut bytes) {
            Ok(replies) => replies,
            Err(error) => return Ok(Err(error)),
        };
        self.stream.write_all(&bytes)?;
        let mut reader = ReplyReader::new(command, replies);
        while reader.missing() > 0 {
            reader.add(command, &self.frame()?);
        }
        Ok(reader.finish())
    }
}
