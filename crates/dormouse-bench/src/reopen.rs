//! Reopen after a kill -9: from the open to the first answer.

use std::time::Instant;

use dormouse_disk::engine::{Engine, Options};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::child::{self, Task};
use crate::client::Client;
use crate::rss;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReopenFigures {
    pub(crate) reopen_ms: f64,
    pub(crate) rss_reopen_mib: f64,
}

pub(crate) fn run(task: &Task) -> Result<()> {
    let (engine, figures) = open(task, task.plan.jobs)?;
    child::report(&figures)?;
    Ok(engine.close()?)
}

/// Opens what a killed process left; so many jobs must be waiting.
pub(crate) fn open(task: &Task, jobs: u64) -> Result<(Engine, ReopenFigures)> {
    let started = Instant::now();
    let engine = Engine::open(&task.data, Options::default())?;
    let stats = Client::new(&engine).stats()?;
    let reopen_ms = started.elapsed().as_secs_f64() * 1e3;
    if stats.counts.waiting != jobs {
        let found = stats.counts.waiting;
        return Err(format!("after kill -9 {found} of {jobs} jobs are waiting").into());
    }
    Ok((engine, ReopenFigures { reopen_ms, rss_reopen_mib: rss::peak_mib()? }))
}
