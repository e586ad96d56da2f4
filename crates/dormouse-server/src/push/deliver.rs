//! One delivery: a request, its reply, and what follows from it.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dormouse_core::job::{BodyKind, JobId, Token};
use dormouse_core::op::LeasedJob;
use dormouse_core::topic::TopicName;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use tokio::time::{Instant, timeout_at};

use super::answer::{Judgement, Verdict, judge};
use super::clock::SteadyClock;
use super::connect::{Connector, Fault};
use super::pool::{Pool, PooledConnection};
use super::request::{self, Sender};
use super::secret::MasterKey;
use super::settings::PushSettings;
use super::url::PushUrl;
use crate::limits::{PUSH_REPLY_BYTES_MAX, PUSH_REPLY_KEPT_BYTES_MAX};
use crate::metrics::PushOutcome;
use crate::units::wall_ms;

/// A job whose name cannot be looked up now is due again after this.
const BUSY_MS: u64 = 1_000;

/// Delivers jobs of all topics.
pub(super) struct Deliverer {
    pub(super) connector: Connector,
    pub(super) pool: Arc<Pool>,
    pub(super) clock: SteadyClock,
    pub(super) key: MasterKey,
    pub(super) store: String,
}

/// The beginning of a reply.
#[derive(Default)]
struct ReplyStart {
    /// As much as an error text may show.
    kept: Vec<u8>,
    bytes: usize,
}

impl Deliverer {
    /// Delivers a job. It ends within the time of the settings, whatever the receiver does.
    pub(super) async fn deliver(
        &self,
        job: &LeasedJob,
        url: &PushUrl,
        settings: &PushSettings,
    ) -> Judgement {
        let wall_ms = wall_ms();
        let sender = Sender { key: &self.key, store: &self.store, wall_ms, is_test: false };
        let request = match request::make(job, url, settings, &sender) {
            Ok(request) => request,
            Err(error) => return Judgement::failed(PushOutcome::Blocked, error.text.into_owned()),
        };
        let deadline = self.clock.after(Duration::from_millis(settings.timeout_ms));
        let (response, pooled) = match self.exchange(&job.topic, url, request, deadline).await {
            Ok(exchanged) => exchanged,
            Err(judgement) => return judgement,
        };
        let (head, body) = response.into_parts();
        let mut start = ReplyStart::default();
        // Whether it ends or not: the status has been said.
        if let Ok(true) = timeout_at(deadline, start.read(body)).await {
            self.pool.give(url.origin(), pooled);
        }
        judge(head.status, &head.headers, &start.kept, settings, wall_ms)
    }

    /// Sends a request that is none of a job, on a connection of its own.
    pub(super) async fn test(&self, topic: &TopicName, settings: &PushSettings) -> PushTest {
        let begun = self.clock.now_ms();
        let mut addr = None;
        let judgement = self.test_judged(topic, settings, &mut addr).await;
        let ms = self.clock.now_ms().saturating_sub(begun);
        let error = match judgement.verdict {
            Verdict::Ack | Verdict::Release { .. } => None,
            Verdict::Nack { error, .. } | Verdict::Kill { error } => Some(error),
        };
        PushTest { outcome: judgement.outcome.as_str(), error, addr, ms }
    }

    async fn test_judged(
        &self,
        topic: &TopicName,
        settings: &PushSettings,
        addr: &mut Option<SocketAddr>,
    ) -> Judgement {
        let wall_ms = wall_ms();
        let sender = Sender { key: &self.key, store: &self.store, wall_ms, is_test: true };
        let request =
            match request::make(&test_job(topic, wall_ms), &settings.url, settings, &sender) {
                Ok(request) => request,
                Err(error) => {
                    return Judgement::failed(PushOutcome::Blocked, error.text.into_owned());
                }
            };
        let deadline = self.clock.after(Duration::from_millis(settings.timeout_ms));
        let opened =
            match within(deadline, "a connection", self.connector.open(topic, &settings.url)).await
            {
                Ok(Ok(connection)) => connection,
                Ok(Err(fault)) => return Judgement::failed(fault.outcome(), fault.text()),
                Err(judgement) => return judgement,
            };
        *addr = opened.addr;
        let pooled = self.pool.opened(opened);
        let response = match within(deadline, "the answer", send(pooled, request)).await {
            Ok(Sent::Answered(response, _pooled)) => response,
            Ok(Sent::Lost(reason)) => return lost(&reason),
            Ok(Sent::Unsent(_)) => return lost("it was closed before the request"),
            Err(judgement) => return judgement,
        };
        // The reply is not shown: who asks must not read what is inside.
        let settings = PushSettings { keep_reply: false, ..settings.clone() };
        judge(response.status(), response.headers(), &[], &settings, wall_ms)
    }

