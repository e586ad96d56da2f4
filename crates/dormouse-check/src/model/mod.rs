//! What the disk store is compared with: the same rules over the in-memory timeline.
//!
//! [`Oracle`] is fed the same commands at the same times and must give the same answers. It keeps
//! the facts of every batch, so that after a crash it can be put back to the batch that the store
//! recovered. [`compare`] looks at everything both know.

mod compare;
mod oracle;

pub use compare::{Known, compare, compare_next};
pub use oracle::Oracle;
