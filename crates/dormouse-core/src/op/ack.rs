//! ack: the work is done, the job goes.

/// What ack, nack, release or kill came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was done.
    Done,
    /// Nack or expiry spent the last attempt: the job is dead.
    Dead,
    /// The job is not there (any more): acking twice is harmless.
    Gone,
}
