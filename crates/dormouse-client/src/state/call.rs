//! One request from its submission to its answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dormouse_core::backend::{Answer, Load, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::limits::WAIT_MS_MAX;

use crate::codec::ReplyReader;
use crate::repeat::after_repeat;

/// A request that has no answer yet.
pub(crate) struct Call {
    pub(crate) ticket: Ticket,
    pub(crate) command: Command,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) load: Load,
    /// Set while no server can be reached: when to give it up.
    pub(crate) until: Option<Instant>,
    /// Its answer was lost before.
    pub(crate) is_repeat: bool,
}

impl Call {
    pub(crate) fn new(ticket: Ticket, command: Command, sink: &Arc<dyn Sink>) -> Call {
        let load = Load { requests: 1, bytes: command.weight() };
        Call { ticket, command, sink: Arc::clone(sink), load, until: None, is_repeat: false }
    }

    /// The answer as its caller gets it.
    pub(crate) fn judge(&self, answer: Answer) -> Answer {
        if self.is_repeat { after_repeat(&self.command, answer) } else { answer }
    }
}

/// A call whose bytes are in a connection's outbox, or further.
pub(crate) struct Sent {
    pub(crate) call: Call,
    /// Where its bytes begin in the stream of the connection.
    pub(crate) begin: u64,
    pub(crate) sent_at: Instant,
    /// How long the server may take by the command's own wish.
    pub(crate) wait: Duration,
    pub(crate) reader: ReplyReader,
}

/// How long a command waits at the server, which occupies its connection.
pub(crate) fn wait_of(command: &Command) -> Duration {
    let wait_ms = match command {
        Command::Reserve(reserve) => reserve.wait_ms,
        Command::Lock(lock) => lock.wait_ms,
        _ => 0,
    };
    // A server refuses a longer one at once.
    Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0).min(WAIT_MS_MAX))
}

/// The answer to a waiting request that is withdrawn before it is sent.
pub(crate) fn nothing(command: &Command) -> Answer {
    match command {
        Command::Lock(lock) => {
            let name = String::from_utf8_lossy(&lock.name);
            let text = format!("lock {name:?} was not waited for any longer; ask again");
            Err(Error::new(Code::Conflict, text))
        }
        _ => Ok(Reply::Jobs(Vec::new())),
    }
}
