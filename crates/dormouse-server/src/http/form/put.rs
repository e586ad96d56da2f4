//! put: the request and its result.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use dormouse_core::job::BodyKind;
use dormouse_core::op::{OnConflict, Put, PutOutcome, PutReply};
use dormouse_core::topic::TopicName;
use hyper::StatusCode;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::{Failed, IdOut, StateOut, TopicText, portable};
use crate::push::URL_HEADER;
use crate::units::{At, BackoffForm, InstantMs, SpanMs};

/// A job to put.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewJob)]
pub(crate) struct PutForm<'a> {
    /// Only in a chain: elsewhere the path names the topic.
    #[schema(ignore)]
    topic: Option<String>,
    /// The work, as any JSON value; or `text`, or `base64`.
    #[serde(borrow, default, deserialize_with = "present")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub(crate) body: Option<&'a RawValue>,
    /// The work, as a string.
    #[serde(borrow)]
    pub(crate) text: Option<Cow<'a, str>>,
    /// The work, as bytes in base64.
    #[serde(borrow)]
    pub(crate) base64: Option<Cow<'a, str>>,
    /// Time until the job is due.
    pub(crate) delay: Option<SpanMs>,
    /// The instant at which the job is due.
    pub(crate) at: Option<InstantMs>,
    /// Your own id, unique in the topic while the job lives.
    #[schema(min_length = 1, max_length = 256)]
    pub(crate) key: Option<String>,
    /// What to do if the key is taken.
    pub(crate) on_conflict: Option<OnConflictForm>,
    /// How long the key stays taken after the ack.
    pub(crate) key_ttl: Option<SpanMs>,
    /// A lower number is first.
    #[schema(default = 1024, minimum = 0, maximum = 4294967295u32)]
    pub(crate) priority: Option<u32>,
    /// The duration of a lease.
    pub(crate) ttr: Option<SpanMs>,
    /// The number of attempts after which the job is dead; 0 = no limit.
    #[schema(default = 16, minimum = 0, maximum = 4294967295u32)]
    pub(crate) attempts_max: Option<u32>,
    /// The delay after a failed attempt.
    pub(crate) backoff: Option<BackoffForm>,
    /// The job dies if nobody takes it so long after it was due; 0 = it never does.
    pub(crate) expires_after: Option<SpanMs>,
    /// What the topic's limits of groups are counted by.
    #[schema(min_length = 1, max_length = 256)]
    pub(crate) group: Option<String>,
    /// Returned with the job.
    pub(crate) headers: Option<BTreeMap<String, String>>,
    /// Where the job is pushed to; it must match a pattern of the topic's `job_urls`.
    #[schema(max_length = 2048)]
    pub(crate) url: Option<String>,
}

/// A job to put in a chain: as any other, and its topic. A description only.
pub(crate) struct ChainedForm;

impl PartialSchema for ChainedForm {
    fn schema() -> RefOr<Schema> {
        let RefOr::T(Schema::Object(mut object)) = PutForm::schema() else {
            return Ref::from_schema_name(PutForm::name()).into();
        };
        let topic = Ref::from_schema_name(TopicText::name());
        object.properties.insert("topic".to_owned(), topic.into());
        object.required.push("topic".to_owned());
        object.description = Some("A job to put after an ack".to_owned());
        Schema::Object(object).into()
    }
}

impl ToSchema for ChainedForm {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ChainedJob")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((TopicText::name().into_owned(), TopicText::schema()));
        PutForm::schemas(schemas);
    }
}

/// A `null` body is a body; an absent one is not.
pub(super) fn present<'de: 'a, 'a, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&'a RawValue>::deserialize(from).map(Some)
}

/// What to do if the key is taken.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = OnConflict)]
pub(crate) enum OnConflictForm {
    /// The existing job stays.
    Keep,
    /// The put fails with `conflict`.
    Reject,
    /// The existing job gets the new content.
    Replace,
    /// Replace if the new due time is earlier.
    Earliest,
    /// Replace if the new due time is later.
    Latest,
}

impl OnConflictForm {
    pub(crate) fn parse(text: &str) -> Result<OnConflictForm, String> {
        Ok(match text {
            "keep" => OnConflictForm::Keep,
            "reject" => OnConflictForm::Reject,
            "replace" => OnConflictForm::Replace,
            "earliest" => OnConflictForm::Earliest,
            "latest" => OnConflictForm::Latest,
            _ => return Err(format!("{text:?}; give keep, reject, replace, earliest or latest")),
        })
    }
}

impl From<OnConflictForm> for OnConflict {
    fn from(form: OnConflictForm) -> OnConflict {
        match form {
            OnConflictForm::Keep => OnConflict::Keep,
            OnConflictForm::Reject => OnConflict::Reject,
            OnConflictForm::Replace => OnConflict::Replace,
            OnConflictForm::Earliest => OnConflict::Earliest,
            OnConflictForm::Latest => OnConflict::Latest,
        }
    }
}

