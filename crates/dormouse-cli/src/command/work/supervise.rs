//! One job: runs its command, renews its lease, ends the lease by the exit code.

use std::io;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, sleep};
use tracing::Level;

use super::Context;
use super::report::{EndAnswer, Verdict, report};
use super::retry::Pause;
use super::stderr::{Tail, error_text};
use crate::child_process::{Child, Start, describe};
use crate::client::Request;
use crate::exit::Failure;
use crate::job::Job;
use crate::log_line::LogFormat;
use crate::output;
use crate::units::Span;

/// After a stop signal, how long past the lease's expiry its end is still sent: the token is valid
/// until another consumer takes the job.
const LATE_MAX: Duration = Duration::from_secs(10);
/// The shortest time between two renewals.
const RENEW_MIN: Duration = Duration::from_millis(10);

/// How long a job that its command gave back waits, lest it is taken again at once and for ever.
const RELEASE_DELAY: Duration = Duration::from_secs(1);

/// Exit codes with a meaning of their own, those of sysexits.h for wrong data and for "try again".
const EXIT_KILL: i32 = 65;
const EXIT_RELEASE: i32 = 75;

/// How a job ended.
pub(super) enum JobEnd {
    Ended(Verdict),
    /// The command cannot be run at all, so no further job is taken.
    CannotRun(Failure),
}

/// How its command ended.
enum Exit {
    Done,
    Failed(String),
    /// The job must never be tried again.
    Kill(String),
    /// The command gave the job back.
    Release(String),
    /// The lease is lost, and this is why.
    Lost(String),
    /// A second signal arrived.
    Stopped,
}

impl Exit {
    fn of(status: io::Result<ExitStatus>) -> Exit {
        match status {
            Ok(status) if status.success() => Exit::Done,
            Ok(status) if status.code() == Some(EXIT_KILL) => Exit::Kill(describe(status)),
            Ok(status) if status.code() == Some(EXIT_RELEASE) => Exit::Release(describe(status)),
            Ok(status) => Exit::Failed(describe(status)),
            Err(error) => Exit::Failed(error.to_string()),
        }
    }

    /// Why it is not done.
    fn error(&self) -> Option<&str> {
        match self {
            Exit::Failed(why) | Exit::Kill(why) | Exit::Release(why) | Exit::Lost(why) => Some(why),
            Exit::Done | Exit::Stopped => None,
        }
    }
}

/// Runs the command for a job and ends its lease.
pub(super) async fn supervise(context: Arc<Context>, job: Job) -> JobEnd {
    let (lease, started_at) = (Lease::new(&context, &job), Instant::now());
    let child = start(&context, &job);
    let mut child = match child {
        Ok(child) => child,
        Err(failure) => {
            lease.end("release", Map::new()).await;
            return JobEnd::CannotRun(failure);
        }
    };
    context.guard.add(child.group()).await;
    let body = job.bytes().unwrap_or_default();
    let stdin = child.take_stdin();
    let feeder = tokio::spawn(async move {
        if let Some(mut stdin) = stdin {
            // A command need not read its stdin.
            let _ = stdin.write_all(&body).await;
        }
    });
    let tail = Tail::read(child.take_stderr(), context.log_format == LogFormat::Text);
    let exit = watch(&context, &lease, &mut child).await;
    context.guard.remove(child.group()).await;
    feeder.abort();
    let tail = tail.finish().await;
    let (outcome, ended) = settle(&lease, &job, &exit, &tail).await;
    if context.log_format == LogFormat::Json {
        let duration = started_at.elapsed();
        let mut due_at = ended.and_then(|ended| ended.due_at);
        if outcome == Verdict::Released {
            due_at = lease.due_at().await;
        }
        report(&job, outcome, exit.error(), &tail, duration, due_at);
    }
    JobEnd::Ended(outcome)
}

