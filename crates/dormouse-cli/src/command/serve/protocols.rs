//! The protocols and their addresses.

use std::io::Write as _;

use dormouse_server::{
    About, AboutOption, BeanstalkAddr, BeanstalkOptions, Drain, Options, Server, StartError,
};

use super::backup;
use super::reload::Reload;
use super::store::Store;
use crate::command::config::{BackendKind, Settings, beanstalk_shown};
use crate::exit::Failure;

/// Starts all configured protocols.
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
        reloads: reload.reloads(),
        hosts: settings.hosts.clone(),
        metrics_topics: settings.metrics_topics.clone(),
        ttr_max: settings.ttr_max,
        connections_max: settings.connections_max,
        backup: store.engine().and_then(|engine| backup::maker(engine, settings)),
        test_clock: store.test_clock(),
        about: about(reload),
        ui: settings.ui.clone(),
        tls: reload.certificate().tls(),
        resp_tls: reload.certificate().tls(),
    };
    let started = Server::start(store.backend(), options).await;
    started.map_err(|error| Failure::new(with_flag(&error, settings)))
}

/// What the server tells about itself. Tokens are read again while it runs, so they are left out.
fn about(reload: &Reload) -> About {
    let options = reload.shown().into_iter().filter(|shown| !shown.name.starts_with("tokens."));
    let options: Vec<AboutOption> = options
        .map(|shown| AboutOption {
            name: shown.name,
            value: shown.value,
            source: shown.source.to_string(),
        })
        .collect();
    let value = |name: &str| {
        let found = options.iter().find(|option| option.name == name);
        found.map(|option| option.value.trim_matches('"').to_owned())
    };
    let backend = value("backend").unwrap_or_default();
    let durability = match reload.settings().backend {
        BackendKind::Disk => value("durability"),
        BackendKind::Memory => None,
        BackendKind::Redis => value("redis.level").or_else(|| Some("applied".to_owned())),
    };
    About { backend, durability, options }
}

fn beanstalk(settings: &Settings, drain: &Drain) -> Option<BeanstalkOptions> {
    let addr = settings.beanstalk.clone()?;
    let job_bytes_max = settings.beanstalk_job_bytes_max;
    Some(BeanstalkOptions { addr, job_bytes_max, drain: drain.clone() })
}

/// The address in use may be a default: the text names the option that changes it.
fn with_flag(error: &StartError, settings: &Settings) -> String {
    let flag = match error {
        StartError::Listen { addr, .. } if settings.http == Some(*addr) => "http",
        StartError::Listen { addr, .. } if settings.resp == Some(*addr) => "resp",
        StartError::Listen { .. } | StartError::ListenUnix { .. } => "beanstalk",
        StartError::Thread(_) => return error.to_string(),
    };
    format!("{error} (--{flag} ADDR, or --{flag} off)")
}

/// Prints the addresses when the server is ready; a closed stdout is no error.
pub(super) fn announce(server: &Server, settings: &Settings) {
    let lines = addresses(server, settings).join("\n");
    let mut stdout = std::io::stdout().lock();
    // In one write: a reader may leave after the first line.
    let written = stdout.write_all(format!("{lines}\n").as_bytes());
    if let Err(error) = written.and_then(|()| stdout.flush()) {
        tracing::warn!("{lines}; cannot write to stdout: {error}");
    }
}

/// One line for each protocol, HTTP first.
fn addresses(server: &Server, settings: &Settings) -> Vec<String> {
    let scheme = if settings.tls_cert.is_some() { "https" } else { "http" };
    let http = server.http_addr().map(|addr| format!("http listening on {scheme}://{addr}"));
    let resp = server.resp_addr().map(|addr| format!("resp listening on {addr}"));
    // Only a port can differ from the configured one.
    let bound = server.beanstalk_addr().map(BeanstalkAddr::Tcp).or(settings.beanstalk.clone());
    let beanstalk = bound.map(|addr| format!("beanstalk listening on {}", beanstalk_shown(&addr)));
    [http, resp, beanstalk].into_iter().flatten().collect()
}

/// Refuses puts of beanstalkd clients, so that the server can be stopped when it is empty.
pub(super) fn drain(settings: &Settings, drain: &Drain) {
    if settings.beanstalk.is_none() {
        tracing::warn!("SIGUSR1: beanstalk is off, and other clients are not concerned");
        return;
    }
    drain.begin();
    tracing::info!("SIGUSR1: puts of beanstalkd's clients are refused from now on");
}
