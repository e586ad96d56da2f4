//! Wrong addresses, filters and servers get a message where the reader looks, never a blank page.

use std::time::Duration;

use dormouse_check::browser::Browser;
use serde_json::json;

use crate::console::{address, call, faults, fill, serve, show, wait_for_title, write};
use crate::gateway::{Gateway, Mood};

#[test]
fn wrong_addresses_and_filters_are_explained_in_place() {
    let server = serve(&[]);
    fill(server.addr);
    let base = address(server.addr);
    let browser = Browser::start();
    for (hash, title, text) in [
        ("#/%zz", "No such page", "There is nothing at"),
        ("#/constructor", "No such page", "There is nothing at"),
        ("#/j/abc", "Job", "is no id of a job"),
        ("#/j/99999999999999999999", "Job", "99999999999999999999"),
        ("#/j/999999", "Job", "was never put"),
        ("#/t/orders/what", "orders", "A topic has no part"),
        ("#/t/orders/jobs?state=lost", "orders", "There is no state"),
        ("#/t/orders/jobs?state=delayed&cursor=rubbish", "orders", "invalid"),
        ("#/t/orders/jobs?state=delayed&from=soon", "orders", "write a span"),
        ("#/t/orders/jobs?state=delayed&from=9999999999999999999999", "orders", "1970 and 3015"),
        ("#/t/orders/jobs?state=leased&from=1h", "orders", "cannot be asked for by time"),
        ("#/t/orders/jobs?state=ready&order=size", "orders", "There is no order"),
        ("#/t/orders/jobs?state=ready&newest=true", "orders", "for dead or done jobs"),
        ("#/t/nothing-here", "nothing-here", "There is no topic"),
        ("#/topics?sort=colour", "Topics", "There is no order"),
        ("#/tail?kind=sneezed", "Events", "There is no event"),
        ("#/schedules/reports/none", "none", "no"),
    ] {
        show(&browser, &base, hash, title);
        browser.wait_for_text(text);
    }
    show(&browser, &base, "#/put", "Put a job");
    write(&browser, "#put-body", "{\"a\": }");
    browser.wait_for("document.querySelector('#put-body').getAttribute('aria-invalid') === 'true'");
    // A time that no calendar has.
    let when = "main input[placeholder=now]";
    write(&browser, when, "99999999999999999999d");
    browser.wait_for_text("1970 and 3015");
    write(&browser, when, "123456789012345678901234567890");
    browser.wait_for_text("1970 and 3015");
    show(&browser, &base, "#/k/orders/ord-1", "Job");
    crate::console::click(&browser, "Reschedule");
    write(&browser, "dialog input", "9999999999999999d");
    browser.wait_for("document.querySelector('dialog').textContent.includes('1970 and 3015')");
    show(&browser, &base, "#/schedules/reports/nightly", "nightly");
    write(&browser, "input[placeholder='2027-01-01']", "9999999999999999d");
    crate::console::click(&browser, "Count the ticks");
    browser.wait_for_text("1970 and 3015");
    assert_eq!(browser.log().iter().filter(|line| !line.contains("Failed to load")).count(), 0);
}

/// Both are names of topics, and a step in a path for a browser.
#[test]
fn topics_that_look_like_steps_break_nothing() {
    let server = serve(&[]);
    fill(server.addr);
    for topic in ["%2E%2E", "%2E"] {
        call(server.addr, "POST", &format!("/v1/topics/{topic}/jobs"), &json!({"text": "x"}));
    }
    let base = address(server.addr);
    let browser = Browser::start();
    show(&browser, &base, "#/topics", "Topics");
    browser.wait_for_text("command line only");
    browser.wait_for_text("orders");
    show(&browser, &base, "#/", "Overview");
    browser.wait_for("document.querySelector('.figures')");
    show(&browser, &base, "#/t/..", "..");
    browser.wait_for_text("use the command line");
    assert_eq!(faults(&browser), Vec::<String>::new());
}

#[test]
fn a_server_that_accepts_and_never_answers_gets_a_banner() {
    let server = serve(&[]);
    fill(server.addr);
    let gateway = Gateway::start(server.addr, "");
    let base = address(gateway.addr);
    let browser = Browser::start();
    show(&browser, &base, "#/", "Overview");
    browser.wait_for("document.querySelector('.figures')");
    gateway.becomes(Mood::Hung);
    browser.wait_for("document.querySelector('.banner')");
    browser.wait_for_text("What you see is from before");
    gateway.becomes(Mood::Good);
    browser.wait_for("!document.querySelector('.banner')");
    // A first visit meets it, too.
    gateway.becomes(Mood::Hung);
    browser.run("location.reload(); return null", &[]);
    browser.wait_for_text("The server does not answer.");
    gateway.becomes(Mood::Good);
    wait_for_title(&browser, "Overview");
}

#[test]
fn answers_slower_than_the_interval_are_shown() {
    let server = serve(&[]);
    fill(server.addr);
    let gateway = Gateway::start(server.addr, "");
    gateway.becomes(Mood::Slow(Duration::from_millis(2500)));
    let browser = Browser::start();
    show(&browser, &address(gateway.addr), "#/t/mails", "mails");
    let ready = "[...document.querySelectorAll('.figures a')].find((one) => \
         one.textContent.includes('ready')).querySelector('strong').textContent";
    browser.wait_for(&format!("{ready} === '17'"));
    call(server.addr, "POST", "/v1/topics/mails/jobs", &json!({"text": "one more"}));
    browser.wait_for(&format!("{ready} === '18'"));
}

#[test]
fn it_works_below_a_path_and_survives_a_server_that_talks_nonsense() {
    let server = serve(&[]);
    fill(server.addr);
    let gateway = Gateway::start(server.addr, "/queue");
    let base = format!("http://{}/queue/ui/", gateway.addr);
    let browser = Browser::start();
    show(&browser, &base, "#/topics", "Topics");
    browser.wait_for_text("orders");
    show(&browser, &base, "#/t/orders", "orders");
    assert_eq!(faults(&browser), Vec::<String>::new());

    gateway.becomes(Mood::Mad);
    browser.wait_for_text("Something answers that is not Dormouse");
    browser.open(&format!("{base}#/topics"));
    browser.run("location.reload(); return null", &[]);
    browser.wait_for_text("Something answers that is not Dormouse");
    gateway.becomes(Mood::Good);
    wait_for_title(&browser, "Topics");
    browser.wait_for("!document.querySelector('.banner')");
    browser.wait_for_text("orders");
}
