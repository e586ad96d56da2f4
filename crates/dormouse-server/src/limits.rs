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
/// Bytes of all large request bodies that are being read or served; beyond it `busy`.
pub const HTTP_BODIES_BYTES_MAX: usize = 64 << 20;
/// Bytes up to which a request body counts as small.
pub const HTTP_SMALL_BYTES_MAX: usize = 64 << 10;
/// Bytes of all small request bodies: a limit of their own, so that uploads do not block acks.
pub const HTTP_SMALL_BODIES_BYTES_MAX: usize = 32 << 20;
/// How deep a JSON body may be nested.
pub const JSON_DEPTH_MAX: usize = 64;
/// Bytes of all responses that clients have not read yet; beyond it `busy`.
pub const ANSWERS_BYTES_MAX: usize = 48 << 20;
/// Pages of jobs or topics that are made at the same time; others wait.
pub const PAGES_MAX: usize = 1;
/// Ids of one request about many jobs.
pub const IDS_MAX: usize = 1_000;
/// Jobs that one request with a filter looks at; the next one goes on by its cursor.
pub const SCAN_JOBS_MAX: u64 = 10_000;
/// Bytes of these jobs; the page that exceeds them is the last.
pub const SCAN_BYTES_MAX: u64 = 64 << 20;
/// Groups of dead jobs in one response; the jobs of smaller ones are only counted.
pub const ERROR_GROUPS_MAX: usize = 200;
/// Topics of one forecast.
pub const FORECAST_TOPICS_MAX: usize = 20;
/// Steps of a forecast of one topic that is made for each who asks; others are shared.
pub const FORECAST_EXACT_STEPS_MAX: u64 = 50;
/// How long a forecast answers other requests for the same.
pub const FORECAST_KEPT_MS: u64 = 5_000;
/// Forecasts that are kept.
pub const FORECASTS_KEPT_MAX: usize = 200;
/// Topics of a page that is sorted by counts.
pub const RANKED_MAX: usize = 100;
/// Topics that one pass of the survey for sorted pages looks at; the next one goes on.
pub const RANKING_PASS_TOPICS: usize = 10_000;
/// Time after which a pass ends.
pub const RANKING_PASS_MS_MAX: u64 = 200;
/// Time between two passes.
pub const RANKING_PASS_MS: u64 = 2_000;
/// Connections that a request for the consumers of a topic looks at.
pub const CONSUMERS_LOOKED_AT_MAX: usize = 10_000;
/// How long a topic stays in the beats after its last reader left.
pub const PULSE_WANTED_MS: u64 = 10_000;
/// Topics whose figures the survey keeps.
pub const RANKING_TOPICS_MAX: usize = 100_000;
/// The survey ends when nobody asked for so long.
pub const RANKING_IDLE_MS: u64 = 30_000;
/// Time for a request's line and headers, from their first byte on.
pub const HTTP_HEAD_MS_MAX: u64 = 10_000;
/// Idle time between requests; before the first one, `HTTP_HEAD_MS_MAX`.
pub const HTTP_IDLE_MS_MAX: u64 = 75_000;
/// Time for a request's body, plus a time that depends on its size.
pub const HTTP_BODY_MS_MAX: u64 = 10_000;
/// The lowest rate at which a large body may arrive.
pub const HTTP_BODY_BYTES_PER_S_MIN: u64 = 16 << 10;
/// Bytes of a refused request that are read and dropped before its connection is closed, so that
/// the client does not lose the response.
pub const LINGER_BYTES_MAX: usize = HTTP_BODY_BYTES_MAX;
/// The longest time for that.
pub const LINGER_MS_MAX: u64 = 2_000;
/// Time in which a client must read at least one byte of its response.
pub const STALL_MS_MAX: u64 = 20_000;
/// Default of the largest number of open connections.
pub const CONNECTIONS_MAX_DEFAULT: usize = 10_000;
/// Default of the longest ttr and lock ttl of callers who are not operators: 24 hours.
pub const TTR_MS_MAX_DEFAULT: i64 = 24 * 3_600 * 1_000;
/// Of all connections, one in so many is kept for each protocol.
pub const PLACES_KEPT_PART: usize = 16;
/// The most connections that are kept for a protocol.
pub const PLACES_KEPT_MAX: usize = 64;
/// Of all connections, one in so many may be a guest of one protocol: where tokens are configured,
/// a client that has not presented one.
pub const GUESTS_PART: usize = 4;
/// Guests of a protocol that are let in even if there are few connections.
pub const GUESTS_MIN: usize = 16;
/// Time for a guest to present a token.
pub const GUEST_MS_MAX: u64 = 10_000;
/// Refused tokens of an address that are answered at once.
pub const REFUSALS_AT_ONCE: u64 = 50;
/// The time between further ones.
pub const REFUSAL_MS: u64 = 100;
/// The longest that a refusal waits.
pub const REFUSAL_DELAY_MS_MAX: u64 = 2_000;
/// Addresses whose refused tokens are remembered apart.
pub const REFUSALS_ADDRESSES: usize = 1_024;
/// The time between two lines in the log about refused tokens of an address.
pub const REFUSALS_LOG_MS: u64 = 60_000;
/// Events kept for clients that resume.
pub const EVENTS_KEPT: usize = 16_384;
/// The largest number of event streams; one token or address alone has half of them.
pub const EVENT_STREAMS_MAX: usize = 200;
/// The largest number of pulse streams; one token or address alone has half of them.
pub const PULSE_STREAMS_MAX: usize = 100;
/// Topics that one reader of the pulse may ask for.
pub const PULSE_TOPICS_MAX: usize = 50;
/// Topics that all readers ask for which a beat looks at; the others take turns.
pub const PULSE_FIGURES_MAX: usize = 200;
/// Topics that a beat looks at to find what is wrong; the next one goes on.
pub const PULSE_WALK_TOPICS_MAX: usize = 1_000;
/// Time after which a beat looks at no more.
pub const PULSE_WALK_MS_MAX: u64 = 20;
/// Verdicts in a beat, the worst.
pub const PULSE_VERDICTS_MAX: usize = 20;
/// Topics with a history of their own.
pub const HISTORY_TOPICS_MAX: usize = 200;
/// Changes by operators that are kept.
pub const AUDIT_ENTRIES_MAX: usize = 1_000;
/// Bytes of a path that are kept of such a change.
pub const AUDIT_TARGET_BYTES_MAX: usize = 300;
/// Bytes of all files of the web console.
pub const UI_BYTES_MAX: usize = 300 << 10;
/// Characters in the name that the console shows for this installation.
pub const UI_NAME_CHARS_MAX: usize = 40;
/// Topics with series of their own in the metrics; the others are added up.
pub const METRICS_TOPICS_MAX: usize = 200;
/// Topics that one page of metrics looks at to find those to be shown; the next page goes on.
pub const METRICS_SURVEY_TOPICS_MAX: usize = 5_000;
/// Time after which a page looks at no more topics than it can show.
pub const METRICS_SURVEY_MS_MAX: u64 = 100;

