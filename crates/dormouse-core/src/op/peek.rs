//! peek: the next job of a state, without leasing it.

use crate::job::State;
use crate::topic::TopicName;

/// Look at the next job of a state: ready as reserve would give it, delayed by due time, dead by
/// age, leased by expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    /// Where.
    pub topic: TopicName,
    /// Which state.
    pub state: State,
}
