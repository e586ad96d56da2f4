//! Gives back, on a thread of its own, what nobody waits for: after a `busy`, or from inside the
//! backend's own thread. The thread starts when it is first needed and then sleeps.

use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use dormouse_core::command::Command;
use dormouse_core::error::Code;

use crate::queue::Queue;

/// After so long a lease has run out by itself or the backend is beyond help.
const TRIES_MAX: u32 = 300;
const PAUSE_MS_MAX: u64 = 200;

struct Chore {
    queue: Queue,
    command: Option<Command>,
}

/// Sends a command, again while the backend is `busy`, and then lets go of the queue.
pub(crate) fn submit(queue: Queue, command: Option<Command>) {
    static CHORES: OnceLock<Option<Sender<Chore>>> = OnceLock::new();
    let chores = CHORES.get_or_init(|| {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::Builder::new().name("dormouse-later".into());
        thread.spawn(move || work(&receiver)).ok().map(|_| sender)
    });
    match chores {
        // The receiver lives as long as the process.
        Some(chores) => drop(chores.send(Chore { queue, command })),
        // No thread to be had: once, from here, is better than not at all.
        None => drop(command.map(|command| queue.submit_unread(command))),
    }
}

fn work(chores: &Receiver<Chore>) {
    while let Ok(Chore { queue, command }) = chores.recv() {
        if let Some(command) = command {
            persist(&queue, &command);
        }
    }
}

fn persist(queue: &Queue, command: &Command) {
    let mut pause_ms = 1;
    for _ in 0..TRIES_MAX {
        match queue.submit_unread(command.clone()) {
            Err(error) if error.code == Code::Busy => {
                thread::sleep(Duration::from_millis(pause_ms));
                pause_ms = (pause_ms * 2).min(PAUSE_MS_MAX);
            }
            _ => return,
        }
    }
}
