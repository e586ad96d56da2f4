//! Calls of scripts and their replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use redis::{Cmd, Value};

/// A script and the SHA-1 by which Redis knows it.
#[derive(Debug)]
pub(crate) struct Script {
    source: String,
    sha1: String,
}

impl Script {
    pub(crate) fn new(source: String) -> Script {
        let sha1 = redis::Script::new(&source).get_hash().to_owned();
        Script { source, sha1 }
    }

    /// Its SHA-1.
    pub(super) fn name(&self) -> &str {
        &self.sha1
    }

    /// SCRIPT LOAD.
    pub(super) fn load_command(&self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(&self.source);
        command
    }
}

/// A call of a script. It may be sent several times; the script makes the effect happen once.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The slot of all `keys`.
    pub(crate) slot: u16,
    pub(crate) script: Arc<Script>,
    /// Every key the script touches.
    pub(crate) keys: Vec<Bytes>,
    pub(crate) args: Vec<Bytes>,
    /// How many replicas to wait for after the script; 0 for none.
    pub(crate) replicas: u32,
}

impl Call {
    /// EVALSHA; a node without the script replies NOSCRIPT.
    pub(super) fn command(&self) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.script.sha1).arg(self.keys.len());
        for part in self.keys.iter().chain(&self.args) {
            command.arg(&part[..]);
        }
        command
    }
}

/// Whether a call has been written to a connection. One that was not has had no effect, and will
/// have none once its future is dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentFlag(Arc<AtomicBool>);

impl SentFlag {
    /// Whether it was sent, or may have been.
    pub(crate) fn is_sent(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn mark_sent(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The reply to a call.
#[derive(Clone, Debug)]
pub(crate) struct CallReply {
    /// The script's return value; never an error reply.
    pub(crate) value: Value,
    /// When the attempt that was answered was sent.
    pub(crate) sent_at: Instant,
    /// When its reply was received.
    pub(crate) received_at: Instant,
    /// How many replicas have it, by WAIT; `u64::MAX` if the call does not wait for any.
    pub(crate) replicas: u64,
    /// It was sent more than once, so it may have been executed long before the reply.
    pub(crate) was_resent: bool,
}
