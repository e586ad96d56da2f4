//! The ticks of cron rules against slow and simple ways to find them, and against another crate.
//!
//! `DORMOUSE_SEED` repeats a random test.

#![allow(clippy::print_stdout, reason = "campaigns tell what they have covered")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod agreement;
mod brute_force;
mod croner_differs;
mod naive;
mod random_rule;

use dormouse_core::tick::Cron;
use jiff::tz::TimeZoneDatabase;

fn cron(text: &str, zone: &str, zones: &TimeZoneDatabase) -> Cron {
    Cron::new(text, zone, zones).unwrap_or_else(|error| panic!("{text:?} {zone}: {error}"))
}
