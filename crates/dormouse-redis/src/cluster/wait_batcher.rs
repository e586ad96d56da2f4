//! Calls that wait for replicas, several of them behind one WAIT.
//!
//! WAIT blocks its whole connection, for half a second if a replica is down. So these calls have a
//! connection of their own and are batched: while one batch waits the next one gathers, and each is
//! one write of all its scripts and one WAIT. WAIT counts the replicas that have everything written
//! on this connection before it, so one is enough for all.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use redis::{Pipeline, Value};
use tokio::sync::{mpsc, oneshot};

use super::connection::Connection;
use super::node::{ScriptCommands, into_result, open, send_pipeline};
use super::script::CallReply;
use super::verdict::Verdict;
use crate::clock;

/// Scripts in one write; more would block the node for others.
const WAIT_BATCH_MAX: usize = 64;

struct PendingCall {
    commands: ScriptCommands,
    replicas: u32,
    answer: oneshot::Sender<Result<CallReply, Verdict>>,
}

/// Sends calls that wait for the replicas of a node.
pub(super) struct WaitBatcher {
    pub(super) connection: Arc<Connection>,
    wait_ms: u64,
    /// To the task that sends the batches. It starts with the first call, and ends when this is
    /// dropped.
    calls: OnceLock<mpsc::UnboundedSender<PendingCall>>,
}

impl WaitBatcher {
    pub(super) fn new(connection: Arc<Connection>, wait_ms: u64) -> WaitBatcher {
        WaitBatcher { connection, wait_ms, calls: OnceLock::new() }
    }

    /// Sends a call with the next batch.
    pub(super) async fn send(
        &self,
        commands: ScriptCommands,
        replicas: u32,
    ) -> Result<CallReply, Verdict> {
        let (answer, answered) = oneshot::channel();
        let calls = self.calls.get_or_init(|| self.start());
        let unsent = Verdict::Retry;
        if calls.send(PendingCall { commands, replicas, answer }).is_err() {
            return Err(unsent);
        }
        answered.await.unwrap_or(Err(unsent))
    }

    fn start(&self) -> mpsc::UnboundedSender<PendingCall> {
        let (calls, waiting) = mpsc::unbounded_channel();
        tokio::spawn(run(Arc::clone(&self.connection), self.wait_ms, waiting));
        calls
    }
}

/// In a task of its own, since any caller may give up while the others wait.
async fn run(
    connection: Arc<Connection>,
    wait_ms: u64,
    mut waiting: mpsc::UnboundedReceiver<PendingCall>,
) {
    let mut batch = Vec::with_capacity(WAIT_BATCH_MAX);
    while waiting.recv_many(&mut batch, WAIT_BATCH_MAX).await > 0 {
        batch.retain(|call| !call.answer.is_closed());
        if !batch.is_empty() {
            send_batch(&connection, wait_ms, &mut batch).await;
        }
    }
}

async fn send_batch(connection: &Arc<Connection>, wait_ms: u64, batch: &mut Vec<PendingCall>) {
    let open_connection = match open(connection).await {
        Ok(open_connection) => open_connection,
        Err(verdict) => return fail_all(batch, &verdict),
    };
    // A caller that gave up meanwhile has taken its call for unsent, so it must stay unsent.
    batch.retain(|call| !call.answer.is_closed());
    if batch.is_empty() {
        return;
    }
    let mut pipeline = Pipeline::new();
    for call in batch.iter() {
        call.commands.sent_flag.mark_sent();
        call.commands.add_to(&mut pipeline);
    }
    let replicas = batch.iter().map(|call| call.replicas).max().unwrap_or_default();
    pipeline.cmd("WAIT").arg(replicas).arg(wait_ms);
    match send_pipeline(connection, open_connection, &pipeline).await {
        Ok((replies, sent_at)) => answer_all(batch, replies, sent_at),
        Err(verdict) => fail_all(batch, &verdict),
    }
}

fn fail_all(batch: &mut Vec<PendingCall>, verdict: &Verdict) {
    for call in batch.drain(..) {
        // The caller may have given up.
        let _ = call.answer.send(Err(verdict.clone()));
    }
}

fn answer_all(batch: &mut Vec<PendingCall>, mut replies: Vec<Value>, sent_at: Instant) {
    let received_at = clock::instant();
    let waited = count_of(replies.pop());
    let mut replies = replies.into_iter();
    for call in batch.drain(..) {
        let reply = replies.by_ref().take(call.commands.replies()).last();
        let result = call_result(reply, &waited).map(|(value, replicas)| CallReply {
            value,
            sent_at,
            received_at,
            replicas,
            was_resent: false,
        });
        let _ = call.answer.send(result);
    }
}

/// The script's error takes precedence: if it did not run, the count of WAIT is about others.
fn call_result(
    reply: Option<Value>,
    waited: &Result<u64, Verdict>,
) -> Result<(Value, u64), Verdict> {
    let reply = reply.ok_or(Verdict::Retry)?;
    let value = into_result(reply).map_err(|error| Verdict::of_reply(&error))?;
    Ok((value, waited.clone()?))
}

fn count_of(reply: Option<Value>) -> Result<u64, Verdict> {
    match reply.map(into_result) {
        Some(Ok(Value::Int(count))) => Ok(u64::try_from(count).unwrap_or_default()),
        Some(Err(error)) => Err(Verdict::of_reply(&error)),
        _ => Err(Verdict::Retry),
    }
}
