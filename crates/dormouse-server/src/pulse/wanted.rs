//! The topics that readers asked for.
//!
//! A topic stays wanted for some seconds after its last reader has left: who polls gets the rates
//! since the poll before, and the beat that was made for all.

use std::collections::HashMap;
use std::time::Duration;

use dormouse_core::topic::TopicName;

use crate::limits::{PULSE_FIGURES_MAX, PULSE_WANTED_MS};
use crate::metrics::Stopwatch;

#[derive(Default)]
pub(super) struct Wanted(HashMap<TopicName, Want>);

struct Want {
    readers: usize,
    /// Beats before this one lack it.
    serial: u64,
    /// When the last reader left.
    left: Option<Stopwatch>,
}

impl Want {
    fn is_over(&self) -> bool {
        let kept = Duration::from_millis(PULSE_WANTED_MS);
        self.readers == 0 && self.left.is_none_or(|left| left.elapsed() >= kept)
    }
}

impl Wanted {
    /// A reader comes; the beat of this number will be the next one. Tells the first beat that has
    /// all of its topics.
    pub(super) fn enter(&mut self, topics: &[TopicName], next_serial: u64) -> u64 {
        let mut serial = 0;
        for topic in topics {
            let new = || Want { readers: 0, serial: next_serial, left: None };
            let want = self.0.entry(topic.clone()).or_insert_with(new);
            want.readers += 1;
            serial = serial.max(want.serial);
        }
        serial
    }

    /// A reader leaves.
    pub(super) fn leave(&mut self, topics: &[TopicName]) {
        for topic in topics {
            // Those that nobody reads must not take the turns of others.
            let has_room = self.0.len() <= PULSE_FIGURES_MAX;
            let Some(want) = self.0.get_mut(topic) else { continue };
            want.readers = want.readers.saturating_sub(1);
            if want.readers == 0 {
                want.left = has_room.then(Stopwatch::start);
            }
        }
        self.0.retain(|_, want| want.readers > 0 || want.left.is_some());
    }

    /// The topics to look at, by name.
    pub(super) fn names(&mut self) -> Vec<TopicName> {
        self.0.retain(|_, want| !want.is_over());
        let mut names: Vec<TopicName> = self.0.keys().cloned().collect();
        names.sort();
        names
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.values().all(Want::is_over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<TopicName> {
        names.iter().map(|name| TopicName::new(name).unwrap()).collect()
    }

    #[test]
    fn who_asks_for_what_others_asked_for_needs_no_new_beat() {
        let mut wanted = Wanted::default();
        assert!(wanted.is_empty());
        assert_eq!(wanted.enter(&names(&["a", "b"]), 5), 5);
        assert_eq!(wanted.enter(&names(&["a"]), 9), 5);
        assert_eq!(wanted.enter(&names(&["a", "c"]), 9), 9);
        assert_eq!(wanted.enter(&[], 12), 0);
        wanted.leave(&names(&["a", "b"]));
        assert_eq!(wanted.names(), names(&["a", "b", "c"]), "b stays for a while");
        assert_eq!(wanted.enter(&names(&["b"]), 20), 5);
    }

    #[test]
    fn those_that_nobody_reads_are_few() {
        let mut wanted = Wanted::default();
        for number in 0..PULSE_FIGURES_MAX + 50 {
            let topics = names(&[&format!("t{number}")]);
            wanted.enter(&topics, 1);
            wanted.leave(&topics);
        }
        assert!(wanted.names().len() <= PULSE_FIGURES_MAX, "{}", wanted.names().len());
    }
}
