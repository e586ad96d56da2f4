//! The ends of leases: collected, and sent to the backend in batches.
//!
//! An end that the backend cannot take now comes again, as long as its lease lasts. A batch that is
//! not answered soon does not hold up the next one: a part of the store may be away.

use std::time::Duration;

use bytes::Bytes;
use dormouse_core::backoff::Backoff;
use dormouse_core::command::{Command, Reply};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::Token;
use dormouse_core::op::{Ack, Get, Kill, KillTarget, Nack, Release, Target};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::answer::Verdict;
use super::clock::SteadyClock;
use crate::client::{BackendClient, no_reply, unnumbered};
use crate::limits::PUSH_LEASE_MS;

/// Ends that one batch has at most. While it is under way the next one fills.
const BATCH_MAX: usize = 256;
/// Ends that wait; beyond it deliveries wait to report theirs.
const WAITING_MAX: usize = 1_024;
/// Ends that come again; beyond it no others are taken.
const AGAIN_MAX: usize = 4_096;
/// They come after this, until two thirds of the lease's rest are used.
const AGAIN: Duration = Duration::from_millis(50);
const AGAIN_FOR_MS: u64 = PUSH_LEASE_MS * 2 / 3;
/// The next batch fills while one is under way, but no longer than this.
const FILL: Duration = Duration::from_millis(20);
/// Batches under way, at most.
const SENT_MAX: usize = 64;

/// How one lease ends.
pub(super) struct Ending {
    kind: Kind,
    /// What the receiver asked for, until it is compared with the job's backoff.
    asked_ms: Option<u64>,
    /// It comes again until then, by the clock of pushes; `None` = it was not sent yet.
    again_until_ms: Option<u64>,
}

#[derive(Clone)]
enum Kind {
    Ack(Token),
    Nack(Nack),
    Kill(Kill),
    Release(Release),
}

/// Where deliveries report ends.
pub(super) type Endings = mpsc::Sender<Ending>;

/// The channel of ends, for `run`.
pub(super) fn channel() -> (Endings, mpsc::Receiver<Ending>) {
    mpsc::channel(WAITING_MAX)
}

impl Ending {
    /// As the receiver's answer says.
    pub(super) fn judged(token: Token, verdict: Verdict) -> Ending {
        let mut asked_ms = None;
        let kind = match verdict {
            Verdict::Ack => Kind::Ack(token),
            Verdict::Nack { error, retry_after_ms } => {
                asked_ms = retry_after_ms;
                let error = Some(Bytes::from(error));
                Kind::Nack(Nack { token, delay_ms: None, priority: None, error })
            }
            Verdict::Kill { error } => {
                let (target, error) = (KillTarget::Token(token), Some(Bytes::from(error)));
                Kind::Kill(Kill { target, error, priority: None })
            }
            Verdict::Release { delay_ms } => {
                let delay_ms = i64::try_from(delay_ms).ok();
                Kind::Release(Release { token, delay_ms, priority: None })
            }
        };
        Ending { kind, asked_ms, again_until_ms: None }
    }
}

/// Ends leases until nobody can report more. After an abort nothing comes again.
pub(super) async fn run(
    client: BackendClient,
    clock: SteadyClock,
    mut endings: mpsc::Receiver<Ending>,
    aborts: watch::Receiver<bool>,
) {
    let mut sent: JoinSet<Vec<Ending>> = JoinSet::new();
    let mut again: Vec<Ending> = Vec::new();
    let mut is_open = true;
    let (pause, fill) = (sleep(AGAIN), sleep(FILL));
    tokio::pin!(pause, fill);
    while is_open || !again.is_empty() || !sent.is_empty() {
        let mut batch = Vec::new();
        let has_room = sent.len() < SENT_MAX;
        let is_next = sent.is_empty() || has_room && fill.is_elapsed();
        tokio::select! {
            count = endings.recv_many(&mut batch, BATCH_MAX),
                if is_open && is_next && again.len() < AGAIN_MAX => is_open = count > 0,
            () = &mut pause, if has_room && !again.is_empty() => {
                pause.set(sleep(AGAIN));
                batch.extend(again.drain(..again.len().min(BATCH_MAX)));
            }
            Some(refused) = sent.join_next(), if !sent.is_empty() => {
                again.extend(refused.unwrap_or_default());
            }
            () = &mut fill, if !sent.is_empty() && !fill.is_elapsed() => {}
        }
        if *aborts.borrow() {
            again.clear();
        }
        if !batch.is_empty() {
            fill.set(sleep(FILL));
            sent.spawn(end_all(client.clone(), clock, batch));
        }
    }
}

