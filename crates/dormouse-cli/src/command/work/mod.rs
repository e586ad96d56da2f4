//! `dormouse work`: run a command for each due job.

pub(super) mod guard;
mod report;
mod retry;
mod stderr;
mod supervise;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::Global;
use crate::client::Client;
use crate::command::reserve::{self, Jobs};
use crate::exit::Failure;
use crate::job::Job;
use crate::log_line::LogFormat;
use crate::output;
use crate::signals::{Signals, Stop};
use crate::units::Span;
use guard::Guard;
use report::Verdict;
use retry::{Pause, ServerState};
use supervise::JobEnd;

/// How long one request waits for jobs.
const WAIT: Duration = Duration::from_secs(20);

/// Run a command for each due job
///
/// The job's body is the command's stdin; its stdout and stderr are passed on. Exit code 0 acks the
/// job, 65 kills it (never again), 75 gives it back (later, no attempt spent), any other nacks it,
/// with the end of stderr as the error. The lease is renewed while the
/// command runs. If it is lost all the same (the job was cancelled, or taken by another worker),
/// the command is ended with SIGTERM, after 5 s with SIGKILL, and the job is left alone.
///
/// After SIGTERM or SIGINT no more jobs are taken and running commands finish; a second signal ends
/// them and gives their jobs back. The exit code is 0 in both cases. A server that cannot be
/// reached is retried until it answers. Commands die with the worker, even if that is killed.
#[derive(clap::Args)]
#[command(after_help = "\
The command finds in its environment:
  DORMOUSE_TOPIC DORMOUSE_ID DORMOUSE_KEY DORMOUSE_ATTEMPT DORMOUSE_DUE_AT
  DORMOUSE_LEASE_TOKEN    the lease's token
  DORMOUSE_SCHEDULE DORMOUSE_TICK  of a job that a schedule has put
  DORMOUSE_HEADER_<NAME>  each header, in capitals, with _ for other than letters and digits
  DORMOUSE_URL            the server, for further dormouse commands
  DORMOUSE_TOKEN, DORMOUSE_TOKEN_FILE  the server's token, only with --pass-token

Examples:
  dormouse work orders -- ./cancel-order.sh
  dormouse work mail sms --concurrency 8 --timeout 1m -- php send.php
  dormouse work orders --drain -- sh -c 'curl -fsS --data-binary @- http://shop/timeout'")]
pub(crate) struct Args {
    /// The topics to take jobs from
    #[arg(value_name = "TOPIC", required = true)]
    topics: Vec<String>,
    /// Run at most this many commands at once
    #[arg(short, long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    concurrency: u32,
    /// How long a lease lasts between two renewals; each job's own ttr if not given
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    ttr: Option<Span>,
    /// End a command that runs for longer than this, and nack its job
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    timeout: Option<Span>,
    /// How messages are written to stderr: json is one object per line, one of them for each job;
    /// the command's stderr is not passed on then
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// End after this many jobs
    #[arg(long, value_name = "N")]
    max_jobs: Option<u64>,
    /// End when no job is ready
    #[arg(long)]
    drain: bool,
    /// Let the command have the server's token, for further dormouse commands
    #[arg(long)]
    pass_token: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Shared by all jobs of this process.
struct Context {
    client: Client,
    server: ServerState,
    stop: Stop,
    url: String,
    /// The server's token, if the command may have it.
    token: Vec<(String, String)>,
    ttr: Option<Span>,
    timeout: Option<Duration>,
    log_format: LogFormat,
    guard: Guard,
    command: Vec<String>,
}

#[derive(Default)]
struct Totals {
    taken: u64,
    done: u64,
    failed: u64,
    other: u64,
    /// Set if no further job may be taken.
    fatal: Option<Failure>,
}

impl Totals {
    fn count(&mut self, end: JobEnd) {
        match end {
            JobEnd::Ended(Verdict::Done) => self.done += 1,
            JobEnd::Ended(Verdict::Retry | Verdict::Dead | Verdict::Killed) => self.failed += 1,
            JobEnd::Ended(Verdict::Released | Verdict::Lost) => self.other += 1,
            JobEnd::CannotRun(failure) => self.fatal = Some(failure),
        }
    }
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        if self.timeout.is_some_and(|timeout| timeout.duration().is_zero()) {
            return Err(Failure::usage(
                "--timeout 0 would end every command at once; give a longer time, or leave it out",
            ));
        }
        if self.log_format == LogFormat::Json {
            output::say_in_json();
        }
        let context = Arc::new(Context {
            client: global.client()?,
            server: ServerState::default(),
            stop: Signals::listen()?.count(),
            url: global.url.clone(),
            token: if self.pass_token { global.token_variables() } else { Vec::new() },
            ttr: self.ttr,
            timeout: self.timeout.map(Span::duration),
            log_format: self.log_format,
            guard: Guard::start()?,
            command: self.command.clone(),
        });
        let mut commands = JoinSet::new();
        let mut totals = Totals::default();
        self.take(&context, &mut commands, &mut totals).await;
        if context.stop.is_asked() && !commands.is_empty() {
            let text =
                format!("waiting for {} commands to finish; once more ends them", commands.len());
            output::say(&text);
        }
        while let Some(end) = commands.join_next().await {
            totals.count(end.unwrap_or(JobEnd::Ended(Verdict::Lost)));
        }
        let Totals { done, failed, other, .. } = totals;
        output::say(&format!("{done} done, {failed} failed, {other} given back or lost"));
        totals.fatal.map_or(Ok(()), Err)
    }

