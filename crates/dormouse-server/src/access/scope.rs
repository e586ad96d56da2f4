//! The grammar of scopes: `<verbs>:<topics>`.

use std::fmt;
use std::str::FromStr;

use super::verb::{UnknownVerb, Verb, Verbs};

const PRODUCER: Verbs =
    Verbs::of(&[Verb::Put, Verb::Get, Verb::Cancel, Verb::Reschedule, Verb::Schedule]);
const CONSUMER: Verbs = Verbs::of(&[
    Verb::Reserve,
    Verb::Ack,
    Verb::Nack,
    Verb::Release,
    Verb::Extend,
    Verb::Kill,
    Verb::Get,
]);
const VIEWER: Verbs =
    Verbs::of(&[Verb::Get, Verb::List, Verb::Stats, Verb::Forecast, Verb::Events, Verb::Metrics]);
const OPERATOR: Verbs = VIEWER.with(Verbs::of(&[
    Verb::SetTopic,
    Verb::Pause,
    Verb::Resume,
    Verb::Purge,
    Verb::Revive,
    Verb::Kick,
    Verb::Kill,
    Verb::Cancel,
    Verb::Reschedule,
    Verb::Schedule,
    Verb::BreakLock,
    Verb::Inspect,
    Verb::Push,
]));

/// Names for the verbs that one kind of caller needs.
const ROLES: [(&str, Verbs); 5] = [
    ("producer", PRODUCER),
    ("consumer", CONSUMER),
    ("viewer", VIEWER),
    ("operator", OPERATOR),
    ("admin", Verbs::ALL),
];

/// Some verbs on some topics, written as `<verbs>:<topics>`: `producer:orders.*`, `put,get:mail`,
/// `*:*`. Verbs are `*`, or verbs and roles with commas between; topics are a name, the beginning
/// of names and a `*`, or `*` for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    text: String,
    verbs: Verbs,
    topics: Topics,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Topics {
    All,
    Prefix(String),
    One(String),
}

/// Why a text is not a scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// No `:`.
    #[error("scope `{0}` names no topics; write `{0}:*` for all topics, `{0}:orders.*` for some")]
    NoTopics(String),
    /// Nothing before or after the `:`.
    #[error("scope `{0}` is incomplete; write `<verbs>:<topics>`, as in `producer:orders.*`")]
    Incomplete(String),
    /// A `*` that is not the last character.
    #[error("scope `{0}` has a `*` inside; it can only stand for the end of a topic")]
    StarInside(String),
    /// A word that is neither a verb nor a role.
    #[error("scope `{scope}`: {source}")]
    Verb {
        /// The whole scope.
        scope: String,
        /// The word, and the nearest known one.
        source: UnknownVerb,
    },
}

impl Scope {
    pub(super) fn everything() -> Scope {
        Scope { text: "*:*".to_owned(), verbs: Verbs::ALL, topics: Topics::All }
    }

    pub(super) fn allows(&self, verb: Verb, topic: &str) -> bool {
        self.verbs.has(verb)
            && match &self.topics {
                Topics::All => true,
                Topics::Prefix(prefix) => topic.starts_with(prefix.as_str()),
                Topics::One(name) => topic == name,
            }
    }

    /// As [`super::Grant::skip_to`], for this scope: `after` if that is within the scope, or the
    /// scope's first name if that is still ahead.
    pub(super) fn skip_to<'a>(&'a self, verb: Verb, after: &'a str) -> Option<&'a str> {
        if !self.verbs.has(verb) {
            return None;
        }
        match &self.topics {
            Topics::All => Some(after),
            Topics::Prefix(prefix) if after.starts_with(prefix.as_str()) => Some(after),
            Topics::Prefix(first) | Topics::One(first) => {
                (first.as_str() > after).then_some(first.as_str())
            }
        }
    }

    pub(super) fn verbs(&self) -> Verbs {
        self.verbs
    }

    pub(super) fn is_for_all_topics(&self) -> bool {
        self.topics == Topics::All
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Scope, ScopeError> {
        // Topics may contain a colon, verbs may not: the first one separates them.
        let Some((words, topics)) = text.split_once(':') else {
            return Err(ScopeError::NoTopics(text.to_owned()));
        };
        if words.trim().is_empty() || topics.trim().is_empty() {
            return Err(ScopeError::Incomplete(text.to_owned()));
        }
        let mut verbs = Verbs::NONE;
        for word in words.split(',') {
            let unknown = |source| ScopeError::Verb { scope: text.to_owned(), source };
            verbs = verbs.with(verbs_of(word.trim()).map_err(unknown)?);
        }
        let topics = match topics.trim().strip_suffix('*') {
            Some("") => Topics::All,
            Some(prefix) => Topics::Prefix(prefix.to_owned()),
            None => Topics::One(topics.trim().to_owned()),
        };
        match &topics {
            Topics::Prefix(name) | Topics::One(name) if name.contains('*') => {
                Err(ScopeError::StarInside(text.to_owned()))
            }
            _ => Ok(Scope { text: text.to_owned(), verbs, topics }),
        }
    }
}

fn verbs_of(word: &str) -> Result<Verbs, UnknownVerb> {
    if word == "*" {
        return Ok(Verbs::ALL);
    }
    if let Some((_, verbs)) = ROLES.iter().find(|(role, _)| *role == word) {
        return Ok(*verbs);
    }
    let known = || Verb::ALL.into_iter().map(Verb::as_str).chain(ROLES.map(|(role, _)| role));
    word.parse().map(|verb| Verbs::of(&[verb])).map_err(|_| UnknownVerb::new(word, known()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_scope_is_refused_with_a_reason() {
        let check = |text: &str, part: &str| {
            let error = text.parse::<Scope>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert!(error.contains(&format!("`{text}`")), "{text}: {error}");
        };
        check("producer", "write `producer:*` for all topics");
        check("", "names no topics");
        check("put:", "incomplete");
        check(":orders", "incomplete");
        check("put:or*ders", "`*` inside");
        check("put:or*ders*", "`*` inside");
        check("put:**", "`*` inside");
        check("prodcuer:a", "did you mean `producer`?");
        check("put,gett:a", "did you mean `get`?");
        check("put,:a", "unknown verb ``");
    }

    #[test]
    fn a_scope_is_displayed_as_it_was_written() {
        let text = "put, producer : a:b.*";
        let scope: Scope = text.parse().unwrap();
        assert_eq!(scope.to_string(), text);
        assert!(scope.allows(Verb::Put, "a:b.c"));
        assert!(!scope.allows(Verb::Put, "a:c"));
    }
}
