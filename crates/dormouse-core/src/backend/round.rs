//! A round of deliveries: what sinks want to do once, after all of them have their answers.
//!
//! A sink that wakes a thread of its own would wake it for its first answer, while the others are
//! still on their way. It asks for the wake at the end of the round instead.

use std::cell::RefCell;

/// Called once, at the end of a round.
type AtEnd = Box<dyn FnOnce()>;

thread_local! {
    /// `None` = this thread is not in a round.
    static ROUND: RefCell<Option<Vec<AtEnd>>> = const { RefCell::new(None) };
}

/// Runs `at_end` when the calling thread has delivered all answers that became final together; at
/// once if it delivers none.
pub fn at_end_of_round(at_end: impl FnOnce() + 'static) {
    // A thread that ends has no round any more: its destructors may still submit.
    let is_in_round = ROUND.try_with(|round| round.borrow().is_some()).unwrap_or(false);
    if is_in_round {
        ROUND.with_borrow_mut(|round| round.get_or_insert_default().push(Box::new(at_end)));
    } else {
        at_end();
    }
}

/// Begins a round, and ends it when dropped; a round within a round is part of it.
pub(super) struct DeliveryRound {
    is_outermost: bool,
}

impl DeliveryRound {
    pub(super) fn begin() -> DeliveryRound {
        let begin = |round: &RefCell<Option<Vec<AtEnd>>>| {
            let mut round = round.borrow_mut();
            let is_outermost = round.is_none();
            round.get_or_insert_default();
            is_outermost
        };
        DeliveryRound { is_outermost: ROUND.try_with(begin).unwrap_or(false) }
    }
}

impl Drop for DeliveryRound {
    fn drop(&mut self) {
        if self.is_outermost {
            let round = ROUND.try_with(RefCell::take).ok().flatten();
            round.into_iter().flatten().for_each(|at_end| at_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn what_is_asked_for_in_a_round_is_done_at_its_end() {
        let done = Rc::new(Cell::new(0));
        let add = |by: u32| {
            let done = Rc::clone(&done);
            at_end_of_round(move || done.set(done.get() + by));
        };
        add(1);
        assert_eq!(done.get(), 1, "there is no round");
        let outer = DeliveryRound::begin();
        let inner = DeliveryRound::begin();
        add(10);
        drop(inner);
        assert_eq!(done.get(), 1, "a round within a round does not end it");
        drop(outer);
        assert_eq!(done.get(), 11);
    }
}
