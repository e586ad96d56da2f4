//! The tubes of jobs that a connection has put or read lately: a delete of a job that is not
//! reserved names only the id, but the deletes of each tube are counted.

use std::collections::VecDeque;

use dormouse_core::job::JobId;
use dormouse_core::topic::TopicName;

/// A client that deletes a job has usually just seen it.
const KEPT: usize = 32;

/// The last jobs, the newest at the back.
#[derive(Debug, Default)]
pub(super) struct RecentJobs(VecDeque<(JobId, TopicName)>);

impl RecentJobs {
    pub(super) fn note(&mut self, id: JobId, topic: &TopicName) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back((id, topic.clone()));
    }

    pub(super) fn topic_of(&self, id: JobId) -> Option<&TopicName> {
        self.0.iter().rev().find(|(noted, _)| *noted == id).map(|(_, topic)| topic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten() {
        let topic = TopicName::new("a").unwrap();
        let mut recent = RecentJobs::default();
        (0..=KEPT as u64).for_each(|id| recent.note(JobId(id), &topic));
        assert_eq!(recent.topic_of(JobId(0)), None);
        assert_eq!(recent.topic_of(JobId(1)), Some(&topic));
        assert_eq!(recent.topic_of(JobId(KEPT as u64)), Some(&topic));
        assert_eq!(recent.0.len(), KEPT);
    }
}