// Pipelined protocols (RESP, beanstalkd).

/// Bytes of commands that one connection's turn takes; a single command may be larger.
pub const TURN_BYTES_MAX: usize = 256 << 10;
/// Bytes of incomplete commands of all connections that hold more than `INPUT_FREE_BYTES`; beyond
/// it, and beyond a share of it, they are closed.
pub const INPUTS_BYTES_MAX: usize = 64 << 20;
/// Bytes of commands that a connection may always hold.
pub const INPUT_FREE_BYTES: usize = 4 << 10;
/// Time for the rest of a command, plus a time that depends on its size.
pub const COMMAND_MS_MAX: u64 = 10_000;
/// Arguments of a RESP command: an ack of a whole batch fits.
pub const RESP_ARGUMENTS_MAX: usize = 2 * BATCH_MAX;
/// Bytes of a RESP command: the largest job fits, with all its options.
pub const RESP_COMMAND_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;
/// Bytes up to which a RESP command that is too large is skipped and answered with an error.
pub const RESP_SKIPPED_BYTES_MAX: usize = 16 << 20;
/// Bytes of a RESP command that is a line of words.
pub const RESP_LINE_BYTES_MAX: usize = 64 << 10;
/// Arguments of a RESP command before AUTH, where a token is needed.
pub const RESP_GUEST_ARGUMENTS_MAX: usize = 10;
/// Bytes of a RESP command before AUTH, where a token is needed.
pub const RESP_GUEST_BYTES_MAX: usize = 16 << 10;
/// Bytes of replies that are gathered before they are sent.
pub const OUTPUT_BYTES: usize = 64 << 10;

// The beanstalkd protocol.

