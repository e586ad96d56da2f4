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
        let mut left = self.answers.take();
        let mut group = Vec::new();
        while let Some((sink, ..)) = left.first() {
            let sink = Arc::clone(sink);
            let mut others = Vec::new();
            for (to, ticket, answer) in left {
                if Arc::ptr_eq(&to, &sink) {
                    group.push((ticket, answer));
                } else {
                    others.push((to, ticket, answer));
                }
            }
            sink.deliver(&mut group);
            group.clear();
            left = others;
        }
    }
}
