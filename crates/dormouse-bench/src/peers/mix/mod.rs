//! `dormouse-bench mix`: a shop's day. Orders are put with a delay, most of them are paid and so
//! cancelled, the rest comes due to consumers that wait. Over RESP, against a server of its own.

mod account;
mod consumer;
mod figures;
mod producer;
mod samples;
mod scrape;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use super::caller::Caller;
use super::contender::Contender;
use super::server::{Extras, Programs, Server};
use crate::{Result, progress, run};
use account::Account;
use figures::Figures;
use producer::Producer;
use scrape::Totals;

/// The flags of `mix`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MixPlan {
    /// Puts per second
    #[arg(long, default_value_t = 15_000)]
    rate: u64,
    /// Seconds until a job is due; nine of ten are cancelled after a quarter of it
    #[arg(long, default_value_t = 60.0)]
    delay: f64,
    /// Minutes of puts; the last jobs are due a delay later
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// Connections that put and cancel
    #[arg(long, default_value_t = 4)]
    producers: u64,
    /// Connections that reserve and ack
    #[arg(long, default_value_t = 4)]
    consumers: u64,
    /// Directory for everything the server writes [default: the temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// This project's server [default: `dormouse` next to this program]
    #[arg(long)]
    dormouse: Option<PathBuf>,
}

const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// Samples between two progress lines.
const LINE_EVERY: u64 = 10;
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// A job that is so much overdue does not come any more.
const OVERDUE_MAX: Duration = Duration::from_secs(30);

impl MixPlan {
    fn check(&self) -> Result<()> {
        if self.rate == 0 || self.producers == 0 || self.consumers == 0 {
            return Err("give at least one put per second, one producer and one consumer".into());
        }
        if !(0.1..=86_400.0).contains(&self.delay) || !(0.01..=1_440.0).contains(&self.minutes) {
            return Err("give a --delay of 0.1 to 86400 s and --minutes of 0.01 to 1440".into());
        }
        Ok(())
    }

    fn delay(&self) -> Duration {
        Duration::from_secs_f64(self.delay)
    }

    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.minutes * 60.0)
    }

    /// Puts of each connection.
    fn jobs(&self) -> u64 {
        ((self.rate as f64 * self.time().as_secs_f64()) as u64 / self.producers).max(1)
    }
}

pub(crate) fn run(plan: &MixPlan) -> Result<()> {
    plan.check()?;
    let parent = run::parent_on_disk(plan.dir.as_deref())?;
    let dir = tempfile::Builder::new().prefix("dormouse-mix-").tempdir_in(parent)?;
    let programs = Programs::only_dormouse(plan.dormouse.as_deref());
    let (data, log) = (dir.path().join("data"), dir.path().join("log"));
    let extras = Extras { http: true, ..Extras::default() };
    let server = Server::start(&programs, Contender::RespSynced, &data, &log, &extras)?;
    measure(plan, &server, &data).map_err(|error| {
        format!("{error}; the server's last words: {}", server.process.last_words()).into()
    })
}

fn measure(plan: &MixPlan, server: &Server, data: &Path) -> Result<()> {
    let account = Account::default();
    let mut figures = Figures::new(plan, server, data)?;
    let ended = thread::scope(|scope| {
        let connect = || Caller::connect(server.address, &server.codec, SILENCE_MAX);
        let mut callers = Vec::new();
        for _ in 0..plan.producers + plan.consumers {
            callers.push(connect()?);
        }
        let consumers = callers.split_off(usize::try_from(plan.producers)?);
        let began = figures.began;
        let produce = |(first, caller)| {
            let producer = Producer {
                account: &account,
                caller,
                delay: plan.delay(),
                rate: plan.rate as f64 / plan.producers as f64,
                jobs: plan.jobs(),
                first,
                step: plan.producers,
                began,
            };
            scope.spawn(|| ending(&account, producer.run()))
        };
        let producing: Vec<_> = (0..).zip(callers).map(produce).collect();
        let consume = |caller| {
            let account = &account;
            scope.spawn(|| ending(account, consumer::consume(account, caller, plan.delay())))
        };
        let consuming: Vec<_> = consumers.into_iter().map(consume).collect();
        let watched = ending(&account, watch(plan, &account, &producing, &mut figures));
        let ended = producing.into_iter().chain(consuming).map(join);
        // Threads that others ended do not fail: what failed is the cause.
        ended.chain([watched]).collect::<Vec<_>>().into_iter().collect::<Result<()>>()
    });
    ended?;
    figures.progress(&account)?;
    let totals = Totals::ask(&mut Caller::connect(server.address, &server.codec, SILENCE_MAX)?)?;
    progress::clear();
    figures.print(&account, totals)?;
    check(&account, totals)
}

/// A failure of one thread ends the others.
fn ending(account: &Account, done: Result<()>) -> Result<()> {
    if done.is_err() {
        account.is_over.store(true, Relaxed);
    }
    done
}

fn join(thread: ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    thread.join().unwrap_or_else(|_| Err("a connection's thread panicked".into()))
}

/// Looks at the server until all jobs have come, or the last ones are long overdue.
fn watch(
    plan: &MixPlan,
    account: &Account,
    producing: &[ScopedJoinHandle<'_, Result<()>>],
    figures: &mut Figures<'_>,
) -> Result<()> {
    let mut put_at = None;
    for tick in 1.. {
        figures.sleep_and_sample(SAMPLE_EVERY * tick)?;
        if u64::from(tick) % LINE_EVERY == 0 {
            figures.progress(account)?;
        }
        if put_at.is_none() && producing.iter().all(|thread| thread.is_finished()) {
            account.is_put.store(true, Relaxed);
            put_at = Some(Instant::now());
        }
        if account.is_done() {
            break;
        }
        if put_at.is_some_and(|put_at| put_at.elapsed() > plan.delay() + OVERDUE_MAX) {
            account.is_over.store(true, Relaxed);
        }
    }
    Ok(())
}

/// Every job must be accounted for, by this program and by the server.
fn check(account: &Account, totals: Totals) -> Result<()> {
    let [puts, cancels, acks, early] =
        [&account.puts, &account.cancels, &account.acks, &account.early].map(|n| n.load(Relaxed));
    let mut wrong = Vec::new();
    if puts != cancels + acks + totals.left {
        let left = totals.left;
        let missing = puts as i64 - (cancels + acks + left) as i64;
        wrong.push(format!(
            "{puts} puts are not {cancels} cancelled + {acks} acked + {left} left: {missing} are \
             missing"
        ));
    }
    if (totals.puts, totals.cancels, totals.acks) != (puts, cancels, acks) {
        wrong.push(format!("{puts} puts, {cancels} cancels, {acks} acks here, but {totals:?}"));
    }
    if account.expected() > 0 {
        wrong.push(format!("{} jobs did not come {OVERDUE_MAX:?} late", account.expected()));
    }
    if early > 0 {
        wrong.push(format!("{early} jobs came early"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ").into()) }
}
