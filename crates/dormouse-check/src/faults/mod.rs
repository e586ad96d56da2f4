//! Faults: a disk that loses, proxies that lose and delay, clocks that are wrong, networks cut.

pub mod clock;
pub mod disk;
pub mod lossy;
pub(crate) mod network;
pub mod relay;
