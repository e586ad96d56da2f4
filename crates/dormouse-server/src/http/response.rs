//! Responses: JSON, and the leases that are given back if the client never receives them.

use std::sync::{Arc, Mutex, PoisonError};

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde::Serialize;

use super::problem::Problem;
use crate::client::Custody;

/// What a handler returns.
pub(crate) type HttpResult = Result<Response, Problem>;

/// A value as JSON text.
pub(crate) fn to_json(value: &impl Serialize) -> Bytes {
    // Our own types have string keys and no failing serialisers.
    serde_json::to_vec(value).map_or_else(|_| Bytes::from_static(b"{}"), Bytes::from)
}

/// A JSON response with this status.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let kind = HeaderValue::from_static("application/json");
    (status, [(CONTENT_TYPE, kind)], to_json(value)).into_response()
}

/// A JSON response with status 200.
pub(crate) fn ok(value: &impl Serialize) -> HttpResult {
    Ok(json(StatusCode::OK, value))
}

/// Leases or a lock that travel with a response. Extensions must be `Clone`, a custody is not.
#[derive(Clone)]
struct CustodyExtension(Arc<Mutex<Option<Custody>>>);

/// Attaches leases to a response: they are given back unless all of it is flushed.
pub(crate) fn with_custody(mut response: Response, custody: Custody) -> Response {
    if custody.is_empty() {
        custody.hand_over();
    } else {
        response.extensions_mut().insert(CustodyExtension(Arc::new(Mutex::new(Some(custody)))));
    }
    response
}

/// Takes the leases from a response.
pub(super) fn take_custody(response: &mut Response) -> Option<Custody> {
    let CustodyExtension(custody) = response.extensions_mut().remove()?;
    custody.lock().unwrap_or_else(PoisonError::into_inner).take()
}
