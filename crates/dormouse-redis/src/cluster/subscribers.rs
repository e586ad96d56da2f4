//! Runs a subscriber for every node that has a wanted channel.

use std::collections::{HashMap, HashSet};

use tokio::task::AbortHandle;

use super::subscriber::{self, SubscriberContext};
use super::url::Address;

/// A task that is cancelled when this is dropped.
pub(super) struct Task(AbortHandle);

impl Task {
    pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Task {
        Task(tokio::spawn(work).abort_handle())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts and stops subscribers as channels and slots change.
pub(super) async fn run_subscribers(context: SubscriberContext) {
    let mut subscribers: HashMap<Address, Task> = HashMap::new();
    let mut changes = context.subscriptions.watch();
    let mut map = context.topology.watch();
    loop {
        changes.mark_unchanged();
        map.mark_unchanged();
        let wanted = context.subscriptions.nodes(&context.topology.map());
        for address in gone(&subscribers, &wanted) {
            subscribers.remove(&address);
            context.mark_lost(None, &address);
        }
        for address in wanted {
            let subscriber = || Task::spawn(subscriber::run(context.clone(), address.clone()));
            subscribers.entry(address.clone()).or_insert_with(subscriber);
        }
        let is_open = tokio::select! {
            changed = changes.changed() => changed.is_ok(),
            changed = map.changed() => changed.is_ok(),
        };
        if !is_open {
            return;
        }
    }
}

fn gone(subscribers: &HashMap<Address, Task>, wanted: &HashSet<Address>) -> Vec<Address> {
    subscribers.keys().filter(|address| !wanted.contains(*address)).cloned().collect()
}
