//! A walk over topics, in portions, past those that the caller may not see.

use dormouse_core::error::Error;
use dormouse_core::limits::TOPIC_BYTES_MAX;
use dormouse_core::op::{Topics, TopicsPage};
use dormouse_core::topic::TopicName;

use crate::access::{Grant, Verb};

/// Topics asked for at once. The engine does nothing else meanwhile, and needs about 0.1 ms for a
/// topic that is spread over ten runs.
pub(crate) const PORTION: usize = 25;

/// A page of topics that comes to be. Goes on until there are enough that the caller may see, or
/// there are no more: a page that ended at a topic they may not see would tell its name.
pub(crate) struct Walk {
    after: Option<TopicName>,
    limit: usize,
    seen: TopicsPage,
    is_over: bool,
}

impl Walk {
    /// Nothing seen yet of this page.
    pub(crate) fn new(wanted: Topics) -> Result<Walk, Error> {
        wanted.check()?;
        let Topics { after, limit } = wanted;
        let seen = TopicsPage { topics: Vec::new(), more: false };
        Ok(Walk { after, limit, seen, is_over: false })
    }

    /// What to ask for next; `None` = the page is done.
    pub(crate) fn next(&mut self, grant: &Grant) -> Option<Topics> {
        if self.is_over {
            return None;
        }
        let place = self.after.as_ref().map_or("", TopicName::as_str);
        let next = grant.skip_to(Verb::List, place)?;
        if next != place {
            self.after = before(next);
        }
        // One more than wanted tells whether there are more.
        let limit = PORTION.min(self.limit + 1 - self.seen.topics.len());
        Some(Topics { after: self.after.clone(), limit })
    }

    /// Takes a portion.
    pub(crate) fn take(&mut self, grant: &Grant, page: TopicsPage) {
        self.after = page.topics.last().map(|(name, _)| name.clone());
        self.is_over = !page.more || self.after.is_none();
        for topic in page.topics {
            if !grant.allows(Verb::List, topic.0.as_str()) {
                continue;
            }
            if self.seen.topics.len() == self.limit {
                self.seen.more = true;
                self.is_over = true;
                return;
            }
            self.seen.topics.push(topic);
        }
    }

    /// The page.
    pub(crate) fn into_page(self) -> TopicsPage {
        self.seen
    }
}

/// The last name that is before this one, if there is any: what comes after it begins here. `z` is
/// the greatest character of names.
fn before(name: &str) -> Option<TopicName> {
    let mut rest = name.to_owned();
    let last = rest.pop()?;
    let lower = ('\0'..last).rev().find_map(|byte| TopicName::new(&format!("{rest}{byte}")).ok());
    match lower {
        Some(lower) => TopicName::new(&format!("{:z<TOPIC_BYTES_MAX$}", lower.as_str())).ok(),
        None => TopicName::new(&rest).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_before_is_the_last_one() {
        let check = |name: &str, expected: Option<&str>| {
            let expected = expected.map(|text| match text.strip_suffix("z...") {
                Some(text) => format!("{text:z<TOPIC_BYTES_MAX$}"),
                None => text.to_owned(),
            });
            let before = before(name).map(|name| name.to_string());
            assert_eq!(before, expected, "{name}");
        };
        check("m.", Some("m-z..."));
        check("mA", Some("m;z..."));
        check("m$", Some("m"));
        check("m", Some("lz..."));
        // No name begins with `-`.
        check(".", Some("+z..."));
        check("$", None);
        assert!(('{'..='~').all(|byte| TopicName::new(&byte.to_string()).is_err()));
        let longest = "m".repeat(TOPIC_BYTES_MAX);
        assert_eq!(before(&longest).unwrap().as_str(), longest[1..].to_owned() + "l");
    }
}
