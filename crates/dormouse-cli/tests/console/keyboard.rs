//! Flows by the keyboard alone.

use dormouse_check::browser::{Browser, key};
use serde_json::json;

use crate::console::{address, call, fill, serve, show, wait_for_title};
use crate::process::request;

const FOCUS: &str = "document.activeElement.textContent.trim()";

fn focus_is(browser: &Browser, text: &str) {
    browser.wait_for(&format!("{FOCUS} === {}", json!(text)));
}

/// Presses Tab until the control with this text has the focus.
fn tab_to(browser: &Browser, text: &str) {
    for _ in 0..200 {
        let here = browser.run(&format!("return {FOCUS}"), &[]);
        if here.as_str().is_some_and(|here| here.starts_with(text)) {
            return;
        }
        browser.press(key::TAB);
    }
    panic!("no control {text:?} can be reached by Tab");
}

#[test]
fn a_job_is_found_run_and_cancelled_by_keys() {
    let server = serve(&[]);
    fill(server.addr);
    let browser = Browser::start();
    browser.show_as(1280, 900, "light");
    show(&browser, &address(server.addr), "#/", "Overview");

    browser.press("gt");
    wait_for_title(&browser, "Topics");
    browser.press("jjj");
    browser.wait_for("document.activeElement.innerText.startsWith('orders')");
    browser.press(key::ENTER);
    wait_for_title(&browser, "orders");

    let job = call(server.addr, "GET", "/v1/topics/orders/keys/ord-7", &json!(null));
    let id = job["id"].as_str().unwrap();
    browser.press("/");
    browser.wait_for("document.activeElement.id === 'search'");
    browser.press(&format!("{id}{}", key::ENTER));
    wait_for_title(&browser, &format!("Job {id}"));
    browser.press("r");
    browser.wait_for_text(&format!("Job {id} is due now."));
    browser.wait_for_text("ready");

    // The question has its focus on the harmless button; Escape keeps the job, too.
    browser.press("c");
    focus_is(&browser, "Keep as it is");
    browser.press(key::ESCAPE);
    browser.wait_for("!document.querySelector('dialog')");
    assert_eq!(request(server.addr, "GET", &format!("/v1/jobs/{id}"), &[], "").status, 200);
    browser.press("c");
    focus_is(&browser, "Keep as it is");
    browser.press(key::TAB);
    focus_is(&browser, "Cancel the job");
    browser.press(key::ENTER);
    browser.wait_for_text("It was here until a moment ago");
    assert_eq!(request(server.addr, "GET", &format!("/v1/jobs/{id}"), &[], "").status, 404);
}

#[test]
fn a_job_is_put_by_keys_with_its_numbers_unchanged() {
    let server = serve(&[]);
    let browser = Browser::start();
    show(&browser, &address(server.addr), "#/", "Overview");
    browser.press("gp");
    wait_for_title(&browser, "Put a job");
    // Letters are text in a field, not keys.
    browser.press(key::TAB);
    browser.press("great");
    browser.press(key::TAB);
    browser.press("1h 30m");
    browser.wait_for_text("in 1h");
    browser.run("document.querySelector('#put-body').focus(); return null", &[]);
    browser.press("{\"n\": 18446744073709551616, \"2\": 1, \"1\": 2.50}");
    tab_to(&browser, "Put the job");
    browser.press(key::ENTER);
    browser.wait_for_text("created: job 1, delayed");
    let stored = request(server.addr, "GET", "/v1/jobs/1", &[], "").body;
    assert!(stored.contains("{\"n\": 18446744073709551616, \"2\": 1, \"1\": 2.50}"), "{stored}");
}

#[test]
fn dead_jobs_are_checked_and_revived_by_keys() {
    let server = serve(&[]);
    fill(server.addr);
    let browser = Browser::start();
    browser.show_as(1280, 900, "light");
    show(&browser, &address(server.addr), "#/t/orders/jobs?state=dead", "orders");
    browser.wait_for("document.querySelectorAll('main tr[data-row]').length === 12");
    browser.press("jx");
    browser.wait_for("document.querySelectorAll('tr.is-checked').length === 1");
    browser.press("jjj");
    browser.press(&format!("{}X", key::SHIFT));
    browser.wait_for("document.querySelectorAll('tr.is-checked').length === 4");
    tab_to(&browser, "Revive: 4 checked");
    browser.press(key::ENTER);
    focus_is(&browser, "Keep as they are");
    // The topic's name must be written before it can go on.
    assert_eq!(
        browser.run("return document.querySelector('dialog [type=submit]').disabled", &[]),
        json!(true)
    );
    browser.run("document.querySelector('dialog input').focus(); return null", &[]);
    browser.press(&format!("orders{}", key::ENTER));
    browser.wait_for_text("4 done, 0 failed, 0 left.");
    let topic = call(server.addr, "GET", "/v1/topics/orders", &json!(null));
    assert_eq!(topic["dead"], json!(8), "{topic}");
}

/// A letter without a row that was chosen must not hit the first one.
#[test]
fn keys_without_a_row_touch_no_row() {
    let server = serve(&[]);
    fill(server.addr);
    let browser = Browser::start();
    let base = address(server.addr);
    show(&browser, &base, "#/t/orders/jobs?state=dead", "orders");
    browser.wait_for("document.querySelectorAll('main tr[data-row]').length === 12");
    browser.press("vxc");
    browser.press("gd");
    browser.wait_for_text("card declined");
    assert_eq!(browser.run("return location.hash", &[]), json!("#/t/orders/dead"));
    let topic = call(server.addr, "GET", "/v1/topics/orders", &json!(null));
    assert_eq!(topic["dead"], json!(12), "{topic}");
    show(&browser, &base, "#/t/orders/jobs?state=delayed", "orders");
    browser.wait_for("document.querySelectorAll('main tr[data-row]').length > 9");
    browser.press("rx");
    assert_eq!(
        browser.run("return document.querySelectorAll('tr.is-checked, dialog').length", &[]),
        json!(0)
    );
    let topic = call(server.addr, "GET", "/v1/topics/orders", &json!(null));
    assert_eq!(topic["ready"], json!(0), "{topic}");
    show(&browser, &base, "#/", "Overview");
    browser.press("gd");
    wait_for_title(&browser, "Topics");
    assert_eq!(browser.run("return location.hash", &[]), json!("#/topics?sort=dead"));
}

#[test]
fn keys_are_explained_and_can_be_switched_off() {
    let server = serve(&[]);
    let browser = Browser::start();
    show(&browser, &address(server.addr), "#/", "Overview");
    browser.press("?");
    focus_is(&browser, "Close");
    browser.wait_for_text("Keys of one letter are on");
    browser.run("document.querySelector('dialog input[type=checkbox]').focus(); return null", &[]);
    browser.press(key::SPACE);
    browser.press(key::ESCAPE);
    browser.wait_for("!document.querySelector('dialog')");
    browser.press("gt");
    // They did nothing: the next key that still works shows the same screen.
    browser.press("?");
    focus_is(&browser, "Close");
    assert_eq!(browser.run("return document.title", &[]), json!("Overview – Dormouse"));
}
