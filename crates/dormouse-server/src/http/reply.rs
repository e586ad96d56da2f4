//! Answers: JSON, and what must be given back if the client never gets it.

use std::sync::{Arc, Mutex, PoisonError};

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde::Serialize;

use super::problem::Problem;
use crate::client::Custody;

/// What a handler gives: an answer, or a problem.
pub(crate) type Outcome = Result<Response, Problem>;

/// A value as JSON text.
pub(crate) fn to_json(value: &impl Serialize) -> Bytes {
    // Our own types have string keys and no failing serialisers.
    serde_json::to_vec(value).map_or_else(|_| Bytes::from_static(b"{}"), Bytes::from)
}

/// An answer of this status.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let kind = HeaderValue::from_static("application/json");
    (status, [(CONTENT_TYPE, kind)], to_json(value)).into_response()
}

/// The usual answer.
pub(crate) fn ok(value: &impl Serialize) -> Outcome {
    Ok(json(StatusCode::OK, value))
}

/// Leases or a lock that travel with an answer. Extensions are cloned, leases are not.
#[derive(Clone)]
struct Cargo(Arc<Mutex<Option<Custody>>>);

/// The answer carries these leases: they are given back unless the socket takes all of it.
pub(crate) fn carrying(mut response: Response, custody: Custody) -> Response {
    if custody.is_empty() {
        custody.hand_over();
    } else {
        response.extensions_mut().insert(Cargo(Arc::new(Mutex::new(Some(custody)))));
    }
    response
}

/// Takes the leases from an answer.
pub(super) fn unload(response: &mut Response) -> Option<Custody> {
    let Cargo(custody) = response.extensions_mut().remove()?;
    custody.lock().unwrap_or_else(PoisonError::into_inner).take()
}
