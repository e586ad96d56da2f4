//! The words for the states of a job.

use dormouse_core::job::State;

/// Every state, in the order of a job's life.
pub const STATES: [State; 5] =
    [State::Delayed, State::Ready, State::Leased, State::Dead, State::Done];

/// Reads the word for a state.
pub(crate) fn parse_state(word: &str) -> Option<State> {
    STATES.into_iter().find(|state| state.as_str() == word)
}
