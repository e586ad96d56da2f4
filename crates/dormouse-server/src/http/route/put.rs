//! put: an object, an array, NDJSON, or a raw body with its options in the query.

use std::borrow::Cow;

use axum::extract::State;
use bytes::Bytes;
use dormouse_core::command::only;
use dormouse_core::error::Error;
use dormouse_core::job::BodyKind;
use dormouse_core::limits::BATCH_MAX;
use dormouse_core::op::{Put, PutReply};
use dormouse_core::topic::TopicName;
use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;
use serde_json::value::RawValue;
use utoipa::openapi::schema::{ArrayBuilder, OneOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use super::push::check_urls;
use crate::access::Verb;
use crate::client::no_reply;
use crate::http::App;
use crate::http::api::{BodyProblems, Problems, PutProblems};
use crate::http::caller::Caller;
use crate::http::form::{
    Bounded, Failed, OnConflictForm, PutAnswer, PutForm, PutItem, PutOut, PutResults,
    status_of_list,
};
use crate::http::params::Params;
use crate::http::path::{InTopic, TopicPath};
use crate::http::payload::{Unread, check_object, malformed};
use crate::http::problem::{Problem, status_of};
use crate::http::response::{HttpResult, json};
use crate::push::URL_HEADER;
use crate::units::{InstantMs, SpanMs, parse_backoff};

/// One job, or many; a description only.
pub(crate) struct PutForms;

impl PartialSchema for PutForms {
    fn schema() -> RefOr<Schema> {
        let form = Ref::from_schema_name(PutForm::name());
        let many = ArrayBuilder::new().items(form.clone()).max_items(Some(BATCH_MAX));
        OneOfBuilder::new().item(form).item(many).description(Some("One job, or many")).into()
    }
}

impl ToSchema for PutForms {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("NewJobs")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((PutForm::name().into_owned(), PutForm::schema()));
        PutForm::schemas(schemas);
    }
}

/// The body of a job, as it is.
#[derive(ToSchema)]
#[schema(as = RawBody, value_type = String, format = Binary)]
#[expect(dead_code, reason = "describes the request")]
pub(crate) struct RawBody(Bytes);

/// The options of a raw body.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct PutQuery {
    /// Of a raw body: time until the job is due.
    #[param(inline)]
    delay: Option<SpanMs>,
    /// Of a raw body: the instant at which the job is due.
    #[param(inline)]
    at: Option<InstantMs>,
    /// Of a raw body: your own id, unique in the topic while the job lives.
    #[param(min_length = 1, max_length = 256)]
    key: Option<String>,
    /// Of a raw body: what to do if the key is taken.
    #[param(inline)]
    on_conflict: Option<OnConflictForm>,
    /// Of a raw body: how long the key stays taken after the ack.
    #[param(inline)]
    key_ttl: Option<SpanMs>,
    /// Of a raw body: a lower number is first.
    #[param(minimum = 0, maximum = 4294967295u32)]
    priority: Option<u32>,
    /// Of a raw body: the duration of a lease.
    #[param(inline)]
    ttr: Option<SpanMs>,
    /// Of a raw body: the number of attempts after which the job is dead; 0 = no limit.
    #[param(minimum = 0, maximum = 4294967295u32)]
    attempts_max: Option<u32>,
    /// Of a raw body: `fixed:10s`, `exponential:1s:2:10m` or `list:1s,5s`.
    #[param(pattern = "^(fixed|exponential|list):", example = "fixed:10s")]
    backoff: Option<String>,
    /// Of a raw body: the job dies if nobody takes it so long after it was due; 0 = it never does.
    #[param(inline)]
    expires_after: Option<SpanMs>,
    /// Of a raw body: what the topic's limits of groups are counted by.
    #[param(min_length = 1, max_length = 256)]
    group: Option<String>,
    /// Of a raw body: where the job is pushed to.
    #[param(max_length = 2048)]
    url: Option<String>,
}

