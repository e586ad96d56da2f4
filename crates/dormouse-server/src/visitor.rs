//! The client at the other end of a connection, as far as it is known before it sends anything.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dormouse_core::topic::TopicName;
use tokio::sync::Notify;

use crate::client::Waiter;
use crate::metrics::ProtocolKind;
use crate::shares::Portion;
use crate::units::wall_ms;

/// Where a client comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    /// A network address; of an IPv6 address only the first half, because one client has all of
    /// the other.
    Ip(IpAddr),
    /// This machine, over a Unix socket.
    Local,
}

impl From<SocketAddr> for Address {
    fn from(addr: SocketAddr) -> Address {
        Address::Ip(match addr.ip().to_canonical() {
            IpAddr::V6(ip) if !ip.is_loopback() => {
                let [a, b, c, d, ..] = ip.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            ip => ip,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Ip(IpAddr::V6(ip)) if !ip.is_loopback() => write!(f, "{ip}/64"),
            Address::Ip(ip) => ip.fmt(f),
            Address::Local => f.write_str("a Unix socket"),
        }
    }
}

/// Who holds a share of a limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Claimant {
    /// All clients with the token of this name.
    Token(Arc<str>),
    /// All clients without a token at this address.
    Address(Address),
}

/// Who sent a request: the name of the token, if there is one, and whether it is an operator's.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastCaller {
    pub(crate) token: Option<Arc<str>>,
    pub(crate) is_operator: bool,
}

/// A client whose connection was accepted.
pub(crate) struct Visitor {
    pub(crate) address: Address,
    pub(crate) protocol: ProtocolKind,
    /// When it came, ms since 1970.
    pub(crate) since: u64,
    caller: Mutex<LastCaller>,
    /// Its place among the guests, until it presents a good token.
    guest: Mutex<Option<Portion<Address>>>,
    /// The topics that its reserves wait on, each as often as there are reserves.
    waits: Mutex<Vec<TopicName>>,
    dismissal: Notify,
}

impl Visitor {
    /// `guest` is its place among the guests; `None` where no token is needed.
    pub(crate) fn new(
        address: Address,
        protocol: ProtocolKind,
        guest: Option<Portion<Address>>,
    ) -> Visitor {
        Visitor {
            address,
            protocol,
            since: wall_ms(),
            caller: Mutex::default(),
            guest: Mutex::new(guest),
            waits: Mutex::default(),
            dismissal: Notify::new(),
        }
    }

    /// Who sent the last request.
    pub(crate) fn caller(&self) -> LastCaller {
        self.caller.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes who sends a request.
    pub(crate) fn note_caller(&self, caller: LastCaller) {
        *self.caller.lock().unwrap_or_else(PoisonError::into_inner) = caller;
    }

    /// How many of its reserves wait on this topic.
    pub(crate) fn waiting_on(&self, topic: &TopicName) -> usize {
        self.waits().iter().filter(|wait| *wait == topic).count()
    }

    fn waits(&self) -> MutexGuard<'_, Vec<TopicName>> {
        // Nothing panics while it is held.
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it needs a token and has presented none yet.
    pub(crate) fn is_guest(&self) -> bool {
        self.guest.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whose shares it uses: those of the token of this name, or of its address if it has none.
    pub(crate) fn claimant(&self, token: Option<Arc<str>>) -> Claimant {
        token.map_or(Claimant::Address(self.address), Claimant::Token)
    }

    /// Sends a guest away: its place is free for another one. Who is no guest any more stays.
    pub(crate) fn dismiss(&self) {
        let place = self.guest.lock().unwrap_or_else(PoisonError::into_inner).take();
        if place.is_some() {
            self.dismissal.notify_one();
        }
    }

    /// Resolves when it is sent away.
    pub(crate) async fn dismissed(&self) {
        self.dismissal.notified().await;
    }

    /// It has presented a good token: its place is free for another guest.
    pub(crate) fn welcome(&self) {
        *self.guest.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Waiter for Visitor {
    fn begin_wait(&self, topics: &[TopicName]) {
        self.waits().extend_from_slice(topics);
    }

    fn end_wait(&self, topics: &[TopicName]) {
        let mut waits = self.waits();
        for topic in topics {
            if let Some(index) = waits.iter().position(|wait| wait == topic) {
                waits.swap_remove(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_has_one_address() {
        let check = |addr: &str, shown: &str| {
            let address = Address::from(addr.parse::<SocketAddr>().unwrap());
            assert_eq!(address.to_string(), shown);
        };
        check("192.0.2.7:5000", "192.0.2.7");
        check("[::ffff:192.0.2.7]:5000", "192.0.2.7");
        check("[2001:db8:1:2:3:4:5:6]:5000", "2001:db8:1:2::/64");
        check("[::1]:5000", "::1");
    }
}
