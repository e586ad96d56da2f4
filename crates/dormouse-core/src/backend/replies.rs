//! Answers on their way out, grouped so that a sink gets several at once and wakes its caller once.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::round::DeliveryRound;
use super::{Answer, Sink, Ticket};
use crate::error::Error;

/// A list that grew beyond this for one sink is not kept.
const SPARE_MAX: usize = 256;

/// A sink and its answers. Most have one, which needs no list.
struct Group {
    sink: Arc<dyn Sink>,
    first: (Ticket, Answer),
    others: Vec<(Ticket, Answer)>,
}

/// Answers grouped by sink, in order.
#[derive(Default)]
pub struct ReplyGroups {
    groups: VecDeque<Group>,
    /// Empty; one list after another is handed to its sink in here.
    spare: Vec<(Ticket, Answer)>,
}

impl ReplyGroups {
    /// Adds an answer; it joins the last group if that has the same sink.
    pub fn push(&mut self, sink: &Arc<dyn Sink>, ticket: Ticket, answer: Answer) {
        let answer = (ticket, answer);
        match self.groups.back_mut() {
            Some(last) if Arc::ptr_eq(&last.sink, sink) => last.others.push(answer),
            _ => {
                let sink = Arc::clone(sink);
                self.groups.push_back(Group { sink, first: answer, others: Vec::new() });
            }
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
        groups.sort_by_key(|group| Arc::as_ptr(&group.sink).cast::<()>());
        for mut group in std::mem::take(&mut self.groups) {
            match self.groups.back_mut() {
                Some(last) if Arc::ptr_eq(&last.sink, &group.sink) => {
                    last.others.push(group.first);
                    last.others.append(&mut group.others);
                }
                _ => self.groups.push_back(group),
            }
        }
    }

    /// Gives every sink its answers. If one panics, the groups after it are still here.
    pub fn deliver(&mut self) {
        let _round = DeliveryRound::begin();
        let mut answers = std::mem::take(&mut self.spare);
        while let Some(Group { sink, first, mut others }) = self.groups.pop_front() {
            answers.push(first);
            answers.append(&mut others);
            sink.deliver(&mut answers);
            answers.clear();
        }
        if answers.capacity() <= SPARE_MAX {
            self.spare = answers;
        }
    }

    /// Gives every sink this error instead: the requests may or may not have happened.
    pub fn fail(&mut self, error: &Error) {
        for Group { first, others, .. } in &mut self.groups {
            for (_, answer) in std::iter::once(first).chain(others) {
                *answer = Err(error.clone());
            }
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
