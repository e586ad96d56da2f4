//! Verbs, which scopes allow, and sets of them.

use std::fmt;
use std::str::FromStr;

use crate::likeness;

/// A right: to one operation, or to several that only make sense together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Add a job.
    Put,
    /// Take jobs.
    Reserve,
    /// End a lease: done.
    Ack,
    /// End a lease: failed.
    Nack,
    /// End a lease: given back.
    Release,
    /// Prolong a lease.
    Extend,
    /// Make a job dead.
    Kill,
    /// Remove a job.
    Cancel,
    /// Move a job's due time.
    Reschedule,
    /// Read one job.
    Get,
    /// List jobs and topics.
    List,
    /// Read the counts of a topic, or of all topics.
    Stats,
    /// Count the jobs that become due in each step of time.
    Forecast,
    /// Change a topic's settings.
    SetTopic,
    /// Stop reserve on a topic.
    Pause,
    /// End a pause.
    Resume,
    /// Remove all jobs of a topic that are not leased.
    Purge,
    /// Make dead jobs ready.
    Revive,
    /// Make delayed jobs ready, and leased ones.
    Kick,
    /// Acquire, renew and release a lock; a scope names it instead of a topic.
    Lock,
    /// Free a lock that somebody else holds; a scope names it instead of a topic.
    BreakLock,
    /// Define, change, run and remove schedules.
    Schedule,
    /// Say where the jobs of a topic are pushed to, and with which secret.
    Push,
    /// Follow the events.
    Events,
    /// Read the server's metrics.
    Metrics,
    /// See the server's configuration, connections and audit.
    Inspect,
    /// Make a backup on the server.
    Backup,
    /// Move the clock of a server for tests.
    Advance,
}

impl Verb {
    /// Every verb, in the order of the enum.
    pub const ALL: [Verb; 28] = [
        Verb::Put,
        Verb::Reserve,
        Verb::Ack,
        Verb::Nack,
        Verb::Release,
        Verb::Extend,
        Verb::Kill,
        Verb::Cancel,
        Verb::Reschedule,
        Verb::Get,
        Verb::List,
        Verb::Stats,
        Verb::Forecast,
        Verb::SetTopic,
        Verb::Pause,
        Verb::Resume,
        Verb::Purge,
        Verb::Revive,
        Verb::Kick,
        Verb::Lock,
        Verb::BreakLock,
        Verb::Schedule,
        Verb::Push,
        Verb::Events,
        Verb::Metrics,
        Verb::Inspect,
        Verb::Backup,
        Verb::Advance,
    ];

    /// Whether it changes nothing.
    pub(crate) fn is_read(self) -> bool {
        match self {
            Verb::Get
            | Verb::List
            | Verb::Stats
            | Verb::Forecast
            | Verb::Events
            | Verb::Metrics
            | Verb::Inspect => true,
            Verb::Put
            | Verb::Reserve
            | Verb::Ack
            | Verb::Nack
            | Verb::Release
            | Verb::Extend
            | Verb::Kill
            | Verb::Cancel
            | Verb::Reschedule
            | Verb::SetTopic
            | Verb::Pause
            | Verb::Resume
            | Verb::Purge
            | Verb::Revive
            | Verb::Kick
            | Verb::Lock
            | Verb::BreakLock
            | Verb::Schedule
            | Verb::Push
            | Verb::Backup
            | Verb::Advance => false,
        }
    }

    /// The verb's word in a scope.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Put => "put",
            Verb::Reserve => "reserve",
            Verb::Ack => "ack",
            Verb::Nack => "nack",
            Verb::Release => "release",
            Verb::Extend => "extend",
            Verb::Kill => "kill",
            Verb::Cancel => "cancel",
            Verb::Reschedule => "reschedule",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Stats => "stats",
            Verb::Forecast => "forecast",
            Verb::SetTopic => "set_topic",
            Verb::Pause => "pause",
            Verb::Resume => "resume",
            Verb::Purge => "purge",
            Verb::Revive => "revive",
            Verb::Kick => "kick",
            Verb::Lock => "lock",
            Verb::BreakLock => "break_lock",
            Verb::Schedule => "schedule",
            Verb::Push => "push",
            Verb::Events => "events",
            Verb::Metrics => "metrics",
            Verb::Inspect => "inspect",
            Verb::Backup => "backup",
            Verb::Advance => "advance",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is not a verb (in a scope: nor a role).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", text(word, *nearest))]
pub struct UnknownVerb {
    /// The unknown word.
    pub word: String,
    /// The known word that was probably meant.
    pub nearest: Option<&'static str>,
}

fn text(word: &str, nearest: Option<&str>) -> String {
    let meant = nearest.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default();
    format!("unknown verb `{word}`{meant}")
}

impl UnknownVerb {
    /// `word` is none of `known`.
    pub(super) fn new(word: &str, known: impl Iterator<Item = &'static str>) -> UnknownVerb {
        let nearest = likeness::nearest(word, known);
        UnknownVerb { word: word.to_owned(), nearest }
    }
}

impl FromStr for Verb {
    type Err = UnknownVerb;

    fn from_str(word: &str) -> Result<Verb, UnknownVerb> {
        let known = Verb::ALL.into_iter().find(|verb| verb.as_str() == word);
        known.ok_or_else(|| UnknownVerb::new(word, Verb::ALL.into_iter().map(Verb::as_str)))
    }
}

/// A set of verbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verbs(u32);

impl Verbs {
    pub(super) const NONE: Verbs = Verbs(0);
    pub(super) const ALL: Verbs = Verbs((1 << Verb::ALL.len()) - 1);

    pub(super) const fn of(verbs: &[Verb]) -> Verbs {
        let mut bits = 0;
        let mut index = 0;
        while index < verbs.len() {
            bits |= 1 << verbs[index] as u32;
            index += 1;
        }
        Verbs(bits)
    }

    pub(super) const fn with(self, other: Verbs) -> Verbs {
        Verbs(self.0 | other.0)
    }

    pub(super) fn has(self, verb: Verb) -> bool {
        self.0 & (1 << verb as u32) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_is_listed_once_and_read_back() {
        for (index, verb) in Verb::ALL.into_iter().enumerate() {
            assert_eq!(verb as usize, index, "{verb}");
            assert_eq!(verb.as_str().parse(), Ok(verb));
            assert!(Verbs::ALL.has(verb));
            assert!(!Verbs::NONE.has(verb));
            assert_eq!(
                Verb::ALL.into_iter().filter(|&v| Verbs::of(&[verb]).has(v)).count(),
                1,
                "{verb}"
            );
        }
    }

    #[test]
    fn a_typo_suggests_the_nearest_verb() {
        let check = |word: &str, text: &str| {
            assert_eq!(word.parse::<Verb>().unwrap_err().to_string(), text);
        };
        check("resreve", "unknown verb `resreve`; did you mean `reserve`?");
        check("set-topic", "unknown verb `set-topic`; did you mean `set_topic`?");
        check("PUT", "unknown verb `PUT`; did you mean `put`?");
        check("xyzzy", "unknown verb `xyzzy`");
        check("delete", "unknown verb `delete`");
        check("", "unknown verb ``");
    }
}
