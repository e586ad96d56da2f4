//! The job that a handler works on.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use tokio::sync::watch;

use crate::leased_job::LeasedJob;

/// The job that a handler works on: a [`LeasedJob`] that also knows whether its lease is lost.
///
/// The worker renews the lease and settles the job when the handler returns; the handler needs no
/// token.
#[derive(Clone)]
pub struct Job(Arc<Inner>);

struct Inner {
    leased: LeasedJob,
    lost: watch::Sender<bool>,
}

impl Job {
    pub(crate) fn new(leased: LeasedJob) -> Job {
        Job(Arc::new(Inner { leased, lost: watch::Sender::new(false) }))
    }

    /// Whether the job is no longer this handler's: it was cancelled, another consumer has it, or
    /// the worker was stopped and its grace is over. The handler's outcome then changes nothing,
    /// so it should stop.
    pub fn is_lost(&self) -> bool {
        *self.0.lost.borrow()
    }

    /// Ends when the job [is lost](Job::is_lost); for use in `select!`.
    pub async fn lost(&self) {
        let mut lost = self.0.lost.subscribe();
        // The sender is in `self`, so the wait ends only with the value.
        let _ = lost.wait_for(|lost| *lost).await;
    }

    pub(crate) fn lose(&self) {
        self.0.lost.send_replace(true);
    }
}

impl Deref for Job {
    type Target = LeasedJob;

    fn deref(&self) -> &LeasedJob {
        &self.0.leased
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("leased", &self.0.leased)
            .field("lost", &self.is_lost())
            .finish()
    }
}
