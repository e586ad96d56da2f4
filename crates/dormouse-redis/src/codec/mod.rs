//! One file per verb of the scripts: how it is asked and how its answer is read.

pub(crate) mod ack;
pub(crate) mod cancel;
pub(crate) mod extend;
pub(crate) mod forecast;
pub(crate) mod get;
pub(crate) mod kick;
pub(crate) mod kill;
pub(crate) mod list;
pub(crate) mod lock;
pub(crate) mod nack;
pub(crate) mod pause;
pub(crate) mod peek;
pub(crate) mod purge;
pub(crate) mod put;
pub(crate) mod reschedule;
pub(crate) mod reserve;
pub(crate) mod reserve_id;
pub(crate) mod revive;
pub(crate) mod stats;
pub(crate) mod target;
#[cfg(test)]
mod tests;
