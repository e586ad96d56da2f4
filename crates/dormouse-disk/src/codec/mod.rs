//! The nouns as bytes, shared by journal, runs and memtable.
//!
//! Numbers are LEB128 varints, byte strings carry their length in front, and what has its default
//! value costs at most one bit: a fresh job costs 7 bytes besides its body, because the id and the
//! place stand outside and the body ends the payload without a length of its own.
//!
//! Reading refuses what it does not know (a kind, a flag, a tag of a later version): skipping it
//! would lose a change without a word. It returns `None` on any malformed input, never panics, and
//! never allocates more than the input could fill.
//!
//! The implied defaults here belong to the format. They equal the limits of today; if those change,
//! these stay.

mod backoff;
mod fact;
mod payload;
mod place;
mod progress;
mod raw;
mod topic;

#[cfg(test)]
mod tests;

pub(crate) use fact::FACT_KIND_MAX;
pub use fact::{PutParts, decode_fact, decode_put, encode_fact, encode_put};
pub use payload::{decode_payload, encode_payload, payload_key};
pub use place::{decode_place, encode_place};
pub use raw::{Reader, put_bytes, put_sized, put_varint, put_zigzag};
pub use topic::{decode_pause, decode_settings, encode_pause, encode_settings};
