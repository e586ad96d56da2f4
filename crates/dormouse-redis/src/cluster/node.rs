//! One node: its connections, and how a call is put to it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use redis::{Cmd, Pipeline, RedisError, ServerError, Value};

use super::connection::{Line, Wire};
use super::meters::Meters;
use super::opener::Opener;
use super::script::{Call, Departure, Landed, Script};
use super::url::Address;
use super::verdict::Verdict;
use super::wait_batcher::Convoy;
use crate::clock;

/// A node of a cluster, or the stand-alone server.
pub(super) struct Node {
    pub(super) address: Address,
    calls: Arc<Wire>,
    convoy: Convoy,
    /// Names of scripts that it was taught, and has not lost as far as we know.
    taught: Mutex<HashSet<String>>,
}

impl Node {
    /// A node that nothing has been asked yet; connections open on demand.
    pub(super) fn new(address: Address, opener: &Arc<Opener>, meters: &Arc<Meters>) -> Node {
        let wire = || Arc::new(Wire::new(address.clone(), Arc::clone(opener), Arc::clone(meters)));
        let convoy = Convoy::new(wire(), opener.patience.wait_ms);
        Node { calls: wire(), convoy, address, taught: Mutex::default() }
    }

    /// Puts a call to this node, once.
    pub(super) async fn send(
        &self,
        call: &Call,
        is_asking: bool,
        departure: &Departure,
    ) -> Result<Landed, Verdict> {
        let departure = departure.clone();
        let commands = Commands { is_asking, script: call.command(), departure };
        match call.replicas {
            0 => self.send_plain(&commands).await,
            replicas => {
                // Whether it knows the script, it would say only after WAIT, which waits in vain on
                // a new primary without a replica.
                if !self.taught().contains(call.script.name()) {
                    self.load(&call.script).await?;
                }
                let landed = self.convoy.send(commands, replicas).await;
                if matches!(landed, Err(Verdict::Again | Verdict::Load)) {
                    // It may be another process by now.
                    self.taught().clear();
                }
                landed
            }
        }
    }

    fn taught(&self) -> MutexGuard<'_, HashSet<String>> {
        self.taught.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send_plain(&self, commands: &Commands) -> Result<Landed, Verdict> {
        let line = open(&self.calls).await?;
        commands.departure.leave();
        let (value, sent_at) = if commands.is_asking {
            let mut pipeline = Pipeline::new();
            commands.add_to(&mut pipeline);
            let (mut replies, sent_at) = exchange(&self.calls, line, &pipeline).await?;
            (replies.pop().ok_or(Verdict::Again)?, sent_at)
        } else {
            exchange_one(&self.calls, line, &commands.script).await?
        };
        let value = checked(value).map_err(|error| Verdict::of_reply(&error))?;
        Ok(Landed {
            value,
            sent_at,
            landed_at: clock::instant(),
            replicas: u64::MAX,
            is_repeated: false,
        })
    }

    /// Teaches this node a script.
    pub(super) async fn load(&self, script: &Script) -> Result<(), Verdict> {
        let mut pipeline = Pipeline::new();
        pipeline.add_command(script.load_command());
        let line = open(&self.calls).await?;
        let (replies, _) = exchange(&self.calls, line, &pipeline).await?;
        for reply in replies {
            checked(reply).map_err(|error| Verdict::of_reply(&error))?;
        }
        self.taught().insert(script.name().to_owned());
        Ok(())
    }

    /// Asks anything else of this node; an error reply is an error here.
    pub(super) async fn ask(&self, command: &Cmd) -> Result<Value, RedisError> {
        let mut line = self.calls.line().await?;
        match line.connection.send_packed_command(command).await {
            Ok(value) => value.extract_error(),
            Err(error) => {
                self.calls.discard(&line);
                Err(error)
            }
        }
    }

    /// A node that keeps silent, or is not what it was, gets new connections for what comes next.
    pub(super) fn distrust(&self) {
        self.calls.close();
        self.convoy.wire.close();
    }
}

/// A script on its way, with leave to run it in a slot that is still being brought over.
pub(super) struct Commands {
    is_asking: bool,
    script: Cmd,
    pub(super) departure: Departure,
}

impl Commands {
    /// Adds them in order; they go out in one write, so nothing comes between.
    pub(super) fn add_to(&self, pipeline: &mut Pipeline) {
        if self.is_asking {
            pipeline.cmd("ASKING");
        }
        pipeline.add_command(self.script.clone());
    }

    /// How many replies they get; the last is that of the script.
    pub(super) fn replies(&self) -> usize {
        1 + usize::from(self.is_asking)
    }
}

/// The connection of a wire, opened if need be.
pub(super) async fn open(wire: &Arc<Wire>) -> Result<Line, Verdict> {
    wire.line().await.map_err(|error| Verdict::of_failure(&error))
}

/// Sends commands in one write and takes all replies, errors among them, and when they were sent.
/// A connection that failed is given up.
pub(super) async fn exchange(
    wire: &Arc<Wire>,
    mut line: Line,
    pipeline: &Pipeline,
) -> Result<(Vec<Value>, Instant), Verdict> {
    let sent_at = clock::instant();
    match line.connection.send_packed_commands(pipeline, 0, pipeline.len()).await {
        Ok(replies) if replies.len() == pipeline.len() => Ok((replies, sent_at)),
        Ok(_) => {
            wire.discard(&line);
            Err(Verdict::Again)
        }
        Err(error) => {
            wire.discard(&line);
            Err(Verdict::of_failure(&error))
        }
    }
}

/// As `exchange`, of one command: a pipeline would copy it twice more.
async fn exchange_one(
    wire: &Arc<Wire>,
    mut line: Line,
    command: &Cmd,
) -> Result<(Value, Instant), Verdict> {
    let sent_at = clock::instant();
    match line.connection.send_packed_command(command).await {
        Ok(value) => Ok((value, sent_at)),
        Err(error) => {
            wire.discard(&line);
            Err(Verdict::of_failure(&error))
        }
    }
}

/// A reply, unless it is an error.
pub(super) fn checked(value: Value) -> Result<Value, ServerError> {
    match value {
        Value::ServerError(error) => Err(error),
        value => Ok(value),
    }
}
