//! Who may only look sees no button, and the server refuses what is sent by hand.

use dormouse_check::browser::{Browser, key};
use serde_json::{Value, json};

use crate::console::{SCREENS, address, call, faults, fill, serve, show, wait_for_title};
use crate::process::{Server, request, run};

/// Buttons that change something, wherever they are.
const CHANGING: &[&str] = &[
    "Run now",
    "Cancel",
    "Kill",
    "Revive",
    "Pause",
    "Resume",
    "Put",
    "Reschedule",
    "Remove",
    "Save",
    "Break",
    "Back up",
    "Many jobs",
    "Skip",
    "Make ",
    "Give ",
];

/// All screens, and no button that changes anything.
fn only_looks(browser: &Browser, base: &str) {
    for (name, hash, title) in SCREENS.iter().filter(|(name, ..)| *name != "put") {
        show(browser, base, hash, title);
        let found = "[...document.querySelectorAll('main button, main summary')] \
             .map((one) => one.textContent.trim())";
        let buttons = browser.run(&format!("return {found}"), &[]);
        for button in buttons.as_array().unwrap() {
            let text = button.as_str().unwrap();
            assert!(!CHANGING.iter().any(|word| text.starts_with(word)), "{name}: {text}");
        }
        assert_eq!(
            browser.run("return document.querySelectorAll('nav a[href=\"#/put\"]').length", &[]),
            json!(0)
        );
    }
}

/// A new token, and its table in the configuration.
fn token(name: &str, scope: &str) -> (String, String) {
    let ended = run(&["config", "token", "--name", name, "--scope", scope]);
    let token = ended.stderr.split_once("once: ").unwrap().1.lines().next().unwrap().to_owned();
    (token, format!("{}\n", ended.stdout))
}

#[test]
fn view_mode_has_no_buttons_and_refuses_the_console() {
    let server = serve(&["--ui", "view"]);
    fill(server.addr);
    let browser = Browser::start();
    only_looks(&browser, &address(server.addr));
    assert_eq!(faults(&browser), Vec::<String>::new());
    let pause = |headers: &[(&str, &str)]| {
        request(server.addr, "POST", "/v1/topics/orders/pause", headers, "{}").status
    };
    assert_eq!(pause(&[("X-Dormouse-Ui", "1")]), 403);
    assert_eq!(pause(&[]), 200);
}

#[test]
fn a_token_that_only_reads_has_no_buttons() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("dormouse.toml");
    let (reader, table) = token("viewer", "viewer:*");
    let (admin, more) = token("root", "admin:*");
    std::fs::write(&config, table + &more).unwrap();
    let server = Server::start(&["--backend", "memory", "--config", config.to_str().unwrap()]);
    let bearer = format!("Bearer {admin}");
    let put = json!({"text": "x", "delay": "1h"}).to_string();
    let headers = [("Authorization", bearer.as_str())];
    assert_eq!(request(server.addr, "POST", "/v1/topics/orders/jobs", &headers, &put).status, 201);

    let base = address(server.addr);
    let browser = Browser::start();
    browser.open(&base);
    browser.wait_for_text("Sign in");
    browser.wait_for("document.activeElement.type === 'password'");
    browser.press(&format!("wrong{}", key::ENTER));
    browser.wait_for("document.querySelector('.note.is-bad')");
    browser.run("document.querySelector('input[type=password]').select(); return null", &[]);
    browser.press(&format!("{reader}{}", key::ENTER));
    wait_for_title(&browser, "Overview");
    for (hash, title) in [("#/topics", "Topics"), ("#/t/orders", "orders"), ("#/j/1", "Job 1")] {
        show(&browser, &base, hash, title);
        let text = browser.run("return document.querySelector('main').innerText", &[]);
        for word in ["Run now", "Cancel", "Kill", "Pause", "Many jobs", "Put a"] {
            assert!(!text.as_str().unwrap().contains(word), "{hash}: {word}");
        }
    }
    let bearer = format!("Bearer {reader}");
    let reply = request(server.addr, "DELETE", "/v1/jobs/1", &[("Authorization", &bearer)], "");
    assert!(reply.status == 403 || reply.status == 404, "{}", reply.status);
    // The token is in the tab's memory, not in the address or a cookie.
    assert_eq!(browser.run("return document.cookie", &[]), json!(""));
    assert_eq!(
        browser.run(
            "return Object.keys(localStorage).filter((name) => name.includes('token')).length",
            &[]
        ),
        json!(0)
    );
}

/// A server with one token, the console signed in with it.
fn with_token(scopes: &[&str], check: impl FnOnce(&Browser, &Server, &str)) {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("dormouse.toml");
    let (secret, table) = token("some", scopes[0]);
    let list = scopes.iter().map(|scope| format!("{scope:?}")).collect::<Vec<_>>().join(", ");
    let one = format!("[{:?}]", scopes[0]);
    assert!(table.contains(&one), "{table}");
    let (admin, more) = token("root", "admin:*");
    std::fs::write(&config, table.replace(&one, &format!("[{list}]")) + &more).unwrap();
    let server = Server::start(&["--backend", "memory", "--config", config.to_str().unwrap()]);
    let bearer = format!("Bearer {admin}");
    for topic in ["orders", "mails"] {
        let path = format!("/v1/topics/{topic}/jobs");
        let headers = [("Authorization", bearer.as_str())];
        assert_eq!(request(server.addr, "POST", &path, &headers, r#"{"text": "x"}"#).status, 201);
    }
    let browser = Browser::start();
    browser.open(&address(server.addr));
    browser.wait_for("document.activeElement.type === 'password'");
    browser.press(&format!("{secret}{}", key::ENTER));
    wait_for_title(&browser, "Overview");
    check(&browser, &server, &address(server.addr));
}

#[test]
fn a_right_on_one_topic_gives_buttons_there_only() {
    with_token(&["viewer:*", "operator:mails"], |browser, _, base| {
        show(browser, base, "#/t/mails", "mails");
        browser.wait_for_text("Pause");
        show(browser, base, "#/t/orders", "orders");
        browser.wait_for("document.querySelector('.figures')");
        let text = browser.run("return document.querySelector('main').innerText", &[]);
        for word in ["Pause", "Many jobs", "Put a job"] {
            assert!(!text.as_str().unwrap().contains(word), "{word}");
        }
        // Another token on this device sees nothing of these figures.
        browser.run("window.before = Object.keys(sessionStorage).length; return null", &[]);
        crate::console::click(browser, "Sign out");
        browser.wait_for_text("You signed out.");
        assert_eq!(browser.run("return Object.keys(sessionStorage).length", &[]), json!(0));
    });
}

#[test]
fn a_missing_right_is_named() {
    with_token(&["get,list:*"], |browser, _, base| {
        browser.wait_for_text("Figures of the server need the right stats");
        show(browser, base, "#/server", "Server");
        browser.wait_for_text("need the right inspect");
    });
}

#[test]
fn other_sites_cannot_use_a_browser_against_an_open_server() {
    let server = serve(&[]);
    let status =
        |headers: &[(&str, &str)]| request(server.addr, "GET", "/v1/stats", headers, "").status;
    assert_eq!(status(&[("Sec-Fetch-Site", "cross-site")]), 403);
    assert_eq!(status(&[("Sec-Fetch-Site", "same-origin")]), 200);
    assert_eq!(status(&[("Origin", "http://evil.example")]), 403);
    call(server.addr, "GET", "/v1/stats", &Value::Null);
}
