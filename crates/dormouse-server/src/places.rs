//! Who may connect: a limit of all connections, places that are kept for each protocol, and a limit
//! of guests.
//!
//! A *guest* needs a token and has not presented one. Guests have a limit of their own for each
//! protocol, shared by their addresses (`guests.rs`), and little time: so they can neither keep out
//! those who have a token, nor each other for long.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::access::Access;
use crate::guests::Guests;
use crate::limits::{GUESTS_MIN, GUESTS_PART, PLACES_KEPT_MAX, PLACES_KEPT_PART};
use crate::metrics::ProtocolKind;
use crate::visitor::{Address, Visitor};

const PROTOCOLS: usize = ProtocolKind::ALL.len();

/// The places of all connections. Clones are the same places.
#[derive(Clone)]
pub(crate) struct Places {
    open: Arc<Mutex<Open>>,
    guests: [Guests; PROTOCOLS],
    access: Access,
}

/// A connection's place, free again when it is dropped.
pub(crate) struct TakenPlace {
    open: Arc<Mutex<Open>>,
    protocol: ProtocolKind,
}

/// The connections that are open.
struct Open {
    max: usize,
    /// Places that others leave free for a protocol that has fewer connections; 0 if it is off.
    kept: [usize; PROTOCOLS],
    counts: [usize; PROTOCOLS],
}

impl Open {
    fn new(max: usize, served: &[ProtocolKind]) -> Open {
        let kept = (max / PLACES_KEPT_PART).min(PLACES_KEPT_MAX);
        let kept = ProtocolKind::ALL.map(|kind| if served.contains(&kind) { kept } else { 0 });
        Open { max, kept, counts: [0; PROTOCOLS] }
    }

    /// Takes a place; false if there is none for this protocol.
    fn take(&mut self, protocol: ProtocolKind) -> bool {
        let used: usize = self.counts.iter().sum();
        let each = self.kept.iter().zip(&self.counts).enumerate();
        let others = each.filter(|(index, _)| *index != protocol as usize);
        let kept: usize = others.map(|(_, (kept, count))| kept.saturating_sub(*count)).sum();
        let has_room = used + kept < self.max;
        if has_room {
            self.counts[protocol as usize] += 1;
        }
        has_room
    }
}

impl Places {
    /// For so many connections of these protocols.
    pub(crate) fn new(max: usize, served: &[ProtocolKind], access: Access) -> Places {
        let guests = (max / GUESTS_PART).max(GUESTS_MIN);
        let guests = [(); PROTOCOLS].map(|()| Guests::new(guests));
        Places { open: Arc::new(Mutex::new(Open::new(max, served))), guests, access }
    }

    /// A place for a client; `None` if there is none.
    pub(crate) fn take(
        &self,
        protocol: ProtocolKind,
        from: Address,
    ) -> Option<(TakenPlace, Arc<Visitor>)> {
        if !lock(&self.open).take(protocol) {
            return None;
        }
        let place = TakenPlace { open: Arc::clone(&self.open), protocol };
        // The beanstalkd protocol has no tokens.
        let is_guest = protocol != ProtocolKind::Beanstalk && !self.access.is_open();
        let visitor = match is_guest {
            true => self.guests[protocol as usize].admit(from, protocol)?,
            false => Arc::new(Visitor::new(from, protocol, None)),
        };
        Some((place, visitor))
    }

    /// The guests of a protocol.
    #[cfg(test)]
    fn guests(&self, protocol: ProtocolKind) -> usize {
        self.guests[protocol as usize].count()
    }
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        lock(&self.open).counts[self.protocol as usize] -= 1;
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    // Nothing panics while it is held.
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{TokenEntry, hash_token};

    use ProtocolKind::{Beanstalk, Http, Resp};

