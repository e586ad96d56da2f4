//! Random histories on Redis: two Dormouse servers on a real Redis must answer what the rules over
//! a map do.
//!
//! The same commands go to the oracle and, at random, to either server (`system`), in lockstep:
//! both clocks are moved together, and every answer is compared before the next command. In between
//! scripts are flushed, connections killed, requests and answers lost. At the end the keys
//! themselves are looked at (`keyspace`) and all jobs are taken out (`drain`).

mod drain;
mod keyspace;
mod lockstep;
pub mod minimise;
mod pages;
mod parked;
pub mod partitioned;
mod several_topics;
mod system;
mod ticks;

pub use lockstep::World;
pub use system::Rig;

/// Differences that Redis is allowed, and why. Each is either taken out before answers are
/// compared or does not come up in a history.
pub const DIFFERENCES: &[(&str, &str)] = &[
    ("ids, fences, sessions", "each side gives its own; they are translated one to one"),
    ("order of the fences of different locks", "they are in different partitions"),
    ("jitter of a backoff", "a hash of the id: the rules are told the one of Redis' id"),
    ("texts of errors", "programs look at the code and at the job in the way"),
    (
        "order of different topics at the same priority and due time",
        "it follows the id, and ids of different topics are in no order",
    ),
    (
        "what a reserve over several topics gives first while two servers put",
        "a server knows what it has seen: what it gives is checked, and taken by the rules too",
    ),
    (
        "which jobs of one priority a reserve of many takes from several topics",
        "the first of each topic, in fair shares: the exact order would cost a script per job",
    ),
    ("order of the leased in a list", "by expiry on Redis, by id in the rules"),
    ("order of delays and absolute times in a list", "Redis has one clock, the rules have two"),
    ("cursors", "opaque: whole lists are compared, page by page"),
    (
        "who waits, at the other server",
        "each server knows its own; all wait at one, which is asked",
    ),
    (
        "who is first when a reserve waits on several topics and one comes due",
        "another topic may look for it just then, and others in line are served: if two topics \
         come due, or others wait for the same one, it is withdrawn before",
    ),
    (
        "who gets a job at the instant at which the wait of one of several ends",
        "that one takes a last look for itself, past the line: it is withdrawn before",
    ),
    (
        "an owner that waits twice for a lock",
        "on Redis the second is granted with the first, as one that comes later would be",
    ),
    ("a batch while somebody waits", "in between jobs may be given or not"),
    (
        "topics that are only watched",
        "Redis lists them; the rules only if they had a job since somebody waits",
    ),
    ("running totals of a topic", "one that vanished and came again goes on counting on Redis"),
    (
        "dead that only the settings before the last did not keep",
        "Redis lets them go when somebody looks: somebody does, before settings change",
    ),
    ("sessions of a server that ended", "it tells nobody: their leases run out"),
    ("restarts", "leases live in Redis and are not renewed"),
    (
        "when the tick of a full topic is tried again",
        "on Redis also when somebody looks: topics with schedules have no limits",
    ),
    (
        "how many late ticks are given at once whose jobs expire as they come",
        "each look gives what is due: jobs of schedules have no spans",
    ),
    (
        "who gets the job of a tick that somebody waits for",
        "servers give it by their timers: nobody waits while there are schedules",
    ),
    (
        "whether a job that comes too late lives on for the rest of its batch",
        "a batch may be several scripts: no job does, in a batch",
    ),
    (
        "when a dead letter comes",
        "topics live in different slots: nobody sets a dead topic; conformance and crash tests do",
    ),
    (
        "what a reserve over several topics with limits gives",
        "each topic is asked in turn, and taking from one changes what is held: it names one topic",
    ),
    ("64 priorities, leases at once", "limits that differ are not reached"),
];
