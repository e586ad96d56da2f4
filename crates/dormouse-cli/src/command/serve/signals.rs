//! The signals that a server knows.

use std::fmt;
use std::io;

use tokio::signal::unix::{self, SignalKind};

/// One that asks for an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Term,
    Int,
}

impl Signal {
    /// What a shell reports of a process that the signal ended.
    fn exit_code(self) -> i32 {
        match self {
            Signal::Int => 130,
            Signal::Term => 143,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Signal::Term => "SIGTERM",
            Signal::Int => "SIGINT",
        })
    }
}

/// What is caught; from then on none of them ends the process by itself.
pub(super) struct Signals {
    term: unix::Signal,
    int: unix::Signal,
    hangup: unix::Signal,
    drain: unix::Signal,
}

/// What came.
pub(super) enum SignalAction {
    /// Stop.
    Stop(Signal),
    /// Read what can be read again.
    Reload,
    /// Take no more jobs from clients of beanstalkd, which knows this signal.
    Drain,
}

impl Signals {
    pub(super) fn catch() -> io::Result<Signals> {
        Ok(Signals {
            term: unix::signal(SignalKind::terminate())?,
            int: unix::signal(SignalKind::interrupt())?,
            hangup: unix::signal(SignalKind::hangup())?,
            drain: unix::signal(SignalKind::user_defined1())?,
        })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> SignalAction {
        tokio::select! {
            _ = self.term.recv() => SignalAction::Stop(Signal::Term),
            _ = self.int.recv() => SignalAction::Stop(Signal::Int),
            _ = self.hangup.recv() => SignalAction::Reload,
            _ = self.drain.recv() => SignalAction::Drain,
        }
    }

    /// Waits for one that asks for an end.
    pub(super) async fn stop(&mut self) -> Signal {
        loop {
            if let SignalAction::Stop(signal) = self.next().await {
                return signal;
            }
        }
    }

    /// From now on the next one that asks for an end gets it at once. What was answered is durable,
    /// so nothing is lost but the answers that are still due.
    pub(super) fn exit_at_next(mut self) {
        tokio::spawn(async move {
            let signal = self.stop().await;
            tracing::warn!("{signal} again: not waiting for requests");
            std::process::exit(signal.exit_code());
        });
    }
}
