//! Several clients ask at the same time how many jobs of a backlog come due in each of many steps.

use std::thread;
use std::time::Instant;

use dormouse_check::generate::rng::Rng;
use dormouse_core::command::{Command, Reply};
use dormouse_core::op::{Forecast, Put};
use dormouse_core::topic::TopicName;
use dormouse_disk::clock::TimeSource;
use serde_json::Value;

use super::stage::{Stage, told};
use crate::Result;
use crate::client::unexpected;
use crate::latency::Latencies;
use crate::plan::SPREAD_MS;

/// How often each client asks.
const CALLS: usize = 5;

pub(super) fn run(stage: &Stage, steps: u64, clients: usize, jobs: u64) -> Result<()> {
    let (topic, mut rng) = (TopicName::new("backlog")?, Rng::new(1));
    stage.put("put", jobs, |_, body| {
        let delay_ms = Some(i64::try_from(1 + rng.below(SPREAD_MS))?);
        Ok(Put { delay_ms, ..Put::new(topic.clone(), body) })
    })?;
    let from_ms = stage.clock.read().wall_ms;
    // All jobs are due before the last step ends.
    let step_ms = (SPREAD_MS + 1).div_ceil(steps);
    let forecast = Forecast { topic, from_ms, to_ms: from_ms + steps * step_ms, step_ms };
    stage.measure("forecast", steps, || {
        let all = thread::scope(|scope| {
            let ask = || scope.spawn(|| ask(stage, &forecast, jobs));
            let running: Vec<_> = (0..clients).map(|_| ask()).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, Result<Latencies>>| {
                thread.join().unwrap_or_else(|_| Err("a client panicked".into()))
            };
            running.into_iter().map(join).collect::<Result<Vec<_>>>()
        })?;
        let mut times = Latencies::default();
        all.into_iter().for_each(|one| times.append(one));
        Ok(told([
            ("jobs", Value::from(jobs)),
            ("clients", Value::from(clients)),
            ("calls", Value::from(times.len())),
            ("call_p50_us", Value::from(times.percentile(50))),
            ("call_max_us", Value::from(times.percentile(100))),
        ]))
    })
}

fn ask(stage: &Stage, forecast: &Forecast, jobs: u64) -> Result<Latencies> {
    let (client, mut times) = (stage.client(), Latencies::default());
    for _ in 0..CALLS {
        let called = Instant::now();
        match client.call(Command::Forecast(forecast.clone()))? {
            Reply::Forecast(counts) if counts.iter().sum::<u64>() == jobs => {}
            Reply::Forecast(counts) => {
                let found: u64 = counts.iter().sum();
                return Err(format!("a forecast has {found} of {jobs} jobs").into());
            }
            other => return Err(unexpected("forecast", &other)),
        }
        times.add(called.elapsed());
    }
    Ok(times)
}
