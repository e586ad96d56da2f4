//! Commands that go to the backend together, and what waits for their answers.

use bytes::BytesMut;
use dormouse_core::command::Command;
use dormouse_core::op::Unlock;

use super::turn::{Item, Step};
use crate::client::unlock_of;

/// Commands that go together.
pub(super) struct Group<T> {
    pub(super) commands: Vec<Command>,
    pub(super) pending: Vec<Pending<T>>,
    /// How to give back the locks that are asked for, by the place of their command.
    pub(super) locks: Vec<(usize, Unlock)>,
}

/// What waits for its command's answer.
pub(super) enum Pending<T> {
    /// Nothing: it is said already.
    Said(BytesMut),
    Puts(Vec<T>),
    Acks(Vec<T>),
    Asked(T),
}

impl<T> Group<T> {
    pub(super) fn new() -> Group<T> {
        Group { commands: Vec::new(), pending: Vec::new(), locks: Vec::new() }
    }

    pub(super) fn of(step: Step<T>) -> Group<T> {
        let mut group = Group::new();
        group.push(Item::Ask(step));
        group
    }

    pub(super) fn has_puts(&self) -> bool {
        self.pending.iter().any(|pending| matches!(pending, Pending::Puts(_)))
    }

    pub(super) fn push(&mut self, item: Item<T>) {
        let (command, pending) = match item {
            Item::Say(said) => return self.pending.push(Pending::Said(said)),
            Item::Puts(puts, thens) => (Command::Put(puts), Pending::Puts(thens)),
            Item::Acks(tokens, thens) => (Command::Ack(tokens), Pending::Acks(thens)),
            Item::Ask(Step { command, then, .. }) => {
                let lock = unlock_of(&command).map(|unlock| (self.commands.len(), unlock));
                self.locks.extend(lock);
                (command, Pending::Asked(then))
            }
        };
        self.commands.push(command);
        self.pending.push(pending);
    }
}
