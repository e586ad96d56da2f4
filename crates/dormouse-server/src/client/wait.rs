//! Who waits on which topics: what connections tell of themselves while their reserves wait.

use std::sync::Arc;

use dormouse_core::backend::Request;
use dormouse_core::command::Command;
use dormouse_core::topic::TopicName;

use crate::visitor::Visitor;

/// The reserves of a batch that may wait. A batch that is answered at once tells nobody of them.
pub(super) struct Wait {
    visitor: Arc<Visitor>,
    topics: Vec<TopicName>,
    has_begun: bool,
}

impl Wait {
    /// `None` if no reserve of these may wait.
    pub(super) fn of(visitor: &Arc<Visitor>, requests: &[Request]) -> Option<Wait> {
        let mut topics = Vec::new();
        for request in requests {
            if let Command::Reserve(reserve) = &request.command
                && reserve.wait_ms > 0
            {
                topics.extend_from_slice(&reserve.topics);
            }
        }
        let visitor = || Arc::clone(visitor);
        (!topics.is_empty()).then(|| Wait { visitor: visitor(), topics, has_begun: false })
    }

    /// There was no answer at once.
    pub(super) fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.visitor.begin_wait(&self.topics);
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if self.has_begun {
            self.visitor.end_wait(&self.topics);
        }
    }
}
