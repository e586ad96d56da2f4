//! forecast: jobs coming due per step of time.

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::limits::FORECAST_STEPS_MAX;
use crate::machine::{ClassWalk, LongCommand, Machine, Portion, PortionBudget, Rule};
use crate::place::Class;
use crate::time::{Clock, Now};
use crate::timeline::Timeline;
use crate::topic::{TopicName, TopicNo};

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

/// A forecast between two portions.
#[derive(Debug)]
pub(crate) struct ForecastProgress {
    forecast: Forecast,
    /// When it began: what it counts is a matter of that instant.
    now: Now,
    topic: Option<TopicNo>,
    /// The class that is being counted, and those behind it.
    class: Option<Class>,
    walk: ClassWalk,
    /// Steps of the present class that are counted.
    counted: usize,
    counts: Vec<u64>,
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn forecast(&mut self, now: Now, forecast: Forecast) -> Rule<LongCommand> {
        let counts = vec![0; forecast.steps()?];
        let topic = self.topics.find(&forecast.topic);
        let (class, walk, counted) = (None, ClassWalk::new(), 0);
        let progress = ForecastProgress { forecast, now, topic, class, walk, counted, counts };
        Ok(LongCommand::Forecast(Box::new(progress)))
    }

    pub(crate) fn forecast_portion(&mut self, mut progress: ForecastProgress) -> Rule<Portion> {
        let Some(topic) = progress.topic else {
            return Ok(Portion::Done(Reply::Forecast(progress.counts)));
        };
        let mut budget = PortionBudget::new();
        while budget.is_left() {
            if progress.class.is_none() {
                progress.class = self.next_class(topic, &mut progress.walk)?;
            }
            let Some(class) = progress.class else {
                return Ok(Portion::Done(Reply::Forecast(progress.counts)));
            };
            let (from, ends) = progress.next_steps(class.clock());
            let counts = self.timeline.count_steps(topic, class, from, &ends)?;
            let jobs = counts.iter().filter(|count| **count > 0).count();
            // A step with jobs is found by halves.
            budget.look((4 * jobs + 2).saturating_mul(self.timeline.sources()));
            let sums = progress.counts.iter_mut().skip(progress.counted);
            sums.zip(&counts).for_each(|(sum, count)| *sum += count);
            progress.counted += counts.len();
            if counts.len() < ends.len() {
                break;
            }
            (progress.class, progress.counted) = (None, 0);
        }
        Ok(Portion::More(LongCommand::Forecast(Box::new(progress))))
    }
}

impl ForecastProgress {
    /// Where the next step of the present class begins, and where it and all after it end.
    fn next_steps(&self, clock: Clock) -> (u64, Vec<u64>) {
        let Forecast { from_ms, to_ms, step_ms, .. } = self.forecast;
        let end_ms =
            |steps: usize| from_ms.saturating_add(step_ms.saturating_mul(steps as u64)).min(to_ms);
        let instant = |wall_ms: u64| self.now.instant_of(clock, wall_ms);
        let ends = (self.counted + 1..=self.counts.len()).map(|steps| instant(end_ms(steps)));
        (instant(end_ms(self.counted)), ends.collect())
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
