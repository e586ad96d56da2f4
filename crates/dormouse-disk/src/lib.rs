//! The disk backend of Dormouse: the machine of dormouse-core over a journal and sorted runs.

// Time is an argument: few places read a clock, and they say so.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod backup;
pub mod checkpoint;
pub mod clock;
pub mod codec;
pub mod damage;
pub mod disk;
pub mod engine;
mod frontier;
pub mod journal;
pub mod lock;
pub mod manifest;
mod memtable;
mod pace;
pub mod run;
mod sort;
pub mod store;
pub mod timeline;
pub mod verify;
