//! The subcommands: one file each, named as on the command line.

mod ack;
mod backup;
pub(crate) mod beanstalkd;
mod bench;
mod cancel;
mod completions;
mod config;
mod dead;
mod extend;
mod forecast;
mod get;
mod health;
mod kick;
mod kill;
mod lock;
mod ls;
mod nack;
mod pause;
mod purge;
mod push;
mod put;
mod release;
mod reschedule;
mod reserve;
mod resume;
mod revive;
mod run;
mod schedule;
mod serve;
mod stats;
mod tail;
mod topic;
mod topics;
mod verify;
mod work;

use clap::Subcommand;

use crate::Global;
use crate::exit::Failure;

const CONFIG_HELP: &str = "\
Examples:
  dormouse config example > dormouse.toml
  dormouse config check --config dormouse.toml";

/// One subcommand with its arguments.
#[derive(Subcommand)]
pub(crate) enum Command {
    Serve(serve::Args),
    Beanstalkd(beanstalkd::Args),
    Put(put::Args),
    Reserve(reserve::Args),
    Ack(ack::Args),
    Nack(nack::Args),
    Release(release::Args),
    Extend(extend::Args),
    Kill(kill::Args),
    Cancel(cancel::Args),
    Reschedule(reschedule::Args),
    Run(run::Args),
    Get(get::Args),
    Ls(ls::Args),
    Topics(topics::Args),
    Topic(topic::Args),
    Pause(pause::Args),
    Resume(resume::Args),
    Dead(dead::Args),
    Revive(revive::Args),
    Kick(kick::Args),
    Purge(purge::Args),
    Stats(stats::Args),
    Forecast(forecast::Args),
    Schedule(schedule::Args),
    Push(push::Args),
    Tail(tail::Args),
    Work(work::Args),
    Lock(lock::Args),
    Backup(backup::Args),
    Verify(verify::Args),
    Health(health::Args),
    Bench(bench::Args),
    #[command(after_help = CONFIG_HELP)]
    Config(config::Args),
    Completions(completions::Args),
    #[command(name = work::guard::NAME, hide = true)]
    WorkGuard(work::guard::Args),
}

impl Command {
    pub(crate) async fn run(self, global: &Global) -> Result<(), Failure> {
        match self {
            Self::Serve(args) => args.run().await,
            Self::Beanstalkd(args) => args.run().await,
            Self::Bench(args) => args.run(global).await,
            Self::Put(args) => args.run(global).await,
            Self::Reserve(args) => args.run(global).await,
            Self::Ack(args) => args.run(global).await,
            Self::Nack(args) => args.run(global).await,
            Self::Release(args) => args.run(global).await,
            Self::Extend(args) => args.run(global).await,
            Self::Kill(args) => args.run(global).await,
            Self::Cancel(args) => args.run(global).await,
            Self::Reschedule(args) => args.run(global).await,
            Self::Run(args) => args.run(global).await,
            Self::Get(args) => args.run(global).await,
            Self::Ls(args) => args.run(global).await,
            Self::Topics(args) => args.run(global).await,
            Self::Topic(args) => args.run(global).await,
            Self::Pause(args) => args.run(global).await,
            Self::Resume(args) => args.run(global).await,
            Self::Dead(args) => args.run(global).await,
            Self::Revive(args) => args.run(global).await,
            Self::Kick(args) => args.run(global).await,
            Self::Purge(args) => args.run(global).await,
            Self::Stats(args) => args.run(global).await,
            Self::Forecast(args) => args.run(global).await,
            Self::Schedule(args) => args.run(global).await,
            Self::Push(args) => args.run(global).await,
            Self::Tail(args) => args.run(global).await,
            Self::Work(args) => args.run(global).await,
            Self::Lock(args) => args.run(global).await,
            Self::Backup(args) => args.run(global).await,
            Self::Verify(args) => args.run(global),
            Self::Completions(args) => args.run(),
            Self::WorkGuard(args) => args.run(),
            Self::Health(args) => args.run(global).await,
            Self::Config(args) => args.run(global),
        }
    }

    /// Whether it needs a multi-threaded runtime.
    pub(crate) fn is_threaded(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Beanstalkd(_))
    }

    /// Steps that must precede the start of a second thread.
    pub(crate) fn prepare(&self) -> Result<(), Failure> {
        match self {
            Self::Beanstalkd(args) => args.prepare(),
            _ => Ok(()),
        }
    }
}
