//! The signal that a connection has to end, as one task sees it.
//!
//! A connection asks for it whenever it waits, which is several times per command, and it comes at
//! most once. So the task is registered with the channel once, and what remains of each later
//! question is to compare two numbers.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::sync::watch;

/// A switch that somebody else turns on, and that stays on.
pub(crate) struct StopSignal {
    switch: watch::Receiver<bool>,
    is_on: bool,
    registered: Option<Registered>,
}

/// The wait of a task at the channel.
struct Registered {
    wait: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The task that it wakes.
    waker: Waker,
}

impl StopSignal {
    pub(crate) fn new(mut switch: watch::Receiver<bool>) -> StopSignal {
        let is_on = *switch.borrow_and_update();
        StopSignal { switch, is_on, registered: None }
    }

    pub(crate) fn is_on(&mut self) -> bool {
        // An error means that nobody can turn it on any more: the server is gone.
        self.is_on |= match self.switch.has_changed() {
            Ok(has_changed) => has_changed && *self.switch.borrow_and_update(),
            Err(_) => true,
        };
        self.is_on
    }

    /// Resolves when it is on.
    pub(crate) async fn on(&mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_on() {
            return Poll::Ready(());
        }
        match &mut self.registered {
            Some(registered) if registered.waker.will_wake(cx.waker()) => Poll::Pending,
            registered => {
                let mut switch = self.switch.clone();
                let wait = async move {
                    let _ = switch.wait_for(|&is_on| is_on).await;
                };
                let registered = registered
                    .insert(Registered { wait: Box::pin(wait), waker: cx.waker().clone() });
                registered.wait.as_mut().poll(cx)
            }
        }
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
