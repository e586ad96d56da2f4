//! The files of the web console, and what browsers are told.

use dormouse_server::{Options, UiMode, UiOptions};
use serde_json::json;

use crate::rig::Rig;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'";

async fn with_mode(mode: UiMode) -> Rig {
    let ui = UiOptions { mode, ..UiOptions::default() };
    Rig::with(Options { ui, ..Options::default() }).await
}

#[tokio::test]
async fn the_console_is_served_with_its_policy() {
    let rig = Rig::with_tokens(&[("ops", &["*:*"])]).await;
    // Without a token: whoever logs in has none yet.
    let mut client = rig.client().await;
    let page = client.get("/ui/").await;
    assert_eq!(page.status, 200);
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    assert!(page.text().contains("<title>Dormouse"), "{}", page.text());
    let etag = page.header("etag").unwrap().to_owned();
    let named = client.get("/ui/index.html").await;
    assert_eq!(named.header("etag"), Some(etag.as_str()));
    assert_eq!(named.body, page.body);
    client.get("/ui/nothing.js").await.problem(404, "not_found");
    client.get("/ui/../Cargo.toml").await.problem(404, "not_found");
    for tags in [etag.clone(), format!("\"x\", W/{etag}"), "*".to_owned()] {
        let mut client = rig.client().await.with("if-none-match", &tags);
        let known = client.get("/ui/").await;
        assert_eq!((known.status, known.body.len()), (304, 0), "{tags}");
        assert_eq!(known.header("etag"), Some(etag.as_str()));
    }
    let mut client = rig.client().await.with("if-none-match", "\"x\"");
    assert_eq!(client.get("/ui/").await.status, 200);
}

#[tokio::test]
async fn the_root_leads_to_the_console_below_any_path() {
    let rig = Rig::new().await;
    let mut client = rig.client().await.with("accept", "application/json");
    for path in ["/", "/ui"] {
        let lead = client.get(path).await;
        assert_eq!((lead.status, lead.header("location")), (303, Some("ui/")), "{path}");
    }
}

#[tokio::test]
async fn a_console_that_is_off_is_not_there() {
    let rig = with_mode(UiMode::Off).await;
    let mut client = rig.client().await;
    for path in ["/", "/ui", "/ui/", "/ui/index.html"] {
        client.get(path).await.problem(404, "not_found");
    }
}

#[tokio::test]
async fn a_console_that_may_only_look_changes_nothing() {
    let rig = with_mode(UiMode::View).await;
    let mut console = rig.client().await.with("x-dormouse-ui", "1");
    assert_eq!(console.get("/ui/").await.status, 200);
    console.post("/v1/topics/t/jobs", json!({})).await.problem(403, "forbidden");
    console.get("/v1/topics/t").await.problem(404, "not_found");
    // Other clients are not concerned.
    let mut client = rig.client().await;
    client.post("/v1/topics/t/jobs", json!({})).await.expect(201);
    console.delete("/v1/topics/t").await.problem(403, "forbidden");
    assert_eq!(console.get("/v1/topics/t").await.ok()["ready"], 1);
}

#[tokio::test]
async fn pages_of_other_sites_are_refused() {
    let rig = Rig::new().await;
    let mut cross = rig.client().await.with("sec-fetch-site", "cross-site");
    for path in ["/v1/stats", "/metrics", "/openapi.json", "/ui/", "/"] {
        cross.get(path).await.problem(403, "forbidden");
    }
    cross.post("/v1/topics/t/jobs", json!({})).await.problem(403, "forbidden");
    for path in ["/livez", "/readyz"] {
        assert_eq!(cross.get(path).await.status, 200, "{path}");
    }
    let mut own = rig.client().await.with("sec-fetch-site", "same-origin");
    own.post("/v1/topics/t/jobs", json!({})).await.expect(201);
}

#[tokio::test]
async fn answers_are_never_shown_as_pages() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for path in ["/v1/stats", "/openapi.json", "/livez", "/nowhere", "/v1/jobs/1"] {
        let answer = client.get(path).await;
        let policy = Some("default-src 'none'; frame-ancestors 'none'");
        assert_eq!(answer.header("content-security-policy"), policy, "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
}
