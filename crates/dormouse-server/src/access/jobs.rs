//! Access to jobs that a request names by id or token: only the backend knows their topics.

use std::collections::BTreeSet;

use dormouse_core::command::Command;
use dormouse_core::error::{Code, Error};
use dormouse_core::job::JobId;
use dormouse_core::op::{Get, Target};

use super::{Grant, Verb};
use crate::client::BackendClient;

/// The id of no job: ids begin at 1.
pub(crate) const NO_JOB: JobId = JobId(0);

impl Grant {
    /// Whether this may be done to all of these jobs; returns those that do not exist for this
    /// caller: that are not there, or in a topic that the caller may neither use so nor read. An
    /// answer must not tell one from the other, for ids can be counted through.
    ///
    /// An absent job may be put before the next command, into a topic that this caller has no
    /// access to. So a caller who is limited to some topics must not name it in that command: see
    /// [`mask_absent`].
    pub(crate) async fn check_jobs(
        &self,
        client: &BackendClient,
        verb: Verb,
        ids: impl Iterator<Item = JobId>,
    ) -> Result<BTreeSet<JobId>, Error> {
        let mut absent = BTreeSet::new();
        if self.covers_all(verb) {
            return Ok(absent);
        }
        if !self.may_somewhere(verb) {
            return self.check_verb(verb).map(|()| absent);
        }
        // An id may be named thousands of times.
        let distinct: BTreeSet<JobId> = ids.collect();
        let mut unknown: Vec<JobId> = distinct.into_iter().collect();
        while !unknown.is_empty() {
            let views = client.call(Get(unknown.iter().copied().map(Target::Id).collect())).await?;
            let mut later = Vec::new();
            for (id, view) in unknown.into_iter().zip(views) {
                match view {
                    Ok(view) if self.allows(verb, view.topic.as_str()) => {}
                    // It may look at the job, so the refusal tells nothing new.
                    Ok(view) if self.allows(Verb::Get, view.topic.as_str()) => {
                        self.check(verb, view.topic.as_str())?;
                    }
                    Ok(_) => drop(absent.insert(id)),
                    Err(error) if error.code == Code::NotFound => drop(absent.insert(id)),
                    // It did not fit into this reply: the next one begins with it.
                    Err(error) if error.code == Code::TooLarge => later.push(id),
                    Err(error) => return Err(error),
                }
            }
            unknown = later;
        }
        Ok(absent)
    }
}

/// Replaces the ids of absent jobs in a command, so that it is answered as if they stayed absent.
pub(crate) fn mask_absent(command: &mut Command, absent: &BTreeSet<JobId>) {
    command.ids_mut(|id| {
        if absent.contains(id) {
            *id = NO_JOB;
        }
    });
}
