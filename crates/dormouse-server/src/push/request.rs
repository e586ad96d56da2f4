//! The request of one delivery.

use std::fmt::Write as _;

use dormouse_core::error::Error;
use dormouse_core::job::BodyKind;
use dormouse_core::op::LeasedJob;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT,
};
use hyper::{HeaderMap, Method, Request, Uri, Version};

use super::secret::MasterKey;
use super::settings::PushSettings;
use super::signature::{Message, signatures};
use super::url::PushUrl;
use crate::units::At;

/// The job's header with a URL of its own.
pub(crate) const URL_HEADER: &str = "push-url";
/// Headers of a job that are handed on as they are.
const HANDED_ON: [&str; 2] = ["traceparent", "tracestate"];
const AGENT: &str = concat!("Dormouse/", env!("CARGO_PKG_VERSION"));

/// Who sends, and when.
pub(super) struct Sender<'a> {
    pub(super) key: &'a MasterKey,
    /// The store's name in ids: the same after a crash and on every server of an installation.
    pub(super) store: &'a str,
    pub(super) wall_ms: u64,
    /// It is none of a job: its id must not be that of one.
    pub(super) is_test: bool,
}

/// A header of a job.
pub(super) fn job_header<'a>(job: &'a LeasedJob, name: &str) -> Option<&'a str> {
    let headers = job.headers.as_deref()?;
    let found = headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| &**value)
}

/// The request that delivers a job.
pub(super) fn make(
    job: &LeasedJob,
    url: &PushUrl,
    settings: &PushSettings,
    sender: &Sender<'_>,
) -> Result<Request<Full<Bytes>>, Error> {
    let wrong = |_| Error::invalid(format!("url: {} cannot be requested", url.origin()));
    let uri: Uri = url.path_and_query().parse().map_err(wrong)?;
    let mut request = Request::new(Full::new(job.body.clone()));
    *request.method_mut() = Method::POST;
    *request.version_mut() = Version::HTTP_11;
    *request.uri_mut() = uri;
    *request.headers_mut() = settings.headers.map().clone();
    let mut headers = Headers(request.headers_mut());
    headers.set(HOST, url.authority());
    headers.set(CONTENT_LENGTH, &job.body.len().to_string());
    headers.set(ACCEPT_ENCODING, "identity");
    headers.set_absent(USER_AGENT, AGENT);
    set_content_type(&mut headers, job);
    for name in HANDED_ON {
        if let Some(value) = job_header(job, name) {
            headers.set(HeaderName::from_static(name), value);
        }
    }
    if sender.is_test {
        headers.set(HeaderName::from_static("dormouse-test"), "true");
    }
    sign(&mut headers, job, settings, sender);
    tell(&mut headers, job);
    Ok(request)
}

fn set_content_type(headers: &mut Headers<'_>, job: &LeasedJob) {
    let of_kind = match job.body_kind {
        BodyKind::Json => "application/json",
        BodyKind::Text => "text/plain; charset=utf-8",
        BodyKind::Bytes => "application/octet-stream",
    };
    headers.set_absent(CONTENT_TYPE, of_kind);
    if let Some(own) = job_header(job, CONTENT_TYPE.as_str()) {
        headers.set(CONTENT_TYPE, own);
    }
}

fn sign(headers: &mut Headers<'_>, job: &LeasedJob, settings: &PushSettings, sender: &Sender<'_>) {
    let test = if sender.is_test { "test_" } else { "" };
    let id = format!("dm_{}_{test}{}", sender.store, job.id);
    let timestamp = (sender.wall_ms / 1_000).to_string();
    let message = Message { id: &id, timestamp: &timestamp, body: &job.body };
    let generations = &settings.generations;
    let signed = signatures(sender.key, &job.topic, generations, sender.wall_ms, &message);
    headers.set(HeaderName::from_static("webhook-id"), &id);
    headers.set(HeaderName::from_static("webhook-timestamp"), &timestamp);
    headers.set(HeaderName::from_static("webhook-signature"), &signed);
    headers.set(HeaderName::from_static("idempotency-key"), &format!("\"{id}\""));
}

/// What is known of the job.
fn tell(headers: &mut Headers<'_>, job: &LeasedJob) {
    headers.set(HeaderName::from_static("dormouse-topic"), job.topic.as_str());
    headers.set(HeaderName::from_static("dormouse-attempt"), &job.attempt.to_string());
    headers.set(HeaderName::from_static("dormouse-due-at"), &At(job.due_at).to_string());
    headers.set(HeaderName::from_static("dormouse-put-at"), &At(job.put_at).to_string());
    if let Some(key) = &job.key {
        headers.set(HeaderName::from_static("dormouse-key"), &percent_encoded(key));
    }
    if let Some(tick) = &job.tick {
        let name = percent_encoded(tick.schedule.as_str().as_bytes());
        headers.set(HeaderName::from_static("dormouse-schedule"), &name);
        headers.set(HeaderName::from_static("dormouse-tick"), &At(tick.tick_ms).to_string());
    }
}

