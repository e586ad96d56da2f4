//! One job: runs its command, renews its lease, ends the lease by the exit code.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, sleep};

use super::Context;
use super::retry::Pause;
use super::stderr::{Tail, error_text};
use crate::child_process::{Child, Start, describe};
use crate::client::Request;
use crate::exit::Failure;
use crate::job::Job;
use crate::output;
use crate::units::Span;

/// After a stop signal, how long past the lease's expiry its end is still sent: the token is valid
/// until another consumer takes the job.
const LATE_MAX: Duration = Duration::from_secs(10);
/// The shortest time between two renewals.
const RENEW_MIN: Duration = Duration::from_millis(10);

/// How a job ended.
pub(super) enum JobEnd {
    Done,
    Failed,
    /// Given back, lost, or unknown to the server.
    Other,
    /// The command cannot be run at all, so no further job is taken.
    CannotRun(Failure),
}

/// How its command ended.
enum Exit {
    Done,
    Failed(String),
    /// The lease is lost, and this is why.
    Lost(String),
    /// A second signal arrived.
    Stopped,
}

/// Runs the command for a job and ends its lease.
pub(super) async fn supervise(context: Arc<Context>, job: Job) -> JobEnd {
    let lease = Lease::new(&context, &job);
    let child = start(&context, &job);
    let mut child = match child {
        Ok(child) => child,
        Err(failure) => {
            lease.end("release", Map::new()).await;
            return JobEnd::CannotRun(failure);
        }
    };
    let body = job.bytes().unwrap_or_default();
    let stdin = child.take_stdin();
    let feeder = tokio::spawn(async move {
        if let Some(mut stdin) = stdin {
            // A command need not read its stdin.
            let _ = stdin.write_all(&body).await;
        }
    });
    let tail = Tail::read(child.take_stderr());
    let exit = watch(&context, &lease, &mut child).await;
    feeder.abort();
    let tail = tail.finish().await;
    match exit {
        Exit::Done => match lease.end("ack", Map::new()).await {
            true => JobEnd::Done,
            false => JobEnd::Other,
        },
        Exit::Failed(exit) => {
            output::say(&format!("job {}: {exit}, attempt {}", job.id, job.attempt));
            let mut fields = Map::new();
            fields.insert("error".into(), json!(error_text(&exit, &tail)));
            match lease.end("nack", fields).await {
                true => JobEnd::Failed,
                false => JobEnd::Other,
            }
        }
        Exit::Lost(why) => {
            output::say(&format!("job {}: {why}; its command was ended", job.id));
            JobEnd::Other
        }
        Exit::Stopped => {
            lease.end("release", Map::new()).await;
            JobEnd::Other
        }
    }
}

/// Gives back a job whose command was not started.
pub(super) async fn give_back(context: &Context, job: &Job) {
    Lease::new(context, job).end("release", Map::new()).await;
}

/// Waits for the command; ends it if the lease is lost or a second signal arrives.
async fn watch(context: &Context, lease: &Lease<'_>, child: &mut Child) -> Exit {
    let exit = tokio::select! {
        biased;
        status = child.wait() => return match status {
            Ok(status) if status.success() => Exit::Done,
            Ok(status) => Exit::Failed(describe(status)),
            Err(error) => Exit::Failed(error.to_string()),
        },
        () = context.stop.urgent() => Exit::Stopped,
        why = lease.renew() => Exit::Lost(why),
    };
    child.end().await;
    exit
}

fn start(context: &Context, job: &Job) -> Result<Child, Failure> {
    let mut environment = vec![
        ("DORMOUSE_URL".to_owned(), context.url.clone()),
        ("DORMOUSE_ID".to_owned(), job.id.clone()),
        ("DORMOUSE_TOPIC".to_owned(), job.topic.clone()),
        ("DORMOUSE_LEASE_TOKEN".to_owned(), job.token.clone()),
        ("DORMOUSE_KEY".to_owned(), job.key.clone().unwrap_or_default()),
        ("DORMOUSE_ATTEMPT".to_owned(), job.attempt.to_string()),
        ("DORMOUSE_DUE_AT".to_owned(), job.due_at.clone()),
    ];
    environment.extend(context.token.iter().cloned());
    for (name, value) in &job.headers {
        environment.push((variable(name), value.clone()));
    }
    let command = context.command.as_slice();
    Start { command, environment, is_piped: true, has_group: true }.spawn()
}

