//! The HTTP API as one more backend: commands become requests, answers become replies, so that all
//! that proves a backend proves the server as well.
//!
//! ```text
//!   Command -> ask, put -> Call -> client -> a server -> Response -> reply, job, topic -> Reply
//! ```
//!
//! A batch is sent in order, one request after the other, on the thread that submits it: it is not
//! one step, others may come in between. A list of puts or tokens with the same options is one
//! request; a list of ids and keys, for which HTTP has no form, is one request per item. A request
//! that waits has a connection and a thread of its own; what follows does not wait for it, and
//! reaches the server after it only where a [`Witness`] tells when it has arrived.
//!
//! A connection that breaks is `unconfirmed`: it may or may not have happened.
//!
//! What HTTP does not carry:
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
mod time;
mod topic;
mod waiting;
mod witness;

use std::net::SocketAddr;
use std::sync::Arc;

use dormouse_core::backend::{Answer, Backend, Request, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};

pub use put::PutForm;
pub use witness::Witness;

use client::{Pool, Response};
use waiting::{Begin, Waiting};

/// A server behind HTTP.
pub struct HttpBackend {
    pool: Arc<Pool>,
    form: PutForm,
    waiting: Arc<Waiting>,
}

impl HttpBackend {
    /// The server at this address; `form` says how puts are written.
    pub fn new(addr: SocketAddr, form: PutForm) -> HttpBackend {
        HttpBackend { pool: Arc::new(Pool::new(addr)), form, waiting: Arc::default() }
    }

    /// The same with somebody behind the server who sees what waits: then what follows a request
    /// that waits comes after it, and an answer that it caused comes before its own.
    pub fn witnessed(addr: SocketAddr, form: PutForm, witness: Arc<Witness>) -> HttpBackend {
        HttpBackend { waiting: Arc::new(Waiting::new(witness)), ..HttpBackend::new(addr, form) }
    }

    fn ask(&self, command: &Command) -> Answer {
        let mut parts = Vec::new();
        for part in ask::parts(command, self.form)? {
            let response = self.pool.exchange(&part.call).map_err(|error| broken(&error));
            // Unless it is a list of several requests, the first failure is the last.
            parts.push((part.items, response?));
        }
        reply::read(command, parts)
    }

    fn wait(&self, ticket: Ticket, command: Command, sink: &Arc<dyn Sink>) -> Result<(), Error> {
        let Some(part) = ask::parts(&command, self.form)?.pop() else {
            return Err(Error::invalid("there is nothing to wait for"));
        };
        let connection = self.pool.take().map_err(|error| broken(&error))?;
        let nothing = waiting::nothing(&command);
        let (call, items) = (part.call, part.items);
        let read = move |response: Result<Response, Error>| {
            reply::read(&command, vec![(items, response?)])
        };
        let sink = Arc::clone(sink);
        let begin = Begin { ticket, call, nothing, read, sink };
        self.waiting.begin(&self.pool, connection, begin)
    }
}

/// Nobody can know whether the server did it.
fn broken(error: &std::io::Error) -> Error {
    Error::new(Code::Unconfirmed, format!("the connection broke: {error}"))
}

fn waits(command: &Command) -> bool {
    match command {
        Command::Reserve(reserve) => reserve.wait_ms > 0 && reserve.session.is_none(),
        Command::Lock(lock) => lock.wait_ms > 0,
        _ => false,
    }
}

impl Backend for HttpBackend {
    fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        for Request { ticket, command } in batch {
            let answer = match command {
                Command::Withdraw(waiting) => {
                    self.waiting.withdraw(waiting);
                    Ok(Reply::Done)
                }
                command if waits(&command) => match self.wait(ticket, command, &sink) {
                    Ok(()) => continue,
                    Err(error) => Err(error),
                },
                command => self.ask(&command),
            };
            self.waiting.settle();
            sink.deliver(&mut vec![(ticket, answer)]);
        }
        Ok(())
    }
}
