//! Simulation: a disk that loses, tears and fails.

pub mod disk;
pub mod rng;
