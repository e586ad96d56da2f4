//! The push of a topic.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::limits::{PUSH_CONCURRENCY_DEFAULT, PUSH_TIMEOUT_MS_DEFAULT};
use crate::push::{PushFields, PushRecord, PushState, PushStatus, PutPushCode};
use crate::units::{At, SpanMs};

/// Stands for a value that is not shown.
const HIDDEN: &str = "***";

/// Where the jobs of a topic are pushed to.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewPush)]
pub(crate) struct PushForm {
    /// In its normal form; https unless the server allows http.
    #[schema(max_length = 2048, example = "https://example.com/hook")]
    url: String,
    /// Patterns of URLs that jobs may bring: `https://*.example.com/prefix`.
    #[schema(max_items = 100)]
    job_urls: Option<Vec<String>>,
    /// Sent with every request; the value `***` keeps the one that is stored.
    headers: Option<BTreeMap<String, String>>,
    /// For the whole of a delivery, 1 to 30 s.
    timeout: Option<SpanMs>,
    /// The largest number of jobs of the topic leased at once, over all servers.
    #[schema(minimum = 1, maximum = 1000, default = 16)]
    concurrency: Option<u64>,
    /// Statuses that kill a job at once.
    #[schema(max_items = 100)]
    fatal: Option<Vec<u16>>,
    /// Whether the beginning of a failed reply is kept in the error text of the job.
    #[schema(default = true)]
    keep_reply: Option<bool>,
}

impl PushForm {
    /// The fields, and the names of headers whose stored values are kept.
    pub(crate) fn into_fields(self) -> (PushFields, Vec<String>) {
        let headers = self.headers.unwrap_or_default().into_iter();
        let (kept, headers): (Vec<_>, Vec<_>) = headers.partition(|(_, value)| value == HIDDEN);
        // A negative span becomes one beyond every limit, so that the check refuses it.
        let ms = |span: SpanMs| u64::try_from(span.0).unwrap_or(u64::MAX);
        let fields = PushFields {
            url: self.url,
            job_urls: self.job_urls.unwrap_or_default(),
            headers,
            timeout_ms: self.timeout.map_or(PUSH_TIMEOUT_MS_DEFAULT, ms),
            concurrency: self.concurrency.unwrap_or(PUSH_CONCURRENCY_DEFAULT as u64),
            fatal: self.fatal.unwrap_or_default(),
            keep_reply: self.keep_reply.unwrap_or(true),
        };
        (fields, kept.into_iter().map(|(name, _)| name).collect())
    }
}

/// Whether a topic is pushed.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = PushState)]
pub(crate) enum PushStateOut {
    /// It is.
    On,
    /// Its receiver fails: only probes are sent.
    Open,
    /// Until an operator resumes it.
    Disabled,
}

/// How the pushes of a topic go on this server, since its start.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = PushCounts)]
pub(crate) struct PushCountsOut {
    /// Jobs that were delivered.
    delivered: u64,
    /// Attempts that failed.
    failed: u64,
}

/// Where the jobs of a topic are pushed to.
#[derive(Serialize, ToSchema)]
#[schema(as = Push)]
pub(crate) struct PushOut<'a> {
    topic: &'a str,
    url: &'a str,
    job_urls: &'a [String],
    /// Their names; values are shown as `***`.
    headers: BTreeMap<&'a str, &'static str>,
    timeout_ms: u64,
    concurrency: u64,
    fatal: &'a [u16],
    keep_reply: bool,
    state: PushStateOut,
    /// Why it is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    disabled: Option<Cow<'a, str>>,
    /// The text of the last failure on this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last_error: Option<String>,
    counts: PushCountsOut,
    /// Until when the secret before the present one signs, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    retiring_until: Option<At>,
}

impl<'a> PushOut<'a> {
    pub(crate) fn new(topic: &'a str, record: &'a PushRecord, status: Option<PushStatus>) -> Self {
        let fields = &record.fields;
        let seen = status.as_ref().and_then(|status| status.disabled).map(Cow::Borrowed);
        let disabled = record.disabled.as_deref().map(Cow::Borrowed).or(seen);
        let state = match (&disabled, status.as_ref().map(|status| status.state)) {
            (Some(_), _) => PushStateOut::Disabled,
            (None, Some(PushState::Open)) => PushStateOut::Open,
            (None, _) => PushStateOut::On,
        };
        let counts = status
            .as_ref()
            .map(|status| PushCountsOut { delivered: status.delivered, failed: status.failed });
        PushOut {
            topic,
            url: &fields.url,
            job_urls: &fields.job_urls,
            headers: fields.headers.iter().map(|(name, _)| (&**name, HIDDEN)).collect(),
            timeout_ms: fields.timeout_ms,
            concurrency: fields.concurrency,
            fatal: &fields.fatal,
            keep_reply: fields.keep_reply,
            state,
            disabled,
            last_error: status.and_then(|status| status.last_error),
            counts: counts.unwrap_or_default(),
            retiring_until: record.retiring.map(|(_, until_ms)| At(until_ms)),
        }
    }
}

/// What a put of a push did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PushCode {
    /// The topic was not pushed before.
    Created,
    /// It has other fields now.
    Replaced,
    /// It has these fields already.
    Unchanged,
}

impl From<PutPushCode> for PushCode {
    fn from(code: PutPushCode) -> PushCode {
        match code {
            PutPushCode::Created => PushCode::Created,
            PutPushCode::Replaced => PushCode::Replaced,
            PutPushCode::Unchanged => PushCode::Unchanged,
        }
    }
}

/// The result of a put of a push.
#[derive(Serialize, ToSchema)]
#[schema(as = PutPushResult)]
pub(crate) struct PutPushOut<'a> {
    pub(crate) code: PushCode,
    /// Of a new push: the secret that signs its requests. It is not shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) secret: Option<String>,
    pub(crate) push: PushOut<'a>,
}
