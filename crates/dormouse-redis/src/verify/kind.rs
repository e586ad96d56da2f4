//! What can be wrong, each with a name that stays.

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// A word that stays the same from version to version.
    pub name: &'static str,
    /// What it means, for people.
    pub text: &'static str,
    pub(super) of: Of,
}

/// What a problem is a problem of: how it is written, and how it is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Of {
    /// A job, by its id.
    Job,
    /// A key, or its hold.
    Key,
    /// A lock, by its name.
    Lock,
    /// The partition's books.
    State,
    /// The partition's configuration.
    Config,
    /// The register of topics.
    Register,
}

const fn kind(of: Of, name: &'static str, text: &'static str) -> Kind {
    Kind { name, text, of }
}

pub(super) const BYTES_WRONG: Kind =
    kind(Of::State, "bytes_wrong", "the count of bytes is not the sum of all jobs");
pub(super) const CONFIG_UNREADABLE: Kind =
    kind(Of::Config, "config_unreadable", "settings and priorities cannot be read");
pub(super) const PARTITION_UNREGISTERED: Kind =
    kind(Of::Register, "partition_unregistered", "there are keys of a partition that no topic has");
pub(super) const SCRIPT_FAILED: Kind =
    kind(Of::State, "script_failed", "Redis cannot run a script on this partition");

const ALL: &[Kind] = &[
    BYTES_WRONG,
    CONFIG_UNREADABLE,
    PARTITION_UNREGISTERED,
    SCRIPT_FAILED,
    kind(Of::Job, "record_unreadable", "its record cannot be read"),
    kind(Of::Job, "id_foreign", "its id is of another partition, so it cannot be acked"),
    kind(Of::Job, "number_low", "the last number given is lower than that of this job"),
    kind(Of::Job, "fence_low", "the last fence given is lower than that of this job or lock"),
    kind(Of::Job, "progress_unreadable", "its progress cannot be read"),
    kind(Of::Job, "progress_misfit", "its progress says otherwise than its record or its place"),
    kind(Of::Job, "job_nowhere", "it is in no zset, so it is never delivered"),
    kind(Of::Job, "job_twice", "it is in more than one zset"),
    kind(Of::Job, "priority_wrong", "it is in the zset of another priority than its own"),
    kind(Of::Job, "score_strange", "its score is no instant"),
    kind(Of::Job, "lease_unheld", "it is leased, but has no progress that says so"),
    kind(Of::Job, "dead_without_progress", "it is dead, but has no progress"),
    kind(Of::Job, "dead_unlisted", "it is dead, of a priority that no server knows"),
    kind(Of::Job, "key_missing", "its key does not lead to it"),
    kind(Of::Job, "key_taken", "another job has its key"),
    kind(Of::Job, "orphan_place", "a zset has an id without a record"),
    kind(Of::Job, "orphan_progress", "there is progress without a record"),
    kind(Of::Key, "orphan_key", "a key leads to no job that has it, and is not held"),
    kind(Of::Key, "orphan_hold", "a key is held, but nobody had it"),
    kind(Of::Key, "key_number_low", "the last number given is lower than that of its last job"),
    kind(Of::Lock, "lock_unreadable", "the lock cannot be read"),
    kind(Of::Lock, "lock_without_end", "the lock has no end"),
    kind(Of::State, "lease_end_late", "a lease ends before the instant noted as the first end"),
    kind(Of::State, "books_unreadable", "numbers of the partition's books make no sense"),
    kind(Of::Config, "priority_unlisted", "there is a zset of a priority that no server knows"),
    kind(Of::Register, "place_unreadable", "the topic's place cannot be read"),
    kind(Of::Register, "shards_shared", "two topics have the same shard"),
    kind(Of::Register, "shard_missing", "a shard of the topic does not lead to it"),
    kind(Of::Register, "shard_orphan", "a shard leads to a topic that has it not"),
    kind(Of::Register, "last_shard_low", "the last shard given is lower than those of the topic"),
    kind(Of::Register, "name_missing", "the topic is not listed"),
    kind(Of::Register, "name_orphan", "a topic is listed that has no place"),
];

impl Kind {
    pub(super) fn named(name: &[u8]) -> Option<Kind> {
        ALL.iter().find(|kind| kind.name.as_bytes() == name).copied()
    }

    /// One number of the partition that is wrong for many jobs or keys: told once.
    pub(super) fn is_once(self) -> bool {
        matches!(self.name, "number_low" | "key_number_low" | "fence_low")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_there_once() {
        for kind in ALL {
            assert_eq!(Kind::named(kind.name.as_bytes()), Some(*kind));
        }
    }

    /// A problem that a script names and this list does not would be an error.
    #[test]
    fn what_scripts_name_is_known() {
        let scripts = [super::super::PARTITION, crate::script::REGISTER_MEND];
        for line in scripts.iter().flat_map(|script| script.lines()) {
            for opening in ["add_problem('", "{ '", "return 'lock_"] {
                let Some((_, rest)) = line.split_once(opening) else { continue };
                let Some((name, rest)) = rest.split_once('\'') else { continue };
                let is_problem = opening == "add_problem('" || rest.matches(',').count() >= 2;
                let is_other = ["needs", "n", "stale"].contains(&name);
                if is_problem && !is_other && opening != "return 'lock_" {
                    assert!(Kind::named(name.as_bytes()).is_some(), "{name} in {line}");
                }
            }
        }
    }
}
