//! A flight under way: sent until it has landed, and how long people wait for it.

use std::pin::{Pin, pin};
use std::time::Duration;

use dormouse_core::error::{Code, Error};
use tokio::time::timeout;

use super::batch::{Encoded, Flight};
use super::decode::{Arrival, Touchdown};
use super::{Partition, Queued};
use crate::clock;
use crate::cluster::{Departure, Landed, LinkError};
use crate::wire::config::Config;

/// How long who asks is kept waiting for a Redis that does not answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// How long a waiting demand is not looked after by itself when Redis refuses scripts.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

impl Partition {
    /// Sends a flight until it has landed.
    pub(super) async fn fly(&self, mut flight: Flight, runway: u8) -> Option<Arrival> {
        let number = self.number.get() + 1;
        self.number.set(number);
        let (mut is_repeated, mut free) = (false, None);
        loop {
            let mut encoded = match flight.encode(self, runway, number, free.as_deref()) {
                Ok(encoded) => encoded,
                Err(error) => {
                    flight.shed(self, &error);
                    if flight.is_empty() {
                        return None;
                    }
                    continue;
                }
            };
            let in_air = self.shared.door.depart(flight.items());
            let landed = self.send(&mut flight, &mut encoded, runway, number).await;
            drop(in_air);
            is_repeated |= landed.as_ref().is_ok_and(|landed| landed.is_repeated);
            match landed.and_then(|landed| self.land(landed, encoded.config)) {
                Ok(Touchdown::Done(cargo)) => {
                    self.pause.set(Duration::ZERO);
                    self.not_before.set(None);
                    return Some(Arrival { flight, cargo, is_repeated, had_company: false });
                }
                Ok(Touchdown::Again) => {}
                Ok(Touchdown::Busy(priorities)) => free = Some(priorities),
                Ok(Touchdown::Lost(config)) => self.restore(config).await,
                Err(error) => {
                    self.crash(flight, &error);
                    return None;
                }
            }
            is_repeated = true;
        }
    }

    /// Redis has lost its data. Until the topic has its place again no flight gets further than to
    /// here: each is told that it knows another configuration.
    async fn restore(&self, config: Config) {
        tracing::error!("redis: all data of {} is gone", self.tag);
        let lost = self.config.borrow().version;
        self.shared.restore().await;
        if self.config.borrow().version == lost {
            *self.config.borrow_mut() = config;
        }
    }

    /// Brings a flight to Redis and its answer back, however long it takes.
    async fn send(
        &self,
        flight: &mut Flight,
        encoded: &mut Encoded,
        runway: u8,
        number: u64,
    ) -> Result<Landed, Error> {
        let (link, departure) = (&self.shared.link, Departure::default());
        {
            let mut call = pin!(link.call_noting(&encoded.call, &departure));
            if let Ok(landed) = timeout(PATIENCE, &mut call).await {
                return landed.map_err(Error::from);
            }
            tracing::warn!("redis: no answer for {PATIENCE:?} about {}", self.tag);
            self.lose_patience(flight, departure.has_left());
            if departure.has_left() {
                return self.go_on(call).await;
            }
        }
        // Those on board were told that nothing happens. An empty flight goes on in their stead,
        // to find out when Redis is back.
        *flight = Flight::default();
        *encoded = flight.encode(self, runway, number, None)?;
        self.go_on(pin!(link.call(&encoded.call))).await
    }

    /// Waits on for a flight nobody waits for any more; who comes meanwhile is told after a while.
    async fn go_on(
        &self,
        mut call: Pin<&mut impl Future<Output = Result<Landed, LinkError>>>,
    ) -> Result<Landed, Error> {
        loop {
            match timeout(Duration::from_secs(1), call.as_mut()).await {
                Ok(landed) => {
                    tracing::info!("redis: answers again about {}", self.tag);
                    return landed.map_err(Error::from);
                }
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

    /// Those on board are told that it may or may not have happened, or that it did not.
    fn lose_patience(&self, flight: &mut Flight, has_left: bool) {
        for ask in &mut flight.asks {
            let is_open = has_left && ask.is_change();
            ask.fail(if is_open { self.unconfirmed() } else { silent() });
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
    pub(super) fn crash(&self, mut flight: Flight, error: &Error) {
        let pause = (self.pause.get() * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        self.pause.set(pause);
        self.not_before.set(Some(clock::instant() + pause));
        flight.fail(error);
        for demand in flight.claims.iter().flat_map(|claim| &claim.demands) {
            demand.fail(error);
        }
    }
}

impl Partition {
    fn unconfirmed(&self) -> Error {
        self.shared.link.meters().note_unconfirmed();
        Error::new(
            Code::Unconfirmed,
            format!(
                "Redis has not answered for {} s: the change may or may not have happened, or \
                 happen yet; look before you send it again",
                PATIENCE.as_secs()
            ),
        )
    }
}

pub(crate) fn silent() -> Error {
    Error::unavailable(format!(
        "Redis has not answered for {} s; it is asked again and again, so try later",
        PATIENCE.as_secs()
    ))
}
