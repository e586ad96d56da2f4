//! How people write time, backoffs, rates and states: one reader for HTTP, RESP and the command
//! line.
//!
//! Readers return what was written, within the range of the type; whether the value is within a
//! limit is for the rules to say. A text that cannot be read gives an error that shows what to
//! write instead.

mod backoff;
mod clock;
mod rate;
mod state;
mod time;

pub use backoff::{BackoffForm, parse_backoff};
pub(crate) use backoff::{BackoffOut, backoff_words};
pub(crate) use clock::wall_ms;
pub use rate::parse_rate;
pub(crate) use rate::{RateForm, RateOut, rate_words};
pub use state::STATES;
pub(crate) use state::parse_state;
pub(crate) use time::{At, InstantMs};
pub use time::{SpanMs, parse_instant, parse_span};
