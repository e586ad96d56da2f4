//! One node: its connections, and how a call is sent to it. Calls that wait for replicas go through
//! `wait_batcher`, on a connection of their own.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use redis::{Cmd, Pipeline, RedisError, ServerError, Value};

use super::connection::{Connection, OpenConnection};
use super::info::Info;
use super::meters::Meters;
use super::opener::Opener;
use super::replicas::ReplicaWatch;
use super::script::{Call, CallReply, Script, SentFlag};
use super::trouble::Trouble;
use super::url::Address;
use super::verdict::Verdict;
use super::wait_batcher::WaitBatcher;
use crate::clock;

/// A node of a cluster, or the stand-alone server.
pub(super) struct Node {
    pub(super) address: Address,
    calls: Arc<Connection>,
    wait_batcher: WaitBatcher,
    trouble: Arc<Trouble>,
    replicas: Arc<ReplicaWatch>,
    /// Names of the scripts that it has, as far as is known.
    loaded: Mutex<HashSet<String>>,
}

/// How a node is, for meters and readiness.
#[derive(Clone, Debug)]
pub(crate) struct NodeState {
    pub(crate) address: String,
    pub(crate) is_up: bool,
    /// Replicas that did not confirm the last change, or are not connected.
    pub(crate) replicas_missing: u64,
}

impl Node {
    /// Connections are opened on first use.
    pub(super) fn new(address: Address, opener: &Arc<Opener>, meters: &Arc<Meters>) -> Node {
        let connection =
            || Arc::new(Connection::new(address.clone(), Arc::clone(opener), Arc::clone(meters)));
        let (trouble, replicas) = (Arc::<Trouble>::default(), Arc::<ReplicaWatch>::default());
        let wait_batcher = WaitBatcher::new(
            connection(),
            opener.timeouts.wait_ms,
            Arc::clone(&trouble),
            Arc::clone(&replicas),
        );
        let (calls, loaded) = (connection(), Mutex::default());
        Node { calls, wait_batcher, address, trouble, replicas, loaded }
    }

    /// Sends a call once.
    pub(super) async fn send(
        &self,
        call: &Call,
        is_asking: bool,
        sent_flag: &SentFlag,
    ) -> Result<CallReply, Verdict> {
        let sent_flag = sent_flag.clone();
        let commands = ScriptCommands { is_asking, script: call.command(), sent_flag };
        let reply = self.send_commands(call, commands).await;
        if reply.is_ok() {
            self.trouble.clear(&self.address);
        }
        reply
    }

    async fn send_commands(
        &self,
        call: &Call,
        commands: ScriptCommands,
    ) -> Result<CallReply, Verdict> {
        match call.replicas {
            0 => self.send_plain(&commands).await,
            replicas => {
                // A NOSCRIPT reply would arrive only after WAIT, which times out on a new primary
                // without replicas; so the script is loaded first.
                if !self.loaded().contains(call.script.name()) {
                    self.load(&call.script).await?;
                }
                let reply = self.wait_batcher.send(commands, replicas).await;
                if matches!(reply, Err(Verdict::Retry | Verdict::Lost | Verdict::Load)) {
                    // The node may have been restarted.
                    self.loaded().clear();
                }
                reply
            }
        }
    }

