//! The matrix of rights: every route and every command, by every way to name its subject, with
//! every verb and role on every kind of scope, inside and outside of it.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "../resp/client.rs"]
#[allow(dead_code, reason = "shared with the tests of RESP, which use all of it")]
mod client;
mod http;
mod matrix;
mod resp;
mod revoked;
mod server;
#[path = "../resp/value.rs"]
#[allow(dead_code, reason = "shared with the tests of RESP, which use all of it")]
mod value;
