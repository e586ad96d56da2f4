//! The guests of a protocol: clients that need a token and have not presented one.
//!
//! Their addresses share a limit, so that one address alone cannot use it up; a few together can.
//! Then a guest of another address is let in all the same, and the oldest guest of the address
//! that has the most is sent away: who comes with a token needs a place for a moment only.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::metrics::ProtocolKind;
use crate::shares::SharedLimit;
use crate::visitor::{Address, Visitor};

/// The guests of a protocol. Clones are the same guests.
#[derive(Clone)]
pub(crate) struct Guests {
    limit: SharedLimit<Address>,
    max: usize,
    /// In the order in which they came. Some have left or have presented a token since; they are
    /// forgotten before the list has twice as many as there may be.
    arrived: Arc<Mutex<VecDeque<Weak<Visitor>>>>,
}

impl Guests {
    pub(crate) fn new(max: usize) -> Guests {
        Guests { limit: SharedLimit::new(max, "guests"), max, arrived: Arc::default() }
    }

    /// Lets a guest in; `None` if its address has its share, or too few others have more.
    pub(crate) fn admit(&self, from: Address, protocol: ProtocolKind) -> Option<Arc<Visitor>> {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        if arrived.len() >= 2 * self.max {
            arrived.retain(|guest| present(guest).is_some());
        }
        let place = match self.limit.take(from, 1) {
            Ok(place) => place,
            // Whoever has its share costs no look at the others.
            Err(_) if !self.limit.is_within_share(&from) => return None,
            Err(_) => {
                Guests::oldest_of_most(&arrived, from)?.dismiss();
                self.limit.take(from, 1).ok()?
            }
        };
        let visitor = Arc::new(Visitor::new(from, protocol, Some(place)));
        arrived.push_back(Arc::downgrade(&visitor));
        Some(visitor)
    }

    /// The oldest guest of the address that has the most; `None` unless that has more than the
    /// newcomer's would have.
    fn oldest_of_most(
        arrived: &VecDeque<Weak<Visitor>>,
        newcomer: Address,
    ) -> Option<Arc<Visitor>> {
        let mut counts: HashMap<Address, usize> = HashMap::new();
        let guests: Vec<Arc<Visitor>> = arrived.iter().filter_map(present).collect();
        for guest in &guests {
            *counts.entry(guest.address).or_default() += 1;
        }
        let wanted = counts.get(&newcomer).copied().unwrap_or(0) + 1;
        let (most, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        (count > wanted).then(|| guests.into_iter().find(|guest| guest.address == most))?
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.limit.used()
    }
}

/// A visitor that is there and still a guest.
fn present(guest: &Weak<Visitor>) -> Option<Arc<Visitor>> {
    guest.upgrade().filter(|guest| guest.is_guest())
}
