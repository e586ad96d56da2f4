//! `dormouse serve`: the store and its server, from start to stop.

mod backup;
pub(super) mod files;
pub(super) mod log;
mod notify;
mod protocols;
mod push;
mod reload;
mod signals;
mod store;
mod tls;

use std::time::Duration;

use dormouse_core::error::Error;
use dormouse_server::{Drain, Server};

use crate::command::config::{Config, Flags};
use crate::exit::Failure;
use notify::notify;
use reload::Reload;
use signals::{Signal, SignalAction, Signals};
pub(super) use store::Store;

/// How long requests have after the store has stopped: they can only fail.
const FAILED_DRAIN_MAX: Duration = Duration::from_secs(1);

/// How often the age of the certificate is looked at.
const CERTIFICATE_CHECK: Duration = Duration::from_secs(24 * 3_600);

/// Serve a queue until a signal stops it
#[derive(clap::Args)]
#[command(after_help = "\
Prints `http listening on URL` on stdout when it is ready, then a line for each other protocol:
`resp listening on ADDR`, `beanstalk listening on ADDR`. Logs go to stderr.

SIGTERM and SIGINT stop it: requests in progress are finished (see --drain), waiting ones are
answered, the store is closed, and it exits with 0. A second signal ends it at once, without loss of
anything that was answered. SIGHUP reads tokens and TLS files again. SIGUSR1 refuses puts of
beanstalkd clients from then on, as in beanstalkd.

Exit codes: 1 if it cannot start or the store has failed, 2 if the configuration is wrong.

Examples:
  dormouse serve
  dormouse serve --data /var/lib/dormouse --http 127.0.0.1:0
  dormouse serve --beanstalk unix:/run/dormouse.sock --resp off
  dormouse serve --backend redis --redis-url redis://127.0.0.1:6379
  dormouse serve --config /etc/dormouse.toml")]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
}

/// Why the server ends.
enum End {
    /// A signal arrived.
    Asked(Signal),
    /// The store has failed.
    Failed(Error),
}

impl Args {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut signals = Signals::catch()
            .map_err(|error| Failure::new(format!("cannot catch signals: {error}")))?;
        let config = Config::load(&self.flags)?;
        config.verify_exposures()?;
        log::start(config.settings.log, config.settings.log_format);
        log::effective(&config);
        let reload = Reload::new(self.flags, config)?;
        files::make_room(reload.settings().connections_max);
        let store = tokio::select! {
            store = Store::open(reload.settings()) => store?,
            signal = signals.stop() => {
                // Nothing is lost: a store can be killed at any time.
                tracing::info!("{signal} while the store was opened");
                return Ok(());
            }
        };
        let drained = Drain::default();
        let mut server = protocols::start(&store, &reload, &drained).await?;
        push::start(&mut server, reload.settings())?;
        protocols::announce(&server, reload.settings());
        notify("READY=1");
        let drain = reload.settings().drain;
        let end = serve(&store, reload, &drained, &mut signals).await;
        notify("STOPPING=1");
        signals.exit_at_next();
        match end {
            End::Asked(signal) => stop(server, store, signal, drain).await,
            End::Failed(error) => {
                tracing::error!("the store has stopped: {error}");
                server.stop(drain.min(FAILED_DRAIN_MAX)).await;
                Err(Failure::new(format!("the store has stopped: {error}")))
            }
        }
    }
}

/// Serves until a signal arrives or the store fails.
async fn serve(store: &Store, mut reload: Reload, drained: &Drain, signals: &mut Signals) -> End {
    let mut stopped = store.watch();
    // The first one is now.
    let mut day = tokio::time::interval(CERTIFICATE_CHECK);
    loop {
        tokio::select! {
            _ = day.tick() => reload.certificate().warn(),
            caught = signals.next() => match caught {
                SignalAction::Stop(signal) => return End::Asked(signal),
                SignalAction::Reload => reload.run(),
                SignalAction::Drain => protocols::drain(reload.settings(), drained),
            },
            why = stopped.why() => return End::Failed(why),
        }
    }
}

/// Ends everything in order: requests first, then the store.
async fn stop(
    server: Server,
    store: Store,
    signal: Signal,
    drain: Duration,
) -> Result<(), Failure> {
    tracing::info!("{signal}: stopping, requests under way have {drain:?}");
    server.stop(drain).await;
    let wrong = |error: String| Failure::new(format!("the store did not close well: {error}"));
    let closed = tokio::task::spawn_blocking(move || store.close()).await;
    closed.map_err(|error| wrong(error.to_string()))?.map_err(|error| wrong(error.to_string()))?;
    tracing::info!("stopped");
    Ok(())
}
