//! Two clocks, both in milliseconds, both passed in from outside.
//!
//! *Steady* advances only with time that really passed and carries relative delays and leases.
//! *Wall* is the calendar and carries absolute times. A stepped wall clock therefore moves no
//! relative delay. Steady starts out equal to the wall clock, so its values look like epoch ms.

/// Which of the two clocks an instant is measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Clock {
    /// Carries relative delays and leases.
    Steady,
    /// Carries absolute times.
    Wall,
}

/// The present instant on both clocks, rounded down to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds on the steady clock.
    pub steady_ms: u64,
    /// Milliseconds since the Unix epoch.
    pub wall_ms: u64,
    /// Whether part of the present millisecond has already passed. A delay counted from it must
    /// then end one millisecond later, or the job would fire early by that part.
    pub fraction: bool,
}

impl Now {
    /// The present instant on `clock`.
    pub fn on(self, clock: Clock) -> u64 {
        match clock {
            Clock::Steady => self.steady_ms,
            Clock::Wall => self.wall_ms,
        }
    }

    /// The steady instant `delay_ms` from now, rounded up; zero means at once.
    pub fn after(self, delay_ms: u64) -> u64 {
        let round_up = u64::from(self.fraction && delay_ms > 0);
        self.steady_ms.saturating_add(delay_ms).saturating_add(round_up)
    }

    /// How an instant of `clock` reads on the calendar now, for people.
    pub fn to_wall(self, clock: Clock, at_ms: u64) -> u64 {
        match clock {
            Clock::Wall => at_ms,
            Clock::Steady if at_ms >= self.steady_ms => {
                self.wall_ms.saturating_add(at_ms - self.steady_ms)
            }
            Clock::Steady => self.wall_ms.saturating_sub(self.steady_ms - at_ms),
        }
    }

    /// The instant of `clock` that reads so on the calendar now; the inverse of `to_wall`.
    pub fn instant_of(self, clock: Clock, wall_ms: u64) -> u64 {
        match clock {
            Clock::Wall => wall_ms,
            Clock::Steady if wall_ms >= self.wall_ms => {
                self.steady_ms.saturating_add(wall_ms - self.wall_ms)
            }
            Clock::Steady => self.steady_ms.saturating_sub(self.wall_ms - wall_ms),
        }
    }

    /// How long an instant of `clock` has been past; zero if it is still to come.
    pub fn overdue_ms(self, clock: Clock, at_ms: u64) -> u64 {
        self.on(clock).saturating_sub(at_ms)
    }

    /// How long until an instant of `clock`; zero if it is past.
    pub fn until_ms(self, clock: Clock, at_ms: u64) -> u64 {
        at_ms.saturating_sub(self.on(clock))
    }
}
