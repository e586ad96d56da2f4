//! The HTTP API as a backend; `backend.rs` has what all protocols share.
//!
//! A list of puts or tokens with the same options is one request; a list of ids and keys, for which
//! HTTP has no form, is one request per item.
//!
//! HTTP does not carry:
//!
//! | | here |
//! |---|---|
//! | sessions, peek | `invalid` |
//! | keys, error texts, lock names and owners that are not UTF-8 | `invalid` |
//! | a body that is not what its kind says | `invalid` |
//! | a withdraw | the connection is closed: jobs on their way are leased to nobody |
//! | spans beyond 2^63 | 2^63 - 1, beyond every limit, too |
//! | instants of a forecast beyond the latest | the latest |
//! | repeated headers and their order | the last of a name, by name |
//! | `body_kind` of bytes that are UTF-8 | text |
//! | `Progress::fence`, `lapsed` | 0, false |
//! | `Progress::key_lost`, and a key that was lost | false, no key |
//! | `Progress::bytes` | counted from what came |
//! | `ChangeReply::due_at` of a cancel | 0 |
//! | `TopicStats::settings` of the totals | none |

mod ask;
mod client;
mod item;
mod job;
mod put;
mod query;
mod reply;
mod schedule;
mod time;
mod topic;

use std::net::SocketAddr;
use std::sync::Arc;

use dormouse_core::backend::{Answer, Backend, Request, Sink};
use dormouse_core::command::Command;
use dormouse_core::error::Error;

pub use put::PutForm;

use super::ParkObserver;
use super::backend::{Part, Protocol, ProtocolBackend};
use super::pool::Pool;
use super::waiting::Waiting;
use client::{Call, HttpConnection, Response};

/// A server behind HTTP.
pub struct HttpBackend(ProtocolBackend<Http>);

struct Http {
    form: PutForm,
}

impl HttpBackend {
    /// The server at this address; `form` says how puts are written. With an observer behind the
    /// server, requests after one that waits arrive after it, and an answer that a request causes
    /// is delivered before the request's own.
    pub fn new(
        addr: SocketAddr,
        form: PutForm,
        observer: Option<Arc<ParkObserver>>,
    ) -> HttpBackend {
        let open = move |stream| Ok(HttpConnection::new(stream, addr));
        HttpBackend(ProtocolBackend {
            protocol: Http { form },
            pool: Arc::new(Pool::new(addr, open)),
            waiting: Arc::new(Waiting::new(observer)),
        })
    }
}

impl Backend for HttpBackend {
    fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        self.0.submit(batch, sink)
    }
}

impl Protocol for Http {
    type Connection = HttpConnection;

    fn parts(&self, command: &Command) -> Result<Vec<Part<Call>>, Error> {
        ask::parts(command, self.form)
    }

    fn read(command: &Command, parts: Vec<(usize, Response)>) -> Answer {
        reply::read(command, parts)
    }
}
