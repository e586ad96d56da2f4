//! Opening a queue: in memory, in a directory, at a server or in Redis.

use std::path::Path;
use std::sync::Arc;

use dormouse_disk::clock::VirtualClock;
use dormouse_disk::engine::{Durability, Engine, Options};
use dormouse_disk::store::OpenError;

use crate::queue::Queue;

impl Queue {
    /// Opens or creates the store in this directory, with the default durability: an answered
    /// operation survives a power cut.
    ///
    /// Only one process can have it open; a second one is refused.
    ///
    /// ```
    /// # use dormouse::Queue;
    /// # let dir = tempfile::tempdir()?;
    /// # let dir = dir.path();
    /// let queue = Queue::open(dir)?;
    /// queue.put("orders", "42").wait()?;
    /// queue.close()?;
    ///
    /// let queue = Queue::open(dir)?;
    /// assert_eq!(queue.reserve("orders").wait()?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(dir: impl AsRef<Path>) -> Result<Queue, OpenError> {
        Queue::builder().open(dir)
    }

    /// A queue in memory: the same rules, but nothing survives the process.
    pub fn memory() -> Queue {
        Queue::builder().memory()
    }

    /// Keeps jobs in Redis or Redis Cluster, shared with every other process that opens it: the
    /// same operations and rules, by Redis' clock.
    ///
    /// `redis://[user:password@]host:port`, `rediss://` with the feature `tls`, several nodes of a
    /// cluster separated by commas; `redis+sentinel://host,host/service` asks sentinels for the
    /// primary. A Redis whose settings would lose jobs is refused.
    ///
    /// ```no_run
    /// # use dormouse::Queue;
    /// let queue = Queue::redis("redis://127.0.0.1:6379")?;
    /// queue.put("orders", "42").wait()?;
    /// # Ok::<(), dormouse::Error>(())
    /// ```
    #[cfg(feature = "redis")]
    pub fn redis(url: &str) -> Result<Queue, dormouse_core::error::Error> {
        Queue::redis_with(url, dormouse_redis::Options::default())
    }

    /// As [`redis`](Queue::redis), with a level of durability and a number of partitions.
    #[cfg(feature = "redis")]
    pub fn redis_with(
        url: &str,
        options: dormouse_redis::Options,
    ) -> Result<Queue, dormouse_core::error::Error> {
        dormouse_redis::RedisBackend::open(url, options).map(Queue::from_redis)
    }

    /// Connects to a running server (`dormouse serve`): the same operations, the same rules.
    ///
    /// `dormouse://[token@]host[:port]` with the address of `--resp`, `dormouses://` with the
    /// feature `tls`. Of several servers that share their jobs, separated by commas, the first that
    /// takes a connection is used, and the next when it fails.
    ///
    /// A wrong URL is `invalid`, a wrong token `unauthorized`, no server `unavailable`; each text
    /// names the fix. Later the connection is opened again whenever it breaks. A command whose
    /// answer was lost is sent again if a second time can do no harm; others are `unconfirmed`. A
    /// put with a key that [keeps](crate::OnConflict::Keep) the first job is sent again for as long
    /// as its delay and its [`key_ttl`](crate::Put::key_ttl) together: later a worker may have
    /// acked the job, and its key is free. What a server cannot be asked for, sessions, is
    /// `invalid`.
    ///
    /// ```no_run
    /// # use dormouse::Queue;
    /// # use std::time::Duration;
    /// let queue = Queue::connect("dormouse://127.0.0.1:7789")?;
    /// queue.put("orders", "42").key("42").delay(Duration::from_secs(30 * 60)).wait()?;
    /// # Ok::<(), dormouse::Error>(())
    /// ```
    #[cfg(feature = "connect")]
    pub fn connect(urls: &str) -> Result<Queue, dormouse_core::error::Error> {
        Queue::connect_with(urls, &dormouse_client::ConnectOptions::default())
    }

    /// As [`connect`](Queue::connect), with a token, times and bounds.
    ///
    /// ```no_run
    /// # use dormouse::{ConnectOptions, Queue};
    /// # use std::time::Duration;
    /// let options = ConnectOptions {
    ///     token: Some("secret".into()),
    ///     repeat_for: Duration::from_secs(60),
    ///     ..ConnectOptions::default()
    /// };
    /// let queue = Queue::connect_with("dormouse://queue-1:7789,queue-2:7789", &options)?;
    /// # Ok::<(), dormouse::Error>(())
    /// ```
    #[cfg(feature = "connect")]
    pub fn connect_with(
        urls: &str,
        options: &dormouse_client::ConnectOptions,
    ) -> Result<Queue, dormouse_core::error::Error> {
        dormouse_client::RemoteBackend::open(urls, options).map(Queue::from_server)
    }

    /// Chooses durability or a clock before opening.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

/// How to open a queue.
///
/// ```
/// # use dormouse::{Durability, Queue, VirtualClock};
/// let clock = VirtualClock::new();
/// let queue =
///     Queue::builder().durability(Durability::Relaxed { ms: 20 }).clock(clock.clone()).memory();
/// # drop(queue);
/// ```
#[derive(Default)]
#[must_use = "nothing is opened until open or memory"]
pub struct Builder {
    options: Options,
    clock: Option<VirtualClock>,
}

impl Builder {
    /// What an answered operation survives: a power cut (`Synced`, the default), or only the end
    /// of the process, with the last few milliseconds lost in a power cut (`Relaxed`).
    pub fn durability(mut self, durability: Durability) -> Builder {
        self.options.durability = durability;
        self
    }

    /// Takes the time from a clock that moves only when [advanced](VirtualClock::advance), so
    /// that tests of delays, leases and waits need not wait.
    pub fn clock(mut self, clock: VirtualClock) -> Builder {
        self.options.clock = Arc::new(clock.clone());
        self.clock = Some(clock);
        self
    }

    /// Opens or creates the store in this directory.
    pub fn open(self, dir: impl AsRef<Path>) -> Result<Queue, OpenError> {
        let engine = Engine::open(dir.as_ref(), self.options)?;
        Ok(Queue::from_engine(engine, self.clock))
    }

    /// A queue in memory.
    pub fn memory(self) -> Queue {
        Queue::from_engine(Engine::memory(self.options), self.clock)
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("clock", &self.clock).finish_non_exhaustive()
    }
}
