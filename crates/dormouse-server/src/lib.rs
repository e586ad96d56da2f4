//! Any [`Backend`](dormouse_core::backend::Backend) behind HTTP.
//!
//! ```text
//!   accept loop -> wire (patience) -> hyper -> guard (Host, Origin) -> route/<verb>.rs
//!        -> caller (who may) -> form (JSON) -> client -> Backend
//! ```
//! Protocols know no rules: they read a request, ask the backend, and write the answer.

// Time is an argument: few places read a clock, and they say so.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod acceptor;
pub mod access;
mod backup;
mod beanstalk;
mod budget;
mod client;
mod events;
mod http;
mod likeness;
pub mod limits;
mod metrics;
mod pipeline;
mod resp;
mod server;
mod tls;
pub mod units;
mod walk;

pub use acceptor::StartError;
pub use backup::{Backup, MakeBackup};
pub use beanstalk::{BeanstalkAddr, BeanstalkOptions, Drain};
pub use http::openapi;
pub use likeness::nearest;
pub use server::{Options, Server};
pub use tls::{Tls, TlsError, TlsFiles};
