//! forecast: jobs coming due per step of time.

use crate::topic::TopicName;

/// How many jobs come due in each step of `[from_ms, to_ms)`, wall ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// Where.
    pub topic: TopicName,
    /// Begin of the first step.
    pub from_ms: u64,
    /// End of the last step.
    pub to_ms: u64,
    /// Length of a step; at most `limits::FORECAST_STEPS_MAX` of them.
    pub step_ms: u64,
}
