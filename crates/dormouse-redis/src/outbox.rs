//! The outbox: answers are collected and delivered in groups, so that a sink with several of them
//! is woken once.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use dormouse_core::backend::{Answer, ReplyGroups, Sink, Ticket};
use dormouse_core::error::Error;
use tokio::sync::{Notify, oneshot};

use crate::inbox::InboxShare;

#[derive(Default)]
pub(crate) struct Outbox {
    answers: RefCell<ReplyGroups>,
    pushed: Notify,
}

impl Outbox {
    /// An outbox and the task that flushes it.
    pub(crate) fn start() -> Rc<Outbox> {
        let outbox = Rc::new(Outbox::default());
        let task = Rc::clone(&outbox);
        tokio::task::spawn_local(async move {
            loop {
                task.pushed.notified().await;
                // Lets other ready tasks add their answers first.
                tokio::task::yield_now().await;
                task.flush();
            }
        });
        outbox
    }

    fn push(&self, sink: &Arc<dyn Sink>, ticket: Ticket, answer: Answer) {
        self.answers.borrow_mut().push(sink, ticket, answer);
        self.pushed.notify_one();
    }

    pub(crate) fn flush(&self) {
        let mut answers = self.answers.take();
        answers.join();
        answers.deliver();
    }
}

impl Drop for Outbox {
    /// Delivers the errors of callers that were never answered: see `Caller`.
    fn drop(&mut self) {
        self.flush();
    }
}

/// The caller of one request. It gets exactly one answer, at the latest when this is dropped.
pub(crate) struct Caller {
    outbox: Rc<Outbox>,
    ticket: Ticket,
    /// `None` once it is answered.
    sink: Option<Arc<dyn Sink>>,
    /// The request's share of the inbox; `None` for a request that may wait.
    _share: Option<Rc<InboxShare>>,
    /// Keeps the dispatcher running.
    _busy: Rc<()>,
    /// Dropped with the answer, for a task that waits for it.
    answered: Option<oneshot::Sender<()>>,
}

impl Caller {
    pub(crate) fn new(
        outbox: &Rc<Outbox>,
        sink: &Arc<dyn Sink>,
        ticket: Ticket,
        share: Option<&Rc<InboxShare>>,
        busy: &Rc<()>,
    ) -> Caller {
        Caller {
            outbox: Rc::clone(outbox),
            ticket,
            sink: Some(Arc::clone(sink)),
            _share: share.cloned(),
            _busy: Rc::clone(busy),
            answered: None,
        }
    }

    /// A future that ends when it is answered.
    pub(crate) fn answered(&mut self) -> impl Future<Output = ()> + use<> {
        let (sender, answered) = oneshot::channel();
        self.answered = Some(sender);
        async { answered.await.unwrap_or_default() }
    }

    pub(crate) fn answer(mut self, answer: Answer) {
        self.send(answer);
    }

    fn send(&mut self, answer: Answer) {
        if let Some(sink) = self.sink.take() {
            self.outbox.push(&sink, self.ticket, answer);
        }
    }
}

impl Drop for Caller {
    /// A request that ends without an answer must not leave its caller waiting.
    fn drop(&mut self) {
        self.send(Err(Error::unavailable("the backend has been closed")));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use dormouse_core::error::Code;

    use super::*;

    #[derive(Default)]
    struct Delivered(Mutex<Vec<(Ticket, Answer)>>);

    impl Sink for Delivered {
        fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
            self.0.lock().expect("no panic").append(answers);
        }
    }

    #[test]
    fn a_dropped_caller_is_answered_with_an_error() {
        let delivered = Arc::new(Delivered::default());
        let sink: Arc<dyn Sink> = delivered.clone();
        let outbox = Rc::new(Outbox::default());
        let [answered, forgotten] =
            [1, 2].map(|ticket| Caller::new(&outbox, &sink, Ticket(ticket), None, &Rc::new(())));
        answered.answer(Err(Error::invalid("no")));
        drop((forgotten, outbox));
        let answers = delivered.0.lock().expect("no panic");
        let code = |answer: &Answer| answer.as_ref().expect_err("an error").code;
        let codes: Vec<_> =
            answers.iter().map(|(ticket, answer)| (ticket.0, code(answer))).collect();
        assert_eq!(codes, [(1, Code::Invalid), (2, Code::Unavailable)]);
    }
}
