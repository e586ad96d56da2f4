//! The flights of a partition that have not landed.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::BatchNo;
use super::decode::Arrival;
use crate::clock;

/// Flights of a partition in the air at a time: while Redis works on one, the other is there
/// already or on its way. A Redis that falls asleep in between needs longer for each.
const RUNWAYS: u8 = 2;

/// Items in line that are worth another flight while one is in the air. For fewer it would cost
/// Redis more than it gains.
pub(crate) const ENOUGH: usize = 20;

/// A flight that is this long in the air is not joined by another.
const SLOW: Duration = Duration::from_millis(500);

type Landing<'a> = Pin<Box<dyn Future<Output = Option<Arrival>> + 'a>>;

/// The flights in the air, in the order they left.
pub(super) struct Air<'a> {
    runways: u8,
    flights: Vec<Flying<'a>>,
}

struct Flying<'a> {
    runway: u8,
    manifest: Manifest,
    /// Another was in the air at the same time.
    had_company: bool,
    left_at: Instant,
    landing: Landing<'a>,
}

/// What must be known of a flight while it is in the air.
pub(super) struct Manifest {
    /// Somebody on board waits.
    pub(super) has_waiters: bool,
    /// Batches of those on board who came with others.
    pub(super) batches: Vec<BatchNo>,
}

impl<'a> Air<'a> {
    /// Calls that wait for replicas have a connection of their own: what is done first does not
    /// land first then, so there is only one flight at a time.
    pub(super) fn new(replicas: u32) -> Air<'a> {
        Air { runways: if replicas == 0 { RUNWAYS } else { 1 }, flights: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// Where another flight can leave from.
    pub(super) fn free_runway(&self) -> Option<u8> {
        (0..self.runways).find(|&runway| self.flights.iter().all(|flying| flying.runway != runway))
    }

    /// A flight has left.
    pub(super) fn add(&mut self, runway: u8, manifest: Manifest, landing: Landing<'a>) {
        let had_company = !self.flights.is_empty();
        for flying in &mut self.flights {
            flying.had_company = true;
        }
        let left_at = clock::instant();
        self.flights.push(Flying { runway, manifest, had_company, left_at, landing });
    }

    /// Whether Redis is slow to answer, or does not. Another flight would gain nothing then, and
    /// those on board would wait longer than who stands in line.
    pub(super) fn is_slow(&self) -> bool {
        self.flights.iter().any(|flying| flying.left_at.elapsed() > SLOW)
    }

    /// Whether somebody in the air waits.
    pub(super) fn has_waiters(&self) -> bool {
        self.flights.iter().any(|flying| flying.manifest.has_waiters)
    }

    /// Batches of which something is in the air.
    pub(super) fn batches(&self) -> impl Iterator<Item = BatchNo> {
        self.flights.iter().flat_map(|flying| &flying.manifest.batches).copied()
    }

    /// The next that lands, and what it brought, if it could land; of several the one that left
    /// first.
    pub(super) async fn landing(&mut self) -> Option<Arrival> {
        poll_fn(|cx| {
            for (index, flying) in self.flights.iter_mut().enumerate() {
                if let Poll::Ready(arrival) = flying.landing.as_mut().poll(cx) {
                    let flying = self.flights.remove(index);
                    let had_company = flying.had_company;
                    return Poll::Ready(arrival.map(|arrival| Arrival { had_company, ..arrival }));
                }
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::runtime::Builder;
    use tokio::sync::oneshot;

    use super::super::batch::Flight;
    use super::super::decode::Cargo;
    use super::*;

    fn nobody() -> Manifest {
        Manifest { has_waiters: false, batches: Vec::new() }
    }

    /// A flight, told by what it brings.
    fn arrival(name: u64) -> Arrival {
        let answers = Bytes::new();
        let cargo = Cargo { now_ms: name, answers, records: Vec::new(), confirmed: true };
        Arrival { flight: Flight::default(), cargo, is_repeated: false, had_company: false }
    }

    async fn lands(air: &mut Air<'_>) -> (u64, bool) {
        let arrival = air.landing().await.expect("it landed");
        (arrival.cargo.now_ms, arrival.had_company)
    }

    #[test]
    fn flights_land_in_the_order_they_left() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut air = Air::new(0);
            for name in 0..2 {
                let runway = air.free_runway().expect("a runway");
                air.add(runway, nobody(), Box::pin(async move { Some(arrival(name)) }));
            }
            assert_eq!(air.free_runway(), None);
            assert_eq!([lands(&mut air).await.0, lands(&mut air).await.0], [0, 1]);
            assert!(air.is_empty());
        });
    }

    #[test]
    fn a_flight_knows_whether_another_was_in_the_air() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut air = Air::new(0);
            air.add(0, nobody(), Box::pin(async { Some(arrival(1)) }));
            assert_eq!(lands(&mut air).await, (1, false));
            let (land, may_land) = oneshot::channel();
            air.add(
                0,
                nobody(),
                Box::pin(async {
                    may_land.await.expect("it may");
                    Some(arrival(2))
                }),
            );
            air.add(1, nobody(), Box::pin(async { Some(arrival(3)) }));
            assert_eq!(lands(&mut air).await, (3, true));
            land.send(()).expect("it is in the air");
            assert_eq!(lands(&mut air).await, (2, true));
        });
    }

    #[test]
    fn who_waits_for_replicas_has_one_runway() {
        let mut air = Air::new(1);
        air.add(0, nobody(), Box::pin(async { None }));
        assert_eq!(air.free_runway(), None);
    }
}
