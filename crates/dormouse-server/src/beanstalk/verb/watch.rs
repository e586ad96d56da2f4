//! use, watch, ignore and list-tubes-watched: what a connection has to do with which tubes.

use std::fmt::Write as _;
use std::mem;

use crate::limits::{BEANSTALK_LIST_BYTES_MAX, BEANSTALK_LISTED_TUBES_MAX};
use dormouse_core::limits::RESERVE_TOPICS_MAX;
use dormouse_core::topic::TopicName;

use super::Then;
use crate::beanstalk::tubes::Tie;
use crate::beanstalk::{Beanstalk, words};
use crate::pipeline::Turn;

impl Beanstalk {
    pub(super) fn use_tube(&mut self, name: TopicName, turn: &mut Turn<Then>) {
        if name != self.used.name {
            let Some(tube) = self.house.tubes.tie(name, Tie::Uses) else {
                return turn.say().extend_from_slice(words::OUT_OF_MEMORY);
            };
            let left = mem::replace(&mut self.used, tube);
            self.house.tubes.untie(&left, Tie::Uses);
        }
        words::named("USING", self.used.name.as_str(), turn.say());
    }

    pub(super) fn watch(&mut self, name: TopicName, turn: &mut Turn<Then>) {
        if !self.watched.iter().any(|tube| tube.name == name) {
            let is_full = self.watched.len() >= RESERVE_TOPICS_MAX;
            let tube = if is_full { None } else { self.house.tubes.tie(name, Tie::Watches) };
            let Some(tube) = tube else {
                return turn.say().extend_from_slice(words::OUT_OF_MEMORY);
            };
            self.watched.push(tube);
        }
        self.say_watching(turn);
    }

    pub(super) fn ignore(&mut self, name: &TopicName, turn: &mut Turn<Then>) {
        if let Some(place) = self.watched.iter().position(|tube| tube.name == *name) {
            if self.watched.len() == 1 {
                return turn.say().extend_from_slice(words::NOT_IGNORED);
            }
            let tube = self.watched.swap_remove(place);
            self.house.tubes.untie(&tube, Tie::Watches);
        }
        self.say_watching(turn);
    }

    fn say_watching(&self, turn: &mut Turn<Then>) {
        words::numbered("WATCHING", self.watched.len() as u64, turn.say());
    }

    pub(super) fn list_tubes_watched(&self, turn: &mut Turn<Then>) {
        let names = self.watched.iter().map(|tube| tube.name.as_str());
        words::yaml(&list(names), turn.say());
    }
}

/// Names as a list in YAML, as many as an answer may have.
pub(super) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::from("---\n");
    for name in names.take(BEANSTALK_LISTED_TUBES_MAX) {
        if text.len() + name.len() + "- \n".len() > BEANSTALK_LIST_BYTES_MAX {
            break;
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "- {name}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_bounds() {
        let shown = |name: &str| list(std::iter::repeat_n(name, 200_000));
        assert_eq!(shown("a").lines().count(), 1 + BEANSTALK_LISTED_TUBES_MAX);
        let long = shown(&"a".repeat(200));
        assert!(long.len() <= BEANSTALK_LIST_BYTES_MAX, "{}", long.len());
        assert!(long.len() > BEANSTALK_LIST_BYTES_MAX - 203, "{}", long.len());
        assert!(long.ends_with("a\n"));
    }
}
