//! Answers about several items: each has its own code.

use dormouse_core::error::Error;
use hyper::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

/// An item that was not done.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Failed {
    /// The stable code.
    #[schema(value_type = String)]
    code: &'static str,
    /// What was wrong, the limit, and the fix.
    detail: String,
    /// Whether the same item can succeed later.
    retryable: bool,
    /// The job in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    state: Option<&'static str>,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed {
            code: error.code.as_str(),
            retryable: error.code.is_retryable(),
            id: error.job.map(|(id, _)| id.to_string()),
            state: error.job.map(|(_, state)| state.as_str()),
            detail: error.text.into_owned(),
        }
    }
}

/// One per item, in the order they were sent.
#[derive(Serialize, ToSchema)]
pub(crate) struct Results<T> {
    pub(crate) results: Vec<T>,
}

/// The status of a list: that of its only item, else 200.
pub(crate) fn status_of_list(items: &[StatusCode]) -> StatusCode {
    match items {
        [only] => *only,
        _ => StatusCode::OK,
    }
}
