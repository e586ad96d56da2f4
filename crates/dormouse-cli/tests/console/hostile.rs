//! What strangers write into jobs is shown exactly, and nothing of it runs.

use base64::Engine as _;
use dormouse_check::browser::Browser;
use serde_json::{Value, json};

use crate::console::{address, call, click, serve, show};

const MARKUP: &[&str] = &[
    "<img src=x onerror=\"window.ran=1\">",
    "\"><script>window.ran=1</script>",
    "javascript:window.ran=1",
    "${window.ran=1}{{window.ran=1}}",
    "</pre></main><iframe srcdoc=\"<script>top.ran=1</script>\">",
];

/// A text with what cannot be seen, and how it is shown.
const HIDDEN: (&str, &str) =
    ("a\u{202e}b\u{2066}c\u{0}d\u{feff}e", "aU+202EbU+2066cU+0000dU+FEFFe");

fn body_text(browser: &Browser) -> Value {
    browser.wait_for("document.querySelector('pre.body')?.textContent")
}

fn nothing_ran(browser: &Browser) {
    assert_eq!(browser.run("return window.ran ?? null", &[]), Value::Null);
    let strange = "document.querySelectorAll('main img, main script, main iframe').length";
    assert_eq!(browser.run(&format!("return {strange}"), &[]), json!(0));
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn markup_in_every_field_is_text() {
    let server = serve(&[]);
    let base = address(server.addr);
    let browser = Browser::start();
    for text in MARKUP {
        let topic = "a;b.$_():+";
        let put = json!({"text": text, "key": text, "group": text, "headers": {"x": text},
            "attempts_max": 1});
        let id = call(server.addr, "POST", &format!("/v1/topics/{topic}/jobs"), &put)["id"].clone();
        let leased = call(server.addr, "POST", &format!("/v1/topics/{topic}/reserve"), &json!({}));
        let token = &leased["jobs"][0]["token"];
        call(server.addr, "POST", "/v1/nack", &json!({"token": token, "error": text}));
        let id = id.as_str().unwrap();
        show(&browser, &base, &format!("#/j/{id}"), &format!("Job {id}"));
        assert_eq!(body_text(&browser), json!(text));
        // Key, group, header, error, body.
        let shown = format!(
            "document.querySelector('main').textContent.split({}).length - 1 >= 5",
            json!(text)
        );
        browser.wait_for(&shown);
        show(&browser, &base, "#/t/a%3Bb.%24_()%3A%2B/jobs?state=dead", topic);
        browser.wait_for_text(text);
        nothing_ran(&browser);
    }
    // In the address, too.
    show(&browser, &base, "#/t/%3Cimg%20src=x%20onerror=window.ran=1%3E", "<img");
    browser.wait_for_text("<img src=x onerror=window.ran=1>");
    assert_eq!(browser.run("return window.ran ?? null", &[]), Value::Null);
}

/// What cannot be seen, in every field that takes it; lists and dialogs, too.
#[test]
fn hidden_characters_are_named_everywhere() {
    let server = serve(&[]);
    let base = address(server.addr);
    let browser = Browser::start();
    let (hidden, shown) = HIDDEN;
    let put = json!({"text": hidden, "key": hidden, "group": hidden, "headers": {"x": hidden},
        "attempts_max": 1});
    let id = call(server.addr, "POST", "/v1/topics/t/jobs", &put)["id"].clone();
    let id = id.as_str().unwrap();
    let leased = call(server.addr, "POST", "/v1/topics/t/reserve", &json!({}));
    let nack = json!({"token": leased["jobs"][0]["token"], "error": hidden});
    call(server.addr, "POST", "/v1/nack", &nack);
    let seen = |place: &str, times: usize| {
        browser.wait_for(&format!(
            "document.querySelector({})?.textContent.split({}).length - 1 >= {times}",
            json!(place),
            json!(shown)
        ));
        // Nothing of it stands in the page as it came.
        let raw = "/[\\u202e\\u2066\\u0000\\ufeff]/.test(document.body.textContent)";
        assert_eq!(browser.run(&format!("return {raw}"), &[]), json!(false));
    };
    show(&browser, &base, &format!("#/j/{id}"), &format!("Job {id}"));
    // Key, group, header, error, why it is dead, body.
    seen("main", 5);
    click(&browser, "Cancel");
    seen("dialog", 1);
    click(&browser, "Keep as it is");
    show(&browser, &base, "#/t/t/jobs?state=dead", "t");
    seen("main table", 2);
    show(&browser, &base, "#/t/t/dead", "t");
    seen("main table", 1);
    click(&browser, "Revive");
    seen("dialog", 1);
    click(&browser, "Keep as they are");
    // Bytes that are no text, also as a key.
    let base64 = base64::engine::general_purpose::STANDARD.encode([0xff, 0x00, 0xfe]);
    let put = json!({"base64": base64, "delay": "1h"});
    let id = call(server.addr, "POST", "/v1/topics/t/jobs", &put)["id"].clone();
    let id = id.as_str().unwrap();
    show(&browser, &base, &format!("#/j/{id}"), &format!("Job {id}"));
    assert!(body_text(&browser).as_str().unwrap().starts_with("00000000  ff 00 fe"));
    click(&browser, "Cancel");
    browser.wait_for("document.querySelector('dialog pre.body')");
    nothing_ran(&browser);
}

#[test]
fn bodies_are_shown_exactly() {
    let server = serve(&[]);
    let base = address(server.addr);
    let browser = Browser::start();
    let put = |body: &Value| {
        call(server.addr, "POST", "/v1/topics/t/jobs", body)["id"].as_str().unwrap().to_owned()
    };
    let open = |id: &str| show(&browser, &base, &format!("#/j/{id}"), &format!("Job {id}"));

    open(&put(&json!({"text": HIDDEN.0, "key": HIDDEN.0})));
    assert_eq!(body_text(&browser), json!(HIDDEN.1));

    // Numbers beyond 2^53, names that JavaScript would sort, numbers it would write otherwise.
    let exact = "{\"b\": 18446744073709551616, \"2\": 1.50, \"1\": 1e3, \"b\": -0}";
    let reply = crate::process::request(
        server.addr,
        "POST",
        "/v1/topics/t/jobs",
        &[],
        &format!("{{\"body\": {exact}}}"),
    );
    let id: Value = serde_json::from_str(&reply.body).unwrap();
    open(id["id"].as_str().unwrap());
    let pretty = "{\n  \"b\": 18446744073709551616,\n  \"2\": 1.50,\n  \"1\": 1e3,\n  \"b\": -0\n}";
    assert_eq!(body_text(&browser), json!(pretty));
    click(&browser, "raw");
    browser
        .wait_for(&format!("document.querySelector('pre.body').textContent === {}", json!(exact)));

    let deep = format!("{}1{}", "[".repeat(64), "]".repeat(64));
    let reply = crate::process::request(
        server.addr,
        "POST",
        "/v1/topics/t/jobs",
        &[],
        &format!("{{\"body\": {deep}}}"),
    );
    let id: Value = serde_json::from_str(&reply.body).unwrap();
    open(id["id"].as_str().unwrap());
    click(&browser, "raw");
    browser
        .wait_for(&format!("document.querySelector('pre.body').textContent === {}", json!(deep)));

    // Bytes that are no text.
    let bytes = base64::engine::general_purpose::STANDARD.encode([0xff, 0xfe, 0x00, 0x41]);
    open(&put(&json!({"base64": bytes})));
    assert!(body_text(&browser).as_str().unwrap().starts_with("00000000  ff fe 00 41"));

    // A body of 1 MiB begins to show at once; all of it on request.
    let long = "0123456789abcdef".repeat(64 * 1024);
    open(&put(&json!({"text": long})));
    assert_eq!(body_text(&browser).as_str().unwrap().len(), 64 * 1024);
    click(&browser, "Show all");
    browser.wait_for("document.querySelector('pre.body').textContent.length === 1048576");
    nothing_ran(&browser);
}
