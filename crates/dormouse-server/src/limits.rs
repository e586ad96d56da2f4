//! The bounds of the server and its protocols; docs/limits.md lists them for users.

use dormouse_core::limits::{BATCH_MAX, BODY_BYTES_MAX};

/// Bytes of one HTTP request's body: a batch of puts.
pub const HTTP_BODY_BYTES_MAX: usize = 16 << 20;
/// Bytes of one HTTP request's line and headers.
pub const HTTP_HEAD_BYTES_MAX: usize = 32 << 10;
/// Headers of one HTTP request.
pub const HTTP_HEADERS_MAX: usize = 100;
/// Parameters of one HTTP request's query.
pub const HTTP_PARAMS_MAX: usize = 200;
/// Bytes of all larger request bodies that are in the server's hands; beyond it `busy`.
pub const HTTP_BODIES_BYTES_MAX: usize = 64 << 20;
/// Bytes up to which a request body counts as small.
pub const HTTP_SMALL_BYTES_MAX: usize = 64 << 10;
/// Bytes of all small request bodies, so that uploads are not in the way of acks.
pub const HTTP_SMALL_BODIES_BYTES_MAX: usize = 32 << 20;
/// How deep a JSON body may be nested.
pub const JSON_DEPTH_MAX: usize = 64;
/// Bytes of all answers that clients have not read yet; beyond it `busy`.
pub const ANSWERS_BYTES_MAX: usize = 48 << 20;
/// Pages of jobs or topics that are read from the store and written as JSON at once; others wait.
pub const PAGES_MAX: usize = 1;
/// Time for a request's line and headers, from their first byte on.
pub const HTTP_HEAD_MS_MAX: u64 = 10_000;
/// Time a connection may be silent between requests; before the first one, `HTTP_HEAD_MS_MAX`.
pub const HTTP_IDLE_MS_MAX: u64 = 75_000;
/// Time for a request's body, besides what its size gives it.
pub const HTTP_BODY_MS_MAX: u64 = 10_000;
/// The slowest a large body may come.
pub const HTTP_BODY_BYTES_PER_S_MIN: u64 = 16 << 10;
/// Time in which a client must take at least a byte of its answer.
pub const STALL_MS_MAX: u64 = 20_000;
/// Connections at once, unless configured.
pub const CONNECTIONS_MAX_DEFAULT: usize = 10_000;
/// Events kept for clients that come back.
pub const EVENTS_KEPT: usize = 16_384;
/// Clients that follow the events at once.
pub const EVENT_STREAMS_MAX: usize = 100;
/// Topics with figures of their own in the metrics; the others are added up.
pub const METRICS_TOPICS_MAX: usize = 200;

// Of the protocols of pipelined commands.

/// Bytes of commands that one connection's turn takes; a single command may be larger.
pub const TURN_BYTES_MAX: usize = 256 << 10;
/// Bytes of commands that have come and are not read yet, of all connections; beyond it those that
/// add most are closed.
pub const INPUTS_BYTES_MAX: usize = 64 << 20;
/// Bytes of commands that a connection may hold without asking whether there is room.
pub const INPUT_FREE_BYTES: usize = 4 << 10;
/// Time for the rest of a command, besides what its size gives it.
pub const COMMAND_MS_MAX: u64 = 10_000;
/// Arguments of a RESP command: an ack of a whole batch fits.
pub const RESP_ARGUMENTS_MAX: usize = 2 * BATCH_MAX;
/// Bytes of a RESP command: the largest job fits, with all its options.
pub const RESP_COMMAND_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;
/// Bytes up to which a larger RESP command is let pass, to be told that it is too large.
pub const RESP_SKIPPED_BYTES_MAX: usize = 16 << 20;
/// Bytes of a RESP command that is a line of words.
pub const RESP_LINE_BYTES_MAX: usize = 64 << 10;
/// Arguments of a RESP command of who has not shown a token yet, where one is wanted.
pub const RESP_GUEST_ARGUMENTS_MAX: usize = 10;
/// Bytes of such a command.
pub const RESP_GUEST_BYTES_MAX: usize = 16 << 10;
/// Bytes of answers that are gathered before they are sent.
pub const OUTPUT_BYTES: usize = 64 << 10;

// Of the beanstalkd protocol.

/// Bytes of a line, its end included.
pub const BEANSTALK_LINE_BYTES_MAX: usize = 224;
/// Bytes of a body, unless configured.
pub const BEANSTALK_JOB_BYTES_MAX_DEFAULT: usize = 65_535;
/// Tubes that connections use or watch, at once.
pub const BEANSTALK_TUBES_MAX: usize = 100_000;
/// Tubes that nobody uses or watches any more whose counts and place in lists are kept.
pub const BEANSTALK_IDLE_TUBES_MAX: usize = 10_000;
/// Topics that one command looks at: `list-tubes` and `stats`; and names that a list has.
pub const BEANSTALK_LISTED_TUBES_MAX: usize = 10_000;
/// Bytes of such a list.
pub const BEANSTALK_LIST_BYTES_MAX: usize = 1 << 20;
