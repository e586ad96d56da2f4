//! How long a caller may hold a job or a lock.
//!
//! What is held is limited for all together, so a client that holds it for years takes it from
//! others. Whoever may set a topic's ttr, an operator, may hold its jobs for as long as the rules
//! allow.

use std::sync::atomic::Ordering;
use std::time::Duration;

use dormouse_core::error::Error;

use super::{Access, Grant, Verb};

impl Access {
    /// Sets the longest ttr and lock ttl of callers who are not operators, in all clones of this
    /// one.
    pub(crate) fn limit_ttr(&self, max: Duration) {
        let max_ms = i64::try_from(max.as_millis()).unwrap_or(i64::MAX);
        self.shared.ttr_ms_max.store(max_ms, Ordering::Relaxed);
    }

    /// Whether a caller may hold jobs of this topic, or the lock of this name, for so long; without
    /// a name, a job whose topic is not known. `field` is what the caller calls the span.
    pub(crate) fn check_ttr(
        &self,
        grant: &Grant,
        field: &str,
        span_ms: Option<i64>,
        name: Option<&str>,
    ) -> Result<(), Error> {
        let max_ms = self.shared.ttr_ms_max.load(Ordering::Relaxed);
        let is_operator = || match name {
            Some(name) => grant.allows(Verb::SetTopic, name),
            None => grant.covers_all(Verb::SetTopic),
        };
        match span_ms {
            Some(ms) if ms > max_ms && !is_operator() => Err(Error::invalid(format!(
                "{field} is {ms} ms, and without the right `set_topic` it is at most {max_ms} ms \
                 (ttr_max); give less and renew it in time, or have ttr_max raised"
            ))),
            _ => Ok(()),
        }
    }
}
