//! The bounds of the client; docs/limits.md lists those that users meet.

/// How long one address may take to connect, and then to answer the greeting.
pub const CONNECT_MS_DEFAULT: u64 = 5_000;
/// How long a server may be silent while it owes an answer. A store that syncs under load answers
/// within seconds; one that is stopped never does.
pub const ANSWER_MS_DEFAULT: u64 = 20_000;
/// How long commands are kept and sent again while no server can be reached.
pub const REPEAT_MS_DEFAULT: u64 = 10_000;
/// No time of the options is longer: a year, so that instants can be counted.
pub const OPTION_MS_MAX: u64 = 365 * 24 * 60 * 60 * 1_000;
/// Requests that wait at once: each has a connection.
pub const WAITS_MAX_DEFAULT: usize = 64;
/// How long a connection for waits is kept without use.
pub const WAIT_IDLE_MS: u64 = 30_000;
/// How long `close` waits for answers that are under way.
pub const CLOSE_MS_MAX: u64 = 5_000;
/// The shortest pause between two rounds of connecting...
pub const RECONNECT_MS_MIN: u64 = 20;
/// ...and the longest.
pub const RECONNECT_MS_MAX: u64 = 1_000;
/// A connection that breaks sooner than this is followed by a pause, too.
pub const STABLE_MS_MIN: u64 = 1_000;
/// URLs of one queue.
pub const URLS_MAX: usize = 16;
/// Addresses of one name that are tried.
pub const ADDRESSES_MAX: usize = 16;
/// Bytes of the answer to a greeting: a server's own has some hundred.
pub const GREETING_BYTES_MAX: usize = 16 << 10;
/// Bytes read from a socket at once.
pub const READ_BYTES: usize = 64 << 10;
/// Bytes of one command: a server closes a connection for more.
pub const COMMAND_BYTES_MAX: usize = 15 << 20;
/// Words of one command: a server closes a connection for more.
pub const COMMAND_WORDS_MAX: usize = 2 * dormouse_core::limits::BATCH_MAX;
/// Bytes of one reply: the largest page, with every byte of its names and numbers.
pub const REPLY_BYTES_MAX: usize = 64 << 20;
/// Lists in lists of one reply.
pub const REPLY_DEPTH_MAX: usize = 8;
/// Bytes of a line that is no string: a number, a status or an error.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Strings of at least this size are not copied; they keep the buffer alive that they came in.
pub const SLICED_BYTES_MIN: usize = 4 << 10;
/// Portions that one caller writes for others before it leaves the rest to the client's thread.
pub const WRITE_ROUNDS_MAX: usize = 16;
