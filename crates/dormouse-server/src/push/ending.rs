//! The ends of leases: collected, and sent to the backend in batches.

use std::time::Duration;

use bytes::Bytes;
use dormouse_core::backoff::Backoff;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::{Ack, Get, Kill, KillTarget, Nack, Release, Target};
use tokio::sync::mpsc;

use super::answer::Verdict;
use crate::client::{BackendClient, unnumbered};

/// Ends that one batch has at most. While it is under way the next one fills.
const BATCH_MAX: usize = 256;
/// Ends that wait; beyond it deliveries wait to report theirs.
const WAITING_MAX: usize = 1_024;
/// A busy backend is asked again after this, so many times. Then leases run out.
const BUSY: Duration = Duration::from_millis(50);
const BUSY_TRIES_MAX: usize = 200;

/// How one lease ends.
pub(super) enum Ending {
    /// As the receiver's answer says.
    Judged { token: Token, verdict: Verdict },
    /// Not delivered: the attempt is not spent.
    Released { token: Token, delay_ms: u64 },
}

/// Where deliveries report ends.
pub(super) type Endings = mpsc::Sender<Ending>;

/// The channel of ends, for `run`.
pub(super) fn channel() -> (Endings, mpsc::Receiver<Ending>) {
    mpsc::channel(WAITING_MAX)
}

/// Ends leases until nobody can report more.
pub(super) async fn run(client: BackendClient, mut endings: mpsc::Receiver<Ending>) {
    let mut batch = Vec::new();
    while endings.recv_many(&mut batch, BATCH_MAX).await > 0 {
        let commands = commands(&client, batch.drain(..)).await;
        submit(&client, commands).await;
    }
}

/// One command for each way in which leases end.
async fn commands(client: &BackendClient, endings: impl Iterator<Item = Ending>) -> Vec<Command> {
    let (mut acks, mut nacks, mut kills, mut releases) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut asked = Vec::new();
    for ending in endings {
        match ending {
            Ending::Judged { token, verdict: Verdict::Ack } => acks.push(token),
            Ending::Judged { token, verdict: Verdict::Kill { error } } => {
                let target = KillTarget::Token(token);
                kills.push(Kill { target, error: Some(Bytes::from(error)), priority: None });
            }
            Ending::Judged { token, verdict: Verdict::Nack { error, retry_after_ms } } => {
                if let Some(ms) = retry_after_ms {
                    asked.push((nacks.len(), token.id, ms));
                }
                let error = Some(Bytes::from(error));
                nacks.push(Nack { token, delay_ms: None, priority: None, error });
            }
            Ending::Released { token, delay_ms } => {
                let delay_ms = i64::try_from(delay_ms).ok();
                releases.push(Release { token, delay_ms, priority: None });
            }
        }
    }
    delay(client, &mut nacks, &asked).await;
    let mut commands = Vec::new();
    if !acks.is_empty() {
        commands.push(Command::from(Ack(acks)));
    }
    if !nacks.is_empty() {
        commands.push(Command::Nack(nacks));
    }
    if !kills.is_empty() {
        commands.push(Command::Kill(kills));
    }
    if !releases.is_empty() {
        commands.push(Command::Release(releases));
    }
    commands
}

/// Gives nacks the delay that the receiver asked for, where the job's backoff is shorter. A lease
/// does not tell the backoff, and few receivers ask: so these jobs are looked at.
async fn delay(client: &BackendClient, nacks: &mut [Nack], asked: &[(usize, JobId, u64)]) {
    if asked.is_empty() {
        return;
    }
    let targets = asked.iter().map(|(_, id, _)| Target::Id(*id)).collect();
    let views = client.call(Get(targets)).await.unwrap_or_default();
    let mut views = views.into_iter();
    for (index, id, asked_ms) in asked {
        let backoff_ms = match views.next() {
            Some(Ok(view)) => {
                let job = &view.job;
                let backoff = job.content.backoff.as_deref().unwrap_or(&Backoff::DEFAULT);
                backoff.delay_ms(*id, job.progress.attempts)
            }
            // It is gone, or its delay is not known: then the receiver's word is all there is.
            _ => 0,
        };
        nacks[*index].delay_ms = i64::try_from(backoff_ms.max(*asked_ms)).ok();
    }
}

async fn submit(client: &BackendClient, commands: Vec<Command>) {
    for _ in 0..BUSY_TRIES_MAX {
        let requests = commands.iter().cloned().map(unnumbered).collect();
        match client.submit(requests, None) {
            Ok(batch) => {
                let mut replies = batch.await;
                (0..commands.len()).for_each(|_| report(replies.next_answer()));
                return;
            }
            Err(error) if error.code == Code::Busy => tokio::time::sleep(BUSY).await,
            Err(error) => return tell(&error),
        }
    }
    tracing::warn!("ends of pushes were lost in a busy store; their jobs are pushed again");
}

fn report(answer: Result<Reply, Error>) {
    match answer {
        Ok(Reply::Ended(replies)) => {
            replies.iter().filter_map(|reply| reply.as_ref().err()).for_each(tell);
        }
        Ok(_) => {}
        Err(error) => tell(&error),
    }
}

/// A lease that another has taken over meanwhile is no mistake of anybody.
fn tell(error: &Error) {
    match error.code {
        Code::LeaseLost => tracing::debug!(%error, "a push ended after its lease"),
        _ => tracing::warn!(%error, "the end of a push was not stored; its job is pushed again"),
    }
}
