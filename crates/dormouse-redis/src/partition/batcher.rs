//! Who goes with the next flight.

use std::collections::{HashMap, HashSet};

use super::batch::Flight;
use super::in_flight::{Air, ENOUGH, Manifest};
use super::request::{Ask, FLIGHT_JOBS_MAX};
use super::{BatchNo, Partition, Queued};
use crate::clock;

impl Partition {
    /// Who goes with the next flight: those at the front, as long as the order within a batch is
    /// kept, and the demands if there is reason to look. What came with a batch that is in the air
    /// waits for it.
    pub(super) fn board(&self, air: &Air<'_>) -> (Flight, Manifest) {
        let mut flight = Flight::default();
        let mut phases: HashMap<BatchNo, u8> = HashMap::new();
        let mut held: HashSet<BatchNo> = air.batches().collect();
        let mut batches = Vec::new();
        self.came.set(0);
        let mut queue = self.queue.borrow_mut();
        let mut left = Vec::new();
        while let Some(queued) = queue.pop_front() {
            let Queued { batch, ask, .. } = &queued;
            let fits = flight.weight.has_room(ask.weight());
            let in_order = batch.is_none_or(|batch| {
                let is_next = phases.get(&batch).is_none_or(|&phase| phase <= ask.phase());
                is_next && !held.contains(&batch)
            });
            if !fits || !in_order {
                held.extend(*batch);
                left.push(queued);
                if !fits {
                    // They need not wait for more.
                    self.came.set(ENOUGH);
                    break;
                }
                continue;
            }
            phases.extend(batch.map(|batch| (batch, ask.phase())));
            batches.extend(*batch);
            flight.weight.add(ask.weight());
            if ask.may_make_visible() {
                self.has_reason();
            }
            flight.asks.push(queued.ask);
        }
        for queued in left.into_iter().rev() {
            queue.push_front(queued);
        }
        drop(queue);
        flight.asks.sort_by_key(Ask::phase);
        let paused = self.not_before.get().is_some_and(|until| until > clock::instant());
        if !self.look.get() && !paused && self.is_look_due() {
            self.has_reason();
        }
        if self.look.get()
            && !air.has_waiters()
            && (!paused || !flight.asks.is_empty() || self.somebody_asks())
        {
            self.claim(&mut flight, held);
        }
        let claimed = flight.claims.iter().flat_map(|claim| &claim.demands);
        batches.extend(claimed.filter_map(|demand| demand.batch));
        let manifest = Manifest { has_waiters: flight.has_waiters(), batches };
        (flight, manifest)
    }

    /// Whether somebody is here who does not wait.
    fn somebody_asks(&self) -> bool {
        self.demands.borrow().values().any(|demand| !demand.waits)
    }

    /// Adds looks for the demands, first come, first served.
    fn claim(&self, flight: &mut Flight, mut held: HashSet<BatchNo>) {
        held.extend(self.queue.borrow().iter().filter_map(|queued| queued.batch));
        self.look.set(false);
        self.blocked.set(false);
        // Also if it comes to nothing: who cannot be looked for now is looked for when it can.
        self.last_look.set(clock::instant());
        let mut demands = self.demands.borrow_mut();
        demands.retain(|_, demand| !demand.is_over());
        let mut room = FLIGHT_JOBS_MAX.saturating_sub(flight.weight.jobs).max(1);
        // Who is claimed here cannot be served elsewhere meanwhile, so each takes its share.
        let mut share = demands.len().div_ceil(usize::try_from(self.place.1).unwrap_or(1));
        let reason = self.reasons.get();
        let (free, claimed): (Vec<_>, Vec<_>) = demands
            .values()
            .filter(|demand| !demand.is_claimed_by(self.no) && demand.wants_look(self.no, reason))
            .partition(|demand| !demand.is_claimed());
        if free.is_empty() {
            // They tell when they can be looked after. A look for the others only would keep these
            // from being looked after elsewhere.
            claimed.iter().for_each(|demand| demand.miss(self.no));
            self.blocked.set(!claimed.is_empty());
            return;
        }
        // One place is kept for those who do not wait: they must be answered soon.
        let spare = usize::from(free.iter().any(|demand| !demand.waits));
        for demand in demands.values() {
            // It is in the air already.
            if demand.is_claimed_by(self.no) {
                continue;
            }
            // Who came first is served first, also if what is there is found by a look for another.
            let wants = demand.wants_look(self.no, reason);
            if !wants && (!demand.waits || demand.is_claimed()) {
                continue;
            }
            // What came before it in its batch is still in line.
            if demand.batch.is_some_and(|batch| held.contains(&batch)) {
                self.look.set(true);
                continue;
            }
            // Who waits gets its turn when those before it are served.
            if demand.waits && (share == 0 || room <= spare) {
                continue;
            }
            if room == 0 {
                self.look.set(true);
                continue;
            }
            if !demand.claim(self.no) {
                continue;
            }
            let max = demand.max.min(room);
            room -= max;
            share = share.saturating_sub(usize::from(demand.waits));
            flight.claim(demand, max, reason);
        }
        if !flight.claims.is_empty() {
            self.blocked.set(false);
            self.hinted.set(None);
        }
    }
}
