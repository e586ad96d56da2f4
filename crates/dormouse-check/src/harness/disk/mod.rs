//! A store on the simulated disk, driven one action at a time.

mod asking;
pub mod damage;
pub mod driver;
mod lockstep;
pub mod minimise;
pub mod op;
mod restart;
pub mod simulation;
