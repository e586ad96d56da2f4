//! get: look at a job without leasing it.

use crate::command::{Command, Reply, operation};
use crate::error::Error;
use crate::job::{Job, State};
use crate::limits::REPLY_BYTES_MAX;
use crate::machine::{BatchProgress, JobLocation, LongCommand, Machine, Portion, Rule};
use crate::op::Target;
use crate::refusal::does_not_fit;
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
    /// When it is due, was due, or (dead) died, or (done) was acked; of a leased one, when its
    /// lease expires. Wall ms.
    pub due_at: u64,
    /// All that is known of it.
    pub job: Job,
    /// The limit that keeps it from being taken, if it is ready.
    pub held_by: Option<HeldBy>,
}

/// A limit of a topic that keeps a ready job from being taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// As many jobs of the topic are leased as may be.
    LeasedMax,
    /// The rate of the topic.
    Rate,
    /// As many jobs of the group are leased as may be.
    GroupLeasedMax,
    /// The rate of the group.
    GroupRate,
}

impl HeldBy {
    /// Every limit.
    pub const ALL: [HeldBy; 4] =
        [HeldBy::LeasedMax, HeldBy::Rate, HeldBy::GroupLeasedMax, HeldBy::GroupRate];

    /// The setting's name.
    pub fn as_str(self) -> &'static str {
        match self {
            HeldBy::LeasedMax => "leased_max",
            HeldBy::Rate => "rate",
            HeldBy::GroupLeasedMax => "group_leased_max",
            HeldBy::GroupRate => "group_rate",
        }
    }
}

/// Look at jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get(pub Vec<Target>);

operation! {
    Get => Vec<Result<JobView, Error>>,
        Get(items) => Command::Get(items), Reply::Views(replies) => Ok(replies);
}

/// A look at jobs between two portions.
#[derive(Debug)]
pub(crate) struct GetProgress {
    batch: BatchProgress<Target, JobView>,
    /// Bytes that the reply may still take.
    left: u64,
}

impl GetProgress {
    pub(crate) fn new(targets: Vec<Target>) -> Result<GetProgress, Error> {
        Ok(GetProgress { batch: BatchProgress::new(targets)?, left: REPLY_BYTES_MAX })
    }
}

impl<T: Timeline> Machine<T> {
    pub(crate) fn get_portion(&mut self, now: Now, mut progress: GetProgress) -> Rule<Portion> {
        let GetProgress { batch, left } = &mut progress;
        self.batch_portion(batch, |machine, target, budget| {
            let view = machine.get_one(now, &target)?;
            budget.take(&view.job);
            Ok(fit(view, left)?)
        })?;
        Ok(if batch.is_done() {
            Portion::Done(Reply::Views(progress.batch.replies))
        } else {
            Portion::More(LongCommand::Get(progress))
        })
    }

    fn get_one(&mut self, now: Now, target: &Target) -> Rule<JobView> {
        let view = match self.locate_any(now, target)? {
            JobLocation::Leased(id) => self.view_leased(id, now),
            JobLocation::Resting(resting) => self.view_resting(resting, now),
        };
        view.ok_or_else(|| self.absent(target).into())
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
