//! Serves any [`Backend`](dormouse_core::backend::Backend) over HTTP, RESP (the protocol of Redis)
//! and the beanstalkd protocol.
//!
//! ```text
//!   acceptor -> http/      socket, hyper, guard, route/<verb>.rs -+
//!            -> resp/      pipeline/, verb/<verb>.rs -------------+-> client/ -> Backend
//!            -> beanstalk/ pipeline/, verb/<verb>.rs -------------+
//! ```
//! Protocols know no rules: they parse a request, send its command to the backend, and write the
//! reply. ARCHITECTURE.md follows two requests from file to file.

// Time is an argument: a file that reads a clock allows this lint and says why.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod about;
mod acceptor;
pub mod access;
mod audit;
mod backup;
mod beanstalk;
mod budget;
mod client;
mod events;
mod forecasts;
mod guests;
mod holder;
mod http;
mod likeness;
pub mod limits;
mod metrics;
mod pipeline;
mod places;
mod pulse;
pub mod push;
mod ranking;
mod reloads;
mod resp;
mod roster;
mod scan;
mod server;
mod shares;
mod stop;
mod test_clock;
mod tls;
mod ui;
pub mod units;
mod visitor;
mod walk;

pub use about::{About, AboutOption};
pub use acceptor::StartError;
pub use backup::{Backup, MakeBackup};
pub use beanstalk::{BeanstalkAddr, BeanstalkOptions, Drain};
pub use http::openapi;
pub use likeness::nearest;
pub use reloads::{Reloaded, Reloads};
pub use server::{Options, Server};
pub use test_clock::TestClock;
pub use tls::{Tls, TlsError, TlsFiles};
pub use ui::{UiColor, UiMode, UiName, UiOptions};
