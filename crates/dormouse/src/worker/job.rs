//! What a handler gets.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use tokio::sync::watch;

use crate::leased_job::LeasedJob;

/// A job in a handler's hands: all that [`LeasedJob`] tells, and whether the hold still stands.
///
/// The worker renews the lease and says what became of the job when the handler returns; the
/// handler needs no token.
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

    /// Whether the job is no longer this handler's: it was cancelled, somebody else has it, or the
    /// worker stops and could not wait any longer. What the handler returns then changes nothing,
    /// so it may as well stop.
    pub fn is_lost(&self) -> bool {
        *self.0.lost.borrow()
    }

    /// Ends when the job [is lost](Job::is_lost); for use in `select!`.
    pub async fn lost(&self) {
        let mut lost = self.0.lost.subscribe();
        // The sender is in `self`, so the only way to end is the word itself.
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
