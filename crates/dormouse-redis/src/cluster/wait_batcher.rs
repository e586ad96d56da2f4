//! Calls that wait for replicas, several of them behind one WAIT.
//!
//! WAIT holds up its whole connection, half a second if a replica is away. So these calls have a
//! connection of their own, and go in convoys: while one waits the next gathers, and each convoy is
//! one write of all its scripts and one WAIT. WAIT counts replicas that have everything this
//! connection wrote before it, so one is good for all.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use redis::{Pipeline, Value};
use tokio::sync::{mpsc, oneshot};

use super::connection::Wire;
use super::node::{Commands, checked, exchange, open};
use super::script::Landed;
use super::verdict::Verdict;
use crate::clock;

/// Scripts in one write; more would hold up the node for others.
const CONVOY_MAX: usize = 64;

struct Member {
    commands: Commands,
    replicas: u32,
    answer: oneshot::Sender<Result<Landed, Verdict>>,
}

/// The way to a node for calls that wait for its replicas.
pub(super) struct Convoy {
    pub(super) wire: Arc<Wire>,
    wait_ms: u64,
    /// The task that leads the convoys begins with the first call, and ends with this.
    members: OnceLock<mpsc::UnboundedSender<Member>>,
}

impl Convoy {
    pub(super) fn new(wire: Arc<Wire>, wait_ms: u64) -> Convoy {
        Convoy { wire, wait_ms, members: OnceLock::new() }
    }

    /// Sends with the next convoy.
    pub(super) async fn send(&self, commands: Commands, replicas: u32) -> Result<Landed, Verdict> {
        let (answer, answered) = oneshot::channel();
        let members = self.members.get_or_init(|| self.start());
        let unsent = Verdict::Again;
        if members.send(Member { commands, replicas, answer }).is_err() {
            return Err(unsent);
        }
        answered.await.unwrap_or(Err(unsent))
    }

    fn start(&self) -> mpsc::UnboundedSender<Member> {
        let (members, waiting) = mpsc::unbounded_channel();
        tokio::spawn(lead(Arc::clone(&self.wire), self.wait_ms, waiting));
        members
    }
}

/// In a task of its own, since any caller may go away while the others wait.
async fn lead(wire: Arc<Wire>, wait_ms: u64, mut waiting: mpsc::UnboundedReceiver<Member>) {
    let mut convoy = Vec::with_capacity(CONVOY_MAX);
    while waiting.recv_many(&mut convoy, CONVOY_MAX).await > 0 {
        convoy.retain(|member| !member.answer.is_closed());
        if !convoy.is_empty() {
            travel(&wire, wait_ms, &mut convoy).await;
        }
    }
}

async fn travel(wire: &Arc<Wire>, wait_ms: u64, convoy: &mut Vec<Member>) {
    let line = match open(wire).await {
        Ok(line) => line,
        Err(verdict) => return answer_none(convoy, &verdict),
    };
    // Who gave up while it was opened has been told that nothing was sent.
    convoy.retain(|member| !member.answer.is_closed());
    if convoy.is_empty() {
        return;
    }
    let mut pipeline = Pipeline::new();
    for member in convoy.iter() {
        member.commands.departure.leave();
        member.commands.add_to(&mut pipeline);
    }
    let replicas = convoy.iter().map(|member| member.replicas).max().unwrap_or_default();
    pipeline.cmd("WAIT").arg(replicas).arg(wait_ms);
    match exchange(wire, line, &pipeline).await {
        Ok((replies, sent_at)) => answer_all(convoy, replies, sent_at),
        Err(verdict) => answer_none(convoy, &verdict),
    }
}

fn answer_none(convoy: &mut Vec<Member>, verdict: &Verdict) {
    for member in convoy.drain(..) {
        // A caller who went away needs no answer.
        let _ = member.answer.send(Err(verdict.clone()));
    }
}

fn answer_all(convoy: &mut Vec<Member>, mut replies: Vec<Value>, sent_at: Instant) {
    let landed_at = clock::instant();
    let waited = count_of(replies.pop());
    let mut replies = replies.into_iter();
    for member in convoy.drain(..) {
        let reply = replies.by_ref().take(member.commands.replies()).last();
        let landed = landed(reply, &waited).map(|(value, replicas)| Landed {
            value,
            sent_at,
            landed_at,
            replicas,
            is_repeated: false,
        });
        let _ = member.answer.send(landed);
    }
}

/// The script's own error first: if it did not run, what WAIT said is about others.
fn landed(reply: Option<Value>, waited: &Result<u64, Verdict>) -> Result<(Value, u64), Verdict> {
    let reply = reply.ok_or(Verdict::Again)?;
    let value = checked(reply).map_err(|error| Verdict::of_reply(&error))?;
    Ok((value, waited.clone()?))
}

fn count_of(reply: Option<Value>) -> Result<u64, Verdict> {
    match reply.map(checked) {
        Some(Ok(Value::Int(count))) => Ok(u64::try_from(count).unwrap_or_default()),
        Some(Err(error)) => Err(Verdict::of_reply(&error)),
        _ => Err(Verdict::Again),
    }
}
