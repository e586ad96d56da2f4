//! One turn of a contender: how fast, and what it cost.

use std::time::{Duration, Instant};

use super::super::server::Process;
use crate::{Result, rss};

/// Figures per job.
#[derive(Clone, Copy)]
pub(in crate::peers) struct Turn {
    pub(in crate::peers) per_s: f64,
    /// Processor time of the server.
    pub(in crate::peers) server_us: f64,
    /// Processor time of the generator.
    pub(in crate::peers) own_us: f64,
}

impl Turn {
    /// Does the work, which tells how many jobs it did.
    pub(in crate::peers) fn measure(
        process: &Process,
        work: impl FnOnce() -> Result<u64>,
    ) -> Result<Turn> {
        let (server_before, own_before, started) = (process.cpu()?, rss::cpu(), Instant::now());
        let jobs = work()?;
        let seconds = started.elapsed().as_secs_f64();
        let (server, own) = (process.cpu()? - server_before, rss::cpu() - own_before);
        let each = |time: Duration| time.as_secs_f64() * 1e6 / jobs.max(1) as f64;
        let per_s = jobs as f64 / seconds;
        Ok(Turn { per_s, server_us: each(server), own_us: each(own) })
    }
}
