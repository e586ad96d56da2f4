//! The parent: one phase after another, each in a process of its own.

use std::path::{Path, PathBuf};

use crate::child::{self, Task};
use crate::fill::FillFigures;
use crate::plan::{Phase, Plan};
use crate::raw::{self, Appended};
use crate::report::{RawFigures, Report, Setup};
use crate::{Result, cache, leftovers, progress};

const TMPFS_MAGIC: i64 = 0x0102_1994;

/// `dormouse-bench engine`.
pub(crate) fn engine(plan: Plan) -> Result<()> {
    plan.check()?;
    let dir = make_dir(&plan)?;
    let measured = measure(&plan, &dir);
    if plan.keep {
        progress::note(&format!("left: {}", dir.display()));
    } else {
        std::fs::remove_dir_all(&dir)?;
    }
    measured?.print()
}

/// A directory of our own, so that nothing else can be removed with it.
fn make_dir(plan: &Plan) -> Result<PathBuf> {
    let parent = parent_on_disk(plan.dir.as_deref())?;
    let dir = parent.join(format!("dormouse-bench-{}", std::process::id()));
    std::fs::create_dir(&dir)?;
    Ok(dir)
}

/// The directory to work below, which must not be in memory: there nothing is synced.
pub(crate) fn parent_on_disk(dir: Option<&Path>) -> Result<PathBuf> {
    let parent = dir.map_or_else(std::env::temp_dir, Path::to_owned);
    std::fs::create_dir_all(&parent)?;
    if rustix::fs::statfs(&parent)?.f_type == TMPFS_MAGIC {
        let shown = parent.display();
        return Err(format!("{shown} is in memory; give --dir on the disk to measure").into());
    }
    Ok(parent)
}

fn measure(plan: &Plan, dir: &Path) -> Result<Report> {
    let mut task = Task {
        phase: Phase::Fill,
        plan: plan.clone(),
        data: dir.join("data"),
        scratch: dir.to_owned(),
        first_id: 0,
        cancelled: 0,
    };
    let (fill, raw) = if plan.includes(Phase::Fill) {
        let (fill, raw) = fill(&mut task)?;
        (Some(fill), raw)
    } else {
        (None, None)
    };
    task.first_id = fill.as_ref().map_or(0, |figures| figures.first_id);
    let mut report = Report {
        setup: setup(plan),
        fill,
        raw,
        reopen: run(&mut task, Phase::Reopen)?,
        idle: run(&mut task, Phase::Idle)?,
        keyed: run(&mut task, Phase::Keyed)?,
        cancel: None,
        late: None,
        late_beside: None,
        late_after: None,
        herd: None,
        drain: None,
        leftovers: None,
        cache_dropped: None,
        rss_mib: 0.0,
    };
    if plan.includes(Phase::Cancel) {
        report.cache_dropped = Some(cache::drop_page_cache(&task.data)?);
        report.cancel = run(&mut task, Phase::Cancel)?;
        task.cancelled = report.cancel.as_ref().map_or(0, |figures| figures.cancelled);
    }
    report.late = run(&mut task, Phase::Late)?;
    report.late_beside = run(&mut task, Phase::LateBeside)?;
    report.late_after = run(&mut task, Phase::LateAfter)?;
    report.herd = run(&mut task, Phase::Herd)?;
    report.drain = run(&mut task, Phase::Drain)?;
    if plan.includes(Phase::Cancelled) {
        report.leftovers = Some(leftovers::measure(&task)?);
    }
    report.set_rss();
    Ok(report)
}

/// Runs a phase, unless it is left out.
fn run<F: serde::de::DeserializeOwned>(task: &mut Task, phase: Phase) -> Result<Option<F>> {
    if !task.plan.includes(phase) {
        return Ok(None);
    }
    task.phase = phase;
    child::finish(task).map(Some)
}

/// Fills and kills; the disk without a store is measured before and after.
fn fill(task: &mut Task) -> Result<(FillFigures, Option<RawFigures>)> {
    let with_raw = task.plan.includes(Phase::Raw);
    let mut batch_bytes = 0;
    let mut appended = Vec::new();
    if with_raw {
        batch_bytes = raw::journal_bytes_per_batch(&task.scratch.join("probe"), &task.plan)?;
        appended.push(append(task, batch_bytes)?);
    }
    let (figures, running) = child::start::<FillFigures>(task)?;
    running.kill()?;
    progress::note("fill: killed");
    if !with_raw {
        return Ok((figures, None));
    }
    appended.push(append(task, batch_bytes)?);
    let jobs_per_s = |appended: &[Appended]| {
        let batches: u64 = appended.iter().map(|one| one.batches).sum();
        let seconds: f64 = appended.iter().map(|one| one.time.as_secs_f64()).sum();
        (batches * task.plan.batch as u64) as f64 / seconds
    };
    let raw_append_per_s = jobs_per_s(&appended);
    let raw = RawFigures {
        raw_append_per_s,
        raw_append_before_per_s: jobs_per_s(&appended[..1]),
        raw_append_after_per_s: jobs_per_s(&appended[1..]),
        raw_batch_bytes: batch_bytes,
        put_to_raw: figures.put_per_s / raw_append_per_s,
    };
    Ok((figures, Some(raw)))
}

fn append(task: &Task, batch_bytes: u64) -> Result<Appended> {
    let appended = raw::append(&task.scratch.join("raw"), batch_bytes, task.plan.seed)?;
    let syncs_per_s = appended.batches as f64 / appended.time.as_secs_f64();
    progress::note(&format!("raw append: {syncs_per_s:.0}/s of {batch_bytes} bytes, each synced"));
    Ok(appended)
}

fn setup(plan: &Plan) -> Setup {
    Setup {
        jobs: if plan.includes(Phase::Fill) { plan.jobs } else { 0 },
        body: plan.body,
        batch: plan.batch,
        in_flight: plan.window(),
        topics: plan.topics,
        keyed: plan.keyed,
        herd: plan.herd,
        ready: plan.ready,
        bulk_jobs: plan.bulk_jobs,
        cancelled_jobs: plan.cancelled,
        keep_every: plan.keep_every,
        seed: plan.seed,
    }
}
