//! Random bodies of HTTP requests.

use bytes::Bytes;
use dormouse_core::topic::TopicName;
use dormouse_fuzz::{Target, fuzz};
use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde::de::DeserializeOwned;

use super::{
    ack, cancel, extend, get, kill, lock, many, nack, pause, put, release, reschedule, revive, run,
};
use crate::http::form::{ReserveForm, SettingsForm};
use crate::http::params::Params;

const TARGET: Target<'_> = Target {
    name: "http_body",
    home: env!("CARGO_MANIFEST_DIR"),
    seeds: &[
        br#"{"body": {"a": [1, 2.5, null, true, "\u00e9\ud83d\ude00"]}, "key": "k"}"#,
        br#"[{"text": "x", "at": "2030-01-01T00:00:00Z"}, {"base64": "AAEC", "priority": 0}]"#,
        b"{\"text\": \"x\", \"ttr\": \"PT1M\"}\n{\"headers\": {\"a\": \"b\"}}\n\n{}",
        br#"{"backoff": {"exponential": {"base": "1s", "cap": "10m"}}, "attempts_max": 3}"#,
        br#"{"tokens": ["1.2", "3.4"], "reserve": {"topics": ["t"], "max": 5, "wait": "10s"}}"#,
        br#"{"token": "1.2", "delay": 5000, "error": "no", "priority": 7, "ttr": 1}"#,
        br#"{"ids": ["1", "2"], "unless_leased": true, "at": "2030-01-01T00:00:00Z"}"#,
        br#"{"topics": ["a", "b"], "max": 4096, "wait": 0, "ttr": "1h"}"#,
        br#"{"owner": "me", "ttl": "30s", "wait": "1s"}"#,
        br#"{"for": "5m", "max": 10, "jobs_max": 5, "dead_ttl": "1d", "on_conflict": "earliest"}"#,
        b"plain text, or bytes",
    ],
    words: &[
        b"{",
        b"}",
        b"[",
        b"]",
        b"[[[[[[[[[[[[[[[[",
        b"\"",
        b"\\u0000",
        b"\\ud800",
        b"1e400",
        b"-0",
        b"null",
        b"\"body\":",
        b"\"text\":",
        b"\"base64\":",
        b"\"delay\":",
        b"\"at\":",
        b"\"key\":",
        b"\"headers\":",
        b"\"backoff\":",
        b"\"tokens\":",
        b"\n",
        b"\"P100Y\"",
        b"\"9999-12-31\"",
        b"\xff",
        b"\0",
        b"\"fixed\":",
        b"\"list\":",
    ],
    // A put has a few hundred bytes, for as few as three of the body, in a list that doubles.
    held_bytes_max: |bytes| (8 << 10) + 256 * bytes as u64,
};

fn form<T: DeserializeOwned>(bytes: &[u8]) {
    drop(serde_json::from_slice::<T>(bytes));
}

/// Every form reads every body.
#[test]
fn fuzz_http_body() {
    let topic = TopicName::new("t").unwrap();
    let kinds = ["application/json", "application/x-ndjson", "text/plain", ""].map(|kind| {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers
    });
    fuzz(&TARGET, |input| {
        let bytes = Bytes::copy_from_slice(&input.bytes);
        for headers in &kinds {
            let params = Params::parse("delay=5s&header.a=b").unwrap_or_else(|_| unreachable!());
            drop(put::read(topic.clone(), headers, params, &bytes));
            let none = Params::parse("").unwrap_or_else(|_| unreachable!());
            drop(put::read(topic.clone(), headers, none, &bytes));
        }
        form::<ack::AckForm>(&bytes);
        form::<nack::NackForm>(&bytes);
        form::<release::ReleaseForm>(&bytes);
        form::<kill::KillForm>(&bytes);
        form::<ReserveForm>(&bytes);
        form::<many::MaxForm>(&bytes);
        form::<pause::PauseForm>(&bytes);
        form::<lock::AcquireForm>(&bytes);
        form::<extend::ExtendForm>(&bytes);
        form::<reschedule::RescheduleForm>(&bytes);
        form::<cancel::CancelJobsForm>(&bytes);
        form::<get::GetJobsForm>(&bytes);
        form::<kill::KillJobsForm>(&bytes);
        form::<reschedule::RescheduleJobsForm>(&bytes);
        form::<revive::ReviveJobsForm>(&bytes);
        form::<run::RunJobsForm>(&bytes);
        form::<SettingsForm>(&bytes);
    });
}
