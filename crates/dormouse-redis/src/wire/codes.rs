//! Numbers that Rust and the scripts must agree on. `script.rs` writes them into the scripts by
//! name, so that neither side keeps a copy that could drift.

use dormouse_core::limits as core_limits;

use crate::limits;

macro_rules! shared {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $value:expr;)*) => {
        $($(#[$doc])* pub(crate) const $name: $type = $value;)*

        /// Names and values of all constants of this file.
        pub(crate) const SHARED: &[(&str, u64)] = &[$((stringify!($name), $name as u64)),*];
    };
}

shared! {
    /// Scores are an instant plus a multiple of this, 2^45 ms: the year 3084.
    ZONE: u64 = 1 << 45;
    /// An instant that never comes: the end of a zone.
    NEVER: u64 = ZONE - 1;

    JOB_BYTES_MAX: u64 = core_limits::JOB_BYTES_MAX;
    ATTEMPTS_MAX_DEFAULT: u32 = core_limits::ATTEMPTS_MAX_DEFAULT;
    TTR_MS_DEFAULT: u64 = core_limits::TTR_MS_DEFAULT;
    PRIORITY_DEFAULT: u32 = core_limits::PRIORITY_DEFAULT;
    PARTITIONS_MAX: u16 = limits::PARTITIONS_MAX;
    BATCH_AGE_MS_MAX: u64 = limits::BATCH_AGE_MS_MAX;
    SEQUENCE_TTL_MS: u64 = limits::SEQUENCE_TTL_MS;
    NUMBER_EPOCH_MS: u64 = limits::NUMBER_EPOCH_MS;
    NUMBER_START_MAX: u64 = limits::NUMBER_START_MAX;
    BATCH_JOBS_MAX: usize = limits::BATCH_JOBS_MAX;
    /// Bytes of records that one script reads for its own purposes; they can be large.
    RECORD_BYTES_MAX: u64 = 4 << 20;
    /// The number of a job in its partition, the low part of its id.
    JOB_NUMBER_MAX: u64 = limits::NUMBER_MAX;

    // Where fields of a record are, counted from 1: after put_at, and after bytes and flags.
    RECORD_BYTES_AT: u8 = 7;
    RECORD_FLAGS_AT: u8 = 11;
    RECORD_OPTIONS_AT: u8 = 13;
    /// Flags of a record from here on are the kind of the body, two bits.
    BODY_KIND: u16 = 256;
    REGISTRATION_BYTES: usize = 6;
    LOCK_BYTES: usize = 18;

    // Flags of a record.
    HAS_KEY: u16 = 1;
    HAS_ATTEMPTS: u16 = 2;
    HAS_TTR: u16 = 4;
    HAS_PRIORITY: u16 = 8;
    HAS_KEY_TTL: u16 = 16;
    HAS_BACKOFF: u16 = 32;
    HAS_HEADERS: u16 = 64;
    HAS_TICK: u16 = 128;
    /// It has a span, expires_after. The two bits before are the kind of the body.
    HAS_SPAN: u16 = 1024;
    HAS_GROUP: u16 = 2048;

    // Flags of progress.
    HELD: u8 = 1;
    /// The key has passed to a newer job.
    KEY_LOST: u8 = 2;
    KEYED: u8 = 4;
    /// The lease is the job's last attempt.
    LAST: u8 = 8;
    /// The lease had expired and was extended; the end of a session no longer ends it.
    RESUMED: u8 = 16;
    /// It is the job of a tick.
    TICKED: u8 = 32;
    /// It has a span.
    SPANNED: u8 = 64;
    /// It has a group, which follows the numbers of the progress.
    GROUPED: u8 = 128;

    // Optional parts of a nack, release or kill.
    GIVEN_DELAY: u8 = 1;
    GIVEN_PRIORITY: u8 = 2;
    GIVEN_ERROR: u8 = 4;
    /// The holder is gone: the release does not count as one.
    UNCOUNTED: u8 = 8;

    // How a due time is given.
    CLOCK_DELAY: u8 = 0;
    CLOCK_AT: u8 = 1;
    CLOCK_NOW: u8 = 2;

    // States of a job.
    DELAYED: u8 = 0;
    READY: u8 = 1;
    LEASED: u8 = 2;
    DEAD: u8 = 3;
    /// Acked and kept.
    ACKED: u8 = 4;
    NO_STATE: u8 = 255;

    // Results of a request about one job, lease or lock.
    DONE: u8 = 0;
    DIED: u8 = 1;
    GONE: u8 = 2;
    LOST: u8 = 3;
    CONFLICT: u8 = 4;
    UNKNOWN_PRIORITY: u8 = 5;
    TOO_MANY: u8 = 6;
    /// A limit lets no job be taken.
    HELD_BACK: u8 = 7;

    // Limits.
    BY_LEASED_MAX: u8 = 1;
    BY_RATE: u8 = 2;
    BY_GROUP_LEASED_MAX: u8 = 3;
    BY_GROUP_RATE: u8 = 4;

    // Results of a put.
    CREATED: u8 = 0;
    DUPLICATE: u8 = 1;
    REPLACED: u8 = 2;
    REFUSED: u8 = 3;
    JOBS_FULL: u8 = 4;
    BYTES_FULL: u8 = 5;
    NO_MEMORY: u8 = 6;
    HELD_DUPLICATE: u8 = 7;
    HELD_REFUSED: u8 = 8;

    // What a put does if its key is taken.
    KEEP: u8 = 0;
    REJECT: u8 = 1;
    REPLACE: u8 = 2;
    EARLIEST: u8 = 3;
    LATEST: u8 = 4;

    // Whether a reply contains the job.
    MISSING: u8 = 0;
    FOUND: u8 = 1;
    NO_ROOM: u8 = 2;

    // The order of a list.
    LIST_USUAL: u8 = 0;
    LIST_DUE: u8 = 1;
    LIST_NEWEST: u8 = 2;

    // How a page of a list ends.
    LIST_END: u8 = 0;
    LIST_MORE: u8 = 1;
    LIST_NO_ROOM: u8 = 2;

    // How far revive_topic got.
    REVIVE_END: u8 = 0;
    REVIVE_MORE: u8 = 1;
    REVIVE_UNKNOWN_PRIORITY: u8 = 2;

    // What a mend of the register came to; 0 = there was nothing to do.
    MENDED: i64 = 1;
    /// Other topics have the shards.
    TAKEN: i64 = 2;

    // Kinds of backoff.
    BACKOFF_FIXED: u8 = 0;
    BACKOFF_EXPONENTIAL: u8 = 1;
    BACKOFF_LIST: u8 = 2;

    /// Stands for the number of records of a verb that failed; its reply is the error text.
    FAILED: u32 = u32::MAX;
}
