//! Phase ndjson: many jobs per request, ready at once.

use std::sync::Arc;
use std::time::Duration;

use super::clock;
use super::conn::Conn;
use super::load::{Done, Load, odd_item};
use super::plan::Plan;
use super::request::{NDJSON, PutRequest};
use super::scan;
use crate::exit::Failure;

/// A fill that takes longer is given up.
const FILL_TIME: Duration = Duration::from_secs(120);

pub(super) async fn run(plan: &Plan) -> Result<Done, Failure> {
    load(plan, "ndjson", plan.time, u64::MAX).await
}

/// Puts this many jobs, for another phase.
pub(super) async fn fill(plan: &Plan, jobs: u64) -> Result<Done, Failure> {
    load(plan, "fill", FILL_TIME, jobs).await
}

async fn load(
    plan: &Plan,
    name: &'static str,
    time: Duration,
    jobs_max: u64,
) -> Result<Done, Failure> {
    let conns = plan.connect(plan.connections).await?;
    let load = Load::start(name, time, jobs_max, &plan.stop);
    let work = |index, conn| {
        let jobs = plan.put_request(&plan.topics.ready, NDJSON, 0..0, index);
        work(conn, Arc::clone(&load), jobs, plan.batch)
    };
    Ok(load.run(conns, work).await)
}

async fn work(mut conn: Conn, load: Arc<Load>, mut jobs: PutRequest, batch: usize) {
    while load.goes_on() {
        let request = jobs.renew(batch);
        let sent = clock::now();
        match conn.call(request).await {
            Ok(answer) if answer.is_success() => {
                let created = scan::CREATED.count(answer.body);
                load.answered(created, sent);
                if created != batch as u64 {
                    load.note(odd_item(answer.body, "created"));
                }
            }
            other => load.trouble(other).await,
        }
    }
}