/// The variable for a header: `trace-id` is `DORMOUSE_HEADER_TRACE_ID`.
fn variable(header: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("DORMOUSE_HEADER_{}", header.chars().map(letter).collect::<String>())
}

/// The lease of a job.
struct Lease<'a> {
    context: &'a Context,
    id: &'a str,
    token: &'a str,
    ttr: Duration,
    /// When it ends if it is not renewed again.
    expires_at: Mutex<Instant>,
}

impl Lease<'_> {
    fn new<'a>(context: &'a Context, job: &'a Job) -> Lease<'a> {
        let ttr = context.ttr.map_or(Duration::from_millis(job.ttr_ms), Span::duration);
        let expires_at = Mutex::new(Instant::now() + ttr);
        Lease { context, id: &job.id, token: &job.token, ttr, expires_at }
    }

    fn expires_at(&self) -> MutexGuard<'_, Instant> {
        self.expires_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renews it at a third of its length. Returns only when it is lost, with the reason.
    ///
    /// The command continues while the server does not answer: as far as we know no other consumer
    /// has the job, and leases survive a restart.
    async fn renew(&self) -> String {
        let request = self.request("extend", {
            let ttr = Span::from_ms(self.ttr.as_millis() as u64);
            Map::from_iter([("ttr".to_owned(), ttr.into())])
        });
        let mut pause = Pause::default();
        loop {
            sleep((self.ttr / 3).max(RENEW_MIN)).await;
            loop {
                let sent_at = Instant::now();
                match self.context.client.call(request.clone()).await {
                    Ok(_) => {
                        self.context.server.is_up();
                        *self.expires_at() = sent_at + self.ttr;
                        pause.reset();
                        break;
                    }
                    Err(failure) if failure.is_retryable() => {
                        self.context.server.is_down(&failure);
                        pause.sleep(std::future::pending()).await;
                    }
                    Err(failure) if is_lost(&failure) => return failure.text().to_owned(),
                    Err(failure) => {
                        output::say(&format!("job {}: not renewed: {}", self.id, failure.text()));
                        break;
                    }
                }
            }
        }
    }

    /// Ends it, retrying while the server cannot be reached, so that done work is not repeated.
    /// Returns whether the server accepted it.
    async fn end(&self, verb: &str, fields: Map<String, Value>) -> bool {
        let request = self.request(verb, fields);
        let mut pause = Pause::default();
        loop {
            let failure = match self.context.client.call(request.clone()).await {
                Ok(_) => {
                    self.context.server.is_up();
                    return true;
                }
                Err(failure) => failure,
            };
            if !failure.is_retryable() || self.is_over() {
                output::say(&format!("job {}: {verb}: {}", self.id, failure.text()));
                return false;
            }
            self.context.server.is_down(&failure);
            pause.sleep(self.context.stop.urgent()).await;
        }
    }

    /// Whether to give up sending its end: after a stop signal, when it has expired long ago.
    fn is_over(&self) -> bool {
        let stop = &self.context.stop;
        stop.is_urgent() || stop.is_asked() && Instant::now() > *self.expires_at() + LATE_MAX
    }

    fn request(&self, verb: &str, mut fields: Map<String, Value>) -> Request {
        fields.insert("token".into(), json!(self.token));
        Request::post(format!("/v1/{verb}")).json(&fields)
    }
}

fn is_lost(failure: &Failure) -> bool {
    matches!(failure.code(), Some("lease_lost" | "not_found"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_become_variables() {
        assert_eq!(variable("trace-id"), "DORMOUSE_HEADER_TRACE_ID");
        assert_eq!(variable("x.ä=1"), "DORMOUSE_HEADER_X___1");
    }
}
