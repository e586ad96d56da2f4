//! stats-job: a job's state and history.

use bytes::BytesMut;
use dormouse_core::error::Error;
use dormouse_core::job::{JobId, State};
use dormouse_core::op::{Get, JobView, Target};

use super::{PendingReply, whole_s};
use crate::beanstalk::{Beanstalk, clock, reply};
use crate::pipeline::{Request, Turn};

impl Beanstalk {
    pub(super) fn stats_job(id: JobId, turn: &mut Turn<PendingReply>) {
        turn.send_last(Request::new(Get(vec![Target::Id(id)]), PendingReply::JobStats));
    }

    pub(super) fn job_stats(&mut self, view: Result<JobView, Error>, out: &mut BytesMut) {
        match view {
            Ok(view) => {
                self.recent.note(view.job.id, &view.topic);
                reply::yaml(&describe(&view, clock::wall_ms()), out);
            }
            Err(error) => reply::error(&error, out),
        }
    }
}

/// Exactly these keys in this order: some clients compare the whole text.
fn describe(view: &JobView, now_ms: u64) -> String {
    let (content, progress) = (&view.job.content, &view.job.progress);
    let left_ms = match view.state {
        State::Delayed | State::Leased => view.due_at.saturating_sub(now_ms),
        State::Ready | State::Dead | State::Done => 0,
    };
    format!(
        "---\nid: {}\ntube: \"{}\"\nstate: {}\npri: {}\nage: {}\ndelay: {}\nttr: {}\n\
         time-left: {}\nfile: 0\nreserves: {}\ntimeouts: {}\nreleases: {}\nburies: {}\nkicks: {}\n",
        view.job.id,
        view.topic,
        state(view.state),
        progress.priority,
        now_ms.saturating_sub(content.put_at) / 1_000,
        delay_s(view, now_ms),
        content.ttr_ms / 1_000,
        whole_s(left_ms),
        progress.reserves,
        progress.expiries,
        progress.releases,
        progress.kills,
        progress.kicks,
    )
}

fn state(state: State) -> &'static str {
    match state {
        State::Delayed => "delayed",
        State::Ready => "ready",
        State::Leased => "reserved",
        State::Dead => "buried",
        State::Done => "done",
    }
}

/// The last delay that was asked for is not stored. For a job that is unchanged since its put, it
/// is the time from put to due; for one that is delayed again, the time that is left.
fn delay_s(view: &JobView, now_ms: u64) -> u64 {
    let progress = &view.job.progress;
    let is_fresh = progress.reserves == 0 && progress.kicks == 0 && progress.kills == 0;
    if is_fresh {
        // The two come from clocks that may differ by less than a second.
        (view.due_at.saturating_sub(view.job.content.put_at) + 500) / 1_000
    } else if view.state == State::Delayed {
        begun_s(view.due_at.saturating_sub(now_ms))
    } else {
        0
    }
}

/// Seconds left, rounded up.
fn begun_s(left_ms: u64) -> u64 {
    whole_s(left_ms.saturating_add(999))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A delay of five seconds ends up to two ms late.
    #[test]
    fn a_delay_is_not_shown_longer_than_requested() {
        let check = |left_ms, seconds| assert_eq!(begun_s(left_ms), seconds, "{left_ms}");
        check(5_002, 5);
        check(5_001, 5);
        check(4_003, 5);
        check(4_002, 4);
        check(3, 1);
        check(0, 0);
    }
}
