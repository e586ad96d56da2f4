//! Answers on their way out, in groups: who waits for several is woken once.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use dormouse_core::backend::{Answer, Sink, Ticket};
use tokio::sync::Notify;

type Addressed = (Arc<dyn Sink>, Ticket, Answer);

/// Answers that have not been delivered.
#[derive(Default)]
pub(super) struct Outbox {
    answers: RefCell<Vec<Addressed>>,
    news: Notify,
}

impl Outbox {
    /// An outbox with the task that empties it.
    pub(super) fn start() -> Rc<Outbox> {
        let outbox = Rc::new(Outbox::default());
        let task = Rc::clone(&outbox);
        tokio::task::spawn_local(async move {
            loop {
                task.news.notified().await;
                // Others that are ready add theirs first.
                tokio::task::yield_now().await;
                task.flush();
            }
        });
        outbox
    }

    pub(super) fn push(&self, sink: Arc<dyn Sink>, ticket: Ticket, answer: Answer) {
        self.answers.borrow_mut().push((sink, ticket, answer));
        self.news.notify_one();
    }

    pub(super) fn flush(&self) {
        let mut answers = self.answers.take();
        // Those of one sink side by side, in their order; there may be as many sinks as answers.
        answers.sort_by_key(|(sink, ..)| Arc::as_ptr(sink).cast::<()>());
        let mut answers = answers.into_iter().peekable();
        let mut group = Vec::new();
        while let Some((sink, ticket, answer)) = answers.next() {
            group.push((ticket, answer));
            if answers.peek().is_none_or(|(next, ..)| !Arc::ptr_eq(next, &sink)) {
                sink.deliver(&mut group);
                group.clear();
            }
        }
    }
}
