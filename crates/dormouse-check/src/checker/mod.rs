//! Checkers of histories: the properties that answers must have, whatever gave them. Nothing here
//! knows the code of the rules.
//!
//! `answers` follows a store on one thread, as it answers; `history` looks back at the events
//! (`event`) of many threads and processes, where calls overlap and some have no answer.

pub mod answers;
pub mod event;
pub mod history;
