//! kick: makes buried jobs of the used tube ready, or, if none is buried, delayed ones.

use bytes::BytesMut;
use dormouse_core::error::{Code, Error};
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Kick, ReviveTopic, Stats, TopicStats};
use dormouse_core::topic::TopicName;

use super::PendingReply;
use crate::beanstalk::{Beanstalk, reply};
use crate::pipeline::{Next, Request, Turn};

/// A kick under way: the backend moves a bounded number of jobs at once.
pub(crate) struct KickProgress {
    tube: TopicName,
    is_buried: bool,
    /// Jobs still to be moved.
    left: u64,
    moved: u64,
}

impl KickProgress {
    fn request(self) -> Request<PendingReply> {
        let max = self.portion();
        let topic = self.tube.clone();
        if self.is_buried {
            Request::new(ReviveTopic { topic, max }, PendingReply::Kicked(self))
        } else {
            Request::new(Kick { topic, max }, PendingReply::Kicked(self))
        }
    }

    /// Asks first how many jobs there are: while others add jobs, there might be no end.
    fn size_request(self) -> Request<PendingReply> {
        let stats = Stats { topic: Some(self.tube.clone()) };
        Request::new(stats, PendingReply::KickSized(self))
    }

    /// Moves no more jobs than there are now.
    fn bounded(mut self, stats: &TopicStats) -> KickProgress {
        self.is_buried = stats.counts.dead > 0;
        let there = if self.is_buried { stats.counts.dead } else { stats.delayed };
        self.left = self.left.min(there);
        self
    }

    fn portion(&self) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX).min(BATCH_MAX)
    }

    fn finish(self, out: &mut BytesMut) -> Next<PendingReply> {
        reply::numbered("KICKED", self.moved, out);
        None
    }

    fn fail(self, error: &Error, out: &mut BytesMut) -> Next<PendingReply> {
        // A tube that does not exist has no jobs.
        if error.code == Code::NotFound {
            return self.finish(out);
        }
        reply::error(error, out);
        None
    }
}

impl Beanstalk {
    pub(super) fn kick(&mut self, count: u64, turn: &mut Turn<PendingReply>) {
        if count == 0 {
            return reply::numbered("KICKED", 0, turn.reply_now());
        }
        let tube = self.used.name.clone();
        let progress = KickProgress { tube, is_buried: true, left: count, moved: 0 };
        let is_many = count > BATCH_MAX as u64;
        turn.send_last(if is_many { progress.size_request() } else { progress.request() });
    }

    /// Knows how many jobs there are, and begins to move them.
    pub(super) fn kick_sized(
        progress: KickProgress,
        stats: Result<TopicStats, Error>,
        out: &mut BytesMut,
    ) -> Next<PendingReply> {
        let stats = match stats {
            Ok(stats) => stats,
            Err(error) => return progress.fail(&error, out),
        };
        let progress = progress.bounded(&stats);
        if progress.left == 0 { progress.finish(out) } else { Some(progress.request()) }
    }

    pub(super) fn kicked(
        mut progress: KickProgress,
        moved: Result<u64, Error>,
        out: &mut BytesMut,
    ) -> Next<PendingReply> {
        let moved = match moved {
            Ok(moved) => moved,
            Err(error) => return progress.fail(&error, out),
        };
        let is_full = moved >= progress.portion() as u64;
        progress.moved += moved;
        progress.left = progress.left.saturating_sub(moved);
        if is_full && progress.left > 0 {
            return Some(progress.request());
        }
        if progress.is_buried && progress.moved == 0 {
            return Some(KickProgress { is_buried: false, ..progress }.request());
        }
        progress.finish(out)
    }
}

#[cfg(test)]
mod tests {
    use dormouse_core::command::Command;

    use super::*;

    /// Even if everything is asked for, and there is always more to move.
    #[test]
    fn a_kick_ends() {
        let mut stats = TopicStats::default();
        (stats.counts.dead, stats.delayed) = (10_000, 7);
        let tube = TopicName::new("t").unwrap();
        let begun = KickProgress { tube, is_buried: true, left: u64::MAX, moved: 0 };
        let mut out = BytesMut::new();
        let mut next = Beanstalk::kick_sized(begun, Ok(stats), &mut out);
        let mut portions = Vec::new();
        while let Some((Command::ReviveTopic(revive), pending)) = next.map(Request::into_parts) {
            let PendingReply::Kicked(progress) = pending else { panic!("it is a kick") };
            portions.push(revive.max);
            next = Beanstalk::kicked(progress, Ok(revive.max as u64), &mut out);
        }
        assert_eq!(portions, [BATCH_MAX, BATCH_MAX, 10_000 - 2 * BATCH_MAX]);
        assert_eq!(out, "KICKED 10000\r\n");
    }
}
