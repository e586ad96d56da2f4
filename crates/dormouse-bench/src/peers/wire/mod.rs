//! The bytes on the sockets: the same jobs in each dialect, and the replies.

pub(super) mod body;
mod codec;
mod puts;
pub(super) mod resp;

pub(super) use codec::{Codec, TOPIC, Taken};
pub(super) use puts::Puts;
