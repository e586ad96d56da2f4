//! `dormouse-bench stalls`: how long callers of one topic wait while the engine is busy with
//! another. Each event has a file of its own.

mod cancelled;
mod deadlines;
mod done;
mod forecast;
mod kick;
mod lanes;
mod leases;
mod list;
mod others;
mod priorities;
mod purge;
mod reserve;
mod session;
mod stage;
mod topics;

use std::path::PathBuf;
use std::process::Command;

use dormouse_core::limits::{BATCH_MAX, FORECAST_STEPS_MAX, LEASED_JOBS_MAX};

use crate::Result;
use stage::Stage;

/// The flags of `stalls`. Each event that has a number takes place, in this order.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct StallsPlan {
    /// Put N jobs with a delay and cancel all; then they are due, and a consumer waits for the job
    /// behind them [default: 3000000 if no event is given]
    #[arg(long, value_name = "N")]
    cancelled: Option<u64>,
    /// Lease N jobs at once; then the store writes checkpoints
    #[arg(long, value_name = "N")]
    leases: Option<u64>,
    /// With --leases: all of them also expire in one instant
    #[arg(long, requires = "leases")]
    expire: bool,
    /// With --expire: lease and expire them so many times
    #[arg(long, requires = "expire", default_value_t = 1)]
    rounds: u64,
    /// Kick N delayed jobs of a topic, in calls of 4096
    #[arg(long, value_name = "N")]
    kick: Option<u64>,
    /// Purge a topic of N jobs
    #[arg(long, value_name = "N")]
    purge: Option<u64>,
    /// Ask for forecasts of so many steps
    #[arg(long, value_name = "STEPS")]
    forecast: Option<u64>,
    /// With --forecast: clients that ask at the same time
    #[arg(long, default_value_t = 10)]
    clients: usize,
    /// With --forecast: delayed jobs of the topic
    #[arg(long, default_value_t = 1_000_000)]
    jobs: u64,
    /// Let N topics live; then the store writes checkpoints
    #[arg(long, value_name = "N")]
    topics: Option<u64>,
    /// List and peek delayed jobs behind N cancelled ones
    #[arg(long, value_name = "N")]
    list: Option<u64>,
    /// Ask a topic with N priorities everything; then its jobs are due and are taken
    #[arg(long, value_name = "N")]
    priorities: Option<u64>,
    /// Let N lanes of many topics and priorities come due in one instant, and take their jobs
    #[arg(long, value_name = "N")]
    lanes: Option<u64>,
    /// Reserve over N topics, a thousand at a time
    #[arg(long, value_name = "N")]
    reserve: Option<u64>,
    /// End a session with N leases
    #[arg(long, value_name = "N")]
    session: Option<u64>,
    /// Keep N done jobs and look some up by key; then a part of them goes in one instant
    #[arg(long, value_name = "N")]
    done: Option<u64>,
    /// With --done: so many go in one instant
    #[arg(long, default_value_t = 1_000_000)]
    at_once: u64,
    /// Let N jobs die in one instant because nobody took them
    #[arg(long, value_name = "N")]
    deadlines: Option<u64>,
    /// The same, and each goes on as a letter in a dead topic
    #[arg(long, value_name = "N")]
    letters: Option<u64>,
    /// Wait until flushes and merges have ended before each event
    #[arg(long)]
    settle: bool,
    /// Answer before the disk has the data: only the engine is measured, not the disk
    #[arg(long)]
    relaxed: bool,
    /// Jobs per request of the preparation
    #[arg(long, default_value_t = 1_024)]
    batch: usize,
    /// Bytes of a body
    #[arg(long, default_value_t = 100)]
    body: usize,
    /// Where to make a directory for each event [default: the temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// The work that keeps the engine busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Cancelled,
    Leases,
    Kick,
    Purge,
    Forecast,
    Topics,
    List,
    Priorities,
    Lanes,
    Reserve,
    Session,
    Done,
    Deadlines,
    Letters,
}

const CANCELLED_DEFAULT: u64 = 3_000_000;

pub(crate) fn run(plan: &StallsPlan) -> Result<()> {
    plan.check()?;
    match plan.events().as_slice() {
        [] => take_place(plan, Event::Cancelled, CANCELLED_DEFAULT),
        [(event, count)] => take_place(plan, *event, *count),
        several => several.iter().try_for_each(|(event, count)| apart(plan, *event, *count)),
    }
}

