//! One file per verb of the scripts: how it is asked and how its answer is read.

pub(crate) mod ack;
pub(crate) mod extend;
pub(crate) mod nack;
pub(crate) mod put;
pub(crate) mod reserve;
