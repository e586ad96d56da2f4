//! Gives back, on a thread of its own, what nobody waits for: after a `busy`, or from inside the
//! backend's own thread. The thread starts when it is first needed and then sleeps.

use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use dormouse_core::command::Command;
use dormouse_core::error::Code;

use crate::queue::Queue;

/// Between two tries when the backend is busy.
const PAUSE: Duration = Duration::from_millis(10);
/// A minute of tries: by then most leases have run out by themselves.
const TRIES_MAX: u32 = 6_000;

struct Chore {
    queue: Queue,
    command: Option<Command>,
    tries: u32,
}

impl Chore {
    /// Whether it must be tried again.
    fn is_undone(&mut self) -> bool {
        let Some(command) = &self.command else { return false };
        self.tries += 1;
        match self.queue.submit_unread(command.clone()) {
            Err(error) => error.code == Code::Busy && self.tries < TRIES_MAX,
            Ok(()) => false,
        }
    }
}

/// Sends a command, again while the backend is `busy`, and then lets go of the queue.
pub(crate) fn submit(queue: Queue, command: Option<Command>) {
    static CHORES: OnceLock<Option<Sender<Chore>>> = OnceLock::new();
    let chores = CHORES.get_or_init(|| {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::Builder::new().name("dormouse-later".into());
        thread.spawn(move || work(&receiver)).ok().map(|_| sender)
    });
    let mut chore = Chore { queue, command, tries: 0 };
    match chores {
        // The receiver lives as long as the process.
        Some(chores) => drop(chores.send(chore)),
        // No thread to be had: once, from here, is better than not at all.
        None => drop(chore.is_undone()),
    }
}

fn work(chores: &Receiver<Chore>) {
    let mut undone: Vec<Chore> = Vec::new();
    loop {
        if undone.is_empty() {
            let Ok(chore) = chores.recv() else { return };
            undone.push(chore);
        } else {
            thread::sleep(PAUSE);
        }
        // All of them at each round: one busy queue must not hold up the others.
        undone.extend(chores.try_iter());
        undone.retain_mut(Chore::is_undone);
    }
}
