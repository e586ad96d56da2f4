//! Errors as RFC 9457 problems.

use axum::response::{IntoResponse, Response};
use dormouse_core::error::{Code, Error};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use super::reply::to_json;

/// Why a request was not done. Programs look at `code`, people at `detail`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// `urn:dormouse:` and the code.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    kind: String,
    /// The code in words.
    #[schema(value_type = String)]
    title: String,
    /// The HTTP status.
    status: u16,
    /// The stable code.
    #[schema(value_type = String)]
    code: &'static str,
    /// What was wrong, the limit, and the fix.
    detail: String,
    /// Whether the same request can succeed later.
    retryable: bool,
    /// The job in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    state: Option<&'static str>,
}

impl Problem {
    /// A problem that only HTTP knows.
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<String>,
    ) -> Problem {
        Problem {
            kind: format!("urn:dormouse:{code}"),
            title: code.replace('_', " "),
            status: status.as_u16(),
            code,
            detail: detail.into(),
            retryable: false,
            id: None,
            state: None,
        }
    }

    /// A request that cannot be read.
    pub(crate) fn malformed(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, Code::Invalid.as_str(), detail)
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// The status that stands for a code.
pub(crate) fn status_of(code: Code) -> StatusCode {
    match code {
        Code::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        Code::Unauthorized => StatusCode::UNAUTHORIZED,
        Code::Forbidden => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::Conflict | Code::LeaseLost => StatusCode::CONFLICT,
        Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::Busy | Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Full => StatusCode::INSUFFICIENT_STORAGE,
        Code::Unconfirmed => StatusCode::GATEWAY_TIMEOUT,
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem {
            retryable: error.code.is_retryable(),
            id: error.job.map(|(id, _)| id.to_string()),
            state: error.job.map(|(_, state)| state.as_str()),
            ..Problem::new(status_of(error.code), error.code.as_str(), error.text)
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.retryable {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        (status, headers, to_json(&self)).into_response()
    }
}
