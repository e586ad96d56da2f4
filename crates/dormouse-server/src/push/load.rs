//! The deliveries of one topic by origin, where jobs have URLs of their own: a receiver that says
//! nothing leaves room for others.

use std::collections::HashMap;
use std::sync::Arc;

use dormouse_core::job::JobId;

use super::breaker::mix;

/// An origin of whose deliveries none has ended for so long is stalled.
const STALLED_MS: u64 = 2_000;
/// The least delay of a job whose receiver is not called now.
const LATER_MS_MIN: u64 = 1_000;
/// Jobs of a receiver that is not called come back in such steps, so that a hundred thousand of
/// them are not taken and given back all the time; and the longest time over which they spread.
const STEP_MS: u64 = 10;
const SPREAD_MS_MAX: u64 = 600_000;

/// Deliveries under way, by origin.
#[derive(Default)]
pub(super) struct Load {
    origins: HashMap<Arc<str>, OriginLoad>,
}

struct OriginLoad {
    count: usize,
    /// When the last one ended, or the first one began.
    moved_at_ms: u64,
}

/// How many jobs may be taken whose origins are not known yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OriginRoom {
    /// So many, even if all have the same.
    Left(usize),
    /// One origin has all it may have, and goes on; at this instant it counts as stalled.
    FullUntil(u64),
    /// One origin has all it may have, and none of its deliveries ends.
    Stalled,
}

/// Most deliveries of one origin, so that a quarter is left for others.
pub(super) fn origin_max(concurrency: usize) -> usize {
    concurrency.saturating_sub((concurrency / 4).max(1)).max(1)
}

/// When a job is due again whose receiver is not called for so long, after so many others.
pub(super) fn later_ms(wait_ms: u64, id: JobId, sent_back: u64) -> u64 {
    let spread_ms = sent_back.saturating_mul(STEP_MS).min(SPREAD_MS_MAX);
    wait_ms.max(LATER_MS_MIN) + mix(id.0) % (spread_ms + 1)
}

impl Load {
    pub(super) fn count(&self, origin: &str) -> usize {
        self.origins.get(origin).map_or(0, |load| load.count)
    }

    pub(super) fn begin(&mut self, origin: &Arc<str>, now_ms: u64) {
        let new = || OriginLoad { count: 0, moved_at_ms: now_ms };
        self.origins.entry(Arc::clone(origin)).or_insert_with(new).count += 1;
    }

    pub(super) fn end(&mut self, origin: &Arc<str>, now_ms: u64) {
        let Some(load) = self.origins.get_mut(origin) else { return };
        load.count -= 1;
        load.moved_at_ms = now_ms;
        if load.count == 0 {
            self.origins.remove(origin);
        }
    }

    pub(super) fn room(&self, concurrency: usize, now_ms: u64) -> OriginRoom {
        let max = origin_max(concurrency);
        // With one delivery at a time there is nothing to share.
        let Some(most) = self.origins.values().max_by_key(|load| load.count) else {
            return OriginRoom::Left(max);
        };
        if most.count < max || concurrency == 1 {
            return OriginRoom::Left(max.saturating_sub(most.count));
        }
        let stalls_at_ms = most.moved_at_ms + STALLED_MS;
        match now_ms < stalls_at_ms {
            true => OriginRoom::FullUntil(stalls_at_ms),
            false => OriginRoom::Stalled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_leaves_a_quarter_to_others() {
        for (concurrency, max) in [(1, 1), (2, 1), (3, 2), (4, 3), (16, 12), (1_000, 750)] {
            assert_eq!(origin_max(concurrency), max, "{concurrency}");
        }
    }

    #[test]
    fn jobs_are_taken_while_their_origin_has_room_or_stalls() {
        let (a, b): (Arc<str>, Arc<str>) = (Arc::from("a"), Arc::from("b"));
        let mut load = Load::default();
        assert_eq!(load.room(8, 0), OriginRoom::Left(6));
        (0..6).for_each(|_| load.begin(&a, 100));
        load.begin(&b, 100);
        assert_eq!(load.room(8, 200), OriginRoom::FullUntil(2_100));
        assert_eq!(load.room(8, 2_100), OriginRoom::Stalled);
        load.end(&a, 2_200);
        assert_eq!(load.room(8, 2_300), OriginRoom::Left(1));
        load.begin(&a, 2_300);
        assert_eq!(load.room(8, 2_300), OriginRoom::FullUntil(4_200), "it goes on");
        (0..6).for_each(|_| load.end(&a, 3_000));
        load.end(&b, 3_000);
        assert!(load.origins.is_empty());
        load.end(&b, 3_000);
        load.begin(&a, 0);
        assert_eq!(load.room(1, 9_000), OriginRoom::Left(0));
    }

    #[test]
    fn jobs_that_go_back_spread() {
        let due: Vec<u64> = (0..100_000).map(|n| later_ms(5_000, JobId(n), n)).collect();
        assert_eq!(due[0], 5_000);
        assert!(due.iter().all(|ms| (5_000..=605_000).contains(ms)));
        let mut seconds = vec![0; 606];
        due.iter().for_each(|ms| seconds[(ms / 1_000) as usize] += 1);
        let most = seconds.iter().max().unwrap();
        assert!(*most < 1_000, "{most} in one second");
        assert_eq!(later_ms(0, JobId(7), 0), LATER_MS_MIN);
    }
}