fn take_place(plan: &StallsPlan, event: Event, count: u64) -> Result<()> {
    let stage = Stage::open(plan)?;
    match event {
        Event::Cancelled => cancelled::run(&stage, count)?,
        Event::Leases => leases::run(&stage, count, plan.expire.then_some(plan.rounds))?,
        Event::Kick => kick::run(&stage, count)?,
        Event::Purge => purge::run(&stage, count)?,
        Event::Forecast => forecast::run(&stage, count, plan.clients, plan.jobs)?,
        Event::Topics => topics::run(&stage, count)?,
        Event::List => list::run(&stage, count)?,
        Event::Priorities => priorities::run(&stage, count)?,
        Event::Lanes => lanes::run(&stage, count)?,
        Event::Reserve => reserve::run(&stage, count)?,
        Event::Session => session::run(&stage, count)?,
        Event::Done => done::run(&stage, count, plan.at_once)?,
        Event::Deadlines => deadlines::run(&stage, count, false)?,
        Event::Letters => deadlines::run(&stage, count, true)?,
    }
    stage.close()?;
    // Their traces are in the checkpoint, which a start reads whole, or are many.
    if matches!(event, Event::Leases | Event::Topics | Event::Done) {
        stage.reopen()
    } else {
        Ok(())
    }
}

/// One of several events has a process of its own, so that its peak memory is its own.
fn apart(plan: &StallsPlan, event: Event, count: u64) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["stalls", event.flag(), &count.to_string()]);
    command.args(["--batch", &plan.batch.to_string(), "--body", &plan.body.to_string()]);
    let switches = [("--settle", plan.settle), ("--relaxed", plan.relaxed)];
    command.args(switches.iter().filter(|(_, is_on)| *is_on).map(|(flag, _)| flag));
    command.args(plan.dir.iter().flat_map(|dir| ["--dir".into(), dir.clone()]));
    if event == Event::Leases && plan.expire {
        command.args(["--expire", "--rounds", &plan.rounds.to_string()]);
    }
    if event == Event::Done {
        command.args(["--at-once", &plan.at_once.to_string()]);
    }
    if event == Event::Forecast {
        let (clients, jobs) = (plan.clients.to_string(), plan.jobs.to_string());
        command.args(["--clients", &clients, "--jobs", &jobs]);
    }
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{event:?} failed ({status})").into()) }
}

impl Event {
    fn flag(self) -> &'static str {
        match self {
            Event::Cancelled => "--cancelled",
            Event::Leases => "--leases",
            Event::Kick => "--kick",
            Event::Purge => "--purge",
            Event::Forecast => "--forecast",
            Event::Topics => "--topics",
            Event::List => "--list",
            Event::Priorities => "--priorities",
            Event::Lanes => "--lanes",
            Event::Reserve => "--reserve",
            Event::Session => "--session",
            Event::Done => "--done",
            Event::Deadlines => "--deadlines",
            Event::Letters => "--letters",
        }
    }
}

impl StallsPlan {
    fn events(&self) -> Vec<(Event, u64)> {
        let all = [
            (Event::Cancelled, self.cancelled),
            (Event::Leases, self.leases),
            (Event::Kick, self.kick),
            (Event::Purge, self.purge),
            (Event::Forecast, self.forecast),
            (Event::Topics, self.topics),
            (Event::List, self.list),
            (Event::Priorities, self.priorities),
            (Event::Lanes, self.lanes),
            (Event::Reserve, self.reserve),
            (Event::Session, self.session),
            (Event::Done, self.done),
            (Event::Deadlines, self.deadlines),
            (Event::Letters, self.letters),
        ];
        all.into_iter().filter_map(|(event, count)| Some((event, count?))).collect()
    }

    fn check(&self) -> Result<()> {
        if let Some((event, _)) = self.events().iter().find(|(_, count)| *count == 0) {
            return Err(format!("{} is 0; give at least 1", event.flag()).into());
        }
        let at_most = |flag, value: u64, most: usize| match value {
            value if (1..=most as u64).contains(&value) => Ok(()),
            _ => Err(format!("{flag} is {value}; give 1 to {most}")),
        };
        at_most("--batch", self.batch as u64, BATCH_MAX)?;
        // The other topic leases a job at a time too.
        at_most("--leases", self.leases.unwrap_or(1), LEASED_JOBS_MAX - 1)?;
        at_most("--session", self.session.unwrap_or(1), LEASED_JOBS_MAX - 1)?;
        at_most("--forecast", self.forecast.unwrap_or(1), FORECAST_STEPS_MAX)?;
        at_most("--clients", self.clients as u64, 1_000)?;
        Ok(())
    }
}
