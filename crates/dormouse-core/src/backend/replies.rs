//! Answers on their way out, grouped so that a sink gets several at once and wakes its caller once.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::round::DeliveryRound;
use super::{Answer, Sink, Ticket};
use crate::error::Error;

/// A sink and its answers.
type Group = (Arc<dyn Sink>, Vec<(Ticket, Answer)>);

/// Answers grouped by sink, in order.
#[derive(Default)]
pub struct ReplyGroups {
    groups: VecDeque<Group>,
}

impl ReplyGroups {
    /// Adds an answer; it joins the last group if that has the same sink.
    pub fn push(&mut self, sink: &Arc<dyn Sink>, ticket: Ticket, answer: Answer) {
        match self.groups.back_mut() {
            Some((last, answers)) if Arc::ptr_eq(last, sink) => answers.push((ticket, answer)),
            _ => self.groups.push_back((Arc::clone(sink), vec![(ticket, answer)])),
        }
    }

    /// Whether there is nothing to deliver.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Moves all groups of another one behind these.
    pub fn append(&mut self, other: &mut ReplyGroups) {
        self.groups.append(&mut other.groups);
    }

    /// Joins the groups of each sink, for answers that were pushed in turns.
    pub fn join(&mut self) {
        let groups = self.groups.make_contiguous();
        groups.sort_by_key(|(sink, _)| Arc::as_ptr(sink).cast::<()>());
        for (sink, mut answers) in std::mem::take(&mut self.groups) {
            match self.groups.back_mut() {
                Some((last, before)) if Arc::ptr_eq(last, &sink) => before.append(&mut answers),
                _ => self.groups.push_back((sink, answers)),
            }
        }
    }

    /// Gives every sink its answers. If one panics, the groups after it are still here.
    pub fn deliver(&mut self) {
        let _round = DeliveryRound::begin();
        while let Some((sink, mut answers)) = self.groups.pop_front() {
            sink.deliver(&mut answers);
        }
    }

    /// Gives every sink this error instead: the requests may or may not have happened.
    pub fn fail(&mut self, error: &Error) {
        for (_, answers) in &mut self.groups {
            answers.iter_mut().for_each(|(_, answer)| *answer = Err(error.clone()));
        }
        // Sinks are foreign code: one that panics must not keep the reason from the others.
        while catch_unwind(AssertUnwindSafe(|| self.deliver())).is_err() {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::command::Reply;

    /// Keeps what it gets, delivery by delivery.
    #[derive(Default)]
    struct Deliveries(Mutex<Vec<Vec<u64>>>);

    impl Sink for Deliveries {
        fn deliver(&self, answers: &mut Vec<(Ticket, Answer)>) {
            let tickets = answers.drain(..).map(|(ticket, _)| ticket.0).collect();
            self.0.lock().expect("no panic").push(tickets);
        }
    }

    #[test]
    fn a_sink_gets_neighbours_at_once_and_all_after_a_join() {
        for (join, expected) in [(false, vec![vec![1, 2], vec![4]]), (true, vec![vec![1, 2, 4]])] {
            let sinks = [Arc::new(Deliveries::default()), Arc::new(Deliveries::default())];
            let mut groups = ReplyGroups::default();
            for (ticket, index) in [(1, 0), (2, 0), (3, 1), (4, 0)] {
                let sink: Arc<dyn Sink> = Arc::clone(&sinks[index]) as Arc<dyn Sink>;
                groups.push(&sink, Ticket(ticket), Ok(Reply::Done));
            }
            if join {
                groups.join();
            }
            groups.deliver();
            assert!(groups.is_empty());
            assert_eq!(*sinks[0].0.lock().expect("no panic"), expected);
            assert_eq!(*sinks[1].0.lock().expect("no panic"), [vec![3]]);
        }
    }
}
