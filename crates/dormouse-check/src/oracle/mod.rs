//! Models that predict: the same rules over the in-memory timeline.
//!
//! [`Oracle`] is fed the same commands at the same times as the disk store and must give the same
//! answers. It keeps the facts of every batch, so that after a crash it can be put back to the
//! batch that the store recovered. [`compare`] looks at everything both know.
//!
//! `clocked` predicts Redis: it has no batches, but a clock that stops at every instant that
//! matters. Redis numbers things in its own way, so `names` translates and `answers` compares.

pub(crate) mod answers;
pub(crate) mod clocked;
mod compare;
mod deadlines;
pub(crate) mod names;
mod store;
pub(crate) mod ticks;

pub use compare::{Known, compare, compare_next};
pub use store::Oracle;
