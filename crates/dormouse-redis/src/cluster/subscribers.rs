//! An ear at every node that has a wanted channel, and at no other.

use std::collections::{HashMap, HashSet};

use tokio::task::AbortHandle;

use super::subscriber::{Hall, hear};
use super::url::Address;

/// A task that ends with this.
pub(super) struct Task(AbortHandle);

impl Task {
    /// Starts it.
    pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Task {
        Task(tokio::spawn(work).abort_handle())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts and ends ears as channels and slots come and go.
pub(super) async fn keep_ears(hall: Hall) {
    let mut ears: HashMap<Address, Task> = HashMap::new();
    let mut changes = hall.ledger.watch();
    let mut map = hall.net.watch();
    loop {
        changes.mark_unchanged();
        map.mark_unchanged();
        let wanted = hall.ledger.nodes(&hall.net.map());
        for address in gone(&ears, &wanted) {
            ears.remove(&address);
            hall.lose(None, &address);
        }
        for address in wanted {
            let ear = || Task::spawn(hear(hall.clone(), address.clone()));
            ears.entry(address.clone()).or_insert_with(ear);
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

fn gone(ears: &HashMap<Address, Task>, wanted: &HashSet<Address>) -> Vec<Address> {
    ears.keys().filter(|address| !wanted.contains(*address)).cloned().collect()
}
