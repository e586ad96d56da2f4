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
use super::node::{ScriptCommands, into_result, judge, open, send_pipeline};
use super::replicas::ReplicaWatch;
use super::script::CallReply;
use super::trouble::Trouble;
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
    trouble: Arc<Trouble>,
    replicas: Arc<ReplicaWatch>,
    /// To the task that sends the batches. It starts with the first call, and ends when this is
    /// dropped.
    calls: OnceLock<mpsc::UnboundedSender<PendingCall>>,
}

impl WaitBatcher {
    pub(super) fn new(
        connection: Arc<Connection>,
        wait_ms: u64,
        trouble: Arc<Trouble>,
        replicas: Arc<ReplicaWatch>,
    ) -> WaitBatcher {
        WaitBatcher { connection, wait_ms, trouble, replicas, calls: OnceLock::new() }
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
        let sender = Sender {
            connection: Arc::clone(&self.connection),
            wait_ms: self.wait_ms,
            trouble: Arc::clone(&self.trouble),
            replicas: Arc::clone(&self.replicas),
        };
        tokio::spawn(sender.run(waiting));
        calls
    }
}

/// Sends the batches, in a task of its own: any caller may give up while the others wait.
struct Sender {
    connection: Arc<Connection>,
    wait_ms: u64,
    trouble: Arc<Trouble>,
    replicas: Arc<ReplicaWatch>,
}

impl Sender {
    async fn run(self, mut waiting: mpsc::UnboundedReceiver<PendingCall>) {
        let mut batch = Vec::with_capacity(WAIT_BATCH_MAX);
        while waiting.recv_many(&mut batch, WAIT_BATCH_MAX).await > 0 {
            batch.retain(|call| !call.answer.is_closed());
            if !batch.is_empty() {
                self.send_batch(&mut batch).await;
            }
        }
    }

    async fn send_batch(&self, batch: &mut Vec<PendingCall>) {
        let open_connection = match open(&self.connection, &self.trouble).await {
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
        let wanted = batch.iter().map(|call| call.replicas).max().unwrap_or_default();
        pipeline.cmd("WAIT").arg(wanted).arg(self.wait_ms);
        let sent_at = clock::instant();
        match send_pipeline(&self.connection, open_connection, &pipeline).await {
            Ok((replies, sent_at)) => self.answer_all(batch, replies, sent_at, wanted),
            Err(verdict) => {
                self.trouble.note_silence(&self.connection.address, sent_at);
                fail_all(batch, &verdict);
            }
        }
    }

    fn answer_all(
        &self,
        batch: &mut Vec<PendingCall>,
        mut replies: Vec<Value>,
        sent_at: Instant,
        wanted: u32,
    ) {
        let received_at = clock::instant();
        let waited = count_of(replies.pop());
        if let Ok(confirmed) = waited {
            self.replicas.note(&self.connection.address, confirmed, wanted);
        }
        let mut replies = replies.into_iter();
        for call in batch.drain(..) {
            let reply = replies.by_ref().take(call.commands.replies()).last();
            let result = self.call_result(reply, &waited).map(|(value, replicas)| CallReply {
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
        &self,
        reply: Option<Value>,
        waited: &Result<u64, Verdict>,
    ) -> Result<(Value, u64), Verdict> {
        let reply = reply.ok_or(Verdict::Lost)?;
        let address = &self.connection.address;
        let value = into_result(reply).map_err(|error| judge(&error, address, &self.trouble))?;
        Ok((value, waited.clone()?))
    }
}

fn fail_all(batch: &mut Vec<PendingCall>, verdict: &Verdict) {
    for call in batch.drain(..) {
        // The caller may have given up.
        let _ = call.answer.send(Err(verdict.clone()));
    }
}

/// The reply to WAIT. If it is an error, scripts were executed all the same.
fn count_of(reply: Option<Value>) -> Result<u64, Verdict> {
    match reply.map(into_result) {
        Some(Ok(Value::Int(count))) => Ok(u64::try_from(count).unwrap_or_default()),
        Some(Err(error)) => Err(match Verdict::of_reply(&error) {
            Verdict::Fatal(error) => Verdict::Fatal(error.in_doubt()),
            _ => Verdict::Lost,
        }),
        _ => Err(Verdict::Lost),
    }
}
