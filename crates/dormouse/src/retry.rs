//! Sends commands whose reply nobody waits for from a thread of its own: after a `busy`, or from
//! inside the backend's own thread. The thread starts when it is first needed and then sleeps.

use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use dormouse_core::command::Command;
use dormouse_core::error::Code;

use crate::queue::Queue;

/// The pause between two attempts while the backend is busy.
const PAUSE: Duration = Duration::from_millis(10);
/// One minute: by then most leases have expired by themselves.
const TRIES_MAX: u32 = 6_000;

struct Retry {
    queue: Queue,
    command: Option<Command>,
    tries: u32,
}

impl Retry {
    /// Sends the command; true if the backend is busy and it must be sent again.
    fn is_busy(&mut self) -> bool {
        let Some(command) = &self.command else { return false };
        self.tries += 1;
        match self.queue.submit_unread(command.clone()) {
            Err(error) => error.code == Code::Busy && self.tries < TRIES_MAX,
            Ok(()) => false,
        }
    }
}

/// Sends a command, again while the backend is `busy`, and then drops the queue.
pub(crate) fn submit(queue: Queue, command: Option<Command>) {
    static RETRIES: OnceLock<Option<Sender<Retry>>> = OnceLock::new();
    let retries = RETRIES.get_or_init(|| {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::Builder::new().name("dormouse-retry".into());
        thread.spawn(move || work(&receiver)).ok().map(|_| sender)
    });
    let mut retry = Retry { queue, command, tries: 0 };
    match retries {
        // The receiver lives as long as the process.
        Some(retries) => drop(retries.send(retry)),
        // The thread could not be started: one attempt from here is better than none.
        None => drop(retry.is_busy()),
    }
}

fn work(retries: &Receiver<Retry>) {
    let mut open: Vec<Retry> = Vec::new();
    loop {
        if open.is_empty() {
            let Ok(retry) = retries.recv() else { return };
            open.push(retry);
        } else {
            thread::sleep(PAUSE);
        }
        // All of them in each round: a busy queue must not delay the others.
        open.extend(retries.try_iter());
        open.retain_mut(Retry::is_busy);
    }
}
