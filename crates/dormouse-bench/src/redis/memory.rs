//! Memory per waiting job, against a hash and a sorted set.

use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_core::job::JobId;
use dormouse_core::topic::TopicName;
use serde::Serialize;

use super::fill::fill;
use super::rig::Rig;
use super::zset_scripts::{Scripts, wall_ms};
use super::{Findings, RedisPlan};
use crate::Result;
use crate::plan::{Noise, SPREAD_MS};
use crate::progress::Progress;
use dormouse_check::generate::rng::Rng;

/// Jobs that are due begin with this, so that none comes due during the run.
const LEAD_MS: u64 = 3_600 * 1_000;
const PIPELINE: u64 = 1_000;

#[derive(Serialize)]
struct MemoryFigures {
    bytes_per_job: f64,
    zset_bytes_per_job: f64,
    memory_to_zset: f64,
}

/// The jobs that wait, for the phases that need them.
pub(super) struct Backlog {
    pub(super) topic: TopicName,
    pub(super) ids: Vec<JobId>,
}

pub(super) fn run(rig: &Rig, plan: &RedisPlan, found: &mut Findings) -> Result<Backlog> {
    let zset_bytes = fill_zset(plan)?;
    let (topic, mut rng) = (TopicName::new("backlog")?, Rng::new(plan.seed));
    let mut noise = Noise::new(plan.body, plan.seed);
    let (before, from_ms) = (rig.server.memory_used(), wall_ms() + LEAD_MS);
    let due_ms = || from_ms + rng.below(SPREAD_MS);
    let ids = fill(&rig.client(), &topic, plan.jobs, &mut noise, due_ms)?;
    let bytes = rig.server.memory_used().saturating_sub(before);
    let figures = MemoryFigures {
        bytes_per_job: bytes as f64 / plan.jobs as f64,
        zset_bytes_per_job: zset_bytes as f64 / plan.jobs as f64,
        memory_to_zset: bytes as f64 / zset_bytes as f64,
    };
    let more = format!(
        "{:.1} bytes to {:.1}, {} jobs",
        figures.bytes_per_job, figures.zset_bytes_per_job, plan.jobs
    );
    let measure = "memory per waiting job, to hand-written hash + ZSET";
    found.table.at_most(measure, 1.25, figures.memory_to_zset, &more);
    found.add(&figures)?;
    Ok(Backlog { topic, ids })
}

/// The same jobs by hand-written ZSET scripts, on a server of their own: the bytes they take.
fn fill_zset(plan: &RedisPlan) -> Result<u64> {
    let server = RedisServer::start(RedisConfig::default());
    let scripts = Scripts::load(&server.url())?;
    let mut connection = redis::Client::open(server.url())?.get_connection()?;
    let (mut rng, mut noise) = (Rng::new(plan.seed), Noise::new(plan.body, plan.seed));
    let (before, from_ms) = (server.memory_used(), wall_ms() + LEAD_MS);
    let mut progress = Progress::new("fill, ZSET scripts", plan.jobs);
    let mut id = 0;
    while id < plan.jobs {
        let mut pipeline = redis::pipe();
        let end = plan.jobs.min(id + PIPELINE);
        while id < end {
            let due_ms = from_ms + rng.below(SPREAD_MS);
            pipeline.add_command(scripts.put(id, &noise.body(id), due_ms)).ignore();
            id += 1;
        }
        pipeline.query::<()>(&mut connection)?;
        progress.at(id);
    }
    progress.end(id);
    drop(connection);
    Ok(server.memory_used().saturating_sub(before))
}
