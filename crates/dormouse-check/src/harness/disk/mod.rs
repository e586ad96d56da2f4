//! A store on the simulated disk, driven one action at a time.

pub mod damage;
pub mod driver;
mod lockstep;
pub mod minimise;
mod restart;
pub mod simulation;
