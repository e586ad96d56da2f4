//! The web console in a real browser, served by the program itself.
//!
//! Pictures of every screen are left in `target/console-screenshots/`, for people to look at.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "../serve/process.rs"]
#[allow(dead_code, reason = "each suite uses its part of it")]
mod process;

mod access;
mod actions;
mod axe;
mod console;
mod gateway;
mod hostile;
mod keyboard;
mod live;
mod screens;
mod wrong;
