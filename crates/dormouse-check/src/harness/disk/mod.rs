//! A store on the simulated disk, driven one action at a time.

// A simulation is the same each time.
#![warn(clippy::disallowed_methods)]

pub mod damage;
pub mod driver;
mod lockstep;
pub mod minimise;
mod restart;
pub mod simulation;
