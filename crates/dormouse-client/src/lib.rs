//! A running Dormouse server as a [`Backend`](dormouse_core::backend::Backend), over RESP.
//!
//! ```text
//!   submit -> State (one lock) -> encode into the outbox -> the caller writes
//!   sinks <- ReplyReader <- Scanner <- the reader's thread, which polls every socket
//! ```
//!
//! ARCHITECTURE.md has the chapter "The client"; docs/clients/rust.md is for users.

mod backend;
pub mod codec;
mod connect;
mod deadline;
pub mod limits;
mod open;
mod options;
mod pause;
mod reader;
mod repeat;
mod shared;
mod state;
mod stream;
#[cfg(feature = "tls")]
mod tls;
mod url;

pub use backend::RemoteBackend;
pub use options::{ConnectOptions, Secret};
