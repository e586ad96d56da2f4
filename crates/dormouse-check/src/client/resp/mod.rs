//! The RESP API as a backend; `backend.rs` has what all protocols share.
//!
//! A list of tokens to ack is one command; of any other list each item is a command of one
//! pipeline.
//! `PUT` answers the id, and with a key the outcome: state and due time are read by a `GET` behind
//! it.
//!
//! RESP does not carry:
//!
//! | | here |
//! |---|---|
//! | sessions, settings of topics | `invalid` |
//! | lock names that are not UTF-8 | `invalid` |
//! | a withdraw | the connection is closed: jobs on their way are leased to nobody |
//! | spans beyond 2^63 | 2^63 - 1, beyond every limit, too |
//! | instants of a forecast beyond the latest | the latest |
//! | repeated headers | the last of a name |
//! | `body_kind` | bytes |
//! | `PutReply::due_at` of a held key | 0 |
//! | `Progress::fence`, `lapsed` | 0, false |
//! | `Progress::key_lost`, and a key that was lost | false, no key |
//! | `Progress::bytes` | counted from the reply |
//! | `ChangeReply::due_at` of a cancel | 0 |
//! | `TopicStats::settings` of the totals | none |

mod ask;
mod fields;
pub mod raw;
mod reply;
mod schedule;

use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use dormouse_core::backend::{Answer, Backend, Request, Sink};
use dormouse_core::command::Command;
use dormouse_core::error::Error;

use super::ParkObserver;
use super::backend::{Part, Protocol, ProtocolBackend};
use super::pool::{Connection, Pool};
use super::waiting::Waiting;
use ask::Call;
use raw::Reply;

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

    fn parts(&self, command: &Command) -> Result<Vec<Part<Call>>, Error> {
        ask::parts(command)
    }

    fn read(command: &Command, parts: Vec<(usize, Replies)>) -> Answer {
        let replies = parts.into_iter().next().map(|(_, replies)| replies).unwrap_or_default();
        reply::read(command, replies)
    }
}

/// Replies to a pipeline, and to the `GET`s behind its puts.
#[derive(Debug, Default)]
struct Replies {
    replies: Vec<Reply>,
    views: Vec<Reply>,
}

struct RespConnection {
    stream: BufReader<TcpStream>,
}

impl RespConnection {
    fn open(stream: TcpStream, version: Version) -> io::Result<RespConnection> {
        let mut connection = RespConnection { stream: BufReader::new(stream) };
        if version == Version::Three {
            connection.pipeline(&[vec![b"HELLO".to_vec(), b"3".to_vec()]])?;
        }
        Ok(connection)
    }

    /// Sends all commands, then reads all replies.
    fn pipeline(&mut self, commands: &[Vec<Vec<u8>>]) -> io::Result<Vec<Reply>> {
        let bytes: Vec<u8> = commands.iter().flat_map(|words| raw::encode(words)).collect();
        self.stream.get_mut().write_all(&bytes)?;
        commands.iter().map(|_| raw::read(&mut self.stream)).collect()
    }
}

impl Connection for RespConnection {
    type Call = Call;
    type Response = Replies;

    fn socket(&self) -> io::Result<TcpStream> {
        self.stream.get_ref().try_clone()
    }

    fn is_open(&self) -> bool {
        true
    }

    fn exchange(&mut self, call: &Call) -> io::Result<Replies> {
        let replies = self.pipeline(&call.commands)?;
        let mut views = Vec::new();
        if call.are_puts {
            for reply in &replies {
                let view = match reply::id_of_put(reply) {
                    Some(id) => self.pipeline(&[vec![b"GET".to_vec(), id]])?.pop(),
                    None => None,
                };
                views.push(view.unwrap_or(Reply::Nil));
            }
        }
        Ok(Replies { replies, views })
    }
}
