//! A flight under way: sent until it has landed, and how long people wait for it.

use std::time::Duration;

use dormouse_core::error::{Code, Error};
use tokio::time::timeout;

use super::flight::Flight;
use super::{Partition, Queued};
use crate::clock;

/// How long who asks is kept waiting for a Redis that does not answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// How long a waiting demand is not looked after by itself when Redis refuses scripts.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

impl Partition {
    /// Sends a flight until it has landed.
    pub(super) async fn fly(&self, mut flight: Flight) {
        let number = self.number.get() + 1;
        self.number.set(number);
        loop {
            let encoded = match flight.encode(self, number) {
                Ok(encoded) => encoded,
                Err(error) => {
                    flight.shed(self, &error);
                    if flight.is_empty() {
                        return;
                    }
                    continue;
                }
            };
            let mut call = std::pin::pin!(self.shared.link.call(&encoded.call));
            let landed = match timeout(PATIENCE, &mut call).await {
                Ok(landed) => landed,
                Err(_) => {
                    tracing::warn!("redis: no answer for {PATIENCE:?} about {}", self.tag);
                    self.lose_patience(&mut flight);
                    let landed = self.go_on(call.as_mut()).await;
                    tracing::info!("redis: answers again about {}", self.tag);
                    landed
                }
            };
            match landed {
                Err(error) => return self.crash(flight, &error.into()),
                Ok(landed) => match self.land(&mut flight, landed, encoded.config) {
                    Ok(true) => {
                        self.pause.set(Duration::ZERO);
                        self.not_before.set(None);
                        return;
                    }
                    Ok(false) => {}
                    Err(error) => return self.crash(flight, &error),
                },
            }
        }
    }

    /// Waits on for a flight nobody waits for any more; who comes meanwhile is told after a while.
    async fn go_on<F: Future>(&self, mut call: std::pin::Pin<&mut F>) -> F::Output {
        loop {
            match timeout(Duration::from_secs(1), call.as_mut()).await {
                Ok(landed) => return landed,
                Err(_) => self.turn_away(),
            }
        }
    }

    /// Those who waited too long in line are answered.
    fn turn_away(&self) {
        let late = |queued: &Queued| queued.since.elapsed() >= PATIENCE;
        let mut queue = self.queue.borrow_mut();
        while queue.front().is_some_and(late) {
            if let Some(mut queued) = queue.pop_front() {
                queued.ask.fail(silent());
            }
        }
        drop(queue);
        for demand in self.demands.borrow().values() {
            if !demand.waits && demand.since.elapsed() >= PATIENCE && !demand.is_claimed() {
                demand.fail(&silent());
            }
        }
    }

    /// Those on board are told that it may or may not have happened.
    fn lose_patience(&self, flight: &mut Flight) {
        for ask in &mut flight.asks {
            let error = if ask.is_change() { unconfirmed() } else { silent() };
            ask.fail(error);
        }
        // Those who wait may be served elsewhere; what this flight takes for them is given back.
        for claim in &mut flight.claims {
            for demand in claim.demands.drain(..) {
                demand.fail(&silent());
            }
        }
        self.turn_away();
    }

    /// The flight cannot land. The next look for those who wait comes after a pause that grows: a
    /// Redis that refuses scripts would be asked thousands of times per second.
    fn crash(&self, mut flight: Flight, error: &Error) {
        let pause = (self.pause.get() * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        self.pause.set(pause);
        self.not_before.set(Some(clock::instant() + pause));
        flight.fail(error);
        for demand in flight.claims.iter().flat_map(|claim| &claim.demands) {
            demand.fail(error);
        }
    }
}

pub(crate) fn silent() -> Error {
    Error::unavailable(format!(
        "Redis has not answered for {} s; it is asked again and again, so try later",
        PATIENCE.as_secs()
    ))
}

fn unconfirmed() -> Error {
    Error::new(
        Code::Unconfirmed,
        format!(
            "Redis has not answered for {} s: the change may or may not have happened, or happen \
             yet; look before you send it again",
            PATIENCE.as_secs()
        ),
    )
}