    fn loaded(&self) -> MutexGuard<'_, HashSet<String>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send_plain(&self, commands: &ScriptCommands) -> Result<CallReply, Verdict> {
        let open_connection = open(&self.calls, &self.trouble).await?;
        commands.sent_flag.mark_sent();
        let (value, sent_at) = if commands.is_asking {
            let mut pipeline = Pipeline::new();
            commands.add_to(&mut pipeline);
            let (mut replies, sent_at) =
                send_pipeline(&self.calls, open_connection, &pipeline).await?;
            (replies.pop().ok_or(Verdict::Lost)?, sent_at)
        } else {
            send_command(&self.calls, open_connection, &commands.script).await?
        };
        let value =
            into_result(value).map_err(|error| judge(&error, &self.address, &self.trouble))?;
        Ok(CallReply {
            value,
            sent_at,
            received_at: clock::instant(),
            replicas: u64::MAX,
            was_resent: false,
        })
    }

    /// Loads a script.
    pub(super) async fn load(&self, script: &Script) -> Result<(), Verdict> {
        let mut pipeline = Pipeline::new();
        pipeline.add_command(script.load_command());
        let open_connection = open(&self.calls, &self.trouble).await?;
        let loaded = send_pipeline(&self.calls, open_connection, &pipeline).await;
        // To load a script is in no doubt.
        let (replies, _) = loaded.map_err(|_| Verdict::Retry)?;
        for reply in replies {
            into_result(reply).map_err(|error| judge(&error, &self.address, &self.trouble))?;
        }
        self.loaded().insert(script.name().to_owned());
        Ok(())
    }

    /// Sends any other command; an error reply is an error.
    pub(super) async fn query(&self, command: &Cmd) -> Result<Value, RedisError> {
        let mut open_connection = self.calls.get().await?;
        match open_connection.connection.send_packed_command(command).await {
            Ok(value) => value.extract_error(),
            Err(error) => {
                self.calls.discard(&open_connection);
                Err(error)
            }
        }
    }

    /// What it says instead of executing calls, or that it says nothing.
    pub(super) fn trouble(&self) -> String {
        match self.trouble.reason() {
            Some(reason) => format!("Redis at {} says \"{reason}\"", self.address),
            None => format!("Redis at {} has not answered", self.address),
        }
    }

    /// It has not answered a call that was sent at this instant.
    pub(super) fn note_silence(&self, sent_at: Instant) {
        self.trouble.note_silence(&self.address, sent_at);
    }

    /// Brings `state` up to date on a node that answers: what the last call or change showed may be
    /// long ago.
    pub(super) async fn refresh_state(&self) -> Result<(), RedisError> {
        self.trouble.clear_if_over(&self.address);
        if self.replicas.wanted() > 0 {
            let connected = Info::of(self).await?.replicas();
            self.replicas.note_connected(&self.address, connected);
        }
        Ok(())
    }

    pub(super) fn state(&self) -> NodeState {
        NodeState {
            address: self.address.to_string(),
            is_up: !self.trouble.is_lasting(),
            replicas_missing: self.replicas.missing(),
        }
    }

    /// Closes the connections to a node that is silent or was demoted; later calls open new ones.
    pub(super) fn reset_connections(&self) {
        self.calls.close();
        self.wait_batcher.connection.close();
    }
}

/// The commands of a call: the script, after ASKING if the slot is being imported.
pub(super) struct ScriptCommands {
    is_asking: bool,
    script: Cmd,
    pub(super) sent_flag: SentFlag,
}

impl ScriptCommands {
    /// Adds them in order; they go out in one write, so no other command gets between.
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

pub(super) async fn open(
    connection: &Arc<Connection>,
    trouble: &Trouble,
) -> Result<OpenConnection, Verdict> {
    connection.get().await.map_err(|error| {
        trouble.note(&connection.address, error.to_string());
        Verdict::of_failure(&error)
    })
}

/// What to do after an error reply; keeps what the node says.
pub(super) fn judge(error: &ServerError, address: &Address, trouble: &Trouble) -> Verdict {
    let verdict = Verdict::of_reply(error);
    if matches!(verdict, Verdict::Retry | Verdict::Demoted) {
        let details = error.details().unwrap_or_default();
        trouble.note(address, format!("{} {details}", error.code()));
    }
    verdict
}

/// Sends commands in one write. Returns all replies, errors among them, and when they were sent. A
/// connection that failed is discarded.
pub(super) async fn send_pipeline(
    connection: &Arc<Connection>,
    mut open_connection: OpenConnection,
    pipeline: &Pipeline,
) -> Result<(Vec<Value>, Instant), Verdict> {
    let sent_at = clock::instant();
    match open_connection.connection.send_packed_commands(pipeline, 0, pipeline.len()).await {
        Ok(replies) if replies.len() == pipeline.len() => Ok((replies, sent_at)),
        Ok(_) => {
            connection.discard(&open_connection);
            Err(Verdict::Lost)
        }
        Err(_) => {
            connection.discard(&open_connection);
            Err(Verdict::Lost)
        }
    }
}

/// As `send_pipeline` for one command, without copying it twice more.
async fn send_command(
    connection: &Arc<Connection>,
    mut open_connection: OpenConnection,
    command: &Cmd,
) -> Result<(Value, Instant), Verdict> {
    let sent_at = clock::instant();
    match open_connection.connection.send_packed_command(command).await {
        Ok(value) => Ok((value, sent_at)),
        Err(_) => {
            connection.discard(&open_connection);
            Err(Verdict::Lost)
        }
    }
}

pub(super) fn into_result(value: Value) -> Result<Value, ServerError> {
    match value {
        Value::ServerError(error) => Err(error),
        value => Ok(value),
    }
}