    /// Takes jobs until there is a reason to end.
    async fn take(
        &self,
        context: &Arc<Context>,
        commands: &mut JoinSet<JobEnd>,
        totals: &mut Totals,
    ) {
        let mut pause = Pause::default();
        loop {
            while let Some(end) = commands.try_join_next() {
                totals.count(end.unwrap_or(JobEnd::Ended(Verdict::Lost)));
            }
            let left = self.max_jobs.map_or(u64::MAX, |max| max.saturating_sub(totals.taken));
            if context.stop.is_asked() || totals.fatal.is_some() || left == 0 {
                return;
            }
            let free = u64::from(self.concurrency).saturating_sub(commands.len() as u64).min(left);
            if free == 0 {
                self.wait_for_one(context, commands, totals).await;
                continue;
            }
            match self.reserve(context, free as u32).await {
                Ok(None) => return,
                Ok(Some(jobs)) if jobs.is_empty() && self.drain => {
                    // A running command may put another job.
                    if commands.is_empty() {
                        return;
                    }
                    self.wait_for_one(context, commands, totals).await;
                }
                Ok(Some(jobs)) => {
                    pause.reset();
                    totals.taken += jobs.len() as u64;
                    for job in jobs {
                        commands.spawn(supervise::supervise(context.clone(), job));
                    }
                }
                Err(failure) if failure.is_retryable() => {
                    context.server.is_down(&failure);
                    pause.sleep(context.stop.asked()).await;
                }
                Err(failure) => totals.fatal = Some(failure),
            }
        }
    }

    async fn wait_for_one(
        &self,
        context: &Context,
        commands: &mut JoinSet<JobEnd>,
        totals: &mut Totals,
    ) {
        tokio::select! {
            end = commands.join_next() => {
                totals.count(end.and_then(Result::ok).unwrap_or(JobEnd::Ended(Verdict::Lost)));
            }
            () = context.stop.asked() => {}
        }
    }

    /// `None` after a signal, if no job was leased.
    async fn reserve(&self, context: &Context, max: u32) -> Result<Option<Vec<Job>>, Failure> {
        let wait = if self.drain { Duration::ZERO } else { WAIT };
        let request = reserve::request(&self.topics, max, wait, self.ttr);
        let Some(reply) = context.client.call_unless(request, context.stop.asked()).await? else {
            return Ok(None);
        };
        context.server.is_up();
        let jobs = reply.parse::<Jobs>()?.jobs;
        if context.stop.is_asked() {
            for job in &jobs {
                supervise::give_back(context, job).await;
            }
            return Ok(None);
        }
        Ok(Some(jobs))
    }
}
