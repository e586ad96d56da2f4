//! Signals that a connection waits for besides its own input, as one task sees them: that it has to
//! end, that tokens have changed.
//!
//! A connection asks for them whenever it waits, which is several times per command, and they come
//! rarely. So the task is registered with the channel once, and what remains of each later
//! question is to compare two numbers.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::sync::watch;

/// A value that somebody else changes.
pub(crate) struct Changes<T> {
    values: watch::Receiver<T>,
    registered: Option<Registered>,
}

/// A switch that somebody else turns on, and that stays on.
pub(crate) struct StopSignal {
    switch: Changes<bool>,
    is_on: bool,
}

/// The wait of a task at the channel.
struct Registered {
    wait: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The task that it wakes.
    waker: Waker,
}

impl<T: Send + Sync + 'static> Changes<T> {
    pub(crate) fn new(mut values: watch::Receiver<T>) -> Changes<T> {
        values.mark_unchanged();
        Changes { values, registered: None }
    }

    /// Resolves when the value has changed since the last time.
    pub(crate) async fn changed(&mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.values.has_changed() {
            Ok(true) => {
                self.values.mark_unchanged();
                self.registered = None;
                Poll::Ready(())
            }
            Ok(false) => self.register(cx),
            // Nobody can change it any more.
            Err(_) => Poll::Pending,
        }
    }

    /// Has the task woken by the next change.
    fn register(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.registered {
            Some(registered) if registered.waker.will_wake(cx.waker()) => Poll::Pending,
            registered => {
                let mut values = self.values.clone();
                let wait = async move {
                    let _ = values.changed().await;
                };
                let registered = registered
                    .insert(Registered { wait: Box::pin(wait), waker: cx.waker().clone() });
                registered.wait.as_mut().poll(cx)
            }
        }
    }
}

impl StopSignal {
    pub(crate) fn new(switch: watch::Receiver<bool>) -> StopSignal {
        let is_on = *switch.borrow();
        StopSignal { switch: Changes { values: switch, registered: None }, is_on }
    }

    pub(crate) fn is_on(&mut self) -> bool {
        let switch = &mut self.switch.values;
        // An error means that nobody can turn it on any more: the server is gone.
        self.is_on |= match switch.has_changed() {
            Ok(has_changed) => has_changed && *switch.borrow_and_update(),
            Err(_) => true,
        };
        self.is_on
    }

    /// Resolves when it is on.
    pub(crate) async fn on(&mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_on() { Poll::Ready(()) } else { self.switch.register(cx) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_task_that_asked_last_is_woken() {
        let (turn_on, switch) = watch::channel(false);
        let mut signal = StopSignal::new(switch);
        let wakes = [(); 2].map(|()| Arc::new(Wakes::default()));
        for task in [&wakes[0], &wakes[1], &wakes[1]] {
            let waker = Waker::from(Arc::clone(task));
            assert!(signal.poll(&mut Context::from_waker(&waker)).is_pending());
        }
        turn_on.send(true).unwrap();
        let woken = wakes.each_ref().map(|wakes| wakes.0.load(Ordering::Relaxed));
        assert_eq!(woken, [0, 1]);
        for _ in 0..2 {
            assert!(signal.poll(&mut Context::from_waker(Waker::noop())).is_ready());
        }
    }

    #[test]
    fn every_change_is_seen_once() {
        let (change, values) = watch::channel(());
        change.send_replace(());
        let mut changes = Changes::new(values);
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut cx = Context::from_waker(&waker);
        for round in 1..4 {
            assert!(changes.poll(&mut cx).is_pending());
            assert!(changes.poll(&mut cx).is_pending());
            change.send_replace(());
            assert_eq!(wakes.0.load(Ordering::Relaxed), round);
            assert!(changes.poll(&mut cx).is_ready());
        }
        drop(change);
        assert!(changes.poll(&mut cx).is_pending(), "there will be none");
    }

    #[tokio::test]
    async fn it_is_on_if_it_was_turned_on_before_or_never_can_be() {
        let (turn_on, switch) = watch::channel(true);
        let mut late = StopSignal::new(switch);
        assert!(late.is_on());
        late.on().await;
        let (never, switch) = watch::channel(false);
        let mut signal = StopSignal::new(switch);
        assert!(!signal.is_on());
        drop((never, turn_on));
        signal.on().await;
        assert!(signal.is_on());
    }
}
