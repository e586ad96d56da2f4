//! The tubes of jobs that a connection has put or looked at lately: a delete of one that it does
//! not hold names only the id, and the tube counts its deletes.

use std::collections::VecDeque;

use dormouse_core::job::JobId;
use dormouse_core::topic::TopicName;

/// Who deletes a job has mostly just seen it.
const KEPT: usize = 32;

/// The last ones.
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
