//! Responses about several items: each has its own code.

use dormouse_core::error::Error;
use hyper::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::{CodeOut, IdOut, StateOut};

/// An item that failed.
#[derive(Serialize, ToSchema)]
#[schema(as = FailedItem)]
pub(crate) struct Failed {
    /// The stable code.
    code: CodeOut,
    /// What was wrong, the limit, and the fix.
    detail: String,
    /// Whether the same item can succeed later.
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

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed {
            code: CodeOut(error.code.as_str()),
            retryable: error.code.is_retryable(),
            id: error.job.map(|(id, _)| IdOut(id)),
            state: error.job.map(|(_, state)| StateOut::from(state)),
            detail: error.text.into_owned(),
        }
    }
}

/// The status of a list: that of its only item, else 200.
pub(crate) fn status_of_list(items: &[StatusCode]) -> StatusCode {
    match items {
        [only] => *only,
        _ => StatusCode::OK,
    }
}
