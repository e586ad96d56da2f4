//! The disk backend of Dormouse: the machine of dormouse-core over a journal and sorted runs.

pub mod backup;
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
pub mod run;
pub mod store;
pub mod timeline;
pub mod verify;