/// Ends the lease as the command's exit says.
async fn settle(
    lease: &Lease<'_>,
    job: &Job,
    exit: &Exit,
    tail: &str,
) -> (Verdict, Option<EndAnswer>) {
    if let Some(why) = exit.error().filter(|_| lease.context.log_format == LogFormat::Text) {
        output::say(&format!("job {}: {why}, attempt {}", job.id, job.attempt));
    }
    let with_error = |why: &str| Map::from_iter([("error".into(), json!(error_text(why, tail)))]);
    let (verb, fields, outcome) = match exit {
        Exit::Done => ("ack", Map::new(), Verdict::Done),
        Exit::Failed(why) => ("nack", with_error(why), Verdict::Retry),
        Exit::Kill(why) => ("kill", with_error(why), Verdict::Killed),
        Exit::Release(_) => {
            let delay = Span::from_ms(RELEASE_DELAY.as_millis() as u64);
            ("release", Map::from_iter([("delay".into(), delay.into())]), Verdict::Released)
        }
        Exit::Stopped => ("release", Map::new(), Verdict::Released),
        Exit::Lost(_) => return (Verdict::Lost, None),
    };
    let ended = lease.end(verb, fields).await;
    let outcome = match &ended {
        None => Verdict::Lost,
        Some(ended) if ended.code == "dead" => Verdict::Dead,
        Some(_) => outcome,
    };
    (outcome, ended)
}

/// Gives back a job whose command was not started.
pub(super) async fn give_back(context: &Context, job: &Job) {
    Lease::new(context, job).end("release", Map::new()).await;
}

/// Waits for the command; ends it if it takes too long, the lease is lost, or a second signal
/// arrives.
async fn watch(context: &Context, lease: &Lease<'_>, child: &mut Child) -> Exit {
    let timed_out = async {
        match context.timeout {
            Some(timeout) => sleep(timeout).await,
            None => std::future::pending().await,
        }
        Exit::Failed(format!("timed out after {:?}", context.timeout.unwrap_or_default()))
    };
    let exit = tokio::select! {
        biased;
        status = child.wait() => return Exit::of(status),
        () = context.stop.urgent() => Exit::Stopped,
        why = lease.renew() => Exit::Lost(format!("{why}; its command was ended")),
        exit = timed_out => exit,
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
    let tick = [("DORMOUSE_SCHEDULE", &job.schedule), ("DORMOUSE_TICK", &job.tick)];
    let given = tick.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    environment.extend(given.map(|(name, value)| (name.to_owned(), value.clone())));
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
                        let text = format!("job {}: not renewed: {}", self.id, failure.text());
                        output::say_at(Level::WARN, &text);
                        break;
                    }
                }
            }
        }
    }

    /// Ends it, retrying while the server cannot be reached, so that done work is not repeated.
    /// Returns what the server answered, `None` if it did not accept it.
    async fn end(&self, verb: &str, fields: Map<String, Value>) -> Option<EndAnswer> {
        let request = self.request(verb, fields);
        let mut pause = Pause::default();
        loop {
            let failure = match self.context.client.call(request.clone()).await {
                Ok(reply) => {
                    self.context.server.is_up();
                    return Some(reply.parse().unwrap_or_default());
                }
                Err(failure) => failure,
            };
            if !failure.is_retryable() || self.is_over() {
                let text = format!("job {}: {verb}: {}", self.id, failure.text());
                output::say_at(Level::WARN, &text);
                return None;
            }
            self.context.server.is_down(&failure);
            pause.sleep(self.context.stop.urgent()).await;
        }
    }

    /// When the job that was given back is due again, if the server tells.
    async fn due_at(&self) -> Option<String> {
        let reply = self.context.client.call(Request::get(format!("/v1/jobs/{}", self.id))).await;
        let job = reply.ok()?.parse::<Job>().ok()?;
        (job.state == "delayed" || job.state == "ready").then_some(job.due_at)
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
