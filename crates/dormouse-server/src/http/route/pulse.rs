//! pulse: the figures of the server, once a second.

use std::future::Future;
use std::time::Duration;

use axum::extract::State;
use bytes::Bytes;
use dormouse_core::error::Error;
use dormouse_core::topic::TopicName;
use tokio::sync::watch;
use utoipa::IntoParams;

use crate::access::{Access, Grant, Verb};
use crate::http::App;
use crate::http::api::Problems;
use crate::http::caller::Caller;
use crate::http::form::PulseOut;
use crate::http::params::Params;
use crate::http::problem::Problem;
use crate::http::response::{HttpResult, ok, to_json};
use crate::http::stream::{Pieces, stream};
use crate::limits::PULSE_TOPICS_MAX;
use crate::pulse::PulseReader;

/// A stream without a beat has a comment after this: a reader takes longer silence for a server
/// that is gone.
const COMMENT_AFTER: Duration = Duration::from_secs(2);

/// The query of a pulse.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes the query")]
pub(crate) struct PulseQuery {
    /// Topics whose figures are wanted, with commas between; at most 50.
    topics: Option<String>,
    /// One pulse as JSON instead of a stream.
    once: Option<bool>,
}

/// Follow the figures of the server as server-sent events, one a second.
#[utoipa::path(
    get,
    path = "/v1/pulse",
    tag = "server",
    params(PulseQuery),
    responses(
        (status = 200, description = "An endless stream; with `once`, one pulse", content(
            (String = "text/event-stream"),
            (PulseOut<'static> = "application/json")
        )),
        Problems
    )
)]
pub(super) async fn pulse(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> HttpResult {
    caller.check_somewhere(Verb::Stats)?;
    let topics = names(params.text("topics").as_deref().unwrap_or_default())?;
    let once = params.flag("once")?.unwrap_or(false);
    params.finish()?;
    // Who asks for topics of others makes nobody look at them.
    let grant = caller.grant();
    let topics = topics.into_iter().filter(|topic| grant.allows(Verb::Stats, topic.as_str()));
    let mut reader = app.pulse.read(caller.claimant().clone(), topics.collect())?;
    if once {
        let stopping = || Error::unavailable("the server is stopping; try again");
        let beat = reader.next().await.ok_or_else(stopping)?;
        return ok(&PulseOut::new(&beat, grant, reader.topics()));
    }
    let (access, grant) = (app.access.clone(), grant.clone());
    let changes = access.changes();
    Ok(stream(PulseStream { access, grant, changes, reader, is_new: true }))
}

/// The names of a list with commas, each once.
fn names(text: &str) -> Result<Vec<TopicName>, Problem> {
    let mut topics = Vec::new();
    for name in text.split(',').filter(|name| !name.is_empty()) {
        let name = TopicName::new(name)?;
        if !topics.contains(&name) {
            topics.push(name);
        }
        if topics.len() > PULSE_TOPICS_MAX {
            return Err(
                Error::invalid(format!("more than {PULSE_TOPICS_MAX} topics; give fewer")).into()
            );
        }
    }
    Ok(topics)
}

/// The stream of one reader.
struct PulseStream {
    access: Access,
    grant: Grant,
    /// Changes when tokens have changed.
    changes: watch::Receiver<()>,
    reader: PulseReader,
    is_new: bool,
}

impl PulseStream {
    async fn wait(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.is_new) {
            // So that the client knows at once that it is heard.
            return Some(Bytes::from_static(b": dormouse\nretry: 2000\n\n"));
        }
        loop {
            let present = self.access.renew(&self.grant)?;
            self.grant = present;
            if !self.grant.may_somewhere(Verb::Stats) {
                return None;
            }
            tokio::select! {
                beat = self.reader.next() => {
                    let beat = beat?;
                    // It may have lost its right while it waited.
                    let grant = self.access.renew(&self.grant)?;
                    let out = PulseOut::new(&beat, &grant, self.reader.topics());
                    let json = to_json(&out);
                    let mut text = Vec::with_capacity(json.len() + 32);
                    text.extend_from_slice(b"event: pulse\ndata: ");
                    text.extend_from_slice(&json);
                    text.extend_from_slice(b"\n\n");
                    return Some(Bytes::from(text));
                }
                // It cannot fail: the sender is in `access`, held here.
                _ = self.changes.changed() => {}
                // A store that is slow gives few beats; the server is there all the same.
                () = tokio::time::sleep(COMMENT_AFTER) => {
                    return Some(Bytes::from_static(b": waiting\n\n"));
                }
            }
        }
    }
}

impl Pieces for PulseStream {
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send {
        self.wait()
    }
}