/// Bytes of a line, its end included.
pub const BEANSTALK_LINE_BYTES_MAX: usize = 224;
/// Default of the largest number of bytes in a body.
pub const BEANSTALK_JOB_BYTES_MAX_DEFAULT: usize = 65_535;
/// Tubes that all connections together use or watch.
pub const BEANSTALK_TUBES_MAX: usize = 100_000;
/// Tubes without clients whose counts and position in lists are kept.
pub const BEANSTALK_IDLE_TUBES_MAX: usize = 10_000;
/// Topics that `list-tubes` and `stats` read, and names in a list.
pub const BEANSTALK_LISTED_TUBES_MAX: usize = 10_000;
/// Bytes of such a list.
pub const BEANSTALK_LIST_BYTES_MAX: usize = 1 << 20;

// Pushes.

/// Bytes of a URL that is pushed to.
pub const PUSH_URL_BYTES_MAX: usize = 2_048;
/// Patterns of URLs that jobs of a topic may bring.
pub const PUSH_JOB_URLS_MAX: usize = 100;
/// Headers that are sent with each push of a topic.
pub const PUSH_HEADERS_MAX: usize = 20;
/// Bytes of their names and values.
pub const PUSH_HEADERS_BYTES_MAX: usize = 4 << 10;
/// Time for one push: connection, request and whole reply.
pub const PUSH_TIMEOUT_MS_DEFAULT: u64 = 15_000;
/// Its least.
pub const PUSH_TIMEOUT_MS_MIN: u64 = 1_000;
/// Its most.
pub const PUSH_TIMEOUT_MS_MAX: u64 = 30_000;
/// A lease lasts so much longer than the time for a push: its end has to reach the store.
pub const PUSH_LEASE_MS: u64 = 15_000;
/// Pushes of a topic at a time, unless given.
pub const PUSH_CONCURRENCY_DEFAULT: usize = 16;
/// The most pushes of a topic at a time.
pub const PUSH_CONCURRENCY_MAX: usize = 1_000;
/// How long an old secret may sign after it was replaced.
pub const PUSH_KEEP_MS_MAX: u64 = 30 * 24 * 3_600 * 1_000;
/// How often a change of a push is tried that others get ahead of.
pub const PUSH_TRIES_MAX: usize = 8;
/// Statuses that kill a job of a topic.
pub const PUSH_FATAL_MAX: usize = 100;
/// Pushes of all topics at a time, unless given; a topic has its share.
pub const PUSH_CONNECTIONS_MAX_DEFAULT: usize = 1_024;
/// Bytes of the jobs that are being pushed, unless given; a topic has its share.
pub const PUSH_BYTES_MAX_DEFAULT: usize = 64 << 20;
/// The least number of such bytes that can be set: a topic's share holds the largest job.
pub const PUSH_BYTES_MAX_MIN: usize = 8 << 20;
/// Topics that are pushed.
pub const PUSH_TOPICS_MAX: usize = 10_000;
/// Bytes of a receiver's reply that are read.
pub const PUSH_REPLY_BYTES_MAX: usize = 64 << 10;
/// Bytes of a receiver's status line and headers.
pub const PUSH_REPLY_HEAD_BYTES_MAX: usize = 64 << 10;
/// Headers of a receiver's reply.
pub const PUSH_REPLY_HEADERS_MAX: usize = 100;
/// Bytes of an error text with the beginning of the reply.
pub const PUSH_REPLY_KEPT_BYTES_MAX: usize = 1 << 10;
/// The longest time that a receiver's `retry-after` delays a job...
pub const PUSH_RETRY_AFTER_MS_MAX: u64 = 24 * 3_600 * 1_000;
/// ...and holds everything for its origin.
pub const PUSH_HOLD_MS_MAX: u64 = 3_600 * 1_000;
/// Time to resolve the name of a receiver.
pub const PUSH_RESOLVE_MS_MAX: u64 = 5_000;
/// Look-ups of names at a time, of all topics together.
pub const PUSH_LOOKUPS_MAX: usize = 64;
/// Addresses of a name; one with more is refused.
pub const PUSH_ADDRESSES_MAX: usize = 64;
/// Addresses of a name that a connection is tried to.
pub const PUSH_ADDRESSES_TRIED_MAX: usize = 4;
/// How long a connection to a receiver is used.
pub const PUSH_CONNECTION_MS_MAX: u64 = 300_000;
/// How long it may be idle.
pub const PUSH_IDLE_MS_MAX: u64 = 30_000;
/// Origins whose breakers are kept.
pub const PUSH_ORIGINS_MAX: usize = 10_000;
/// Topics with series of their own in the metrics of pushes.
pub const PUSH_METRICS_TOPICS_MAX: usize = 1_000;
