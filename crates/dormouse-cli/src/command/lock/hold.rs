//! A command that runs while a lock is held.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::{Grant, Lock, Run};
use crate::Global;
use crate::child_process::{Child, Start, exit_code};
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::signals::Signals;
use crate::units::Span;

/// How often a release is tried, and the time between.
const RELEASE_TRIES: u32 = 3;
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// The shortest time between two renewals.
const RENEW_MIN: Duration = Duration::from_millis(10);

/// Acquires, runs, releases.
pub(super) async fn run(global: &Global, client: Client, run: Run) -> Result<(), Failure> {
    let name = run.name.unwrap_or_default();
    let lock = Lock { client, name, owner: run.owner.unwrap_or_else(unique_owner) };
    let mut signals = Signals::listen()?;
    let grant: Grant = lock.acquire(&run.times, &mut signals).await?.parse()?;
    let until = Instant::now() + run.times.ttl.duration();

    let mut environment = vec![
        ("DORMOUSE_URL".to_owned(), global.url.clone()),
        ("DORMOUSE_LOCK_NAME".to_owned(), lock.name.clone()),
        ("DORMOUSE_LOCK_FENCE".to_owned(), grant.fence),
        ("DORMOUSE_LOCK_OWNER".to_owned(), lock.owner.clone()),
    ];
    if run.pass_token {
        environment.extend(global.token_variables());
    }
    // In a group of its own a command could not read from the terminal.
    let has_group = !io::stdin().is_terminal();
    let start = Start { command: &run.command, environment, is_piped: false, has_group };
    let result = match start.spawn() {
        Ok(mut child) => watch(&lock, run.times.ttl, until, &mut child, &mut signals).await,
        Err(failure) => Err(failure),
    };
    release(&lock).await;
    result
}

/// Waits for the command, passes signals on, and ends it if the lock is lost.
async fn watch(
    lock: &Lock,
    ttl: Span,
    until: Instant,
    child: &mut Child,
    signals: &mut Signals,
) -> Result<(), Failure> {
    let mut lost = std::pin::pin!(keep(lock, ttl.duration(), until));
    loop {
        tokio::select! {
            biased;
            status = child.wait() => {
                let status =
                    status.map_err(|error| Failure::new(format!("lost the command: {error}")))?;
                return if status.success() { Ok(()) } else { Err(exit_of(status)) };
            }
            signal = signals.next() => child.signal(signal),
            why = &mut lost => {
                output::say(&format!("{why}; ending the command"));
                child.end().await;
                return Err(Failure::with(Exit::Conflict, "the lock was lost"));
            }
        }
    }
}

fn exit_of(status: std::process::ExitStatus) -> Failure {
    Failure::silent(exit_code(status))
}

/// Renews at a third of the ttl. Returns when the lock is lost, or may be: then another holds it.
async fn keep(lock: &Lock, ttl: Duration, mut until: Instant) -> String {
    let mut pause = (ttl / 3).max(RENEW_MIN);
    loop {
        sleep(pause).await;
        let sent_at = Instant::now();
        let span = Span::from_ms(ttl.as_millis() as u64);
        match timeout_at(until, lock.renew(span)).await {
            Err(_) => return format!("{} could not be renewed in time", lock.name),
            Ok(Ok(_)) => {
                until = sent_at + ttl;
                pause = (ttl / 3).max(RENEW_MIN);
            }
            Ok(Err(failure)) if failure.is_retryable() && Instant::now() < until => {
                pause = RETRY_PAUSE.min(ttl / 10).max(RENEW_MIN);
            }
            Ok(Err(failure)) => return failure.text().to_owned(),
        }
    }
}

/// Gives it back; if that does not work it is free after its ttl.
async fn release(lock: &Lock) {
    for tries in 1..=RELEASE_TRIES {
        match lock.release().await {
            Ok(_) => return,
            Err(failure) if failure.is_retryable() && tries < RELEASE_TRIES => {
                sleep(RETRY_PAUSE).await;
            }
            // Lost before: nothing to give back.
            Err(failure) if matches!(failure.code(), Some("not_found" | "conflict")) => return,
            Err(failure) => {
                let text = format!("{}: not released: {}", lock.name, failure.text());
                output::say(&format!("{text}; it is free when its ttl is over"));
                return;
            }
        }
    }
}

/// A unique owner: host, process, and the time of its creation.
fn unique_owner() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ns = now.map_or(0, |since| since.as_nanos());
    format!("{}:{}:{ns}", host.trim(), std::process::id())
}
