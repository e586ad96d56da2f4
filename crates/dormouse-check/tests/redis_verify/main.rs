//! `verify` on real servers: a sound installation is found sound, also under load, and whatever is
//! damaged by hand is found, named and mended, without the loss of a job.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod damage;
mod header;
mod healthy;
mod installation;
mod register;
mod size;
