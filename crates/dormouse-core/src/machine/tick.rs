//! The tick: do all that became possible by time and syncs, and say when to come back.

use super::{Machine, Output};
use crate::error::Fatal;
use crate::limits::TICK_MAX;
use crate::time::Now;
use crate::timeline::Timeline;

impl<T: Timeline> Machine<T> {
    /// Does everything that time, syncs or the last steps made possible, up to a bound; if that is
    /// met, `next_wake` says 0. To be called after every group of steps.
    pub fn tick(&mut self, now: Now, out: &mut Output) -> Result<(), Fatal> {
        let budget = &mut { TICK_MAX };
        self.timeline.renew();
        // Before others run out: their sessions ended while these leases still lasted.
        self.give_back_orphans(budget, out);
        self.expire_leases(now, budget, out)?;
        self.expire_locks(now, budget, out);
        self.serve_waiters(now, budget, out)?;
        // A wait that is over is answered with nothing only after it was looked at once more.
        self.end_waits(now, budget, out);
        self.trim_all_dead(now, budget, out)?;
        self.sweep_holds(now, budget)?;
        self.let_topics_vanish(now, budget, out);
        self.unfinished = *budget == 0;
        (self.step_budget, self.step_locks) = (TICK_MAX, TICK_MAX);
        self.timeline.renew();
        Ok(())
    }

    /// A sync has finished: the next tick looks again at what waited for it.
    pub fn synced(&mut self) {
        self.waiters.synced();
    }

    /// In how many ms a tick is needed; 0 = now, `None` = there is nothing to wait for.
    pub fn next_wake(&self, now: Now) -> Option<u64> {
        if self.unfinished {
            return Some(0);
        }
        let instants = [
            self.leases.next_expiry(),
            self.locks.next_expiry(),
            self.waiters.next(),
            self.dead_schedule.next(),
            self.hold_schedule.next(),
            self.topics.next_idle(),
        ];
        let next = instants.into_iter().flatten().min()?;
        Some(next.saturating_sub(now.steady_ms))
    }
}