/// Sends a batch, and gives back what has to come again.
async fn end_all(client: BackendClient, clock: SteadyClock, mut batch: Vec<Ending>) -> Vec<Ending> {
    let until_ms = clock.now_ms() + AGAIN_FOR_MS;
    for ending in &mut batch {
        ending.again_until_ms.get_or_insert(until_ms);
    }
    delay(&client, &mut batch).await;
    submit(&client, clock, batch).await
}

/// Gives nacks the delay that the receiver asked for, where the job's backoff is shorter. A lease
/// does not tell the backoff, and few receivers ask: so these jobs are looked at.
async fn delay(client: &BackendClient, batch: &mut [Ending]) {
    let mut asked: Vec<(&mut Nack, u64)> = Vec::new();
    for ending in batch {
        if let (Kind::Nack(nack), Some(ms)) = (&mut ending.kind, ending.asked_ms.take()) {
            asked.push((nack, ms));
        }
    }
    if asked.is_empty() {
        return;
    }
    let targets = asked.iter().map(|(nack, _)| Target::Id(nack.token.id)).collect();
    let views = client.call(Get(targets)).await.unwrap_or_default();
    let mut views = views.into_iter();
    for (nack, asked_ms) in asked {
        let backoff_ms = match views.next() {
            Some(Ok(view)) => {
                let job = &view.job;
                let backoff = job.content.backoff.as_deref().unwrap_or(&Backoff::DEFAULT);
                backoff.delay_ms(nack.token.id, job.progress.attempts)
            }
            // It is gone, or its delay is not known: then the receiver's word is all there is.
            _ => 0,
        };
        nack.delay_ms = i64::try_from(backoff_ms.max(asked_ms)).ok();
    }
}

/// Sends a batch, one command for each way in which leases end; gives back what has to come again.
async fn submit(client: &BackendClient, clock: SteadyClock, batch: Vec<Ending>) -> Vec<Ending> {
    let mut groups: [Vec<Ending>; 4] = Default::default();
    for ending in batch {
        let group = match ending.kind {
            Kind::Ack(_) => 0,
            Kind::Nack(_) => 1,
            Kind::Kill(_) => 2,
            Kind::Release(_) => 3,
        };
        groups[group].push(ending);
    }
    let groups: Vec<Vec<Ending>> = groups.into_iter().filter(|group| !group.is_empty()).collect();
    let requests = groups.iter().map(|group| unnumbered(command(group))).collect();
    let mut replies = match client.submit(requests, None) {
        Ok(batch) => Ok(batch.await),
        Err(error) => Err(error),
    };
    let mut again = Vec::new();
    for group in groups {
        let answer = match &mut replies {
            Ok(replies) => replies.next_answer(),
            Err(error) => Err(error.clone()),
        };
        let mut answers = match answer {
            Ok(Reply::Ended(items)) => Ok(items.into_iter()),
            Ok(_) => continue,
            Err(error) => Err(error),
        };
        for ending in group {
            let failure = match &mut answers {
                Ok(items) => items.next().unwrap_or_else(|| Err(no_reply())).err(),
                Err(error) => Some(error.clone()),
            };
            again.extend(failure.and_then(|error| ending.after(&error, clock.now_ms())));
        }
    }
    again
}

/// The command of ends of one kind.
fn command(group: &[Ending]) -> Command {
    let kinds = || group.iter().map(|ending| &ending.kind);
    macro_rules! all {
        ($kind:ident) => {
            kinds().filter_map(|kind| match kind {
                Kind::$kind(one) => Some(one.clone()),
                _ => None,
            })
        };
    }
    match group.first().map(|ending| &ending.kind) {
        Some(Kind::Nack(_)) => Command::Nack(all!(Nack).collect()),
        Some(Kind::Kill(_)) => Command::Kill(all!(Kill).collect()),
        Some(Kind::Release(_)) => Command::Release(all!(Release).collect()),
        Some(Kind::Ack(_)) | None => Command::from(Ack(all!(Ack).collect())),
    }
}

impl Ending {
    /// What becomes of an end that was refused: those that may be taken later come again.
    fn after(self, error: &Error, now_ms: u64) -> Option<Ending> {
        let may_recover = [Code::Busy, Code::Unavailable].contains(&error.code);
        if may_recover && self.again_until_ms.is_some_and(|until_ms| now_ms < until_ms) {
            return Some(self);
        }
        match error.code {
            // Another has taken the lease over meanwhile: no mistake of anybody.
            Code::LeaseLost => tracing::debug!(%error, "a push ended after its lease"),
            _ => tracing::warn!(%error, "the end of a push was not stored; it is pushed again"),
        }
        None
    }
}
