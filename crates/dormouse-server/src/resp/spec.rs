//! The table of all commands.

use super::args::Args;
use super::conn::{Conn, PendingReply};
use super::{connection, verb};
use crate::likeness;
use crate::pipeline::Turn;
use dormouse_core::error::Error;

/// Answers a command, or adds a request for the backend to the turn.
type Run = fn(&mut Conn, &mut Args<'_>, &mut Turn<PendingReply>) -> Result<(), Error>;

/// A command as it is looked up, documented and run.
pub(super) struct CommandSpec {
    pub(super) name: &'static str,
    /// The arguments behind the name.
    pub(super) usage: &'static str,
    /// The least number of arguments.
    pub(super) min: usize,
    /// The greatest number of arguments.
    pub(super) max: usize,
    pub(super) kind: Kind,
    pub(super) summary: &'static str,
    pub(super) run: Run,
}

/// The subject of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Changes jobs, topics or locks.
    Write,
    /// Only reads them.
    Read,
    /// Concerns the connection or the server.
    Connection,
    /// As `Connection`; needs no authentication.
    NoAuth,
}

/// The index of a command in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommandNo(u8);

const fn spec(
    name: &'static str,
    usage: &'static str,
    arguments: (usize, usize),
    kind: Kind,
    summary: &'static str,
    run: Run,
) -> CommandSpec {
    CommandSpec { name, usage, min: arguments.0, max: arguments.1, kind, summary, run }
}

const MANY: usize = usize::MAX;

use Kind::{Connection, NoAuth, Read, Write};

