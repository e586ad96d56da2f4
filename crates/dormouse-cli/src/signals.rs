//! The signals that ask us to end.

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::watch;

use crate::exit::Failure;

/// SIGINT, SIGTERM and SIGHUP, in place of the sudden end they mean otherwise.
pub(crate) struct Signals {
    int: unix::Signal,
    term: unix::Signal,
    /// Not if somebody wants us to outlive the terminal, as nohup does.
    hup: Option<unix::Signal>,
}

impl Signals {
    pub(crate) fn listen() -> Result<Signals, Failure> {
        let listen =
            |kind| unix::signal(kind).map_err(|error| Failure::new(format!("no signals: {error}")));
        let hup = if is_hup_ignored() { None } else { Some(listen(SignalKind::hangup())?) };
        let int = listen(SignalKind::interrupt())?;
        Ok(Signals { int, term: listen(SignalKind::terminate())?, hup })
    }

    pub(crate) async fn next(&mut self) -> Signal {
        let hup = async {
            match &mut self.hup {
                Some(hup) => hup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.int.recv() => Signal::INT,
            _ = self.term.recv() => Signal::TERM,
            _ = hup => Signal::HUP,
        }
    }

    /// Counts them from now on.
    pub(crate) fn count(mut self) -> Stop {
        let (sender, count) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                self.next().await;
                sender.send_modify(|count| *count += 1);
            }
        });
        Stop { count }
    }
}

fn is_hup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & 1 == 1
}

/// How often we were asked to end: once is "finish what you do", twice is "now".
#[derive(Clone)]
pub(crate) struct Stop {
    count: watch::Receiver<u32>,
}

impl Stop {
    pub(crate) fn is_asked(&self) -> bool {
        *self.count.borrow() >= 1
    }

    pub(crate) fn is_urgent(&self) -> bool {
        *self.count.borrow() >= 2
    }

    /// Returns once we were asked to end.
    pub(crate) async fn asked(&self) {
        self.reached(1).await;
    }

    /// Returns once we were asked twice.
    pub(crate) async fn urgent(&self) {
        self.reached(2).await;
    }

    async fn reached(&self, least: u32) {
        let mut count = self.count.clone();
        if count.wait_for(|count| *count >= least).await.is_err() {
            // Nobody is left to ask.
            std::future::pending::<()>().await;
        }
    }
}
