//! Numbers that are this process' own while it lives: ports, networks.

use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports that the system gives to clients: a client must not get the port of a server
/// that is down for a moment, nor connect to itself there.
const PORT_MIN: u16 = 12_000;
const PORTS: u16 = 10_000;
/// The bus of a cluster's node is as far above its port.
pub(crate) const BUS: u16 = 10_000;

/// Held for all other processes: an abstract socket goes with its process, whatever ends it.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) number: u16,
    _held: UnixListener,
}

impl Claim {
    /// The first number below `count` that nobody has and `is_free` likes; each process begins
    /// elsewhere.
    pub(crate) fn new(kind: &str, count: u16, is_free: impl Fn(u16) -> bool) -> Claim {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let first = std::process::id().wrapping_mul(7919);
        let first = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % u32::from(count);
        for next in first..first + u32::from(count) {
            let number = u16::try_from(next % u32::from(count)).expect("smaller than a u16");
            let name = SocketAddr::from_abstract_name(format!("dormouse-check-{kind}-{number}"));
            let held = UnixListener::bind_addr(&name.expect("a short name"));
            if let Ok(held) = held
                && is_free(number)
            {
                return Claim { number, _held: held };
            }
        }
        panic!("no free {kind} among {count}");
    }
}

/// A free port whose bus port is free too.
#[derive(Debug)]
pub(crate) struct Port(Claim);

impl Port {
    pub(crate) fn claim() -> Port {
        let is_free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        Port(Claim::new("port", PORTS, |number| {
            is_free(PORT_MIN + number) && is_free(PORT_MIN + number + BUS)
        }))
    }

    pub(crate) fn number(&self) -> u16 {
        PORT_MIN + self.0.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gets_a_number_that_is_held() {
        let all: Vec<Claim> = (0..3).map(|_| Claim::new("test", 3, |_| true)).collect();
        let mut numbers: Vec<u16> = all.iter().map(|claim| claim.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2]);
        drop(all);
        assert_eq!(Claim::new("test", 3, |number| number == 1).number, 1);
    }
}
