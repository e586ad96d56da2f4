//! The scheduler without Redis: cases by hand (`table`), and random histories against a model of
//! Redis and the network (`random`), whose parts are `fake` (a partition in Redis) and `world` (the
//! network, the tasks, and what must hold).
//!
//! Bugs that were planted once to test these tests, all caught by `random`:
//!
//! | plant | where | caught as |
//! |---|---|---|
//! | requests are not sorted by phase | `batch.rs` `take_queued` | batch order |
//! | one is taken after one of its submission was left | `batch.rs` `take_queued` | order |
//! | a repeat gets a new number | `in_flight.rs` `again` | the number of a repeat |
//! | a waiter is forgotten after an empty poll | `waiters.rs` `polled` | served in turn |
//! | a poll that was missed is not made up for | `waiters.rs` `end_poll` | served late |
//! | a wakeup is lost | `mod.rs` `wakeup` | served late |
//! | a poll beside one for a blocking waiter | `polls.rs` `add_polls` | a poll beside one |
//! | two partitions poll for one waiter | `polls.rs` `add_polls` | two partitions poll |
//! | a batch is encoded after its timeout | `in_flight.rs` `again` | executed after an answer |
//! | an unsent batch is not cleared | `in_flight.rs` `clear` | executed after an answer |
//!
//! That a reply is delivered twice cannot be planted: a batch is a value, which moves out.

mod fake;
mod random;
mod table;
mod world;