/// The puts of a request, and whether it was a list.
pub(super) struct Puts {
    puts: Vec<Put>,
    is_list: bool,
}

/// Add jobs to a topic.
///
/// JSON: an object is one job, an array is many. NDJSON: one object per line. Any other content
/// type: the request's body is the job's body, and its options are query parameters, headers as
/// `header.name=value`.
#[utoipa::path(
    post,
    path = "/v1/topics/{topic}/jobs",
    tag = "jobs",
    params(TopicPath, PutQuery),
    request_body(content(
        (PutForms = "application/json"),
        (String = "application/x-ndjson"),
        (String = "text/plain"),
        (RawBody = "application/octet-stream"),
    )),
    responses(
        (status = 201, description = "Created; or the results of a list of one", body = PutAnswer),
        (status = 200, description = "A key that was taken; or the results of a list",
            body = PutAnswer),
        Problems, BodyProblems, PutProblems
    )
)]
pub(super) async fn put(
    State(app): State<App>,
    caller: Caller,
    InTopic(topic): InTopic,
    headers: HeaderMap,
    params: Params,
    body: Unread,
) -> HttpResult {
    caller.check(Verb::Put, topic.as_str())?;
    let payload = body.read(&app).await?;
    let Puts { puts, is_list } = read(topic, &headers, params, &payload.bytes)?;
    let replies = send(&app, &caller, puts).await?;
    if is_list {
        return Ok(list(replies));
    }
    let out = PutOut::from(only(replies)?);
    Ok(json(out.status(), &out))
}

/// Sends puts. One with a ttr that the caller may not give, or a URL that is not allowed, is
/// refused alone, as one beyond a limit of the rules is.
async fn send(
    app: &App,
    caller: &Caller,
    mut puts: Vec<Put>,
) -> Result<Vec<Result<PutReply, Error>>, Error> {
    let check = |put: &Put| caller.check_ttr(app, "ttr", put.ttr_ms, Some(put.topic.as_str()));
    let urls = check_urls(app, &puts).await?;
    let judged: Vec<Result<(), Error>> =
        puts.iter().zip(urls).map(|(put, url)| check(put).and(url)).collect();
    if judged.iter().all(Result::is_ok) {
        return app.client.call(puts).await;
    }
    let mut verdicts = judged.iter();
    puts.retain(|_| verdicts.next().is_some_and(Result::is_ok));
    let sent = if puts.is_empty() { Vec::new() } else { app.client.call(puts).await? };
    let mut sent = sent.into_iter();
    let mut next = || sent.next().unwrap_or_else(|| Err(no_reply()));
    Ok(judged.into_iter().map(|judged| judged.and_then(|()| next())).collect())
}

pub(super) fn list(replies: Vec<Result<PutReply, Error>>) -> axum::response::Response {
    let results = replies.into_iter().map(|reply| match reply {
        Ok(reply) => {
            let out = PutOut::from(reply);
            (out.status(), PutItem::Done(out))
        }
        Err(error) => (status_of(error.code), PutItem::Failed(Failed::from(error))),
    });
    let (statuses, results): (Vec<_>, Vec<_>) = results.unzip();
    json(status_of_list(&statuses), &PutResults { results })
}

pub(super) fn read(
    topic: TopicName,
    headers: &HeaderMap,
    params: Params,
    source: &Bytes,
) -> Result<Puts, Problem> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "application/json" => {
            params.finish()?;
            read_json(topic, source)
        }
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => {
            params.finish()?;
            read_lines(topic, source)
        }
        "application/x-www-form-urlencoded" if looks_like_json(source) => Err(Problem::malformed(
            "this is JSON, but its content type says otherwise: send it with `content-type: \
                 application/json` (curl --json), or as text/plain if it is the job's body",
        )),
        other => {
            let kind = if other.starts_with("text/") { BodyKind::Text } else { BodyKind::Bytes };
            read_raw(topic, params, source, kind)
        }
    }
}

