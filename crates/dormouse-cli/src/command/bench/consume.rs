//! Phase consume: takes ready jobs and acks each of them, in two ways.

use std::sync::Arc;

use super::clock;
use super::conn::Conn;
use super::load::{Done, Load, odd_item};
use super::plan::Plan;
use super::request::{JSON, Request};
use super::{ndjson, scan};
use crate::exit::Failure;

/// Jobs per reserve, and so per ack.
pub(super) const RESERVE_MAX: u64 = 100;
/// Ready jobs put before the phase, per second of it.
const READY_PER_S: f64 = 150_000.0;

/// The two ways to consume.
pub(super) struct Consumed {
    /// Reserve and ack are requests of their own.
    pub(super) apart: Done,
    /// An ack carries the next reserve.
    pub(super) together: Done,
}

pub(super) async fn run(plan: &Plan) -> Result<Consumed, Failure> {
    let topic = &plan.topics.ready;
    let needed = (plan.time.as_secs_f64() * READY_PER_S) as u64;
    let mut ready = plan.ready(topic).await?;
    if ready < needed {
        let filled = ndjson::fill(plan, needed - ready).await?;
        if let Some(first) = filled.trouble.first {
            return Err(Failure::new(format!("cannot fill {topic}: {first}")));
        }
        ready += filled.jobs;
    }
    let conns = plan.connect(plan.connections).await?;
    let reserve = plan.reserve_request(topic, &format!("{{\"max\":{RESERVE_MAX}}}"));
    let ack = AckRequest::new(plan, topic);
    // Half of the jobs each, so that both ways find the same.
    let load = Load::start("consume", plan.time, ready / 2, &plan.stop);
    let work = |_, conn| apart(conn, Arc::clone(&load), reserve.clone(), ack.clone());
    let apart = load.run(conns, work).await;

    let conns = plan.connect(plan.connections).await?;
    let load = Load::start("ack_reserve", plan.time, u64::MAX, &plan.stop);
    let work = |_, conn| together(conn, Arc::clone(&load), reserve.clone(), ack.clone());
    Ok(Consumed { apart, together: load.run(conns, work).await })
}

/// Ends when there is no job any more.
async fn apart(mut conn: Conn, load: Arc<Load>, reserve: Request, mut ack: AckRequest) {
    while load.goes_on() {
        let sent = clock::now();
        match conn.call(reserve.bytes()).await {
            Ok(answer) if answer.is_success() => {
                if ack.fill(scan::jobs_part(answer.body), false) == 0 {
                    return;
                }
            }
            other => {
                load.trouble(other).await;
                continue;
            }
        }
        match conn.call(ack.bytes()).await {
            Ok(answer) if answer.is_success() => {
                let done = scan::DONE.count(answer.body);
                load.answered(done, sent);
                if done != ack.count() {
                    load.note(odd_item(answer.body, "done"));
                }
            }
            other => load.trouble(other).await,
        }
    }
}

/// Ends when there is no job any more.
async fn together(mut conn: Conn, load: Arc<Load>, reserve: Request, mut ack: AckRequest) {
    while load.goes_on() {
        match conn.call(reserve.bytes()).await {
            Ok(answer) if answer.is_success() => {
                ack.fill(scan::jobs_part(answer.body), load.goes_on());
            }
            other => {
                load.trouble(other).await;
                continue;
            }
        }
        loop {
            if ack.count() == 0 {
                return;
            }
            let sent = clock::now();
            match conn.call(ack.bytes()).await {
                Ok(answer) if answer.is_success() => {
                    let done = scan::DONE.count(answer.body);
                    load.answered(done, sent);
                    if done != ack.count() {
                        load.note(odd_item(answer.body, "done"));
                    }
                    ack.fill(scan::jobs_part(answer.body), load.goes_on());
                }
                other => {
                    load.trouble(other).await;
                    break;
                }
            }
        }
    }
}

/// An ack of all jobs in an answer.
#[derive(Clone, Debug)]
pub(super) struct AckRequest {
    request: Request,
    reserve: String,
    count: u64,
}

impl AckRequest {
    /// With the topic from which it may reserve the next jobs.
    pub(super) fn new(plan: &Plan, topic: &str) -> AckRequest {
        let request = Request::post(&plan.route, "/v1/ack", JSON);
        let topics = serde_json::json!({"topics": [topic], "max": RESERVE_MAX});
        AckRequest { request, reserve: format!(",\"reserve\":{topics}"), count: 0 }
    }

    /// Takes the tokens of these jobs and returns their number.
    pub(super) fn fill(&mut self, jobs: &[u8], reserves: bool) -> u64 {
        self.request.clear();
        self.request.push(b"{\"tokens\":[");
        self.count = 0;
        for token in scan::TOKEN.values(jobs) {
            self.request.push(if self.count == 0 { b"\"" } else { b",\"" });
            self.request.push(token);
            self.request.push(b"\"");
            self.count += 1;
        }
        self.request.push(b"]");
        if reserves {
            self.request.push(self.reserve.as_bytes());
        }
        self.request.push(b"}");
        self.request.seal();
        self.count
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.request.bytes()
    }
}
