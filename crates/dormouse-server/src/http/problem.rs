//! Errors as RFC 9457 problems.

use axum::response::{IntoResponse, Response};
use dormouse_core::error::{Code, Error};
use dormouse_core::job::{JobId, State};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use super::form::{CodeOut, IdOut, StateOut};
use super::response::to_json;

/// Why a request failed.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    retryable: bool,
    job: Option<(JobId, State)>,
}

/// Why a request failed. Programs use `code`, people read `detail`.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemOut<'a> {
    /// `urn:dormouse:` and the code.
    #[serde(rename = "type")]
    kind: String,
    /// The code in words.
    title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// The stable code.
    code: CodeOut,
    /// What was wrong, the limit, and the fix.
    detail: &'a str,
    /// Whether the same request can succeed later.
    retryable: bool,
    /// The id of the conflicting job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    id: Option<IdOut>,
    /// The state of the conflicting job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    state: Option<StateOut>,
}

impl Problem {
    /// A problem with a code that only HTTP has.
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<String>,
    ) -> Problem {
        Problem { status, code, detail: detail.into(), retryable: false, job: None }
    }

    /// The problem for a request that cannot be parsed.
    pub(crate) fn malformed(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, Code::Invalid.as_str(), detail)
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    fn out(&self) -> ProblemOut<'_> {
        ProblemOut {
            kind: format!("urn:dormouse:{}", self.code),
            title: self.code.replace('_', " "),
            status: self.status.as_u16(),
            code: CodeOut(self.code),
            detail: &self.detail,
            retryable: self.retryable,
            id: self.job.map(|(id, _)| IdOut(id)),
            state: self.job.map(|(_, state)| StateOut::from(state)),
        }
    }
}

/// The HTTP status of a code.
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
            job: error.job,
            ..Problem::new(status_of(error.code), error.code.as_str(), error.text)
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.retryable {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        (status, headers, to_json(&self.out())).into_response()
    }
}
