//! Simulation: a disk that loses, tears and fails, and a store driven over it one action at a time.

pub mod disk;
pub mod driver;
pub mod judge;
pub mod minimise;
pub mod op;
pub mod rng;
pub mod script;
pub mod world;

mod asking;
mod both;
mod restart;
