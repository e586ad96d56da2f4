//! get: look at a job without leasing it.

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::job::{Job, State};
use crate::limits::REPLY_BYTES_MAX;
use crate::machine::{Located, Machine, Ruled, granted};
use crate::op::{Target, check};
use crate::refusal::{does_not_fit, no_job};
use crate::time::Now;
use crate::timeline::Timeline;
use crate::topic::TopicName;

/// A job as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobView {
    /// Its topic.
    pub topic: TopicName,
    /// Its state.
    pub state: State,
    /// When it is due, was due, or (dead) died; of a leased one, when its lease expires. Wall ms.
    pub due_at: u64,
    /// All that is known of it.
    pub job: Job,
}

/// Look at jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get(pub Vec<Target>);

operation! {
    Get => Vec<Result<JobView, Error>>,
        Get(items) => Command::Get(items), Reply::Views(replies) => Ok(replies);
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn get(&mut self, now: Now, targets: &[Target]) -> Ruled<Reply> {
        granted!(check::batch(targets.len()));
        let mut views = Vec::with_capacity(targets.len());
        let mut left = REPLY_BYTES_MAX;
        for target in targets {
            let view = self.get_one(now, target)?;
            views.push(view.and_then(|view| fit(view, &mut left)));
        }
        Ok(Ok(Reply::Views(views)))
    }

    fn get_one(&mut self, now: Now, target: &Target) -> Ruled<JobView> {
        let view = match granted!(self.locate(now, target)?) {
            Located::Leased(id) => self.view_leased(id, now),
            Located::Resting(resting) => self.view_resting(resting, now),
        };
        Ok(view.ok_or_else(|| no_job(target)))
    }
}

/// A reply is bounded: a job that does not fit any more must be asked for again.
fn fit(view: JobView, left: &mut u64) -> Result<JobView, Error> {
    match left.checked_sub(u64::from(view.job.progress.bytes)) {
        Some(less) => {
            *left = less;
            Ok(view)
        }
        None => Err(does_not_fit(view.job.id)),
    }
}
