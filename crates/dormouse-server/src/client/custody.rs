//! Leases and locks that were granted and have not reached their client yet.

use std::sync::Arc;
use std::time::Duration;

use dormouse_core::backend::{Discard, Request, Ticket};
use dormouse_core::command::{Command, Reply, Undo};
use dormouse_core::error::Code;
use dormouse_core::job::Token;
use dormouse_core::op::{LeasedJob, Release, Unlock};

use super::BackendClient;

/// Time before a busy backend is asked again.
const BUSY: Duration = Duration::from_millis(10);

/// Leases or a lock on their way to a client: given back when dropped, unless handed over.
#[must_use = "dropping it gives the leases back"]
pub(crate) struct Custody {
    client: BackendClient,
    granted: Option<Granted>,
}

/// The grant in custody. One lease is by far the most frequent one, and needs no memory of its own.
enum Granted {
    Lease(Token),
    /// Anything else, with the command that gives it back.
    Other(Command),
}

impl Granted {
    /// `None` if there are no jobs.
    fn of_jobs(jobs: &[LeasedJob]) -> Option<Granted> {
        match jobs {
            [] => None,
            [job] => Some(Granted::Lease(job.token)),
            jobs => {
                let releases = jobs.iter().map(|job| Release::now(job.token)).collect();
                Some(Granted::Other(Command::Release(releases)))
            }
        }
    }

    /// The command that gives it back.
    fn give_back(self) -> Command {
        match self {
            Granted::Lease(token) => Command::Release(vec![Release::now(token)]),
            Granted::Other(command) => command,
        }
    }
}

impl Custody {
    fn new(client: &BackendClient, granted: Option<Granted>) -> Custody {
        Custody { client: client.clone(), granted }
    }

    /// Takes charge of what this reply grants; `None` if it grants nothing.
    pub(crate) fn of_reply(client: &BackendClient, reply: &Reply, undo: Undo) -> Option<Custody> {
        let granted = match (&undo, reply) {
            (Undo::Release, Reply::Jobs(jobs)) if jobs.len() == 1 => Granted::of_jobs(jobs)?,
            _ => Granted::Other(undo.command(reply)?),
        };
        Some(Custody::new(client, Some(granted)))
    }

    /// Takes charge of leased jobs.
    pub(crate) fn of_jobs(client: &BackendClient, jobs: &[LeasedJob]) -> Custody {
        Custody::new(client, Granted::of_jobs(jobs))
    }

    /// Takes charge of a lock.
    pub(crate) fn of_lock(client: &BackendClient, unlock: Unlock) -> Custody {
        Custody::new(client, Some(Granted::Other(Command::Unlock(unlock))))
    }

    /// The client has received it.
    pub(crate) fn hand_over(mut self) {
        self.granted = None;
    }

    /// Whether there is nothing to give back.
    pub(crate) fn is_empty(&self) -> bool {
        self.granted.is_none()
    }
}

impl Drop for Custody {
    fn drop(&mut self) {
        if let Some(granted) = self.granted.take() {
            give_back(&self.client, vec![granted.give_back()]);
        }
    }
}

/// Submits commands whose replies nobody reads. It is called from drops and from the backend's own
/// threads, so it must not block: a task submits them, and tries again while the backend is busy.
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
                .map(|command| Request::new(Ticket::next(), command.clone()))
                .collect();
            match inner.send(requests, Arc::new(Discard)) {
                Err(error) if error.code == Code::Busy => tokio::time::sleep(BUSY).await,
                // Accepted; or the store has stopped, and leases expire after its next start.
                _ => break,
            }
        }
        inner.returning.send_modify(|count| *count -= 1);
    });
}
