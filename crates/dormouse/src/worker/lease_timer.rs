//! Sleeps between renewals: by real time, or by a virtual clock.

use std::sync::Arc;
use std::time::Duration;

use dormouse_disk::clock::{TimeSource, VirtualClock};
use tokio::sync::Notify;

use crate::queue::Queue;
use crate::time::span_ms;

/// Sleeps by the queue's clock.
#[derive(Clone)]
pub(crate) enum LeaseTimer {
    Real,
    Virtual { clock: VirtualClock, moved: Arc<Notify> },
}

impl LeaseTimer {
    /// To be made once per worker: a clock keeps its callbacks as long as it lives.
    pub(crate) fn new(queue: &Queue) -> LeaseTimer {
        let Some(clock) = queue.clock().cloned() else { return LeaseTimer::Real };
        let moved = Arc::new(Notify::new());
        let ring = moved.clone();
        clock.on_change(Arc::new(move || ring.notify_waiters()));
        LeaseTimer::Virtual { clock, moved }
    }

    /// Returns after this span of the queue's clock.
    pub(crate) async fn sleep(&self, span: Duration) {
        let LeaseTimer::Virtual { clock, moved } = self else {
            return tokio::time::sleep(span).await;
        };
        let from_ms = clock.read().boottime_ms;
        let until_ms = from_ms.saturating_add(span_ms(span).unsigned_abs());
        loop {
            // Created before the clock is read, so that no change in between is missed.
            let moved = moved.notified();
            let now_ms = clock.read().boottime_ms;
            // Before the start: the virtual computer was restarted.
            if now_ms >= until_ms || now_ms < from_ms {
                return;
            }
            moved.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn virtual_sleep_ends_when_the_clock_was_moved_far_enough() {
        let clock = VirtualClock::new();
        let timer = LeaseTimer::Virtual { clock: clock.clone(), moved: Arc::default() };
        let LeaseTimer::Virtual { moved, .. } = timer.clone() else { unreachable!() };
        clock.on_change(Arc::new(move || moved.notify_waiters()));

        let asleep = tokio::spawn(async move { timer.sleep(Duration::from_secs(20)).await });
        tokio::task::yield_now().await;
        clock.advance(Duration::from_secs(19));
        tokio::task::yield_now().await;
        assert!(!asleep.is_finished());
        clock.advance(Duration::from_secs(1));
        asleep.await.unwrap();
    }
}
