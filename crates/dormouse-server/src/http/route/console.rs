//! console: the files of the web console.

use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue,
    IF_NONE_MATCH, LOCATION, REFERRER_POLICY,
};

use super::no_path;
use crate::http::App;
use crate::ui::{UiFile, UiMode};

/// Only what this server itself serves is loaded and called, nothing inline is executed, nobody
/// frames it, and no text becomes markup by accident.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'";

/// The paths of the console; none if it is off.
pub(super) fn routes(mode: UiMode) -> Router<App> {
    if mode == UiMode::Off {
        return Router::new();
    }
    // Relative, so that it leads to the right place below a path of a proxy, too.
    Router::new()
        .route("/", get(lead))
        .route("/ui", get(lead))
        .route("/ui/", get(file))
        .route("/ui/{*path}", get(file))
}

async fn lead() -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, HeaderValue::from_static("ui/"))]).into_response()
}

async fn file(State(app): State<App>, path: RawPathParams, headers: HeaderMap) -> Response {
    let path = path.iter().next().map_or("", |(_, path)| path);
    let Some(file) = app.ui_files.find(path) else { return no_path().await.into_response() };
    let is_known = is_among(&headers, &file.etag);
    let UiFile { bytes, kind, etag } = file;
    let bytes = match bytes {
        std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        std::borrow::Cow::Owned(bytes) => Bytes::from(bytes),
    };
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Body::from(bytes).into_response(),
    };
    let headers = response.headers_mut();
    let fixed = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        // A browser asks each time, and is told that nothing has changed.
        (CACHE_CONTROL, "no-cache"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // It consists of digits and quotes.
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(ETAG, etag);
    }
    response
}

/// Whether a browser has this content already.
fn is_among(headers: &HeaderMap, etag: &str) -> bool {
    let lists = headers.get_all(IF_NONE_MATCH).iter().filter_map(|list| list.to_str().ok());
    let mut known = lists.flat_map(|list| list.split(','));
    known.any(|tag| matches!(tag.trim(), "*") || tag.trim().trim_start_matches("W/") == etag)
}