/// Whether this is JSON that curl -d sends under another content type: its options would be lost
/// silently.
fn looks_like_json(source: &[u8]) -> bool {
    let first = source.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(first, Some(b'{' | b'['))
}

fn read_json(topic: TopicName, source: &Bytes) -> Result<Puts, Problem> {
    let first = source.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'[') {
        let items: Bounded<&RawValue, BATCH_MAX> =
            serde_json::from_slice(source).map_err(|error| malformed(&error))?;
        let puts = items.0.iter().enumerate().map(|(index, item)| {
            read_one(&topic, item.get().as_bytes(), source)
                .map_err(|reason| Problem::malformed(format!("item {}: {reason}", index + 1)))
        });
        let puts = puts.collect::<Result<_, _>>()?;
        return Ok(Puts { puts, is_list: true });
    }
    let put = read_one(&topic, source, source).map_err(Problem::malformed)?;
    Ok(Puts { puts: vec![put], is_list: false })
}

/// Parses one object; the error says what is wrong with it.
fn read_one(topic: &TopicName, json: &[u8], source: &Bytes) -> Result<Put, String> {
    check_object(json)?;
    let form: PutForm<'_> = serde_json::from_slice(json)
        .map_err(|error| format!("it cannot be read: {error}; docs/http.md has the fields"))?;
    form.into_put(topic.clone(), source)
}

fn read_lines(topic: TopicName, source: &Bytes) -> Result<Puts, Problem> {
    let mut puts = Vec::new();
    for (number, line) in source.split(|&byte| byte == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if puts.len() == BATCH_MAX {
            let text = format!(
                "the batch has {} lines or more; send at most {BATCH_MAX} at once and the rest \
                 after",
                BATCH_MAX + 1
            );
            return Err(Error::invalid(text).into());
        }
        let at_line = |reason: String| Problem::malformed(format!("line {}: {reason}", number + 1));
        puts.push(read_one(&topic, line, source).map_err(at_line)?);
    }
    Ok(Puts { puts, is_list: true })
}

fn read_raw(
    topic: TopicName,
    mut params: Params,
    source: &Bytes,
    body_kind: BodyKind,
) -> Result<Puts, Problem> {
    if body_kind == BodyKind::Text && std::str::from_utf8(source).is_err() {
        return Err(Problem::malformed(
            "the body is said to be text and is not UTF-8; send it as application/octet-stream",
        ));
    }
    let backoff = params.text("backoff").map(|text| parse_backoff(&text)).transpose();
    let on_conflict = params.text("on_conflict").map(|text| OnConflictForm::parse(&text));
    let in_backoff = |reason| Problem::malformed(format!("backoff: {reason}"));
    let wrong = |name: &str, reason: String| Problem::malformed(format!("{name} is {reason}"));
    let mut headers = params.prefixed("header.");
    headers.extend(params.text("url").map(|url| (URL_HEADER.to_owned(), url)));
    let put = Put {
        body_kind,
        delay_ms: params.span("delay")?,
        at_ms: params.instant("at")?,
        priority: params.parsed("priority", "a number below 2^32")?,
        ttr_ms: params.span("ttr")?,
        attempts_max: params.parsed("attempts_max", "a number below 2^32")?,
        backoff: backoff.map_err(in_backoff)?.map(|form| form.into_backoff()),
        key: params.text("key").map(Bytes::from),
        on_conflict: on_conflict
            .transpose()
            .map_err(|reason| wrong("on_conflict", reason))?
            .map(Into::into)
            .unwrap_or_default(),
        key_ttl_ms: params.span("key_ttl")?,
        expires_after_ms: params.span("expires_after")?,
        group: params.text("group").map(Bytes::from),
        headers: (!headers.is_empty()).then(|| std::sync::Arc::new(headers)),
        ..Put::new(topic, source.clone())
    };
    params.finish()?;
    Ok(Puts { puts: vec![put], is_list: false })
}
