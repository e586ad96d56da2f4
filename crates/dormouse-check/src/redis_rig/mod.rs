//! Faults of real Redis servers under load: crews whose history is checked, a ledger that finds out
//! what a failover lost, a relay that loses and delays what it carries, a clock that goes wrong,
//! and owners of locks.

pub mod clock;
pub mod crew;
pub mod ledger;
pub mod locks;
pub mod probe;
pub mod relay;
