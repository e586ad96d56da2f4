//! Who waits on which topics: what connections tell of themselves while their reserves wait.

use std::sync::Arc;

use dormouse_core::backend::Request;
use dormouse_core::command::Command;
use dormouse_core::topic::TopicName;

/// Somebody whose reserves may wait, and who is told when they do.
pub(crate) trait Waiter: Send + Sync {
    /// Its reserves begin to wait on these topics.
    fn begin_wait(&self, topics: &[TopicName]);
    /// The end of a wait that has begun.
    fn end_wait(&self, topics: &[TopicName]);
}

/// The reserves of a batch that may wait. A batch that is answered at once tells nobody of them.
pub(super) struct Wait {
    waiter: Arc<dyn Waiter>,
    topics: Vec<TopicName>,
    has_begun: bool,
}

impl Wait {
    /// `None` if no reserve of these may wait.
    pub(super) fn of(waiter: &Arc<impl Waiter + 'static>, requests: &[Request]) -> Option<Wait> {
        let mut topics = Vec::new();
        for request in requests {
            if let Command::Reserve(reserve) = &request.command
                && reserve.wait_ms > 0
            {
                topics.extend_from_slice(&reserve.topics);
            }
        }
        let waiter = || Arc::clone(waiter) as Arc<dyn Waiter>;
        (!topics.is_empty()).then(|| Wait { waiter: waiter(), topics, has_begun: false })
    }

    /// There was no answer at once.
    pub(super) fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.waiter.begin_wait(&self.topics);
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if self.has_begun {
            self.waiter.end_wait(&self.topics);
        }
    }
}
