//! What the phases are to do, and the small requests that are not measured.

use std::ops::Range;
use std::time::Duration;

use super::conn::{Conn, Target};
use super::load::{Stop, problem};
use super::request::{Noise, PutRequest, Request, Rng};

/// What the phases have in common.
pub(super) struct Plan {
    pub(super) target: Target,
    pub(super) connections: usize,
    pub(super) time: Duration,
    pub(super) body_len: usize,
    pub(super) batch: usize,
    pub(super) rate: u32,
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

/// A request that is not measured, and its answer.
pub(super) enum Asked {
    /// The document, or null if it is none.
    Yes(serde_json::Value),
    /// 404
    Nothing,
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
        let request = Request::post(&self.target, &topic_path(topic, "/jobs"), content_type);
        let rng = Rng::new(index as u64);
        PutRequest::new(request, self.body_len, delays_ms, (self.noise.clone(), rng))
    }

    /// The request that reserves from a topic.
    pub(super) fn reserve_request(&self, topic: &str, fields: &str) -> Request {
        let path = topic_path(topic, "/reserve");
        Request::post(&self.target, &path, super::request::JSON).with_body(fields)
    }

    pub(super) async fn connect(&self, count: usize) -> Result<Vec<Conn>, String> {
        self.target.connect(count).await
    }

    /// How many jobs of a topic are ready.
    pub(super) async fn ready(&self, topic: &str) -> Result<u64, String> {
        match self.ask("GET", topic).await? {
            Asked::Yes(topic) => Ok(topic["ready"].as_u64().unwrap_or(0)),
            Asked::Nothing => Ok(0),
        }
    }

    /// Removes all jobs of a topic.
    pub(super) async fn purge(&self, topic: &str) -> Result<(), String> {
        self.ask("DELETE", topic).await.map(|_| ())
    }

    async fn ask(&self, method: &str, topic: &str) -> Result<Asked, String> {
        let request = self.target.head(method, &topic_path(topic, "")) + "\r\n";
        let mut conns = self.connect(1).await?;
        let conn = conns.first_mut().ok_or("no connection")?;
        let answer = conn.call(request.as_bytes()).await.map_err(|error| error.to_string())?;
        match answer.status {
            404 => Ok(Asked::Nothing),
            _ if answer.is_success() => {
                Ok(Asked::Yes(serde_json::from_slice(answer.body).unwrap_or_default()))
            }
            _ => Err(problem(&answer)),
        }
    }
}

/// The path of a topic, whatever is in its name.
fn topic_path(topic: &str, rest: &str) -> String {
    let mut path = String::from("/v1/topics/");
    for byte in topic.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
    path + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_encoded_in_paths() {
        assert_eq!(topic_path("bench-put", "/jobs"), "/v1/topics/bench-put/jobs");
        assert_eq!(topic_path("a/b ä", ""), "/v1/topics/a%2Fb%20%C3%A4");
    }
}
