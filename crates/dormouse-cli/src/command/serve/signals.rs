//! The signals of a server.

use std::fmt;
use std::io;

use tokio::signal::unix::{self, SignalKind};

/// A signal that stops the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Term,
    Int,
}

impl Signal {
    /// The exit code that a shell reports for a process ended by the signal.
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

/// The caught signals; none of them ends the process by itself any more.
pub(super) struct Signals {
    term: unix::Signal,
    int: unix::Signal,
    hangup: unix::Signal,
    drain: unix::Signal,
}

/// The action that a signal requests.
pub(super) enum SignalAction {
    /// Stop.
    Stop(Signal),
    /// Read tokens and the certificate again.
    Reload,
    /// Refuse puts of beanstalkd clients, as beanstalkd does on SIGUSR1.
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

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) -> SignalAction {
        tokio::select! {
            _ = self.term.recv() => SignalAction::Stop(Signal::Term),
            _ = self.int.recv() => SignalAction::Stop(Signal::Int),
            _ = self.hangup.recv() => SignalAction::Reload,
            _ = self.drain.recv() => SignalAction::Drain,
        }
    }

    /// Waits for a signal that stops the server.
    pub(super) async fn stop(&mut self) -> Signal {
        loop {
            if let SignalAction::Stop(signal) = self.next().await {
                return signal;
            }
        }
    }

    /// Exits at once on the next stop signal. Answered requests are durable, so only open answers
    /// are lost.
    pub(super) fn exit_at_next(mut self) {
        tokio::spawn(async move {
            let signal = self.stop().await;
            tracing::warn!("{signal} again: not waiting for requests");
            std::process::exit(signal.exit_code());
        });
    }
}
