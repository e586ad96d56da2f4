//! Checks an installation on Redis, and mends it if told to.
//!
//! It never holds up Redis: every look is a script over one page. A script sees a job whole, its
//! record, progress, place and key at one instant. So servers may go on meanwhile, and what a page
//! finds wrong is wrong. Only sums over many pages need a moment at which no job comes or goes; see
//! `jobs.rs`.
//!
//! Keys are listed before the register is read: a topic is registered before its first key comes.

mod ask;
mod jobs;
mod kind;
mod locks;
mod numbers;
mod part;
mod partition;
mod portions;
mod register;
mod report;
mod seen;
mod strays;

use std::sync::Arc;

use crate::limits::CLUSTER_PARTITIONS;
use dormouse_core::error::Error;
use tokio::sync::mpsc;

pub use kind::Kind;
pub use report::{Outcome, Problem, VerifyReport};

use crate::cluster::{ClusterClient, Script};
use crate::script::{REGISTER_MEND, with_constants};

/// How to verify.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyOptions {
    /// Mend what can be mended; else nothing is changed.
    pub mend: bool,
}

/// Checks the installation at this URL, as [`RedisBackend::open`](crate::RedisBackend::open) takes
/// it. Servers may be at work on it. It blocks, on a thread of its own, so whoever calls it may be
/// inside a runtime.
pub fn verify(url: &str, options: VerifyOptions) -> Result<VerifyReport, Error> {
    let ended = || Error::unavailable("the thread that verifies has ended");
    std::thread::scope(|scope| {
        let work = || verify_here(url, options);
        let thread = std::thread::Builder::new().name("dormouse-verify".to_owned());
        let thread = thread
            .spawn_scoped(scope, work)
            .map_err(|error| Error::unavailable(format!("no thread can start: {error}")))?;
        thread.join().unwrap_or_else(|_| Err(ended()))
    })
}

fn verify_here(url: &str, options: VerifyOptions) -> Result<VerifyReport, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Error::unavailable(format!("no runtime can start: {error}")))?;
    runtime.block_on(async {
        let (tell, _hints) = mpsc::unbounded_channel();
        let (link, _) = ClusterClient::open(url, 0, tell).await?;
        let mut work = Work { tools: Tools::new(link), options, report: VerifyReport::default() };
        work.run().await?;
        Ok(work.report)
    })
}

/// The way to Redis, and what runs there.
struct Tools {
    link: ClusterClient,
    partition: Arc<Script>,
    register: Arc<Script>,
    keys: Arc<Script>,
}

/// Mends take jobs away or need little: they must work when Redis is out of memory.
pub(crate) const PARTITION: &str = concat!(
    "#!lua flags=allow-oom\n",
    include_str!("../../lua/lib.lua"),
    include_str!("../../lua/job.lua"),
    include_str!("../../lua/verify.lua"),
    include_str!("../../lua/verify_check.lua"),
    include_str!("../../lua/verify_pages.lua"),
    include_str!("../../lua/verify_mend.lua"),
    include_str!("../../lua/verify_end.lua"),
);

impl Tools {
    fn new(link: ClusterClient) -> Tools {
        let script = |source: &str| Arc::new(Script::new(source.to_owned()));
        Tools {
            link,
            partition: script(&with_constants(PARTITION)),
            register: script(&with_constants(REGISTER_MEND)),
            keys: script(include_str!("../../lua/verify_keys.lua")),
        }
    }

    /// Partitions of a topic of which nothing tells how many it had.
    fn usual_partitions(&self) -> u16 {
        if self.link.is_cluster() { CLUSTER_PARTITIONS } else { 1 }
    }
}

/// One run over an installation.
struct Work {
    tools: Tools,
    options: VerifyOptions,
    report: VerifyReport,
}

impl Work {
    async fn run(&mut self) -> Result<(), Error> {
        let seen = self.list_keys().await?;
        let topics = self.check_register(&seen).await?;
        self.report.topics = topics.len() as u64;
        for (topic, place) in &topics {
            for index in 0..place.partitions {
                let shard = place.first_shard + u32::from(index);
                let found = seen.priorities(topic, index);
                self.check_partition(topic, index, shard, found).await?;
            }
        }
        for index in seen.lock_partitions() {
            self.check_locks(index).await?;
        }
        Ok(())
    }
}