/// The table is searched in this order, so the most used commands come first.
pub(super) const COMMANDS: &[CommandSpec] = &[
    spec(
        "PUT",
        "topic body [DELAY span] [AT instant] [KEY key] [ON_CONFLICT keep|reject|replace|earliest|\
         latest] [KEY_TTL span] [PRIORITY n] [TTR span] [ATTEMPTS n] [BACKOFF backoff] \
         [EXPIRES_AFTER span] [GROUP group] [HEADER name value ...] [KIND bytes|text|json] [FULL]",
        (2, MANY),
        Write,
        "Add a job",
        verb::put::run,
    ),
    spec(
        "ACK",
        "[token ...]|token PUT topic body [options of PUT] [PUT topic body ...]",
        (0, MANY),
        Write,
        "Done: remove the job, and put those that come after it",
        verb::ack::run,
    ),
    spec(
        "RESERVE",
        "topic [topic ...] [MAX n] [WAIT span] [TTR span] [FULL]",
        (1, MANY),
        Write,
        "Take jobs that are due, or wait for them",
        verb::reserve::run,
    ),
    spec(
        "PING",
        "[message]",
        (0, 1),
        Connection,
        "Reply with PONG, or the message",
        connection::basic::ping,
    ),
    spec(
        "NACK",
        "token [DELAY span] [PRIORITY n] [ERROR text]",
        (1, MANY),
        Write,
        "Failed: the job is tried again later",
        verb::nack::run,
    ),
    spec(
        "RELEASE",
        "token [DELAY span] [PRIORITY n]|topic MAX n|topic ALL",
        (1, MANY),
        Write,
        "Give jobs back without spending the attempt",
        verb::release::run,
    ),
    spec(
        "EXTEND",
        "token [token ...] [span]",
        (1, MANY),
        Write,
        "Prolong leases",
        verb::extend::run,
    ),
    spec(
        "KILL",
        "token|id|topic KEY key [PRIORITY n] [ERROR text]",
        (1, MANY),
        Write,
        "Make a job dead",
        verb::kill::run,
    ),
    spec(
        "CANCEL",
        "id|topic KEY key [UNLESS_LEASED]",
        (1, 4),
        Write,
        "Remove a job",
        verb::cancel::run,
    ),
    spec(
        "RESCHEDULE",
        "id|topic KEY key DELAY span|AT instant|NOW",
        (2, 5),
        Write,
        "Move a job's due time",
        verb::reschedule::run,
    ),
    spec(
        "REVIVE",
        "id|topic KEY key|topic MAX n|topic ALL",
        (1, 3),
        Write,
        "Bring dead jobs back",
        verb::revive::run,
    ),
    spec("KICK", "topic MAX n|ALL", (2, 3), Write, "Make delayed jobs ready", verb::kick::run),
    spec(
        "RESERVEID",
        "id [TTR span] [FULL]",
        (1, 4),
        Write,
        "Take a given job, regardless of its due time",
        verb::reserve_id::run,
    ),
    spec("GET", "id|topic KEY key", (1, 3), Read, "Look at a job", verb::get::run),
    spec(
        "PEEK",
        "topic [ready|delayed|leased|dead|done]",
        (1, 2),
        Read,
        "Look at the next job of a state",
        verb::peek::run,
    ),
    spec(
        "LIST",
        "topic ready|delayed|leased|dead|done [CURSOR cursor] [LIMIT n] [FROM at] [TO at] \
         [DUE|NEWEST] [NOBODIES] [ERROR_PREFIX text] [KEY_PREFIX text] [OLDER_THAN span]",
        (2, 18),
        Read,
        "A page of jobs of a state",
        verb::list::run,
    ),
    spec(
        "TOPICS",
        "[AFTER topic] [LIMIT n]",
        (0, 4),
        Read,
        "A page of topics with their counts",
        verb::topics::run,
    ),
    spec("STATS", "[topic]", (0, 1), Read, "Counts of a topic, or of all", verb::stats::run),
    spec(
        "FORECAST",
        "topic [FROM instant] [TO instant] [STEP span]",
        (1, 7),
        Read,
        "Jobs coming due per step of time",
        verb::forecast::run,
    ),
    spec(
        "PREVIEW",
        "CRON expression [ZONE zone]|EVERY span|GAP span [FROM instant] [LIMIT n]",
        (2, 8),
        Read,
        "The next ticks of a rule that repeats",
        verb::preview::run,
    ),
    spec(
        "SCHEDULE",
        "topic name body CRON expression [ZONE zone]|EVERY span|GAP span [OVERLAP skip|wait|allow|\
         replace] [CATCHUP one|all] [LATE_MAX span] [JITTER span] [START_AT instant] [END_AT \
         instant] [TICKS_MAX n] [ON_CONFLICT replace|keep|reject] [IF_VERSION n] [PRIORITY n] \
         [TTR span] [ATTEMPTS n] [BACKOFF backoff] [HEADER name value ...] [KIND bytes|text|json]",
        (5, MANY),
        Write,
        "Define a schedule, which puts a job at each of its ticks",
        verb::put_schedule::run,
    ),
    spec("GETSCHEDULE", "topic name", (2, 2), Read, "Look at a schedule", verb::schedule::get),
    spec(
        "SCHEDULES",
        "topic [STATE state] [CURSOR cursor] [LIMIT n]",
        (1, 7),
        Read,
        "A page of a topic's schedules, those first that tick first",
        verb::schedule::list,
    ),
    spec(
        "UNSCHEDULE",
        "topic name [JOBS]",
        (2, 3),
        Write,
        "Remove a schedule; with JOBS, its living job, too",
        verb::schedule::remove,
    ),
    spec(
        "PAUSESCHEDULE",
        "topic name [span]",
        (2, 3),
        Write,
        "No ticks, and none of them later",
        verb::schedule::pause,
    ),
    spec(
        "RESUMESCHEDULE",
        "topic name",
        (2, 2),
        Write,
        "End the pause of a schedule",
        verb::schedule::resume,
    ),
    spec("SKIPTICK", "topic name", (2, 2), Write, "Leave out the next tick", verb::schedule::skip),
    spec(
        "REPLAN",
        "topic name",
        (2, 2),
        Write,
        "The next tick is the first after now",
        verb::schedule::replan,
    ),
    spec(
        "RUNSCHEDULE",
        "topic name [FROM instant TO instant]",
        (2, 6),
        Write,
        "Put a job of a schedule now, or one for each tick of a time",
        verb::schedule::run,
    ),
    spec("PAUSE", "topic [span]", (1, 2), Write, "Stop reserve on a topic", verb::pause::run),
    spec("RESUME", "topic", (1, 1), Write, "End a pause", verb::resume::run),
    spec(
        "SETTOPIC",
        "topic [TTR span] [ATTEMPTS n] [BACKOFF backoff] [DELAY span] [EXPIRES_AFTER span] \
         [JOBS_MAX n] [BYTES_MAX n] [DEAD_TTL span] [DEAD_MAX n] [DEAD_TOPIC topic] \
         [KEEP_DONE span] [LEASED_MAX n] [RATE rate] [GROUP_LEASED_MAX n] [GROUP_RATE rate]",
        (1, MANY),
        Write,
        "Set all settings of a topic; one that is not given is reset",
        verb::set_topic::run,
    ),
    spec(
        "PURGE",
        "topic [STATE state] [AT_MOST number]",
        (1, 5),
        Write,
        "Remove all jobs that are not leased, or those of a state",
        verb::purge::run,
    ),
    spec(
        "LOCK",
        "name owner [TTL span] [WAIT span]",
        (2, 6),
        Write,
        "Take a lock, or wait for it",
        verb::lock::run,
    ),
    spec("RENEW", "name owner [TTL span]", (2, 4), Write, "Prolong a lock", verb::lock::renew),
    spec("UNLOCK", "name owner", (2, 2), Write, "Give a lock back", verb::lock::unlock),
    spec(
        "LOCKS",
        "[PREFIX text] [CURSOR cursor] [LIMIT n]",
        (0, 6),
        Read,
        "A page of the locks that are held",
        verb::locks::run,
    ),
    spec(
        "BREAK",
        "name [FENCE fence]",
        (1, 3),
        Write,
        "Free a lock of any owner",
        verb::locks::break_lock,
    ),
    spec("ECHO", "message", (1, 1), Connection, "Reply with the message", connection::basic::echo),
    spec(
        "HELLO",
        "[2|3 [AUTH user token] [SETNAME name]]",
        (0, 6),
        NoAuth,
        "Choose the version of the protocol",
        connection::hello::run,
    ),
    spec(
        "AUTH",
        "[user] token",
        (1, 2),
        NoAuth,
        "Authenticate with an access token",
        connection::auth::run,
    ),
    spec("QUIT", "", (0, MANY), NoAuth, "Close the connection", connection::basic::quit),
    spec(
        "RESET",
        "",
        (0, 0),
        NoAuth,
        "Reset the state of the connection",
        connection::basic::reset,
    ),
    spec("SELECT", "0", (1, 1), Connection, "There is one database: 0", connection::basic::select),
    spec(
        "CLIENT",
        "subcommand [...]",
        (1, MANY),
        Connection,
        "About connections",
        connection::client::run,
    ),
    spec(
        "COMMAND",
        "[subcommand [...]]",
        (0, MANY),
        Connection,
        "About commands",
        connection::command::run,
    ),
    spec("INFO", "[section ...]", (0, MANY), Connection, "About the server", connection::info::run),
    spec(
        "CONFIG",
        "GET name ...",
        (1, MANY),
        Connection,
        "Settings that clients ask for first",
        connection::basic::config,
    ),
];

