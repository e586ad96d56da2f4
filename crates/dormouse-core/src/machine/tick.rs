//! The tick: do all that became possible by time and syncs, and say when to come back.

use super::{Machine, Output};
use crate::error::Fatal;
use crate::limits::{DEADLINE_TICK_MAX, SCHEDULE_TICK_MAX, TICK_BEHIND_MAX, TICK_MAX};
use crate::time::Now;
use crate::timeline::Timeline;

/// What a tick put off because the disk is behind waits so long.
const PUT_OFF_MS: u64 = 1;

impl<T: Timeline> Machine<T> {
    /// Does everything that time, syncs or the last steps made possible, up to a bound; if that is
    /// met, `next_wake` says 0. To be called after every group of steps.
    pub fn tick(&mut self, now: Now, out: &mut Output) -> Result<(), Fatal> {
        let upkeep_max = match self.is_disk_behind {
            false => TICK_MAX,
            // However many turns are taken in a ms.
            true if self.upkeep_at == now.steady_ms => 0,
            true => TICK_BEHIND_MAX,
        };
        self.upkeep_at = now.steady_ms;
        let upkeep = &mut { upkeep_max };
        self.timeline.renew();
        // Before others run out: their sessions ended while these leases still lasted.
        self.give_back_orphans(upkeep, out);
        self.expire_leases(now, upkeep, out)?;
        // Before jobs are given out: those of ticks may be among them.
        let ticks_max = (*upkeep).min(SCHEDULE_TICK_MAX);
        let ticks = &mut { ticks_max };
        self.give_ticks(now, ticks, out)?;
        *upkeep -= ticks_max - *ticks;
        // Before jobs are given out, so that those that are too late leave the line.
        let deadlines_max = (*upkeep).min(DEADLINE_TICK_MAX);
        let deadlines = &mut { deadlines_max };
        self.meet_deadlines(now, deadlines, out)?;
        *upkeep -= deadlines_max - *deadlines;
        let budget = &mut (TICK_MAX - (upkeep_max - *upkeep));
        self.expire_locks(now, budget, out);
        // Before jobs are given out: those whose group has room again are among them.
        self.look_at_groups(now, budget, out)?;
        self.serve_waiters(now, budget, out)?;
        // A wait that is over is answered with nothing only after it was looked at once more.
        self.end_waits(now, budget, out);
        let rest = &mut (*budget).min(*upkeep);
        self.trim_all(now, rest, out)?;
        self.sweep_holds(now, rest)?;
        self.let_topics_vanish(now, rest, out);
        // After all that may move jobs.
        self.move_deadlines(now, out);
        self.is_put_off = *rest == 0 && self.is_disk_behind && *budget > 0;
        self.unfinished = *rest == 0 && !self.is_put_off;
        self.step_budget = if self.is_disk_behind { 0 } else { TICK_MAX };
        self.step_locks = TICK_MAX;
        self.timeline.renew();
        Ok(())
    }

    /// While the disk is behind, little runs out per tick, and the next such tick is a ms later:
    /// what time alone changes must not take the room that requests need.
    pub fn set_disk_behind(&mut self, is_behind: bool) {
        self.is_disk_behind = is_behind;
    }

    /// A sync has finished: the next tick looks again at what waited for it.
    pub fn synced(&mut self) {
        self.waiters.synced();
        self.schedules.line.synced();
        self.deadlines.line.synced();
    }

    /// In how many ms a tick is needed; 0 = now, `None` = there is nothing to wait for.
    pub fn next_wake(&self, now: Now) -> Option<u64> {
        if self.unfinished {
            return Some(0);
        }
        if self.is_put_off {
            let waits = [self.locks.next_expiry(), self.waiters.next()];
            let next = waits.into_iter().flatten().min().unwrap_or(u64::MAX);
            return Some(next.saturating_sub(now.steady_ms).min(PUT_OFF_MS));
        }
        let instants = [
            self.leases.next_expiry(),
            self.locks.next_expiry(),
            self.waiters.next(),
            self.schedules.next(),
            self.deadlines.next(),
            self.groups.next(),
            self.dead_alarms.next(),
            self.done_alarms.next(),
            self.hold_alarms.next(),
            self.topics.next_idle(),
        ];
        let next = instants.into_iter().flatten().min()?;
        Some(next.saturating_sub(now.steady_ms))
    }
}
