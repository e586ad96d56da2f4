//! Lateness while the store is busy: beside a bulk load, and right after one while its flushes and
//! merges run.

use std::thread;

use dormouse_core::backend::Backend;
use dormouse_core::meter::MeterValue;
use dormouse_disk::engine::{Engine, Options};
use serde_json::{Map, Value};

use crate::Result;
use crate::child::{self, Task};
use crate::client::Client;
use crate::fill::Fill;
use crate::late::{self, LateFigures};

/// The figures of one of the two, each with the phase's name before it.
pub(crate) type BusyFigures = Map<String, Value>;

/// The load goes on while jobs come due.
pub(crate) fn beside(task: &Task) -> Result<()> {
    run(task, "late_beside", |engine, fill| {
        let before = Work::of(engine)?;
        let figures = thread::scope(|scope| {
            let load = scope.spawn(|| fill.fill());
            let figures = late::measure(task, engine);
            let loaded = load.join().unwrap_or_else(|_| Err("the bulk load panicked".into()));
            loaded.and(figures)
        })?;
        Ok((figures, Work::of(engine)?.since(before)))
    })
}

/// The load has just ended.
pub(crate) fn after(task: &Task) -> Result<()> {
    run(task, "late_after", |engine, fill| {
        fill.fill()?;
        let before = Work::of(engine)?;
        let figures = late::measure(task, engine)?;
        Ok((figures, Work::of(engine)?.since(before)))
    })
}

/// On a directory of its own, so that the other phases find their backlog as it was.
fn run(
    task: &Task,
    name: &str,
    measure: impl FnOnce(&Engine, &mut Fill<'_>) -> Result<(LateFigures, Work)>,
) -> Result<()> {
    let mut plan = task.plan.clone();
    plan.jobs = plan.bulk_jobs;
    let engine = Engine::open(&task.scratch.join(name), Options::default())?;
    let mut fill = Fill::new(&plan, Client::new(&engine))?.beside_others();
    let (late, work) = measure(&engine, &mut fill)?;
    let mut figures = BusyFigures::new();
    for (figure, value) in [
        ("p50_us", Value::from(late.late_p50_us)),
        ("p99_us", Value::from(late.late_p99_us)),
        ("max_us", Value::from(late.late_max_us)),
        ("sleep_p99_us", Value::from(late.sleep_p99_us)),
        ("put_per_s", Value::from(fill.rate(0..10))),
        ("flushes", Value::from(work.flushes)),
        ("merges", Value::from(work.merges)),
        ("rss_mib", Value::from(late.rss_late_mib)),
    ] {
        figures.insert(format!("{name}_{figure}"), value);
    }
    child::report(&figures)?;
    late::check_early(&late)?;
    Ok(engine.close()?)
}

/// The store's work in the background.
#[derive(Clone, Copy)]
struct Work {
    flushes: u64,
    merges: u64,
}

impl Work {
    fn of(engine: &Engine) -> Result<Work> {
        let meters = engine.meters();
        let counter = |name: &str| {
            let value = meters.iter().find(|meter| meter.name == name).map(|meter| &meter.value);
            match value {
                Some(MeterValue::Counter(value)) => Ok(*value),
                _ => Err(format!("the engine has no counter {name}")),
            }
        };
        Ok(Work { flushes: counter("flushes_total")?, merges: counter("merges_total")? })
    }

    fn since(self, before: Work) -> Work {
        Work { flushes: self.flushes - before.flushes, merges: self.merges - before.merges }
    }
}