    /// Sends a request and waits for the head of its reply.
    async fn exchange(
        &self,
        topic: &TopicName,
        url: &PushUrl,
        request: Request<Full<Bytes>>,
        deadline: Instant,
    ) -> Result<(Response<Incoming>, PooledConnection), Judgement> {
        let mut unsent = request;
        if let Some(pooled) = self.pool.take(url.origin()) {
            match within(deadline, "the answer", send(pooled, unsent)).await? {
                Sent::Answered(response, pooled) => return Ok((response, pooled)),
                Sent::Lost(reason) => return Err(lost(&reason)),
                // It was closed while it was idle: nobody has seen this attempt.
                Sent::Unsent(request) => unsent = request,
            }
        }
        let opened = within(deadline, "a connection", self.connector.open(topic, url)).await?;
        let connection = opened.map_err(|fault| unreached(&fault))?;
        let pooled = self.pool.opened(connection);
        match within(deadline, "the answer", send(pooled, unsent)).await? {
            Sent::Answered(response, pooled) => Ok((response, pooled)),
            Sent::Lost(reason) => Err(lost(&reason)),
            Sent::Unsent(_) => Err(lost("it was closed before the request")),
        }
    }
}

/// What a test of a push found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushTest {
    /// As in the metrics: `2xx`, `timeout`, `blocked`.
    pub outcome: &'static str,
    /// What was wrong.
    pub error: Option<String>,
    /// The address that answered or was connected to.
    pub addr: Option<SocketAddr>,
    /// How long it took.
    pub ms: u64,
}

/// Stands for a job in a test.
fn test_job(topic: &TopicName, wall_ms: u64) -> LeasedJob {
    let id = JobId(wall_ms);
    LeasedJob {
        topic: topic.clone(),
        id,
        key: None,
        group: None,
        token: Token { id, fence: 0 },
        attempt: 1,
        due_at: wall_ms,
        put_at: wall_ms,
        late_ms: 0,
        expires_at: wall_ms,
        ttr_ms: 0,
        priority: 0,
        expires_after_ms: 0,
        headers: None,
        body: Bytes::from_static(br#"{"test":true}"#),
        body_kind: BodyKind::Json,
        tick: None,
    }
}

/// What became of a request.
enum Sent {
    Answered(Response<Incoming>, PooledConnection),
    /// Bytes of it may have arrived.
    Lost(String),
    /// None has.
    Unsent(Request<Full<Bytes>>),
}

async fn send(mut pooled: PooledConnection, request: Request<Full<Bytes>>) -> Sent {
    let sender = &mut pooled.connection.sender;
    if sender.ready().await.is_err() {
        return Sent::Unsent(request);
    }
    match sender.try_send_request(request).await {
        Ok(response) => Sent::Answered(response, pooled),
        Err(mut error) => match error.take_message() {
            Some(request) => Sent::Unsent(request),
            None => Sent::Lost(error.error().to_string()),
        },
    }
}

async fn within<T>(
    deadline: Instant,
    awaited: &str,
    work: impl Future<Output = T>,
) -> Result<T, Judgement> {
    timeout_at(deadline, work).await.map_err(|_| {
        let error = format!("timeout: {awaited} did not come within the time for a push");
        Judgement::failed(PushOutcome::Timeout, error)
    })
}

/// What follows where there is no connection.
fn unreached(fault: &Fault) -> Judgement {
    let mut judgement = Judgement::failed(fault.outcome(), fault.text());
    if matches!(fault, Fault::Busy) {
        judgement.verdict = Verdict::Release { delay_ms: BUSY_MS };
    }
    judgement
}

fn lost(reason: &str) -> Judgement {
    let fault = Fault::Connect(reason.to_owned());
    Judgement::failed(fault.outcome(), fault.text())
}

impl ReplyStart {
    /// Reads a reply; false if it is too long or broke off.
    async fn read(&mut self, mut body: Incoming) -> bool {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            let Some(data) = frame.data_ref() else { continue };
            let room = PUSH_REPLY_KEPT_BYTES_MAX - self.kept.len();
            self.kept.extend_from_slice(&data[..data.len().min(room)]);
            self.bytes = self.bytes.saturating_add(data.len());
            if self.bytes > PUSH_REPLY_BYTES_MAX {
                return false;
            }
        }
        true
    }
}
