//! What goes over the sockets: the same jobs in each dialect, and what comes back.

pub(super) mod body;
mod puts;
pub(super) mod resp;
mod speech;

pub(super) use puts::Puts;
pub(super) use speech::{Speech, Taken};
