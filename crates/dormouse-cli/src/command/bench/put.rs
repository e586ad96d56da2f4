//! Phase put: one job per request, one request at a time per connection.

use std::ops::Range;
use std::sync::Arc;

use super::clock;
use super::conn::Conn;
use super::load::{Done, Load};
use super::plan::Plan;
use super::request::{JSON, PutRequest};
use crate::exit::Failure;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// Due uniformly over 30 days, but not while the benchmark runs.
const DELAYS_MS: Range<u64> = 10 * 60 * 1_000..30 * DAY_MS;

pub(super) async fn run(plan: &Plan) -> Result<Done, Failure> {
    let conns = plan.connect(plan.connections).await?;
    let load = Load::start("put", plan.time, u64::MAX, &plan.stop);
    let work = |index, conn| {
        let jobs = plan.put_request(&plan.topics.put, JSON, DELAYS_MS, index);
        work(conn, Arc::clone(&load), jobs)
    };
    Ok(load.run(conns, work).await)
}

async fn work(mut conn: Conn, load: Arc<Load>, mut jobs: PutRequest) {
    while load.goes_on() {
        let request = jobs.renew(1);
        let sent = clock::now();
        match conn.call(request).await {
            Ok(answer) if answer.is_success() => load.answered(1, sent),
            other => load.trouble(other).await,
        }
    }
}
