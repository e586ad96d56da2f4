//! Pushes, to receivers that behave well and badly. All traffic stays on loopback.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod addresses;
mod answers;
mod authority;
mod breaker;
mod hostile;
mod life;
mod receiver;
mod rig;
mod routes;
mod secrets;
mod tls;
mod urls;
