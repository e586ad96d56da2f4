//! The plan of the phases, and the requests that are not measured.

use std::ops::Range;
use std::time::Duration;

use serde_json::Value;

use super::conn::Conn;
use super::load::Stop;
use super::request::{JSON, Noise, PutRequest, Request, Rng};
use crate::client::{self, Client, Route};
use crate::exit::Failure;

/// Shared by the phases.
pub(super) struct Plan {
    pub(super) client: Client,
    pub(super) route: Route,
    pub(super) connections: usize,
    pub(super) time: Duration,
    pub(super) body_len: usize,
    pub(super) batch: usize,
    pub(super) rate: usize,
    pub(super) topics: Topics,
    pub(super) noise: Noise,
    pub(super) stop: Stop,
}

/// Each kind of work has a topic of its own.
#[derive(Clone, Debug)]
pub(super) struct Topics {
    pub(super) put: String,
    pub(super) ready: String,
    pub(super) late: String,
}

impl Topics {
    pub(super) fn new(prefix: &str) -> Topics {
        let name = |kind| format!("{prefix}-{kind}");
        Topics { put: name("put"), ready: name("ready"), late: name("late") }
    }

    pub(super) fn all(&self) -> [&str; 3] {
        [&self.put, &self.ready, &self.late]
    }
}

impl Plan {
    /// The request that puts jobs into a topic, for one connection.
    pub(super) fn put_request(
        &self,
        topic: &str,
        content_type: &str,
        delays_ms: Range<u64>,
        index: usize,
    ) -> PutRequest {
        let request = Request::post(&self.route, &topic_path(topic, "/jobs"), content_type);
        let rng = Rng::new(index as u64);
        PutRequest::new(request, self.body_len, delays_ms, (self.noise.clone(), rng))
    }

    /// The request that reserves from a topic.
    pub(super) fn reserve_request(&self, topic: &str, fields: &str) -> Request {
        let path = topic_path(topic, "/reserve");
        Request::post(&self.route, &path, JSON).with_body(fields)
    }

    pub(super) async fn connect(&self, count: usize) -> Result<Vec<Conn>, Failure> {
        Conn::open_all(&self.route, count).await
    }

    /// How many jobs of a topic are ready.
    pub(super) async fn ready(&self, topic: &str) -> Result<u64, Failure> {
        let request = client::Request::get(topic_path(topic, ""));
        match self.client.call(request).await {
            Ok(reply) => Ok(reply.parse::<Value>()?["ready"].as_u64().unwrap_or(0)),
            Err(failure) if failure.code() == Some("not_found") => Ok(0),
            Err(failure) => Err(failure),
        }
    }

    /// Removes all jobs of a topic.
    pub(super) async fn purge(&self, topic: &str) -> Result<(), Failure> {
        match self.client.call(client::Request::delete(topic_path(topic, ""))).await {
            Err(failure) if failure.code() != Some("not_found") => Err(failure),
            _ => Ok(()),
        }
    }
}

fn topic_path(topic: &str, rest: &str) -> String {
    format!("/v1/topics/{}{rest}", client::encode(topic))
}
