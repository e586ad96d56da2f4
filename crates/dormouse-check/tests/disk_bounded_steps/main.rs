//! Work per step is bounded, whatever it meets on disk.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod cost;
mod portions;
mod space;
mod support;
