//! What is asked of a node, and what came of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use redis::{Cmd, Value};

/// A script and the name by which Redis remembers it.
#[derive(Debug)]
pub(crate) struct Script {
    source: String,
    sha1: String,
}

impl Script {
    /// A script; its name is worked out once, here.
    pub(crate) fn new(source: String) -> Script {
        let sha1 = redis::Script::new(&source).get_hash().to_owned();
        Script { source, sha1 }
    }

    /// The name by which Redis remembers it.
    pub(super) fn name(&self) -> &str {
        &self.sha1
    }

    /// The command that makes a node remember the script.
    pub(super) fn load_command(&self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(&self.source);
        command
    }
}

/// One script to be run once for its effect, however often it has to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The slot of all `keys`.
    pub(crate) slot: u16,
    /// What to run.
    pub(crate) script: Arc<Script>,
    /// Every key the script touches.
    pub(crate) keys: Vec<Bytes>,
    /// Everything else it needs.
    pub(crate) args: Vec<Bytes>,
    /// How many replicas to wait for after the script; 0 for none.
    pub(crate) replicas: u32,
}

impl Call {
    /// The script by its name: a node that does not know it says so.
    pub(super) fn command(&self) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.script.sha1).arg(self.keys.len());
        for part in self.keys.iter().chain(&self.args) {
            command.arg(&part[..]);
        }
        command
    }
}

/// Whether a call has left for Redis: what never did has done nothing, and never will once its
/// caller gave it up.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentFlag(Arc<AtomicBool>);

impl SentFlag {
    /// Whether it has left, or might have.
    pub(crate) fn is_sent(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn mark_sent(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The answer to a call.
#[derive(Clone, Debug)]
pub(crate) struct CallReply {
    /// What the script returned; never an error reply.
    pub(crate) value: Value,
    /// When the attempt that was answered left.
    pub(crate) sent_at: Instant,
    /// When its answer was here.
    pub(crate) received_at: Instant,
    /// How many replicas have it, as far as WAIT counted; `u64::MAX` if nobody asked.
    pub(crate) replicas: u64,
    /// It was sent more than once, so it may have been done long before it landed.
    pub(crate) was_resent: bool,
}
