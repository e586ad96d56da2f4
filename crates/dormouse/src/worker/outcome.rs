//! How a handler ends its job.

use std::fmt::Display;
use std::time::Duration;

/// How a job ends after its handler.
///
/// Most handlers return `Result<(), E>`: `Ok` is done, `Err` is failed with the error's text. This
/// type expresses the rest, inside an `Ok` where the handler also uses `?`.
///
/// ```
/// # use dormouse::{Job, Outcome};
/// async fn charge(job: Job) -> Result<Outcome, std::io::Error> {
///     let Ok(card) = job.text() else { return Ok(Outcome::kill("the body is no card number")) };
///     std::fs::write("/dev/null", card)?;
///     Ok(Outcome::Done)
/// }
/// # drop(charge);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The job is acked and gone.
    Done,
    /// The job is retried, or is dead if that was its last attempt.
    Failed {
        /// Kept with the job.
        error: String,
        /// Replaces the job's backoff.
        delay: Option<Duration>,
    },
    /// The job is dead at once: trying again would not help.
    Kill {
        /// Kept with the job.
        error: String,
    },
    /// The job is ready again, this attempt not spent.
    Release {
        /// Ready after this delay instead of now.
        delay: Option<Duration>,
    },
}

impl Outcome {
    /// Failed; try again after the job's backoff.
    pub fn failed(error: impl Display) -> Outcome {
        Outcome::Failed { error: text(error), delay: None }
    }

    /// Failed; try again after this delay.
    pub fn retry_in(delay: Duration, error: impl Display) -> Outcome {
        Outcome::Failed { error: text(error), delay: Some(delay) }
    }

    /// Failed for good.
    pub fn kill(error: impl Display) -> Outcome {
        Outcome::Kill { error: text(error) }
    }

    /// Not tried.
    pub fn release() -> Outcome {
        Outcome::Release { delay: None }
    }
}

/// The alternate form, in which error types that have causes show them.
fn text(error: impl Display) -> String {
    format!("{error:#}")
}

/// A result of a handler: nothing, an [`Outcome`], or a `Result` of these whose error can be
/// shown.
pub trait IntoOutcome {
    /// The outcome for the job.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Done
    }
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl<T: IntoOutcome, E: Display> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(outcome) => outcome.into_outcome(),
            Err(error) => Outcome::failed(error),
        }
    }
}
