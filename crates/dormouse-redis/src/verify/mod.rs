//! Checks an installation on Redis, and mends it if asked to.
//!
//! It never blocks Redis for long: every check is a script over one page. A script sees a job's
//! record, progress, zsets and key at one instant, so the problems it finds are real even while
//! servers are running. Only sums over many pages need a time in which no job is added or removed;
//! see `jobs.rs`.
//!
//! Keys are listed before the register is read: a topic is registered before its first key is
//! written.

mod call;
mod checker;
mod jobs;
mod key_listing;
mod kind;
mod locks;
mod numbers;
mod partition;
mod portions;
mod register;
mod report;
mod unregistered;

use std::sync::Arc;

use crate::limits::CLUSTER_PARTITIONS;
use dormouse_core::error::Error;
use tokio::sync::mpsc;

pub use kind::Kind;
pub use report::{Problem, ProblemStatus, VerifyReport};

use crate::cluster::{ClusterClient, Script};
use crate::script::{REGISTER_MEND, with_constants};

/// Options of [`verify`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyOptions {
    /// Mend what can be mended; otherwise nothing is changed.
    pub mend: bool,
}

/// Checks the installation at this URL, as [`RedisBackend::open`](crate::RedisBackend::open) takes
/// it. Servers may be running on it. It blocks, but works on a thread of its own, so it can be
/// called inside a runtime.
pub fn verify(url: &str, options: VerifyOptions) -> Result<VerifyReport, Error> {
    let ended = || Error::unavailable("the verification thread has panicked");
    std::thread::scope(|scope| {
        let run = || verify_here(url, options);
        let thread = std::thread::Builder::new().name("dormouse-verify".to_owned());
        let thread = thread
            .spawn_scoped(scope, run)
            .map_err(|error| Error::unavailable(format!("no thread can start: {error}")))?;
        thread.join().unwrap_or_else(|_| Err(ended()))
    })
}

fn verify_here(url: &str, options: VerifyOptions) -> Result<VerifyReport, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Error::unavailable(format!("no runtime can start: {error}")))?;
    runtime.block_on(async {
        let (wakeups, _wakeups) = mpsc::unbounded_channel();
        let (client, _) = ClusterClient::open(url, 0, wakeups).await?;
        let mut verifier =
            Verifier { tools: Tools::new(client), options, report: VerifyReport::default() };
        verifier.run().await?;
        Ok(verifier.report)
    })
}

/// The connection to Redis, and the scripts.
struct Tools {
    client: ClusterClient,
    partition: Arc<Script>,
    register: Arc<Script>,
    keys: Arc<Script>,
}

/// Mends remove jobs or need little memory: they must work when Redis is out of memory.
pub(crate) const PARTITION: &str = concat!(
    "#!lua flags=allow-oom\n",
    include_str!("../../lua/lib.lua"),
    include_str!("../../lua/flow.lua"),
    include_str!("../../lua/groups.lua"),
    include_str!("../../lua/job.lua"),
    include_str!("../../lua/verify.lua"),
    include_str!("../../lua/verify_check.lua"),
    include_str!("../../lua/verify_pages.lua"),
    include_str!("../../lua/verify_mend.lua"),
    include_str!("../../lua/verify_end.lua"),
);

impl Tools {
    fn new(client: ClusterClient) -> Tools {
        let script = |source: &str| Arc::new(Script::new(source.to_owned()));
        Tools {
            client,
            partition: script(&with_constants(PARTITION)),
            register: script(&with_constants(REGISTER_MEND)),
            keys: script(include_str!("../../lua/verify_keys.lua")),
        }
    }

    /// The number of partitions of a topic whose number is unknown.
    fn usual_partitions(&self) -> u16 {
        if self.client.is_cluster() { CLUSTER_PARTITIONS } else { 1 }
    }
}

/// One verification of an installation.
struct Verifier {
    tools: Tools,
    options: VerifyOptions,
    report: VerifyReport,
}

impl Verifier {
    async fn run(&mut self) -> Result<(), Error> {
        let listing = self.list_keys().await?;
        let topics = self.check_register(&listing).await?;
        self.report.topics = topics.len() as u64;
        for (topic, registration) in &topics {
            for index in 0..registration.partitions {
                let shard = registration.first_shard + u32::from(index);
                let found = listing.priorities(topic, index);
                self.check_partition(topic, index, shard, found).await?;
            }
        }
        for index in listing.lock_partitions() {
            self.check_locks(index).await?;
        }
        Ok(())
    }
}
