//! Answers on their way out, in groups: who waits for several is woken once.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use dormouse_core::backend::{Answer, Sink, Ticket};
use dormouse_core::error::Error;
use tokio::sync::Notify;

use crate::inbox::Admission;

type PendingAnswer = (Arc<dyn Sink>, Ticket, Answer);

/// Answers that have not been delivered.
#[derive(Default)]
pub(crate) struct Outbox {
    answers: RefCell<Vec<PendingAnswer>>,
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

    fn push(&self, sink: Arc<dyn Sink>, ticket: Ticket, answer: Answer) {
        self.answers.borrow_mut().push((sink, ticket, answer));
        self.news.notify_one();
    }

    /// Delivers what is there.
    pub(crate) fn flush(&self) {
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

impl Drop for Outbox {
    /// Those who were never answered are, as the desk goes: see `Addressee`.
    fn drop(&mut self) {
        self.flush();
    }
}

/// Who gets the answer to a request, exactly one.
pub(crate) struct Caller {
    outbox: Rc<Outbox>,
    ticket: Ticket,
    /// Nobody once it is answered.
    sink: Option<Arc<dyn Sink>>,
    /// What the request counts for until then; those that wait count for nothing.
    _admission: Option<Rc<Admission>>,
    /// Something is under way.
    _busy: Rc<()>,
}

impl Caller {
    pub(super) fn new(
        outbox: &Rc<Outbox>,
        sink: &Arc<dyn Sink>,
        ticket: Ticket,
        admission: Option<&Rc<Admission>>,
        busy: &Rc<()>,
    ) -> Caller {
        Caller {
            outbox: Rc::clone(outbox),
            ticket,
            sink: Some(Arc::clone(sink)),
            _admission: admission.cloned(),
            _busy: Rc::clone(busy),
        }
    }

    pub(crate) fn answer(mut self, answer: Answer) {
        self.send(answer);
    }

    fn send(&mut self, answer: Answer) {
        if let Some(sink) = self.sink.take() {
            self.outbox.push(sink, self.ticket, answer);
        }
    }
}

impl Drop for Caller {
    /// Whatever ends a request without an answer, its caller must not wait for ever.
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
    struct Heard(Mutex<Vec<(Ticket, Answer)>>);

    impl Sink for Heard {
        fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
            self.0.lock().expect("nobody panics").append(answers);
        }
    }

    #[test]
    fn who_was_never_answered_is_when_the_desk_goes() {
        let heard = Arc::new(Heard::default());
        let sink: Arc<dyn Sink> = heard.clone();
        let outbox = Rc::new(Outbox::default());
        let [answered, forgotten] =
            [1, 2].map(|ticket| Caller::new(&outbox, &sink, Ticket(ticket), None, &Rc::new(())));
        answered.answer(Err(Error::invalid("no")));
        drop((forgotten, outbox));
        let heard = heard.0.lock().expect("nobody panics");
        let code = |answer: &Answer| answer.as_ref().expect_err("an error").code;
        let codes: Vec<_> = heard.iter().map(|(ticket, answer)| (ticket.0, code(answer))).collect();
        assert_eq!(codes, [(1, Code::Invalid), (2, Code::Unavailable)]);
    }
}
