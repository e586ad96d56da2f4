//! Commands and replies as bytes of RESP, versions 2 and 3.
//!
//! ```text
//!   Command -> encode -> bytes          Scanner -> frame -> ReplyReader -> Answer
//! ```
//!
//! A list of tokens to ack is one command; of any other list each item is a command of one
//! pipeline.
//!
//! RESP does not carry:
//!
//! | | here |
//! |---|---|
//! | sessions, the topics of jobs | `invalid` |
//! | spans beyond 2^63 | 2^63 - 1, beyond every limit, too |
//! | instants of a forecast beyond the latest | the latest |
//! | repeated headers | the last of a name |
//! | `Progress::fence`, `lapsed` | 0, false |
//! | `Progress::key_lost`, and a key that was lost | false, no key |
//! | `Progress::bytes` | counted from the reply |
//! | `ChangeReply::due_at` of a cancel | 0 |
//! | `TopicStats::settings` of the totals | none |
//! | `PutReply` of `RunSchedule` but for the id | created, no state, 0 |

mod command;
mod fields;
#[cfg(test)]
mod fuzz;
mod reply;
mod scan;
mod schedule;
pub mod text;
mod value;
mod words;

pub use command::encode;
pub use reply::ReplyReader;
pub use scan::{Garbage, Scanner};
pub use value::Value;