/// Names of commands, for metrics; the last one stands for unknown commands.
pub(crate) const NAMES: [&str; COMMANDS.len() + 1] = {
    let mut names = ["unknown"; COMMANDS.len() + 1];
    let mut index = 0;
    while index < COMMANDS.len() {
        names[index] = COMMANDS[index].name;
        index += 1;
    }
    names
};

impl CommandNo {
    /// An unknown command.
    pub(super) const UNKNOWN: CommandNo = CommandNo(COMMANDS.len() as u8);

    /// Finds a command by its name, in any case.
    pub(super) fn find(name: &[u8]) -> Option<CommandNo> {
        let found =
            COMMANDS.iter().position(|spec| name.eq_ignore_ascii_case(spec.name.as_bytes()));
        found.map(|index| CommandNo(index as u8))
    }

    pub(super) fn spec(self) -> Option<&'static CommandSpec> {
        COMMANDS.get(usize::from(self.0))
    }

    /// Its index in `NAMES`.
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The command that an unknown name probably means.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    likeness::nearest(name, COMMANDS.iter().map(|spec| spec.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_and_documented() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/resp.md");
        let docs = std::fs::read_to_string(docs).unwrap();
        for (index, spec) in COMMANDS.iter().enumerate() {
            assert_eq!(
                CommandNo::find(spec.name.to_lowercase().as_bytes()),
                Some(CommandNo(index as u8))
            );
            assert_eq!(NAMES[index], spec.name);
            assert!(docs.contains(&format!("`{}", spec.name)), "{}", spec.name);
            assert!(spec.min <= spec.max, "{}", spec.name);
        }
        assert_eq!(CommandNo::find(b""), None);
        assert_eq!(NAMES[CommandNo::UNKNOWN.index()], "unknown");
    }

    #[test]
    fn a_typo_is_answered_with_the_nearest_command() {
        for (name, meant) in [
            ("resreve", Some("RESERVE")),
            ("PTU", Some("PUT")),
            ("RESCHEDUL", Some("RESCHEDULE")),
            ("cancle", Some("CANCEL")),
            ("XYZZY", None),
            ("", None),
            // Commands of Redis that have no counterpart.
            ("SET", None),
            ("DEL", None),
            ("UNLINK", None),
            ("RENAME", None),
            ("RESCHEDULEEEEEEE", None),
        ] {
            assert_eq!(nearest(name), meant, "{name}");
        }
    }
}
