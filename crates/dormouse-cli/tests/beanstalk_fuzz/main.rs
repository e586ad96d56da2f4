//! The same commands to `dormouse beanstalkd` and to the original, and the same answers.
//!
//! `docs/beanstalk.md` lists what may differ; everything else must not. The original is not a part
//! of this repository, so these tests are ignored: `cargo xtask foreign` fetches it and runs them.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod client;
mod compare;
mod generate;
mod ids;
mod malformed;
mod pair;
mod round;
mod script;
mod server;
mod setup;
mod time;

use dormouse_check::generate::seed::soak;

#[test]
#[ignore = "needs the original: cargo xtask foreign"]
fn soak_beanstalk_fuzz() {
    let (mut rounds, mut commands) = (0, 0);
    soak(|seed| {
        if rounds == 0 {
            println!("beanstalk fuzz: the first seed is DORMOUSE_SEED={seed}");
        }
        rounds += 1;
        commands += round::run(seed);
    });
    println!("beanstalk fuzz: {commands} commands in {rounds} rounds");
}

#[test]
#[ignore = "needs the original: cargo xtask foreign"]
fn time_passes_as_in_the_original() {
    time::run();
}
