//! Reads the body of a request within its limits: size, rate, and the budget of all requests.
//!
//! A handler gets the body unread, and reads it when it knows that the caller may do what the path
//! says: who has no right here cannot use up what others need.

use std::time::Duration;

use crate::limits::{
    HTTP_BODY_BYTES_MAX, HTTP_BODY_BYTES_PER_S_MIN, HTTP_BODY_MS_MAX, HTTP_SMALL_BYTES_MAX,
};
use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use dormouse_core::error::{Code, Error};
use http_body_util::BodyExt;
use hyper::StatusCode;
use serde::de::DeserializeOwned;

use super::App;
use super::caller::Caller;
use super::problem::Problem;
use crate::shares::Portion;
use crate::visitor::Claimant;

/// The body of a request that is still to be read. Check the caller's rights first.
pub(crate) struct Unread {
    body: Body,
    caller: Caller,
}

/// The whole body of a request.
pub(crate) struct Payload {
    pub(crate) bytes: Bytes,
    _held: Portion<Claimant>,
}

impl FromRequest<App> for Unread {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &App) -> Result<Unread, Problem> {
        let caller = request.extensions().get::<Caller>().cloned();
        // Every handler that reads a body takes its caller first.
        let caller = caller.ok_or_else(|| Problem::malformed("this call takes no body"))?;
        Ok(Unread { body: request.into_body(), caller })
    }
}

impl Unread {
    /// The body of a request that this caller has sent.
    pub(crate) fn new(body: Body, caller: Caller) -> Unread {
        Unread { body, caller }
    }

    /// Reads it. The caller's rights may change until all of it has arrived.
    pub(crate) async fn read(self, app: &App) -> Result<Payload, Problem> {
        let Unread { body, caller } = self;
        let mut held = app.small_bodies.hold(caller.claimant().clone());
        let bytes = read(body, app, &caller, &mut held).await?;
        caller.judge(app)?;
        Ok(Payload { bytes, _held: held })
    }

    /// Reads and parses JSON; an empty body counts as an empty object.
    pub(crate) async fn json<T: DeserializeOwned>(self, app: &App) -> Result<T, Problem> {
        let payload = self.read(app).await?;
        let text: &[u8] = if payload.bytes.is_empty() { b"{}" } else { &payload.bytes };
        check_object(text).map_err(Problem::malformed)?;
        serde_json::from_slice(text).map_err(|error| malformed(&error))
    }
}

/// The problem for JSON that does not fit this call.
pub(crate) fn malformed(error: &serde_json::Error) -> Problem {
    Problem::malformed(format!("the body cannot be read: {error}; docs/http.md has the fields"))
}

/// serde accepts a list for an object, field by field; no client means that.
pub(crate) fn check_object(json: &[u8]) -> Result<(), &'static str> {
    match json.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'[') => Err("this is a list; send an object"),
        _ => Ok(()),
    }
}

async fn read(
    mut body: Body,
    app: &App,
    caller: &Caller,
    held: &mut Portion<Claimant>,
) -> Result<Bytes, Problem> {
    let size = http_body::Body::size_hint(&body);
    if size.lower() > HTTP_BODY_BYTES_MAX as u64 {
        return Err(too_large(size.lower()));
    }
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    // Every byte that arrives extends the deadline a little.
    let timer = tokio::time::sleep(Duration::from_millis(HTTP_BODY_MS_MAX));
    tokio::pin!(timer);
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = &mut timer => return Err(too_slow()),
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| {
            Problem::malformed(format!("the body ended before its time: {error}; send it again"))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        let total = first.as_ref().map_or(0, Bytes::len) + rest.len() + data.len();
        if total > HTTP_BODY_BYTES_MAX {
            return Err(too_large(total as u64));
        }
        let is_first_large =
            total > HTTP_SMALL_BYTES_MAX && total - data.len() <= HTTP_SMALL_BYTES_MAX;
        if is_first_large {
            // Uploads must not use up the budget of acks.
            *held = app.bodies.hold(caller.claimant().clone());
            held.grow(total)?;
        } else {
            held.grow(data.len())?;
        }
        let earned = Duration::from_millis(data.len() as u64 * 1_000 / HTTP_BODY_BYTES_PER_S_MIN);
        let deadline = timer.deadline() + earned;
        timer.as_mut().reset(deadline);
        if first.is_none() {
            first = Some(data);
        } else {
            rest.extend_from_slice(&data);
        }
    }
    Ok(join(first.unwrap_or_default(), rest))
}

/// Most bodies arrive in one piece and are not copied.
fn join(first: Bytes, rest: BytesMut) -> Bytes {
    if rest.is_empty() {
        return first;
    }
    let mut whole = BytesMut::with_capacity(first.len() + rest.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&rest);
    whole.freeze()
}

fn too_large(bytes: u64) -> Problem {
    Problem::from(Error::new(
        Code::TooLarge,
        format!(
            "the request has {bytes} bytes; send at most {HTTP_BODY_BYTES_MAX} at once and the \
             rest after"
        ),
    ))
}

fn too_slow() -> Problem {
    Problem::new(
        StatusCode::REQUEST_TIMEOUT,
        "timeout",
        format!(
            "the body arrived too slowly; send it within {} s and at {HTTP_BODY_BYTES_PER_S_MIN} \
             bytes a second at least",
            HTTP_BODY_MS_MAX / 1_000
        ),
    )
}
