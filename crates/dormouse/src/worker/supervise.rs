//! One job from its reserve to its end: waits for the handler, renews the lease, sends the outcome.

use std::any::Any;
use std::convert::Infallible;
use std::time::Duration;

use dormouse_core::error::{Code, Error};
use dormouse_core::limits::DELAY_MS_MAX;
use dormouse_core::op::EndReply;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};

use super::job::Job;
use super::lease_timer::LeaseTimer;
use super::outcome::Outcome;
use super::tally::End;

/// How long a cancelled handler may take to end.
const ABORT_MS: u64 = 100;
/// The pause between two attempts while the backend is busy.
const BUSY_MS: u64 = 20;
/// The pause between two attempts while the server is away.
const AWAY_MS: u64 = 1_000;
/// How long that is repeated, so that a worker that was stopped ends.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// Waits for the handler while renewing the lease, then settles the job.
///
/// `cancel` turns true when the worker's grace is over.
pub(crate) async fn supervise(
    job: Job,
    mut run: JoinHandle<Outcome>,
    timer: LeaseTimer,
    timeout: Option<Duration>,
    mut cancel: watch::Receiver<bool>,
) -> End {
    let mut guard = JobGuard { job: &job, run: run.abort_handle(), settled: false };
    let ended = tokio::select! {
        result = &mut run => Ok(result),
        never = renew(&job, &timer) => match never {},
        timeout = passed(timeout) => {
            Err(Outcome::failed(format_args!("timed out after {timeout:?}")))
        }
        _ = cancel.wait_for(|cancel| *cancel) => Err(Outcome::release()),
    };
    let (outcome, panicked) = match ended {
        Ok(result) => outcome_of(result),
        Err(stopped) => cancel_handler(&job, &mut run, stopped).await,
    };
    let end = settle(&job, outcome).await;
    guard.settled = true;
    match end {
        End::Failed if panicked => End::Panicked,
        end => end,
    }
}

/// Dropped before the job is settled, as when the worker's own future is dropped, it stops the
/// handler and gives the job back unspent.
struct JobGuard<'a> {
    job: &'a Job,
    run: tokio::task::AbortHandle,
    settled: bool,
}

impl Drop for JobGuard<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.job.lose();
            self.run.abort();
            self.job.forget();
        }
    }
}

/// Renews the lease at a third of its length, so that two renewals may fail before it expires.
/// Never returns: after a lost lease the handler is notified and still waited for.
async fn renew(job: &Job, timer: &LeaseTimer) -> Infallible {
    let third = (job.ttr() / 3).max(Duration::from_millis(1));
    loop {
        timer.sleep(third).await;
        match job.extend().await {
            Err(error) if matches!(error.code, Code::LeaseLost | Code::NotFound) => break,
            // Renewed; or busy, and then there is time for another attempt.
            _ => {}
        }
    }
    job.lose();
    std::future::pending().await
}

/// Returns when a handler has run for this long; never if there is no limit.
async fn passed(timeout: Option<Duration>) -> Duration {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => std::future::pending().await,
    }
    timeout.unwrap_or_default()
}

/// Stops the handler, whose job ends as `stopped` says. The outcome of one that returns in this
/// moment counts; one that cannot be stopped, because it blocks its thread, is left alone and its
/// job is lost.
async fn cancel_handler(
    job: &Job,
    run: &mut JoinHandle<Outcome>,
    stopped: Outcome,
) -> (Outcome, bool) {
    job.lose();
    run.abort();
    match tokio::time::timeout(Duration::from_millis(ABORT_MS), run).await {
        Ok(Err(error)) if error.is_cancelled() => (stopped, false),
        Ok(result) => outcome_of(result),
        Err(_) => (stopped, false),
    }
}

fn outcome_of(result: Result<Outcome, JoinError>) -> (Outcome, bool) {
    match result {
        Ok(outcome) => (outcome, false),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => (Outcome::failed(format_args!("panic: {}", panic_text(&*panic))), true),
            // Its runtime is shutting down, which is not the job's fault.
            Err(_) => (Outcome::release(), false),
        },
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a text")
}

/// Sends the outcome to the backend, again while that is busy, or while its server is away and the
/// lease may still be good.
async fn settle(job: &Job, outcome: Outcome) -> End {
    let until = tokio::time::Instant::now() + job.ttr().min(AWAY_MAX);
    // Whether it was sent before and no answer came: it may have ended the lease that time.
    let mut is_repeat = false;
    loop {
        match send_outcome(job, &outcome).await {
            Ok(EndReply::Dead) => return End::Dead,
            Ok(EndReply::Gone) if !is_repeat => return End::Lost,
            Ok(EndReply::Done | EndReply::Retry { .. } | EndReply::Gone) => {
                return end_of(&outcome);
            }
            // After an ack the job would be gone; after the others it is there, without its lease.
            Err(error)
                if is_repeat
                    && error.code == Code::LeaseLost
                    && !matches!(outcome, Outcome::Done) =>
            {
                return end_of(&outcome);
            }
            Err(error) if error.code == Code::Busy => {
                tokio::time::sleep(Duration::from_millis(BUSY_MS)).await;
            }
            // Each outcome names the lease: told twice it does no harm.
            Err(error)
                if job.is_remote()
                    && matches!(error.code, Code::Unavailable | Code::Unconfirmed)
                    && tokio::time::Instant::now() < until =>
            {
                is_repeat |= error.code == Code::Unconfirmed;
                tokio::time::sleep(Duration::from_millis(AWAY_MS)).await;
            }
            // Another consumer has the job, or the store has stopped: nothing can be done.
            Err(_) => return End::Lost,
        }
    }
}

/// How a job ends whose outcome the backend has taken.
fn end_of(outcome: &Outcome) -> End {
    match outcome {
        Outcome::Done => End::Done,
        Outcome::Failed { .. } => End::Failed,
        Outcome::Kill { .. } => End::Dead,
        Outcome::Release { .. } => End::Released,
    }
}

async fn send_outcome(job: &Job, outcome: &Outcome) -> Result<EndReply, Error> {
    let bounded = |delay: Duration| delay.min(Duration::from_millis(DELAY_MS_MAX));
    match outcome {
        Outcome::Done => job.ack().await,
        Outcome::Kill { error } => job.kill().error(error).await,
        Outcome::Failed { error, delay: None } => job.nack().error(error).await,
        Outcome::Failed { error, delay: Some(delay) } => {
            job.nack().error(error).delay(bounded(*delay)).await
        }
        Outcome::Release { delay: None } => job.release().await,
        Outcome::Release { delay: Some(delay) } => job.release().delay(bounded(*delay)).await,
    }
}
