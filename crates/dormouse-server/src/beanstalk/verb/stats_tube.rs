//! stats-tube: a tube's counts.

use std::sync::atomic::Ordering;

use bytes::BytesMut;
use dormouse_core::error::{Code, Error};
use dormouse_core::op::{Stats, TopicStats};
use dormouse_core::topic::TopicName;

use super::{ADDED_MS, PendingReply, whole_s};
use crate::beanstalk::tubes::Tube;
use crate::beanstalk::{Beanstalk, reply};
use crate::pipeline::{Request, Turn};

impl Beanstalk {
    pub(super) fn stats_tube(tube: TopicName, turn: &mut Turn<PendingReply>) {
        let stats = Stats { topic: Some(tube.clone()) };
        turn.send_last(Request::new(stats, PendingReply::TubeStats(tube)));
    }

    /// A tube exists while it has jobs, users or watchers.
    pub(super) fn tube_stats(
        &self,
        name: &TopicName,
        stats: Result<TopicStats, Error>,
        out: &mut BytesMut,
    ) {
        let stats = match stats {
            Ok(stats) => stats,
            Err(error) if error.code == Code::NotFound => TopicStats::default(),
            Err(error) => return reply::error(&error, out),
        };
        let counts = &stats.counts;
        let has_jobs = counts.waiting + counts.leased + counts.dead > 0;
        if !has_jobs && !self.shared.tubes.is_attached(name) {
            self.shared.tubes.forget(name);
            return out.extend_from_slice(reply::NOT_FOUND);
        }
        let tube = self.shared.tubes.find(name);
        reply::yaml(&describe(name, &stats, tube.as_deref()), out);
    }
}

/// Exactly these keys in this order: some clients compare the whole text.
fn describe(name: &TopicName, stats: &TopicStats, tube: Option<&Tube>) -> String {
    let counts = &stats.counts;
    let of = |count: fn(&Tube) -> u64| tube.map_or(0, count);
    let (pause_s, left_s) = pause(stats, of(|tube| tube.pause_s.load(Ordering::Relaxed)));
    format!(
        "---\nname: \"{name}\"\ncurrent-jobs-urgent: {}\ncurrent-jobs-ready: {}\n\
         current-jobs-reserved: {}\ncurrent-jobs-delayed: {}\ncurrent-jobs-buried: {}\n\
         total-jobs: {}\ncurrent-using: {}\ncurrent-watching: {}\ncurrent-waiting: {}\n\
         cmd-delete: {}\ncmd-pause-tube: {}\npause: {pause_s}\npause-time-left: {left_s}\n",
        stats.urgent,
        stats.ready,
        counts.leased,
        stats.delayed,
        counts.dead,
        // The backend forgets an empty topic; a tube lives as long as its clients.
        counts.puts.max(of(|tube| tube.puts.load(Ordering::Relaxed))),
        of(Tube::using),
        of(Tube::watching),
        stats.waiters,
        (counts.acks + counts.cancels).max(of(|tube| tube.deletes.load(Ordering::Relaxed))),
        of(|tube| tube.pauses.load(Ordering::Relaxed)),
    )
}

/// The length of its pause, and the time left. Another protocol may have paused it for good.
fn pause(stats: &TopicStats, asked_s: u64) -> (u64, u64) {
    match stats.paused {
        None => (0, 0),
        Some(None) => (u32::MAX.into(), u32::MAX.into()),
        Some(Some(left_ms)) => {
            // Seconds left, rounded up.
            let least_s = left_ms.saturating_sub(ADDED_MS).div_ceil(1_000);
            (asked_s.max(least_s), whole_s(left_ms))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_not_shown_longer_than_requested() {
        let paused = |paused| TopicStats { paused, ..TopicStats::default() };
        for left_ms in [9_002, 9_001, 8_003] {
            assert_eq!(pause(&paused(Some(Some(left_ms))), 9).0, 9, "{left_ms}");
        }
        // Another client has paused it for longer since.
        assert_eq!(pause(&paused(Some(Some(20_000))), 9), (20, 19));
        assert_eq!(pause(&paused(None), 9), (0, 0));
    }
}
