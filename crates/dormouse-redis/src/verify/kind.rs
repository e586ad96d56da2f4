//! The kinds of problems. Their names are stable: reports and scripts use them.

/// A kind of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// A word that stays the same from version to version.
    pub name: &'static str,
    /// The description in reports.
    pub text: &'static str,
    pub(super) scope: Scope,
}

/// What a problem is about: decides how its subject is displayed and how it is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    /// A job, by its id.
    Job,
    /// A key, or its hold.
    Key,
    /// A lock, by its name.
    Lock,
    /// A schedule, by its name.
    Schedule,
    /// An entry of a group: the slot of a lease, or a parked job.
    Group,
    /// The partition's header.
    State,
    /// The partition's configuration.
    Config,
    /// The register of topics.
    Register,
}

const fn kind(scope: Scope, name: &'static str, text: &'static str) -> Kind {
    Kind { name, text, scope }
}

pub(super) const BYTES_WRONG: Kind =
    kind(Scope::State, "bytes_wrong", "the counter of bytes is not the sum over all jobs");
pub(super) const CONFIG_UNREADABLE: Kind =
    kind(Scope::Config, "config_unreadable", "settings and priorities cannot be read");
pub(super) const SHARD_FOREIGN: Kind = kind(
    Scope::Config,
    "shard_foreign",
    "the partition was used with another shard than is registered, so servers do not use it",
);
pub(super) const PARTITION_UNREGISTERED: Kind =
    kind(Scope::Register, "partition_unregistered", "keys of a partition that is not registered");
pub(super) const SCRIPT_FAILED: Kind =
    kind(Scope::State, "script_failed", "Redis cannot run a script on this partition");

const ALL: &[Kind] = &[
    BYTES_WRONG,
    CONFIG_UNREADABLE,
    SHARD_FOREIGN,
    PARTITION_UNREGISTERED,
    SCRIPT_FAILED,
    kind(Scope::Job, "record_unreadable", "its record cannot be read"),
    kind(Scope::Job, "id_foreign", "its id belongs to another partition, so it cannot be acked"),
    kind(Scope::Job, "number_low", "the last job number is lower than that of this job"),
    kind(Scope::Job, "fence_low", "the last fence is lower than that of this job or lock"),
    kind(Scope::Job, "progress_unreadable", "its progress cannot be read"),
    kind(Scope::Job, "progress_misfit", "its progress contradicts its record or its zset"),
    kind(Scope::Job, "job_nowhere", "it is in no zset, so it is never delivered"),
    kind(Scope::Job, "job_twice", "it is in more than one zset"),
    kind(Scope::Job, "priority_wrong", "it is in the zset of another priority"),
    kind(Scope::Job, "score_strange", "its score is not an instant"),
    kind(Scope::Job, "lease_unheld", "it is leased, but its progress does not say so"),
    kind(Scope::Job, "dead_without_progress", "it is dead, but has no progress"),
    kind(Scope::Job, "dead_unlisted", "it is dead, with a priority that no server knows"),
    kind(Scope::Job, "key_missing", "its key does not point to it"),
    kind(Scope::Job, "key_taken", "another job has its key"),
    kind(Scope::Job, "orphan_place", "a zset contains an id without a record"),
    kind(Scope::Job, "orphan_progress", "there is progress without a record"),
    kind(Scope::Job, "deadline_missing", "it would not die at its deadline"),
    kind(Scope::Key, "orphan_key", "a key points to no job that has it, and is not held"),
    kind(Scope::Key, "orphan_hold", "a key is held, but no job had it"),
    kind(Scope::Key, "key_number_low", "the last job number is lower than that of its last job"),
    kind(Scope::Lock, "lock_unreadable", "the lock cannot be read"),
    kind(Scope::Lock, "lock_without_end", "the lock has no expiry"),
    kind(Scope::Schedule, "schedule_untimed", "the schedule has no next tick, so it never ticks"),
    kind(Scope::Schedule, "orphan_tick", "a tick is of no schedule"),
    kind(Scope::Job, "slot_missing", "it is leased, but does not count for the limit of its group"),
    kind(Scope::Job, "parked_unlisted", "it is parked, but its group does not know"),
    kind(Scope::Group, "orphan_slot", "a group has a slot in use of which there is no job"),
    kind(Scope::Group, "orphan_parked", "a group has a parked job that is not parked"),
    kind(Scope::State, "deadline_late", "a deadline is before the recorded first one"),
    kind(Scope::State, "lease_end_late", "a lease expires before the recorded first expiry"),
    kind(Scope::State, "books_unreadable", "the partition's header has invalid numbers"),
    kind(Scope::Config, "priority_unlisted", "there is a zset for a priority that no server knows"),
    kind(Scope::Register, "place_unreadable", "the topic's registration cannot be read"),
    kind(Scope::Register, "shards_shared", "two topics have the same shard"),
    kind(Scope::Register, "shard_missing", "a shard of the topic does not point to it"),
    kind(Scope::Register, "shard_orphan", "a shard points to a topic that does not have it"),
    kind(Scope::Register, "last_shard_low", "the last shard is lower than those of the topic"),
    kind(Scope::Register, "name_missing", "the topic is not listed"),
    kind(Scope::Register, "name_orphan", "a topic is listed that is not registered"),
];

impl Kind {
    pub(super) fn by_name(name: &[u8]) -> Option<Kind> {
        ALL.iter().find(|kind| kind.name.as_bytes() == name).copied()
    }

    /// One number of the header is too low for many jobs or keys: reported once.
    pub(super) fn is_partition_wide(self) -> bool {
        matches!(self.name, "number_low" | "key_number_low" | "fence_low")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for kind in ALL {
            assert_eq!(Kind::by_name(kind.name.as_bytes()), Some(*kind));
        }
    }

    /// An unknown name in a script's reply would be an error.
    #[test]
    fn names_in_scripts_are_known() {
        let scripts = [super::super::PARTITION, crate::script::REGISTER_MEND];
        for line in scripts.iter().flat_map(|script| script.lines()) {
            for opening in ["add_problem('", "{ '", "return 'lock_"] {
                let Some((_, rest)) = line.split_once(opening) else { continue };
                let Some((name, rest)) = rest.split_once('\'') else { continue };
                let is_problem = opening == "add_problem('" || rest.matches(',').count() >= 2;
                let is_other = ["needs", "n", "stale"].contains(&name);
                if is_problem && !is_other && opening != "return 'lock_" {
                    assert!(Kind::by_name(name.as_bytes()).is_some(), "{name} in {line}");
                }
            }
        }
    }
}
