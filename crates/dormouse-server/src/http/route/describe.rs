//! describe: the OpenAPI document.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};

use crate::http::api::{GuardProblems, openapi};
use crate::http::response::to_json;

static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| to_json(&openapi()));

/// This API as an OpenAPI 3.1 document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "server",
    operation_id = "openapi",
    security(()),
    responses(
        (status = 200, description = "The document", body = Object,
            content_type = "application/json"),
        GuardProblems
    )
)]
pub(super) async fn describe() -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(CONTENT_TYPE, kind)], DOCUMENT.clone()).into_response()
}