    /// How many connections of each protocol get a place, one protocol after the other.
    fn check(
        max: usize,
        served: &[ProtocolKind],
        wanted: [(ProtocolKind, usize); 3],
        got: [usize; 3],
    ) {
        let mut open = Open::new(max, served);
        for ((protocol, count), got) in wanted.into_iter().zip(got) {
            let taken = (0..count).filter(|_| open.take(protocol)).count();
            assert_eq!(taken, got, "{protocol:?} of {wanted:?}");
        }
        assert!(open.counts.iter().sum::<usize>() <= max);
    }

    #[test]
    fn each_protocol_has_places_that_others_leave_free() {
        let all = [Http, Resp, Beanstalk];
        let each = |count| [(Resp, count), (Beanstalk, count), (Http, count)];
        check(300, &all, each(400), [264, 18, 18]);
        check(10_000, &all, each(20_000), [9_872, 64, 64]);
        // A protocol that is off needs none.
        check(300, &[Http, Resp], [(Resp, 400), (Http, 400), (Resp, 1)], [282, 18, 0]);
        check(300, &[Http], [(Http, 400), (Http, 1), (Http, 1)], [300, 0, 0]);
        // Those that have theirs keep nothing more free.
        check(300, &all, [(Http, 50), (Beanstalk, 50), (Resp, 400)], [50, 50, 200]);
        // Few connections are first come, first served.
        check(4, &all, each(3), [3, 1, 0]);
    }

    #[test]
    fn guests_are_few_and_of_many_addresses() {
        let entry = TokenEntry {
            name: "a".to_owned(),
            hash: hash_token("a"),
            scopes: vec!["*:*".parse().unwrap()],
        };
        let access = Access::new(vec![entry]).unwrap();
        let places = Places::new(400, &[Http, Resp, Beanstalk], access);
        let address = |last: u8| Address::from(std::net::SocketAddr::from(([192, 0, 2, last], 1)));
        let mut visitors = Vec::new();
        let mut come = |protocol, last, count: usize| {
            let taken = (0..count).filter_map(|_| places.take(protocol, address(last)));
            let before = visitors.len();
            visitors.extend(taken);
            visitors.len() - before
        };
        assert_eq!(come(Resp, 1, 400), 50, "half of all guests");
        assert_eq!(come(Resp, 2, 400), 25, "its quarter");
        assert_eq!(come(Http, 1, 400), 50, "other protocols are not concerned");
        assert_eq!(come(Beanstalk, 1, 10), 10, "without tokens there are no guests");
        assert_eq!(places.guests(Resp), 75);
        // Who presents a token makes room for another guest, and keeps its place.
        visitors.iter().for_each(|(_, visitor)| visitor.welcome());
        assert_eq!(places.guests(Resp), 0);
        assert!(visitors.iter().all(|(_, visitor)| !visitor.is_guest()));
        let more: Vec<_> = (0..400).filter_map(|_| places.take(Resp, address(1))).collect();
        assert_eq!(more.len(), 50);
        drop(visitors);
        // When three addresses have taken all, another one sends away who has been there longest.
        let third: Vec<_> = [2, 3]
            .into_iter()
            .flat_map(|last| std::iter::repeat_with(move || last).take(25))
            .filter_map(|last| places.take(Resp, address(last)))
            .collect();
        assert_eq!((third.len(), places.guests(Resp)), (50, 100));
        let fourth: Vec<_> = (0..400).filter_map(|_| places.take(Resp, address(4))).collect();
        assert_eq!((fourth.len(), places.guests(Resp)), (25, 100));
        let stay: Vec<bool> = more.iter().map(|(_, visitor)| visitor.is_guest()).collect();
        assert_eq!(stay, [[false; 25], [true; 25]].concat());
        assert!(third.iter().chain(&fourth).all(|(_, visitor)| visitor.is_guest()));
        assert!(places.take(Resp, address(1)).is_none(), "it has as many as the others");
        drop((more, third, fourth));
        assert_eq!(places.guests(Resp), 0);
        assert_eq!(lock(&places.open).counts, [0; PROTOCOLS]);
    }
}