/// The headers of a request. A value that no header can have is left out: it comes from a job,
/// whose headers may hold anything.
struct Headers<'a>(&'a mut HeaderMap);

impl Headers<'_> {
    fn set(&mut self, name: HeaderName, value: &str) {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.0.insert(name, value);
        }
    }

    fn set_absent(&mut self, name: HeaderName, value: &'static str) {
        self.0.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

fn percent_encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dormouse_core::job::{JobId, Token};
    use dormouse_core::topic::TopicName;

    use super::*;
    use crate::push::settings::PushHeaders;

    fn job() -> LeasedJob {
        LeasedJob {
            topic: TopicName::new("orders").unwrap(),
            id: JobId(42),
            key: Some(Bytes::from_static(b"a/\xff b")),
            group: None,
            expires_after_ms: 0,
            token: Token { id: JobId(42), fence: 7 },
            attempt: 3,
            due_at: 1_700_000_000_123,
            put_at: 0,
            late_ms: 0,
            expires_at: 0,
            ttr_ms: 0,
            priority: 0,
            headers: None,
            body: Bytes::from_static(b"hello"),
            body_kind: BodyKind::Bytes,
            tick: None,
        }
    }

    fn made(job: &LeasedJob, headers: &[(&str, &str)]) -> Request<Full<Bytes>> {
        let url = PushUrl::parse("https://example.com:8443/a?b=c").unwrap();
        let mut settings = PushSettings::new(url.clone());
        settings.generations.newest = 1;
        let headers: Vec<_> = headers.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        settings.headers = PushHeaders::new(&headers).unwrap();
        let key = MasterKey::new([7; 32]);
        let sender =
            Sender { key: &key, store: "0a0b0c0d", wall_ms: 1_700_000_000_999, is_test: false };
        make(job, &url, &settings, &sender).unwrap()
    }

    fn check(request: &Request<Full<Bytes>>, name: &str, expected: Option<&str>) {
        let value = request.headers().get(name).map(|value| value.to_str().unwrap());
        assert_eq!(value, expected, "{name}");
    }

    #[test]
    fn the_request_says_what_the_job_is() {
        let request = made(&job(), &[("Authorization", "Bearer x")]);
        assert_eq!(request.uri(), "/a?b=c");
        for (name, value) in [
            ("host", "example.com:8443"),
            ("content-length", "5"),
            ("content-type", "application/octet-stream"),
            ("accept-encoding", "identity"),
            ("authorization", "Bearer x"),
            ("webhook-id", "dm_0a0b0c0d_42"),
            ("webhook-timestamp", "1700000000"),
            ("webhook-signature", "v1,sqrm3FfC9oJ4LlrvLNhbg+cechvaBzEJjQB46FLfym8="),
            ("idempotency-key", "\"dm_0a0b0c0d_42\""),
            ("dormouse-topic", "orders"),
            ("dormouse-attempt", "3"),
            ("dormouse-due-at", "2023-11-14T22:13:20.123Z"),
            ("dormouse-put-at", "1970-01-01T00:00:00.000Z"),
            ("dormouse-key", "a%2F%FF%20b"),
        ] {
            check(&request, name, Some(value));
        }
        for name in ["dormouse-schedule", "traceparent", "transfer-encoding"] {
            check(&request, name, None);
        }
    }

    #[test]
    fn a_job_chooses_its_type_and_hands_on_its_trace() {
        let mut job = job();
        job.body_kind = BodyKind::Json;
        check(&made(&job, &[]), "content-type", Some("application/json"));
        check(&made(&job, &[("content-type", "a/b")]), "content-type", Some("a/b"));
        let own = [
            ("Content-Type", "application/cloudevents+json"),
            ("traceparent", "00-1-2-01"),
            ("tracestate", "bad\r\nvalue"),
            ("webhook-id", "forged"),
            ("authorization", "forged"),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        job.headers = Some(Arc::new(own.to_vec()));
        let request = made(&job, &[("content-type", "a/b"), ("user-agent", "me")]);
        check(&request, "content-type", Some("application/cloudevents+json"));
        check(&request, "traceparent", Some("00-1-2-01"));
        check(&request, "tracestate", None);
        check(&request, "webhook-id", Some("dm_0a0b0c0d_42"));
        check(&request, "authorization", None);
        check(&request, "user-agent", Some("me"));
    }
}
