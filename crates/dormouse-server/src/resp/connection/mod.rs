//! Commands about the connection and the server, as Redis clients know them.

pub(super) mod auth;
pub(super) mod basic;
pub(super) mod client;
pub(super) mod command;
pub(super) mod hello;
pub(super) mod info;
