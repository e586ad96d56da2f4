//! The conformance suite: the rules of every operation, one file per verb with the name of its
//! file in dormouse-core's `op/`, run over every backend.
//!
//! A case speaks to a [`Subject`] only: whole operations in, answers out, and a clock that moves
//! when it is told to. So the same case holds for memory, for disk and for whatever comes. Nothing
//! here sleeps: answers are waited for, and that nothing happened is shown by the answer to a
//! later command.

/// Lists the cases of a file: as `CASES`, to run them by name, and as a macro of the verb's
/// name, to write something for each. A function that is not listed is dead code.
macro_rules! cases {
    ($verb:ident: $($case:ident)+) => {
        cases! { @ ($) $verb: $($case)+ }
    };
    (@ ($dollar:tt) $verb:ident: $($case:ident)+) => {
        pub(super) const CASES: super::Cases = &[$((stringify!($case), $case)),+];

        /// Calls a macro with the verb and its cases.
        #[macro_export]
        macro_rules! $verb {
            ($dollar each:ident) => { $dollar each! { $verb: $($case)+ } };
        }
    };
}

mod ack;
mod cancel;
mod chain;
mod change_schedule;
mod check;
pub mod client;
mod dead_letters;
mod deadlines;
pub mod directory;
mod done;
mod extend;
mod forecast;
mod get;
mod get_schedule;
pub mod hosts;
mod kick;
mod kill;
mod limits;
mod list;
mod liveness;
mod lock;
mod locks;
mod nack;
mod pause;
mod peek;
mod prelude;
mod purge;
mod push;
mod pushes;
mod put;
mod put_limits;
mod put_on_key;
mod put_schedule;
pub mod redis;
mod release;
mod remove_schedule;
mod reschedule;
mod reserve;
mod reserve_id;
mod reserve_wait;
mod revive;
mod run_schedule;
mod schedules;
pub mod served;
mod session;
mod set_topic;
mod stats;
pub mod subject;
mod topics;
mod topics_of;
mod verbs;
mod withdraw;

pub use subject::{Host, Subject};

/// The cases of one file: name and what to run.
type Cases = &'static [(&'static str, fn(&mut Subject))];

/// All files and their cases.
const SUITE: &[(&str, Cases)] = &[
    ("ack", ack::CASES),
    ("cancel", cancel::CASES),
    ("chain", chain::CASES),
    ("change_schedule", change_schedule::CASES),
    ("check", check::CASES),
    ("dead_letters", dead_letters::CASES),
    ("deadlines", deadlines::CASES),
    ("done", done::CASES),
    ("extend", extend::CASES),
    ("forecast", forecast::CASES),
    ("get", get::CASES),
    ("get_schedule", get_schedule::CASES),
    ("kick", kick::CASES),
    ("kill", kill::CASES),
    ("limits", limits::CASES),
    ("list", list::CASES),
    ("liveness", liveness::CASES),
    ("lock", lock::CASES),
    ("locks", locks::CASES),
    ("nack", nack::CASES),
    ("pause", pause::CASES),
    ("peek", peek::CASES),
    ("purge", purge::CASES),
    ("push", push::CASES),
    ("pushes", pushes::CASES),
    ("put", put::CASES),
    ("put_limits", put_limits::CASES),
    ("put_on_key", put_on_key::CASES),
    ("put_schedule", put_schedule::CASES),
    ("release", release::CASES),
    ("remove_schedule", remove_schedule::CASES),
    ("reschedule", reschedule::CASES),
    ("reserve", reserve::CASES),
    ("reserve_id", reserve_id::CASES),
    ("reserve_wait", reserve_wait::CASES),
    ("revive", revive::CASES),
    ("run_schedule", run_schedule::CASES),
    ("schedules", schedules::CASES),
    ("session", session::CASES),
    ("set_topic", set_topic::CASES),
    ("stats", stats::CASES),
    ("topics", topics::CASES),
    ("topics_of", topics_of::CASES),
    ("withdraw", withdraw::CASES),
];

/// The names of all files.
pub fn verbs() -> Vec<&'static str> {
    SUITE.iter().map(|(verb, _)| *verb).collect()
}

/// Runs one case; it panics where the backend does not keep the rules.
pub fn run(verb: &str, case: &str, subject: &mut Subject) {
    let cases = SUITE.iter().find(|(name, _)| *name == verb).map_or(&[][..], |(_, cases)| cases);
    let (_, run) = cases
        .iter()
        .find(|(name, _)| *name == case)
        .unwrap_or_else(|| panic!("there is no case {verb}::{case}"));
    run(subject);
}
