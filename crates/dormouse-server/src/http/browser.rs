//! What browsers are told and believed: the site that a request comes from, whether the console may
//! change something, and headers that keep an answer from being taken for something else.

use axum::response::Response;
use hyper::header::{
    CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, StatusCode};

use super::problem::Problem;
use crate::ui::UiMode;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// The console sends it with every request.
pub(super) const FROM_UI: HeaderName = HeaderName::from_static("x-dormouse-ui");

/// Paths that tell nothing: whoever may reach this server may ask them from anywhere.
const HEALTH: [&str; 2] = ["/livez", "/readyz"];

/// Refuses what a page of another site makes a browser send.
pub(super) fn check_site(method: &Method, path: &str, headers: &HeaderMap) -> Result<(), Problem> {
    let is = |name, value: &str| headers.get_all(name).iter().any(|found| found == value);
    if !is(FETCH_SITE, "cross-site") {
        return Ok(());
    }
    let is_look = matches!(*method, Method::GET | Method::HEAD);
    if is_look && HEALTH.contains(&path) {
        return Ok(());
    }
    // A link to the console in a chat or a report: its files hold no data, and cannot be framed.
    let is_link = is(FETCH_MODE, "navigate") && is(FETCH_DEST, "document");
    if is_look && is_link && (path == "/" || path == "/ui" || path.starts_with("/ui/")) {
        return Ok(());
    }
    Err(forbidden("a page of another site sent this; open the console of this server instead"))
}

/// Calls that only look, although they need a body and so a POST.
pub(super) const LOOKS_BY_POST: [&str; 2] = ["/v1/jobs/get", "/v1/schedules/preview"];

/// Refuses changes by a console that may only look.
pub(super) fn check_ui(
    mode: UiMode,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    let is_look = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    let is_change = !is_look && !LOOKS_BY_POST.contains(&path);
    if mode == UiMode::View && is_change && is_from_ui(headers) {
        return Err(forbidden("this console may only look: the server runs with `ui = \"view\"`"));
    }
    Ok(())
}

/// Whether the console sent this.
pub(super) fn is_from_ui(headers: &HeaderMap) -> bool {
    headers.contains_key(FROM_UI)
}

fn forbidden(text: &str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "forbidden", text)
}

/// Answers are data: nothing in them is executed, framed, or taken for another type. The files of
/// the console bring a policy of their own.
pub(super) fn protect(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers
        .entry(CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    fn check(method: Method, path: &str, pairs: &[(&'static str, &'static str)], is_let_in: bool) {
        let checked = check_site(&method, path, &headers(pairs));
        assert_eq!(checked.is_ok(), is_let_in, "{method} {path} {pairs:?}");
        if let Err(problem) = checked {
            assert_eq!(problem.status(), StatusCode::FORBIDDEN);
        }
    }

    #[test]
    fn other_sites_see_only_that_the_server_is_there() {
        let cross = ("sec-fetch-site", "cross-site");
        for path in ["/livez", "/readyz", "/v1/stats", "/ui/", "/", "/nowhere"] {
            for site in ["same-origin", "same-site", "none"] {
                check(Method::POST, path, &[("sec-fetch-site", site)], true);
            }
            check(Method::GET, path, &[], true);
            check(Method::GET, path, &[cross], HEALTH.contains(&path));
            check(Method::POST, path, &[cross], false);
        }
    }

    #[test]
    fn a_link_leads_to_the_console_and_nowhere_else() {
        let cross = ("sec-fetch-site", "cross-site");
        let link = [cross, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        let frame = [cross, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
        for (path, is_ui) in [("/", true), ("/ui/", true), ("/uix", false), ("/v1/stats", false)] {
            check(Method::GET, path, &link, is_ui);
            check(Method::GET, path, &frame, false);
            check(Method::POST, path, &link, false);
        }
    }

    #[test]
    fn a_console_that_may_only_look_changes_nothing() {
        let from_ui = headers(&[("x-dormouse-ui", "1")]);
        for (mode, method, is_let_in) in [
            (UiMode::View, Method::POST, false),
            (UiMode::View, Method::DELETE, false),
            (UiMode::View, Method::GET, true),
            (UiMode::On, Method::POST, true),
        ] {
            let checked =
                |path, headers: &HeaderMap| check_ui(mode, &method, path, headers).is_ok();
            assert_eq!(checked("/v1/jobs/cancel", &from_ui), is_let_in, "{mode:?} {method}");
            assert!(checked("/v1/jobs/cancel", &HeaderMap::new()), "another client");
            assert!(checked("/v1/jobs/get", &from_ui), "a look");
        }
    }
}
