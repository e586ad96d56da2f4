//! use, watch, ignore and list-tubes-watched: the tubes of a connection.

use std::fmt::Write as _;
use std::mem;

use crate::limits::{BEANSTALK_LIST_BYTES_MAX, BEANSTALK_LISTED_TUBES_MAX};
use dormouse_core::limits::RESERVE_TOPICS_MAX;
use dormouse_core::topic::TopicName;

use super::PendingReply;
use crate::beanstalk::tubes::Attachment;
use crate::beanstalk::{Beanstalk, reply};
use crate::pipeline::Turn;

impl Beanstalk {
    pub(super) fn use_tube(&mut self, name: TopicName, turn: &mut Turn<PendingReply>) {
        if name != self.used.name {
            let Some(tube) = self.shared.tubes.attach(name, Attachment::Uses) else {
                return turn.reply_now().extend_from_slice(reply::OUT_OF_MEMORY);
            };
            let left = mem::replace(&mut self.used, tube);
            self.shared.tubes.detach(&left, Attachment::Uses);
        }
        reply::named("USING", self.used.name.as_str(), turn.reply_now());
    }

    pub(super) fn watch(&mut self, name: TopicName, turn: &mut Turn<PendingReply>) {
        if !self.watched.iter().any(|tube| tube.name == name) {
            let is_full = self.watched.len() >= RESERVE_TOPICS_MAX;
            let tube =
                if is_full { None } else { self.shared.tubes.attach(name, Attachment::Watches) };
            let Some(tube) = tube else {
                return turn.reply_now().extend_from_slice(reply::OUT_OF_MEMORY);
            };
            self.watched.push(tube);
        }
        self.say_watching(turn);
    }

    pub(super) fn ignore(&mut self, name: &TopicName, turn: &mut Turn<PendingReply>) {
        if let Some(place) = self.watched.iter().position(|tube| tube.name == *name) {
            if self.watched.len() == 1 {
                return turn.reply_now().extend_from_slice(reply::NOT_IGNORED);
            }
            let tube = self.watched.swap_remove(place);
            self.shared.tubes.detach(&tube, Attachment::Watches);
        }
        self.say_watching(turn);
    }

    fn say_watching(&self, turn: &mut Turn<PendingReply>) {
        reply::numbered("WATCHING", self.watched.len() as u64, turn.reply_now());
    }

    pub(super) fn list_tubes_watched(&self, turn: &mut Turn<PendingReply>) {
        let names = self.watched.iter().map(|tube| tube.name.as_str());
        reply::yaml(&list(names), turn.reply_now());
    }
}

/// A list of names in YAML, cut at the limits of a reply.
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
    fn a_list_is_bounded() {
        let shown = |name: &str| list(std::iter::repeat_n(name, 200_000));
        assert_eq!(shown("a").lines().count(), 1 + BEANSTALK_LISTED_TUBES_MAX);
        let long = shown(&"a".repeat(200));
        assert!(long.len() <= BEANSTALK_LIST_BYTES_MAX, "{}", long.len());
        assert!(long.len() > BEANSTALK_LIST_BYTES_MAX - 203, "{}", long.len());
        assert!(long.ends_with("a\n"));
    }
}
