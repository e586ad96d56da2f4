//! forecast: jobs coming due per step of time.

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::limits::FORECAST_STEPS_MAX;
use crate::machine::{Machine, Rule};
use crate::time::Now;
use crate::timeline::Timeline;
use crate::topic::TopicName;

/// How many jobs come due in each step of `[from_ms, to_ms)`, wall ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// The topic.
    pub topic: TopicName,
    /// Begin of the first step.
    pub from_ms: u64,
    /// End of the last step.
    pub to_ms: u64,
    /// Length of a step; at most `limits::FORECAST_STEPS_MAX` of them.
    pub step_ms: u64,
}

operation! {
    Forecast => Vec<u64>,
        request => Command::Forecast(request), Reply::Forecast(reply) => Ok(reply);
}

impl<T: Timeline> Machine<T> {
    /// Differences of ranks: jobs due before a step's end less those due before its beginning.
    pub(crate) fn forecast(&mut self, now: Now, forecast: &Forecast) -> Rule<Reply> {
        let steps = forecast.steps()?;
        let mut counts = vec![0; steps];
        let Some(topic) = self.topics.find(&forecast.topic) else {
            return Ok(Reply::Forecast(counts));
        };
        for class in self.timeline.classes(topic)? {
            let mut due_before = |wall_ms: u64| match now.instant_of(class.clock(), wall_ms) {
                0 => Ok(0),
                instant => self.timeline.count(topic, class, instant - 1),
            };
            let mut before = due_before(forecast.from_ms)?;
            let mut end_ms = forecast.from_ms;
            for count in &mut counts {
                end_ms = end_ms.saturating_add(forecast.step_ms).min(forecast.to_ms);
                let after = due_before(end_ms)?;
                *count += after.saturating_sub(before);
                before = after;
            }
        }
        Ok(Reply::Forecast(counts))
    }
}

impl Forecast {
    /// How many steps it has; the last one may be shorter.
    pub fn steps(&self) -> Result<usize, Error> {
        if self.step_ms == 0 || self.to_ms <= self.from_ms {
            return Err(Error::invalid(format!(
                "forecast from {} to {} in steps of {} ms has no step; give from < to and a step \
                 of at least 1 ms",
                self.from_ms, self.to_ms, self.step_ms
            )));
        }
        let steps = (self.to_ms - self.from_ms).div_ceil(self.step_ms);
        usize::try_from(steps).ok().filter(|&steps| steps <= FORECAST_STEPS_MAX).ok_or_else(|| {
            Error::invalid(format!(
                "forecast has {steps} steps; give at most {FORECAST_STEPS_MAX}, with a longer step"
            ))
        })
    }
}
