//! Random input: numbers from a printed seed, commands, bodies, histories.

pub mod body;
pub mod rng;
pub mod script;
pub mod seed;
pub(crate) mod vocabulary;
