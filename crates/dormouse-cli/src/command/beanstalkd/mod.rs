//! `dormouse beanstalkd`: takes beanstalkd's options, for scripts that start beanstalkd.

mod user;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::ArgAction;
use dormouse_core::limits::BODY_BYTES_MAX;
use dormouse_disk::engine::{Durability, Engine, Options as EngineOptions};
use dormouse_server::limits::{BEANSTALK_JOB_BYTES_MAX_DEFAULT, CONNECTIONS_MAX_DEFAULT};
use dormouse_server::{BeanstalkAddr, BeanstalkOptions, Drain, Options, Server};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::level_filters::LevelFilter;

use crate::command::config::exposure;
use crate::command::serve::{Store, files, log};
use crate::exit::Failure;
use crate::log_line::LogFormat;

/// The name of the subcommand, and of a link to the program that runs it.
pub(crate) const NAME: &str = "beanstalkd";

/// The longest time between two syncs.
const SYNC_MS_MAX: u64 = 60_000;

/// How long requests in progress may take after a stop signal.
const STOP_MAX: Duration = Duration::from_secs(1);

/// Serve clients of beanstalkd, with the options of beanstalkd
#[derive(clap::Args)]
#[command(disable_version_flag = true, disable_help_flag = true, display_name = NAME,
    version = concat!("1.13 (dormouse ", env!("CARGO_PKG_VERSION"), ")"), after_help = "\
Also what a program called `beanstalkd` does: link it to this one.

SIGTERM and SIGINT end it. SIGUSR1 refuses puts from then on.

Without -b jobs are kept in memory and end with it. docs/beanstalk.md lists what differs from the
original. `dormouse serve --beanstalk` serves the same jobs over HTTP, too.

Examples:
  dormouse beanstalkd -l 127.0.0.1 -p 11300 -b /var/lib/dormouse
  ln -s dormouse beanstalkd && ./beanstalkd -l unix:/run/jobs.sock")]
pub(crate) struct Args {
    /// Listen on this address, or on the socket at unix:PATH
    #[arg(short = 'l', value_name = "ADDR", default_value = "127.0.0.1")]
    address: String,
    /// Listen on this port
    #[arg(short = 'p', value_name = "PORT", default_value_t = 11300)]
    port: u16,
    /// Keep jobs in this directory
    #[arg(short = 'b', value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Sync at most every MS milliseconds; 0, as usual: before every answer
    #[arg(short = 'f', value_name = "MS", overrides_with = "never")]
    sync_ms: Option<u64>,
    /// Sync as rarely as possible: once a minute
    #[arg(short = 'F', overrides_with = "sync_ms")]
    never: bool,
    /// Accepted, and of no effect: there are no such files
    #[arg(short = 's', value_name = "BYTES")]
    file_bytes: Option<u64>,
    /// The largest body; at most 1 MiB
    #[arg(short = 'z', value_name = "BYTES", default_value_t = BEANSTALK_JOB_BYTES_MAX_DEFAULT)]
    job_bytes_max: usize,
    /// Become this user
    #[arg(short = 'u', value_name = "USER")]
    user: Option<String>,
    /// Log more; twice: even more
    #[arg(short = 'V', action = ArgAction::Count)]
    verbose: u8,
    /// Print the version
    #[arg(short = 'v', action = ArgAction::Version)]
    version: (),
    /// Print help
    #[arg(short = 'h', long, action = ArgAction::Help)]
    help: (),
}

