//! The counts of what each holder has. They follow the table of leases and that of locks: what a
//! holder is said to have is what these tables say.

use super::Machine;
use crate::Map;
use crate::holder::{HolderId, Holdings};
use crate::timeline::Timeline;

/// The holdings of each holder. Holders without any are not here, so it is no larger than the
/// tables.
#[derive(Debug, Default)]
pub(crate) struct Holders(Map<HolderId, Holdings>);

impl Holders {
    /// The holdings of a holder; without a holder there are none.
    pub(crate) fn of(&self, holder: Option<HolderId>) -> Holdings {
        holder.and_then(|holder| self.0.get(&holder)).copied().unwrap_or_default()
    }

    pub(crate) fn add_lease(&mut self, holder: HolderId, bytes: u64) {
        let held = self.0.entry(holder).or_default();
        held.jobs += 1;
        held.bytes += bytes;
    }

    pub(crate) fn drop_lease(&mut self, holder: Option<HolderId>, bytes: u64) {
        self.lessen(holder, |held| {
            held.jobs = held.jobs.saturating_sub(1);
            held.bytes = held.bytes.saturating_sub(bytes);
        });
    }

    pub(crate) fn add_lock(&mut self, holder: HolderId) {
        self.0.entry(holder).or_default().locks += 1;
    }

    pub(crate) fn drop_lock(&mut self, holder: Option<HolderId>) {
        self.lessen(holder, |held| held.locks = held.locks.saturating_sub(1));
    }

    fn lessen(&mut self, holder: Option<HolderId>, change: impl FnOnce(&mut Holdings)) {
        let Some(holder) = holder else { return };
        let Some(held) = self.0.get_mut(&holder) else { return };
        change(held);
        if held.jobs == 0 && held.locks == 0 {
            self.0.remove(&holder);
        }
    }
}

impl<T: Timeline> Machine<T> {
    /// All who hold something that counts for them, and what.
    pub fn holdings(&self) -> impl Iterator<Item = (HolderId, Holdings)> {
        self.holders.0.iter().map(|(holder, held)| (*holder, *held))
    }
}
