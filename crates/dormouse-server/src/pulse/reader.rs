//! A reader of the pulse.

use std::sync::Arc;

use dormouse_core::topic::TopicName;
use tokio::sync::watch;

use super::sampler::BEAT;
use super::{Beat, Hub};
use crate::shares::Portion;
use crate::visitor::Claimant;

/// Somebody who reads beats: while there is one, they are made.
pub(crate) struct PulseReader {
    hub: Arc<Hub>,
    topics: Vec<TopicName>,
    latest: watch::Receiver<Option<Arc<Beat>>>,
    /// Beats before this one lack its topics.
    serial: u64,
    is_new: bool,
    /// The task knows that it waits.
    is_known: bool,
    #[expect(dead_code, reason = "its drop lets another client read")]
    portion: Portion<Claimant>,
}

impl PulseReader {
    pub(super) fn new(
        hub: Arc<Hub>,
        topics: Vec<TopicName>,
        portion: Portion<Claimant>,
    ) -> PulseReader {
        let mut wanted = hub.wanted();
        // The task reads this number first and the topics then, so a beat of the next number has
        // them.
        let serial = wanted.enter(&topics, *hub.arrivals.borrow() + 1);
        drop(wanted);
        let latest = hub.latest.subscribe();
        PulseReader { hub, topics, latest, serial, is_new: true, is_known: false, portion }
    }

    /// The topics that it asked for.
    pub(crate) fn topics(&self) -> &[TopicName] {
        &self.topics
    }

    /// Waits for the next beat that has its topics; `None` = the server stops.
    pub(crate) async fn next(&mut self) -> Option<Arc<Beat>> {
        if std::mem::take(&mut self.is_new) {
            let latest = self.latest.borrow_and_update().clone();
            let is_good =
                |beat: &Arc<Beat>| beat.made.elapsed() < BEAT && beat.serial >= self.serial;
            if let Some(beat) = latest.filter(is_good) {
                return Some(beat);
            }
        }
        if !std::mem::replace(&mut self.is_known, true) {
            self.hub.arrivals.send_modify(|arrivals| *arrivals += 1);
        }
        loop {
            tokio::select! {
                biased;
                () = self.hub.client.stopping() => return None,
                // The sender is in the hub, so it cannot fail.
                _ = self.latest.changed() => {}
            }
            let beat = self.latest.borrow_and_update().clone();
            if let Some(beat) = beat.filter(|beat| beat.serial >= self.serial) {
                return Some(beat);
            }
        }
    }
}

impl Drop for PulseReader {
    fn drop(&mut self) {
        self.hub.wanted().leave(&self.topics);
    }
}
