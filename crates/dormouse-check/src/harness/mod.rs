//! The machinery that runs the tests: a store on the simulated disk, real processes, real Redis
//! servers.

pub mod disk;
pub mod process;
pub mod redis;
