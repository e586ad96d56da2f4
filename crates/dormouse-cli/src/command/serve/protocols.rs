//! What is served, and where.

use std::io::Write as _;

use dormouse_server::{BeanstalkAddr, BeanstalkOptions, Drain, Options, Server, StartError};

use super::backup;
use super::reload::Reload;
use super::store::Store;
use crate::command::config::{Settings, beanstalk_shown};
use crate::exit::Failure;

/// Listens everywhere.
pub(super) async fn start(
    store: &Store,
    reload: &Reload,
    drain: &Drain,
) -> Result<Server, Failure> {
    let settings = reload.settings();
    let options = Options {
        http: settings.http,
        resp: settings.resp,
        beanstalk: beanstalk(settings, drain),
        access: reload.access(),
        hosts: settings.hosts.clone(),
        connections_max: settings.connections_max,
        backup: store.engine().and_then(|engine| backup::maker(engine, settings)),
        tls: reload.certificate().tls(),
        resp_tls: reload.certificate().tls(),
    };
    let started = Server::start(store.backend(), options).await;
    started.map_err(|error| Failure::new(with_flag(&error, settings)))
}

fn beanstalk(settings: &Settings, drain: &Drain) -> Option<BeanstalkOptions> {
    let addr = settings.beanstalk.clone()?;
    let job_bytes_max = settings.beanstalk_job_bytes_max;
    Some(BeanstalkOptions { addr, job_bytes_max, drain: drain.clone() })
}

/// The address that is taken may be a default: say which option moves it.
fn with_flag(error: &StartError, settings: &Settings) -> String {
    let flag = match error {
        StartError::Listen { addr, .. } if settings.http == Some(*addr) => "http",
        StartError::Listen { addr, .. } if settings.resp == Some(*addr) => "resp",
        StartError::Listen { .. } | StartError::ListenUnix { .. } => "beanstalk",
    };
    format!("{error} (--{flag} ADDR, or --{flag} off)")
}

/// Tells who started us that we are ready, and where. Nobody may be listening.
pub(super) fn announce(server: &Server, settings: &Settings) {
    let lines = addresses(server, settings).join("\n");
    let mut stdout = std::io::stdout().lock();
    // At once: who has read the first line may be gone.
    let written = stdout.write_all(format!("{lines}\n").as_bytes());
    if let Err(error) = written.and_then(|()| stdout.flush()) {
        tracing::warn!("{lines}; cannot write to stdout: {error}");
    }
}

/// One line for each protocol; HTTP is the first, as it always was.
fn addresses(server: &Server, settings: &Settings) -> Vec<String> {
    let scheme = if settings.tls_cert.is_some() { "https" } else { "http" };
    let http = server.http_addr().map(|addr| format!("http listening on {scheme}://{addr}"));
    let resp = server.resp_addr().map(|addr| format!("resp listening on {addr}"));
    // Only of a port can there be another than was asked for.
    let bound = server.beanstalk_addr().map(BeanstalkAddr::Tcp).or(settings.beanstalk.clone());
    let beanstalk = bound.map(|addr| format!("beanstalk listening on {}", beanstalk_shown(&addr)));
    [http, resp, beanstalk].into_iter().flatten().collect()
}

/// Clients of beanstalkd can put no more jobs, so that it can be stopped when it is empty.
pub(super) fn drain(settings: &Settings, drain: &Drain) {
    if settings.beanstalk.is_none() {
        tracing::warn!("SIGUSR1: beanstalk is off, and other clients are not concerned");
        return;
    }
    drain.begin();
    tracing::info!("SIGUSR1: puts of beanstalkd's clients are refused from now on");
}