impl PutForm<'_> {
    /// The put of this form, which names its topic.
    pub(crate) fn into_chained(mut self, source: &Bytes) -> Result<Put, String> {
        let topic = self.topic.take().ok_or("topic is missing; name the topic of each put")?;
        let topic = TopicName::new(&topic).map_err(|error| error.text.into_owned())?;
        self.into_put(topic, source)
    }

    /// The put of this form. `source` is the request it was read from: a body that makes up
    /// most of it is not copied, a small one is, so that it does not keep the rest alive.
    pub(crate) fn into_put(self, topic: TopicName, source: &Bytes) -> Result<Put, String> {
        if self.topic.is_some() {
            return Err("topic is named by the path; leave it out of the job".into());
        }
        let (body, body_kind) = body_of(self.body, self.text, self.base64, source)?;
        let mut headers = self.headers.unwrap_or_default();
        if let Some(url) = self.url
            && headers.insert(URL_HEADER.to_owned(), url).is_some()
        {
            return Err(format!("url and the header {URL_HEADER} are the same; give one of them"));
        }
        let headers = Some(headers).filter(|headers| !headers.is_empty());
        Ok(Put {
            body_kind,
            delay_ms: self.delay.map(|span| span.0),
            at_ms: self.at.map(|instant| instant.0),
            priority: self.priority,
            ttr_ms: self.ttr.map(|span| span.0),
            attempts_max: self.attempts_max,
            backoff: self.backoff.map(BackoffForm::into_backoff),
            key: self.key.map(Bytes::from),
            on_conflict: self.on_conflict.map_or(OnConflict::Keep, OnConflict::from),
            key_ttl_ms: self.key_ttl.map(|span| span.0),
            expires_after_ms: self.expires_after.map(|span| span.0),
            group: self.group.map(Bytes::from),
            headers: headers.map(|headers| Arc::new(headers.into_iter().collect())),
            ..Put::new(topic, body)
        })
    }
}

/// The body that one of three fields gives.
pub(super) fn body_of(
    json: Option<&RawValue>,
    text: Option<Cow<'_, str>>,
    base64: Option<Cow<'_, str>>,
    source: &Bytes,
) -> Result<(Bytes, BodyKind), String> {
    Ok(match (json, text, base64) {
        (None, None, None) => (Bytes::new(), BodyKind::Bytes),
        (Some(json), None, None) => {
            portable::check(json.get())?;
            (share(source, json.get()), BodyKind::Json)
        }
        (None, Some(Cow::Borrowed(text)), None) => (share(source, text), BodyKind::Text),
        (None, Some(Cow::Owned(text)), None) => (Bytes::from(text), BodyKind::Text),
        (None, None, Some(text)) => {
            let bytes = STANDARD.decode(text.as_bytes()).map_err(|error| {
                format!("base64 cannot be read: {error}; send standard base64 with padding")
            })?;
            (Bytes::from(bytes), BodyKind::Bytes)
        }
        _ => return Err("body, text and base64 exclude each other; give one of them".into()),
    })
}

fn share(source: &Bytes, part: &str) -> Bytes {
    if part.len() * 2 >= source.len() {
        source.slice_ref(part.as_bytes())
    } else {
        Bytes::copy_from_slice(part.as_bytes())
    }
}

/// The result of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PutCode {
    /// A new job was created.
    Created,
    /// The key was taken, and nothing was put.
    Duplicate,
    /// The job that has the key has the new content now.
    Replaced,
}

/// The result of a put.
#[derive(Serialize, ToSchema)]
#[schema(as = PutResult)]
pub(crate) struct PutOut {
    /// The job's id, or that of the job that has the key.
    id: IdOut,
    code: PutCode,
    /// The state of the job; absent if only the key is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    state: Option<StateOut>,
    /// When it is due.
    due_at: At,
    /// The key was taken, and nothing was put.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    duplicate: bool,
}

impl PutOut {
    pub(crate) fn status(&self) -> StatusCode {
        if self.code == PutCode::Created { StatusCode::CREATED } else { StatusCode::OK }
    }
}

impl From<PutReply> for PutOut {
    fn from(reply: PutReply) -> PutOut {
        PutOut {
            id: IdOut(reply.id),
            code: match reply.outcome {
                PutOutcome::Created => PutCode::Created,
                PutOutcome::Duplicate => PutCode::Duplicate,
                PutOutcome::Replaced => PutCode::Replaced,
            },
            state: reply.state.map(StateOut::from),
            due_at: At(reply.due_at),
            duplicate: reply.outcome == PutOutcome::Duplicate,
        }
    }
}

/// The result of one of several puts.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum PutItem {
    /// It succeeded.
    Done(PutOut),
    /// It failed.
    Failed(Failed),
}

/// The results of several puts, in the order of the request.
#[derive(Serialize, ToSchema)]
pub(crate) struct PutResults {
    pub(crate) results: Vec<PutItem>,
}

/// The response to one job, or to a list.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes the answer")]
pub(crate) enum PutAnswer {
    /// To an object or a raw body.
    One(PutOut),
    /// To an array or NDJSON.
    Many(PutResults),
}
