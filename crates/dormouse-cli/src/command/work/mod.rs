//! `dormouse work`: run a command for each job that comes due.

mod attend;
mod link;
mod stderr;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::Global;
use crate::client::Client;
use crate::command::reserve::{self, Jobs};
use crate::exit::Failure;
use crate::job::Job;
use crate::output;
use crate::signals::{Signals, Stop};
use crate::span::Span;
use attend::Ended;
use link::{Link, Pause};

/// How long one request waits for jobs.
const WAIT: Duration = Duration::from_secs(20);

/// Run a command for each job that comes due
///
/// The job's body is the command's stdin; its stdout and stderr are ours. Exit code 0 acks the
/// job, anything else nacks it with the end of stderr as the error. While the command runs the
/// lease is renewed. If it is lost all the same (the job was cancelled, or taken by another), the
/// command is ended with SIGTERM, after 5 s with SIGKILL, and the job is left alone.
///
/// SIGTERM or SIGINT: no more jobs are taken and running commands finish; a second one ends them
/// and gives their jobs back. Both end with exit code 0. A server that is away is tried again
/// until it is back.
#[derive(clap::Args)]
#[command(after_help = "\
The command finds in its environment:
  DORMOUSE_TOPIC DORMOUSE_ID DORMOUSE_KEY DORMOUSE_ATTEMPT DORMOUSE_DUE_AT
  DORMOUSE_LEASE_TOKEN    the lease's token (DORMOUSE_TOKEN is the server's)
  DORMOUSE_HEADER_<NAME>  each header, in capitals, with _ for what is no letter or digit
  DORMOUSE_URL            the server, for further dormouse commands

Examples:
  dormouse work orders -- ./cancel-order.sh
  dormouse work mail sms --concurrency 8 -- php send.php
  dormouse work orders --drain -- sh -c 'curl -fsS --data-binary @- http://shop/timeout'")]
pub(crate) struct Args {
    /// The topics to take jobs from
    #[arg(value_name = "TOPIC", required = true)]
    topics: Vec<String>,
    /// Run so many commands at once
    #[arg(short, long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    concurrency: u32,
    /// How long a lease lasts between two renewals; each job's own ttr if not given
    #[arg(long, value_name = "SPAN")]
    ttr: Option<Span>,
    /// End after so many jobs
    #[arg(long, value_name = "N")]
    max_jobs: Option<u64>,
    /// End when no job is ready
    #[arg(long)]
    drain: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// What all jobs of this process share.
struct Office {
    client: Client,
    link: Link,
    stop: Stop,
    url: String,
    ttr: Option<Span>,
    command: Vec<String>,
}

#[derive(Default)]
struct Tally {
    taken: u64,
    done: u64,
    failed: u64,
    other: u64,
    /// Why no further job may be taken.
    fatal: Option<Failure>,
}

impl Tally {
    fn count(&mut self, ended: Ended) {
        match ended {
            Ended::Done => self.done += 1,
            Ended::Failed => self.failed += 1,
            Ended::Other => self.other += 1,
            Ended::CannotRun(failure) => self.fatal = Some(failure),
        }
    }
}

impl Args {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        let office = Arc::new(Office {
            client: global.client()?,
            link: Link::default(),
            stop: Signals::listen()?.count(),
            url: global.url.clone(),
            ttr: self.ttr,
            command: self.command.clone(),
        });
        let mut crew = JoinSet::new();
        let mut tally = Tally::default();
        self.take(&office, &mut crew, &mut tally).await;
        if office.stop.is_asked() && !crew.is_empty() {
            let text =
                format!("waiting for {} commands to finish; once more ends them", crew.len());
            output::say(&text);
        }
        while let Some(ended) = crew.join_next().await {
            tally.count(ended.unwrap_or(Ended::Other));
        }
        let Tally { done, failed, other, .. } = tally;
        output::say(&format!("{done} done, {failed} failed, {other} given back or lost"));
        tally.fatal.map_or(Ok(()), Err)
    }

    /// Takes jobs until there is a reason to end.
    async fn take(&self, office: &Arc<Office>, crew: &mut JoinSet<Ended>, tally: &mut Tally) {
        let mut pause = Pause::default();
        loop {
            while let Some(ended) = crew.try_join_next() {
                tally.count(ended.unwrap_or(Ended::Other));
            }
            let left = self.max_jobs.map_or(u64::MAX, |max| max.saturating_sub(tally.taken));
            if office.stop.is_asked() || tally.fatal.is_some() || left == 0 {
                return;
            }
            let free = u64::from(self.concurrency).saturating_sub(crew.len() as u64).min(left);
            if free == 0 {
                self.wait_for_one(office, crew, tally).await;
                continue;
            }
            match self.reserve(office, free as u32).await {
                Ok(None) => return,
                Ok(Some(jobs)) if jobs.is_empty() && self.drain => {
                    // A command that still runs may put another job.
                    if crew.is_empty() {
                        return;
                    }
                    self.wait_for_one(office, crew, tally).await;
                }
                Ok(Some(jobs)) => {
                    pause.reset();
                    tally.taken += jobs.len() as u64;
                    for job in jobs {
                        crew.spawn(attend::attend(office.clone(), job));
                    }
                }
                Err(failure) if failure.is_retryable() => {
                    office.link.is_down(&failure);
                    pause.sleep(office.stop.asked()).await;
                }
                Err(failure) => tally.fatal = Some(failure),
            }
        }
    }

    async fn wait_for_one(&self, office: &Office, crew: &mut JoinSet<Ended>, tally: &mut Tally) {
        tokio::select! {
            ended = crew.join_next() => {
                tally.count(ended.and_then(Result::ok).unwrap_or(Ended::Other));
            }
            () = office.stop.asked() => {}
        }
    }

    /// `None` if we were asked to end while waiting, and nothing was given to us.
    async fn reserve(&self, office: &Office, max: u32) -> Result<Option<Vec<Job>>, Failure> {
        let wait = if self.drain { Duration::ZERO } else { WAIT };
        let request = reserve::request(&self.topics, max, wait, self.ttr);
        let Some(reply) = office.client.call_unless(request, office.stop.asked()).await? else {
            return Ok(None);
        };
        office.link.is_up();
        let jobs = reply.parse::<Jobs>()?.jobs;
        if office.stop.is_asked() {
            for job in &jobs {
                attend::give_back(office, job).await;
            }
            return Ok(None);
        }
        Ok(Some(jobs))
    }
}
