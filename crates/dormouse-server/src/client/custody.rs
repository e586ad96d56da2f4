//! What was granted and has not reached its client yet.

use std::sync::Arc;
use std::time::Duration;

use dormouse_core::backend::{Answer, Request, Sink, Ticket};
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::Code;
use dormouse_core::op::{LeasedJob, Release, Unlock};

use super::BackendClient;

/// How long to wait before a backend that is busy is asked again.
const BUSY: Duration = Duration::from_millis(10);

/// Leases or a lock on their way to a client: given back when dropped, unless handed over.
#[must_use = "dropping it gives the leases back"]
pub(crate) struct Custody {
    client: BackendClient,
    undo: Option<Command>,
}

impl Custody {
    /// Takes charge of what this reply grants; nothing, if it grants nothing.
    pub(crate) fn of(client: &BackendClient, reply: &Reply, unlock: Option<Unlock>) -> Custody {
        Custody { client: client.clone(), undo: undo(reply, unlock) }
    }

    /// Takes charge of leased jobs.
    pub(crate) fn of_jobs(client: &BackendClient, jobs: &[LeasedJob]) -> Custody {
        let release = || jobs.iter().map(|job| Release::now(job.token)).collect();
        let undo = (!jobs.is_empty()).then(|| Command::Release(release()));
        Custody { client: client.clone(), undo }
    }

    /// Takes charge of a lock.
    pub(crate) fn of_lock(client: &BackendClient, unlock: Unlock) -> Custody {
        Custody { client: client.clone(), undo: Some(Command::Unlock(unlock)) }
    }

    /// The client has it now.
    pub(crate) fn hand_over(mut self) {
        self.undo = None;
    }

    /// Whether there is anything to give back.
    pub(crate) fn is_empty(&self) -> bool {
        self.undo.is_none()
    }
}

impl Drop for Custody {
    fn drop(&mut self) {
        give_back(&self.client, self.undo.take().into_iter().collect());
    }
}

/// The command that takes back what a reply granted.
pub(super) fn undo(reply: &Reply, unlock: Option<Unlock>) -> Option<Command> {
    match reply {
        Reply::Jobs(jobs) if !jobs.is_empty() => {
            let unspent =
                jobs.iter().map(|job| Release { token: job.token, delay_ms: None, priority: None });
            Some(Command::Release(unspent.collect()))
        }
        Reply::Lock(_) => unlock.map(Command::Unlock),
        _ => None,
    }
}

/// Sends commands whose answers interest nobody. Called from drops and from the backend's own
/// threads, so it only plans: a task of the runtime does it, again and again while it is busy.
pub(super) fn give_back(client: &BackendClient, commands: Vec<Command>) {
    if commands.is_empty() {
        return;
    }
    let inner = Arc::clone(&client.inner);
    inner.returning.send_modify(|count| *count += 1);
    client.inner.runtime.spawn(async move {
        loop {
            let requests = commands
                .iter()
                .map(|command| Request { ticket: Ticket::next(), command: command.clone() })
                .collect();
            match inner.backend.submit(requests, Arc::new(Discard)) {
                Err(error) if error.code == Code::Busy => tokio::time::sleep(BUSY).await,
                // Taken; or the store has stopped, and leases run out after its next start.
                _ => break,
            }
        }
        inner.returning.send_modify(|count| *count -= 1);
    });
}

struct Discard;

impl Sink for Discard {
    fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
        answers.clear();
    }
}
