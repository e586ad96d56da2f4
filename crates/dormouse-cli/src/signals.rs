//! The signals that end a command.

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::watch;

use crate::exit::Failure;

/// SIGINT, SIGTERM and SIGHUP, caught so that the command can end in order.
pub(crate) struct Signals {
    int: unix::Signal,
    term: unix::Signal,
    /// `None` if SIGHUP is ignored, as under nohup.
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

    /// Counts the signals from now on.
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

/// How many signals arrived: after the first, running work is finished; after the second, it is
/// ended.
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

    /// Returns after the first signal.
    pub(crate) async fn asked(&self) {
        self.reached(1).await;
    }

    /// Returns after the second signal.
    pub(crate) async fn urgent(&self) {
        self.reached(2).await;
    }

    async fn reached(&self, least: u32) {
        let mut count = self.count.clone();
        if count.wait_for(|count| *count >= least).await.is_err() {
            // The counting task is gone, so no signal can arrive.
            std::future::pending::<()>().await;
        }
    }
}
