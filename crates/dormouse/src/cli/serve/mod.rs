//! `dormouse serve`: the store and the server of it, from start to stop.

mod backup;
mod files;
mod log;
mod notify;
mod reload;
mod signals;
mod tls;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use dormouse_core::error::Error;
use dormouse_disk::engine::{Engine, Options as EngineOptions};
use dormouse_disk::store::Sizes;
use dormouse_server::{Options, Server};
use tokio::sync::oneshot;

use super::config::{BackendKind, Config, Flags, Settings};
use super::exit::Failure;
use notify::notify;
use reload::Reload;
use signals::{Caught, Signal, Signals};

/// How long requests get when the store has stopped: they can only be told so.
const FAILED_DRAIN_MAX: Duration = Duration::from_secs(1);

/// Serve a queue until a signal ends it
#[derive(clap::Args)]
#[command(after_help = "\
Prints `http listening on URL` on stdout when it is ready; logs go to stderr.

SIGTERM and SIGINT stop it: requests under way are finished (see --drain), waiting ones are
answered, the store is closed, and it exits with 0. A second one ends it at once; nothing that was
answered is lost by that. SIGHUP reads tokens and TLS files again.

Exit codes: 1 if it cannot start or the store has failed, 2 if the configuration is wrong.

Examples:
  dormouse serve
  dormouse serve --data /var/lib/dormouse --http 127.0.0.1:0
  dormouse serve --config /etc/dormouse.toml")]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
}

/// Why it does not go on.
enum End {
    /// Somebody wants it.
    Asked(Signal),
    /// The store has stopped by itself.
    Failed(Error),
}

impl Args {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut signals = Signals::catch()
            .map_err(|error| Failure::new(format!("cannot catch signals: {error}")))?;
        let config = Config::load(&self.flags)?;
        log::start(config.settings.log);
        log::effective(&config);
        let reload = Reload::new(self.flags, config)?;
        files::make_room(reload.settings().connections_max);
        let engine = tokio::select! {
            engine = open(reload.settings()) => engine?,
            signal = signals.stop() => {
                // Whatever it was reading is as it was: a store can be killed at any time.
                tracing::info!("{signal} while the store was opened");
                return Ok(());
            }
        };
        let server = start(&engine, &reload).await?;
        announce(&server, reload.settings());
        notify("READY=1");
        let drain = reload.settings().drain;
        let end = serve(&engine, reload, &mut signals).await;
        notify("STOPPING=1");
        signals.exit_at_next();
        match end {
            End::Asked(signal) => stop(server, engine, signal, drain).await,
            End::Failed(error) => {
                tracing::error!("the store has stopped: {error}");
                server.stop(drain.min(FAILED_DRAIN_MAX)).await;
                Err(Failure::new(format!("the store has stopped: {error}")))
            }
        }
    }
}

/// Opens the store. It may have to read a lot, so other things go on meanwhile.
async fn open(settings: &Settings) -> Result<Engine, Failure> {
    let options = EngineOptions {
        durability: settings.durability,
        sizes: sizes(settings),
        ..EngineOptions::default()
    };
    if settings.backend == BackendKind::Memory {
        return Ok(Engine::memory(options));
    }
    let dir = settings.data.clone();
    let opening = tokio::task::spawn_blocking(move || Engine::open(&dir, options));
    match opening.await {
        Ok(opened) => opened.map_err(|error| Failure::new(error.to_string())),
        Err(error) => Err(Failure::new(format!("opening the store: {error}"))),
    }
}

/// The usual sizes of a store, unless somebody wants to see it at work.
fn sizes(settings: &Settings) -> Sizes {
    let usual = Sizes::default();
    let memtable_bytes = settings.memtable_bytes.and_then(|bytes| usize::try_from(bytes).ok());
    Sizes {
        memtable_bytes: memtable_bytes.unwrap_or(usual.memtable_bytes),
        segment_bytes: settings.segment_bytes.unwrap_or(usual.segment_bytes),
        ..usual
    }
}

async fn start(engine: &Engine, reload: &Reload) -> Result<Server, Failure> {
    let settings = reload.settings();
    let options = Options {
        http: settings.http,
        access: reload.access(),
        hosts: settings.hosts.clone(),
        connections_max: settings.connections_max,
        backup: backup::maker(engine, settings),
        #[cfg(feature = "tls")]
        tls: reload.certificate().tls(),
    };
    let started = Server::start(Arc::new(engine.clone()), options).await;
    started.map_err(|error| Failure::new(error.to_string()))
}

/// Tells who started us that we are ready, and where. Nobody may be listening.
fn announce(server: &Server, settings: &Settings) {
    let scheme = if settings.tls_cert.is_some() { "https" } else { "http" };
    let mut stdout = std::io::stdout().lock();
    if let Some(addr) = server.http_addr() {
        let written = writeln!(stdout, "http listening on {scheme}://{addr}");
        if let Err(error) = written.and_then(|()| stdout.flush()) {
            tracing::warn!("http listening on {scheme}://{addr}; cannot write to stdout: {error}");
        }
    }
}

/// Goes on until it has to end.
async fn serve(engine: &Engine, mut reload: Reload, signals: &mut Signals) -> End {
    let mut stopped = watch(engine.clone());
    loop {
        tokio::select! {
            caught = signals.next() => match caught {
                Caught::Stop(signal) => return End::Asked(signal),
                Caught::Hangup => reload.run(),
            },
            why = &mut stopped => {
                let unknown = || Error::unavailable("nobody knows why");
                return End::Failed(why.unwrap_or_else(|_| unknown()));
            }
        }
    }
}

/// Waits on a thread of its own until the store has stopped.
fn watch(engine: Engine) -> oneshot::Receiver<Error> {
    let (tell, told) = oneshot::channel();
    let wait = move || {
        let why = match engine.wait_stopped() {
            Ok(()) => Error::unavailable("it was closed"),
            Err(error) => error,
        };
        // At a normal stop nobody listens any more.
        let _ = tell.send(why);
    };
    let spawned = std::thread::Builder::new().name("dormouse-watch".to_owned()).spawn(wait);
    if let Err(error) = spawned {
        // The sender is gone with the thread: the receiver sees it as a store that has stopped.
        tracing::error!("cannot start a thread: {error}");
    }
    told
}

/// Ends everything in order: requests first, then the store.
async fn stop(
    server: Server,
    engine: Engine,
    signal: Signal,
    drain: Duration,
) -> Result<(), Failure> {
    tracing::info!("{signal}: stopping, requests under way have {drain:?}");
    server.stop(drain).await;
    let wrong = |error: String| Failure::new(format!("the store did not close well: {error}"));
    let closed = tokio::task::spawn_blocking(move || engine.close()).await;
    closed.map_err(|error| wrong(error.to_string()))?.map_err(|error| wrong(error.to_string()))?;
    tracing::info!("stopped");
    Ok(())
}
