//! Dormouse is a durable delay queue: put a job now, get it at its time.
//!
//! Cancel an unpaid order after 30 minutes, send the reminder on 1 January at 09:00, try again with
//! backoff, freeze the shop after 30 days. Jobs wait in files of the process itself, millions of
//! them without a growing memory cost, and become due on the millisecond; an answered operation
//! survives a power cut.
//!
//! ```
//! use dormouse::{Code, Queue, VirtualClock};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), dormouse::Error> {
//! // `Queue::open("data")?` in production; in a test, memory and a virtual clock.
//! let clock = VirtualClock::new();
//! let queue = Queue::builder().clock(clock.clone()).memory();
//!
//! // Two orders are placed: look at them in half an hour.
//! let half_an_hour = Duration::from_secs(30 * 60);
//! for number in ["41", "42"] {
//!     queue.put("orders", number).key(number).delay(half_an_hour).wait()?;
//! }
//!
//! // Order 41 is paid: nothing to look at any more.
//! queue.cancel_key("orders", "41").wait()?;
//!
//! // Half an hour later order 42 is due, not a millisecond early.
//! assert!(queue.reserve("orders").wait()?.is_empty());
//! clock.advance(half_an_hour);
//! for job in queue.reserve("orders").max(10).wait()? {
//!     assert_eq!(job.text()?, "42");
//!     // Cancel the order here. If this process dies before the ack, the job is retried.
//!     job.ack().wait()?;
//! }
//!
//! // Paid a second too late: the answer is exact.
//! let error = queue.cancel_key("orders", "42").wait().unwrap_err();
//! assert_eq!(error.code, Code::NotFound);
//! # Ok(())
//! # }
//! ```
//!
//! # Bird's eye
//!
//! - [`Queue`] is the handle; [`Queue::open`] a directory, [`Queue::connect`] to a running server,
//!   or [`Queue::memory`].
//! - Every operation can be awaited on any runtime, waited for by a thread (`.wait()`), or started
//!   now and read later (`.send()`, which gives a [`Pending`]). The library itself needs no
//!   runtime.
//! - [`Queue::put`] adds a job to a topic. [`Queue::reserve`] takes jobs that are due, and waits
//!   for them on request; a [`LeasedJob`] is yours for its ttr ("time to run") and is then
//!   retried. Its token is fenced: a late consumer can do no harm.
//! - [`Worker`] does the consumer's work: handlers, concurrency, renewal of leases, retries,
//!   graceful stop.
//! - Invalid input is an [`Error`] with a stable [`Code`] and a text that names the mistake, the
//!   limit and the fix; nothing is stored. Batches answer per item.
//! - [`Rule::preview`] tells when a rule that repeats would tick, such as a cron expression.
//! - With a [`VirtualClock`] a month passes in a test.
//!
//! Instants that are plain numbers are ms since 1970 UTC.
//!
//! # A worker
//!
//! ```
//! use dormouse::{Job, Outcome, Queue, Worker};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), dormouse::Error> {
//! let queue = Queue::memory();
//! queue.put_json("mails", &("you@example.org", "hello")).await?;
//!
//! let worker = Worker::new(&queue).concurrency(8);
//! let stopper = worker.stopper();
//! let worker = worker.handle("mails", move |job: Job| {
//!     let stopper = stopper.clone();
//!     async move {
//!         let Ok((to, text)) = job.json::<(String, String)>() else {
//!             return Ok(Outcome::kill("not a mail")); // never again
//!         };
//!         send(&to, &text).await?; // an error nacks: again after the backoff
//!         stopper.stop();
//!         Ok::<_, std::io::Error>(Outcome::Done)
//!     }
//! });
//! let tally = worker.run().await?;
//! assert_eq!(tally.done, 1);
//! # async fn send(_: &str, _: &str) -> std::io::Result<()> { Ok(()) }
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! On by default: `connect` ([`Queue::connect`]), `json` (bodies through serde) and `worker`
//! ([`Worker`], with tokio). `redis` adds [`Queue::redis`], `tls` lets both connect by TLS.

mod block;
mod body;
mod call;
mod change;
mod inspect;
mod lease;
mod leased_job;
mod lock;
mod oneshot;
mod open;
mod pending;
mod put;
mod queue;
mod reserve;
mod retry;
mod rule;
mod schedule;
mod session;
mod time;
mod topic;
#[cfg(feature = "worker")]
mod trace;
#[cfg(feature = "worker")]
mod worker;

/// The core crate: commands, replies, errors, limits.
pub use dormouse_core as core;

pub use body::Body;
pub use call::{Call, Items};
pub use inspect::Walk;
pub use leased_job::LeasedJob;
pub use lock::{Acquire, AcquireFuture, Lock, Renewal};
pub use open::Builder;
pub use pending::Pending;
pub use put::Put;
pub use queue::Queue;
pub use reserve::{FromJobs, Reserve, ReserveFuture};
pub use rule::Rule;
pub use session::Session;
#[cfg(feature = "worker")]
pub use worker::{End, IntoOutcome, Job, Outcome, Stopper, Tally, Worker};

#[cfg(feature = "connect")]
pub use dormouse_client::{ConnectOptions, Secret};
pub use dormouse_core::backend::Backend;
pub use dormouse_core::backoff::{Backoff, Delays};
pub use dormouse_core::error::{Code, Error};
pub use dormouse_core::job::{BodyKind, JobId, State, Token};
pub use dormouse_core::op::{
    ChainReply, ChangeReply, EndReply, ExtendReply, HeldBy, JobView, LockReply, OnConflict, Page,
    PutOutcome, PutReply, PutScheduleReply, ScheduleConflict, ScheduleOutcome, ScheduleState,
    ScheduleView, SchedulesPage, SessionId, Target, TopicStats, TopicsPage,
};
pub use dormouse_core::rate::Rate;
pub use dormouse_core::schedule::{Catchup, Overlap};
pub use dormouse_core::tick::Preview;
pub use dormouse_core::topic::{Settings, TopicName};
pub use dormouse_disk::clock::VirtualClock;
pub use dormouse_disk::engine::Durability;
pub use dormouse_disk::store::OpenError;
#[cfg(feature = "redis")]
pub use dormouse_redis::{Level, Options as RedisOptions};

/// The README's examples, run as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
