//! Idle: a consumer waits where nothing is.

use std::thread;
use std::time::Duration;

use dormouse_core::topic::TopicName;
use serde::Serialize;

use super::rig::Rig;
use super::{Findings, RedisPlan};
use crate::client::reserve;
use crate::{Result, progress, rss};

const WAIT_MS: i64 = 60_000;
/// By then the consumer rests and its channel is listened to.
const SETTLE: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct IdleFigures {
    idle_scripts_per_s: f64,
    idle_commands_per_s: f64,
    idle_cpu_percent: f64,
}

pub(super) fn run(rig: &Rig, plan: &RedisPlan, found: &mut Findings) -> Result<()> {
    let time = Duration::from_secs(plan.idle_seconds.clamp(1, 55));
    progress::note(&format!("idle: a consumer waits for {time:?}"));
    let client = rig.client();
    client.send(reserve(vec![TopicName::new("empty")?], 1, WAIT_MS))?;
    thread::sleep(SETTLE);
    rig.server.reset_stats();
    let idle_cpu_percent = rss::cpu_percent_over(time);
    let figures = IdleFigures {
        idle_scripts_per_s: rig.server.scripts_run() as f64 / time.as_secs_f64(),
        idle_commands_per_s: rig.server.commands_run() as f64 / time.as_secs_f64(),
        idle_cpu_percent,
    };
    if client.receive_now()?.is_some() {
        return Err("the waiting consumer was answered although nothing was due".into());
    }
    let more = format!(
        "{:.2} commands/s, our processor {:.2} %, over {time:?}",
        figures.idle_commands_per_s, figures.idle_cpu_percent
    );
    let measure = "idle, a consumer waiting: scripts/s per partition and server";
    found.table.at_most(measure, 0.2, figures.idle_scripts_per_s, &more);
    found.add(&figures)
}
