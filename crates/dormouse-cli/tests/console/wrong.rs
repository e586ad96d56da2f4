//! Wrong addresses, filters and servers get a message where the reader looks, never a blank page.

use std::sync::atomic::Ordering;

use dormouse_check::browser::Browser;

use crate::console::{address, fill, serve, show, wait_for_title};
use crate::gateway::Gateway;

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
        ("#/t/nothing-here", "nothing-here", "There is no topic"),
        ("#/topics?sort=colour", "Topics", "There is no order"),
        ("#/tail?kind=sneezed", "Events", "There is no event"),
        ("#/schedules/reports/none", "none", "no"),
    ] {
        show(&browser, &base, hash, title);
        browser.wait_for_text(text);
    }
    show(&browser, &base, "#/put", "Put a job");
    let write = "const area = document.querySelector('#put-body'); area.value = '{\"a\": }'; \
                 area.dispatchEvent(new Event('input', {bubbles: true})); return null";
    browser.run(write, &[]);
    browser.wait_for("document.querySelector('#put-body').getAttribute('aria-invalid') === 'true'");
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
    assert_eq!(browser.log(), Vec::<String>::new());

    gateway.is_mad.store(true, Ordering::Relaxed);
    browser.wait_for_text("Something answers that is not Dormouse");
    browser.open(&format!("{base}#/topics"));
    browser.run("location.reload(); return null", &[]);
    browser.wait_for_text("Something answers that is not Dormouse");
    gateway.is_mad.store(false, Ordering::Relaxed);
    wait_for_title(&browser, "Topics");
    browser.wait_for("!document.querySelector('.banner')");
    browser.wait_for_text("orders");
}
