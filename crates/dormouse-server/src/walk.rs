//! Reads a page of topics in portions, and skips topics that the caller may not see.

use dormouse_core::error::Error;
use dormouse_core::limits::TOPIC_BYTES_MAX;
use dormouse_core::op::{Topics, TopicsPage};
use dormouse_core::topic::TopicName;

use crate::access::{Grant, Verb};

/// Topics in one portion. The engine does nothing else meanwhile, and needs about 0.1 ms for a
/// topic that is spread over ten runs.
pub(crate) const PORTION: usize = 25;

/// A page of topics under construction. It is complete when it has enough topics that the caller
/// may see, or there are no more: a page that ended at a hidden topic would reveal its name.
pub(crate) struct Walk {
    after: Option<TopicName>,
    limit: usize,
    /// Only names that begin so.
    prefix: String,
    page: TopicsPage,
    is_over: bool,
}

impl Walk {
    /// Begins with an empty page.
    pub(crate) fn new(wanted: Topics) -> Result<Walk, Error> {
        wanted.check()?;
        let Topics { after, limit } = wanted;
        let page = TopicsPage { topics: Vec::new(), more: false };
        Ok(Walk { after, limit, prefix: String::new(), page, is_over: false })
    }

    /// Only topics whose names begin so: a seek in the order of names.
    pub(crate) fn with_prefix(self, prefix: String) -> Walk {
        let after = self.after.filter(|after| after.as_str() >= prefix.as_str());
        let after = after.or_else(|| before(&prefix));
        Walk { after, prefix, ..self }
    }

    /// The next portion to request; `None` = the page is complete.
    pub(crate) fn next(&mut self, grant: &Grant) -> Option<Topics> {
        if self.is_over {
            return None;
        }
        let place = self.after.as_ref().map_or("", TopicName::as_str);
        let next = grant.skip_to(Verb::List, place)?;
        if next > self.prefix.as_str() && !next.starts_with(&self.prefix) {
            // All names with the prefix come before this one.
            return None;
        }
        if next != place {
            self.after = before(next);
        }
        // One topic more than the limit shows whether there are more.
        let limit = PORTION.min(self.limit + 1 - self.page.topics.len());
        Some(Topics { after: self.after.clone(), limit })
    }

    /// Adds a portion to the page.
    pub(crate) fn take(&mut self, grant: &Grant, portion: TopicsPage) {
        self.after = portion.topics.last().map(|(name, _)| name.clone());
        self.is_over = !portion.more || self.after.is_none();
        for topic in portion.topics {
            if !topic.0.as_str().starts_with(&self.prefix) {
                self.is_over = true;
                return;
            }
            if !grant.allows(Verb::List, topic.0.as_str()) {
                continue;
            }
            if self.page.topics.len() == self.limit {
                self.page.more = true;
                self.is_over = true;
                return;
            }
            self.page.topics.push(topic);
        }
    }

    /// The page.
    pub(crate) fn into_page(self) -> TopicsPage {
        self.page
    }
}

/// The greatest name below this one, if there is any: a page after it begins with this name. `z` is
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
    fn before_is_the_greatest_name_below() {
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
