//! Random input: numbers from a printed seed, commands, bodies, histories.

pub mod body;
pub(crate) mod command;
pub mod minimise;
pub mod op;
pub mod profile;
pub mod rng;
pub(crate) mod schedule;
pub mod script;
pub mod seed;
pub(crate) mod vocabulary;