impl Args {
    /// Steps that must precede the start of a second thread.
    pub(crate) fn prepare(&self) -> Result<(), Failure> {
        self.user.as_deref().map_or(Ok(()), user::become_user)
    }

    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut signals = Signals::catch()
            .map_err(|error| Failure::new(format!("cannot catch signals: {error}")))?;
        let level = match self.verbose {
            0 => LevelFilter::WARN,
            1 => LevelFilter::INFO,
            _ => LevelFilter::DEBUG,
        };
        log::start(level, LogFormat::Text);
        files::make_room(CONNECTIONS_MAX_DEFAULT);
        let beanstalk = self.options()?;
        let drain = beanstalk.drain.clone();
        let store = self.store()?;
        let options = Options { beanstalk: Some(beanstalk), ..Options::default() };
        let started = Server::start(store.backend(), options).await;
        let server = started.map_err(|error| Failure::new(error.to_string()))?;
        tracing::info!("listening on {}", self.place(&server));
        if server.beanstalk_addr().is_some_and(|addr| !addr.ip().to_canonical().is_loopback()) {
            tracing::warn!("everybody who reaches {} may do everything", self.place(&server));
        }
        if let Some(exposure) =
            self.dir.as_deref().and_then(|dir| exposure("the data directory", dir, true))
        {
            tracing::warn!("{exposure}");
        }
        if self.dir.is_none() {
            tracing::info!("without -b all jobs are gone when this process ends");
        }
        let mut stopped = store.watch();
        let failed = tokio::select! {
            () = signals.end(&drain) => None,
            why = stopped.why() => Some(why),
        };
        server.stop(STOP_MAX).await;
        if let Some(error) = failed {
            return Err(Failure::new(format!("the store has stopped: {error}")));
        }
        let closed = tokio::task::spawn_blocking(move || store.close()).await;
        let wrong = |error: String| Failure::new(format!("the store did not close well: {error}"));
        closed.map_err(|error| wrong(error.to_string()))?.map_err(|error| wrong(error.to_string()))
    }

    fn options(&self) -> Result<BeanstalkOptions, Failure> {
        let addr = match self.address.strip_prefix("unix:") {
            Some(path) => BeanstalkAddr::Unix(path.into()),
            None => BeanstalkAddr::Tcp(self.tcp()?),
        };
        if self.job_bytes_max > BODY_BYTES_MAX {
            tracing::warn!("-z {}: bodies have at most {BODY_BYTES_MAX} bytes", self.job_bytes_max);
        }
        let job_bytes_max = self.job_bytes_max.min(BODY_BYTES_MAX);
        Ok(BeanstalkOptions { addr, job_bytes_max, drain: Drain::default() })
    }

    fn tcp(&self) -> Result<SocketAddr, Failure> {
        let unknown = |why: String| {
            let text = format!("-l {} is no address: {why}", self.address);
            Failure::usage(format!("{text}; give an address of this computer, or unix:PATH"))
        };
        let host = self.address.trim_start_matches('[').trim_end_matches(']');
        let found = (host, self.port).to_socket_addrs();
        let first = found.map_err(|error| unknown(error.to_string()))?.next();
        first.ok_or_else(|| unknown("nothing has that name".to_owned()))
    }

    fn place(&self, server: &Server) -> String {
        server.beanstalk_addr().map_or_else(|| self.address.clone(), |addr| addr.to_string())
    }

    fn store(&self) -> Result<Store, Failure> {
        let durability = self.durability();
        let options = EngineOptions { durability, ..EngineOptions::default() };
        match &self.dir {
            None => Ok(Store::Engine(Engine::memory(options), None)),
            Some(dir) => Engine::open(dir, options)
                .map(|engine| Store::Engine(engine, None))
                .map_err(|error| Failure::new(error.to_string())),
        }
    }

    fn durability(&self) -> Durability {
        match self.sync_ms {
            _ if self.never => Durability::Relaxed { ms: SYNC_MS_MAX },
            None | Some(0) => Durability::Synced,
            Some(ms) => Durability::Relaxed { ms: ms.min(SYNC_MS_MAX) },
        }
    }
}

/// The caught signals; none of them ends the process by itself any more.
struct Signals {
    term: Signal,
    int: Signal,
    usr1: Signal,
}

impl Signals {
    fn catch() -> std::io::Result<Signals> {
        Ok(Signals {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            usr1: signal(SignalKind::user_defined1())?,
        })
    }

    /// Waits for one that asks for an end; meanwhile puts may be refused.
    async fn end(&mut self, drain: &Drain) {
        loop {
            tokio::select! {
                _ = self.term.recv() => return,
                _ = self.int.recv() => return,
                _ = self.usr1.recv() => drain.begin(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
    }

    fn args(line: &str) -> Args {
        let words = std::iter::once(NAME).chain(line.split_whitespace());
        Program::try_parse_from(words).map(|program| program.args).unwrap()
    }

    #[test]
    fn the_last_word_about_syncs_counts() {
        for (line, durability) in [
            ("", Durability::Synced),
            ("-f 0", Durability::Synced),
            ("-f0", Durability::Synced),
            ("-f 50", Durability::Relaxed { ms: 50 }),
            ("-f 99999999", Durability::Relaxed { ms: SYNC_MS_MAX }),
            ("-F", Durability::Relaxed { ms: SYNC_MS_MAX }),
            ("-F -f 50", Durability::Relaxed { ms: 50 }),
            ("-f 50 -F", Durability::Relaxed { ms: SYNC_MS_MAX }),
        ] {
            assert_eq!(args(line).durability(), durability, "{line}");
        }
    }

    #[test]
    fn addresses_are_of_the_network_or_of_the_file_system() {
        let addr = |line: &str| args(line).options().map(|options| options.addr);
        let tcp = |text: &str| Ok(BeanstalkAddr::Tcp(text.parse().unwrap()));
        assert_eq!(addr(""), tcp("127.0.0.1:11300"));
        assert_eq!(addr("-l 0.0.0.0 -p 1"), tcp("0.0.0.0:1"));
        assert_eq!(addr("-l ::1"), tcp("[::1]:11300"));
        assert_eq!(addr("-l [::1]"), tcp("[::1]:11300"));
        assert_eq!(addr("-l unix:/a/b"), Ok(BeanstalkAddr::Unix("/a/b".into())));
        assert!(addr("-l 300.1.1.1").is_err());
    }

    #[test]
    fn bodies_are_bounded() {
        let most = |line: &str| args(line).options().unwrap().job_bytes_max;
        assert_eq!(most(""), 65_535);
        assert_eq!(most("-z 7"), 7);
        assert_eq!(most("-z 1073741824"), 1 << 20);
    }
}
