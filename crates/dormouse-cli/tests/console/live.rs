//! Figures that follow the server: over an outage, and in many tabs.

use dormouse_check::browser::Browser;
use serde_json::json;

use crate::console::{address, call, serve, show};
use crate::process::{Server, command};

/// The number of delayed jobs on the overview.
const DELAYED: &str = "[...document.querySelectorAll('.figures > *')] \
    .find((one) => one.textContent.includes('delayed'))?.querySelector('strong').textContent";

fn wait_for_delayed(browser: &Browser, count: usize) {
    browser.wait_for(&format!("{DELAYED} === '{count}'"));
}

#[test]
fn a_server_that_went_and_came_back_shows_right_figures() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    let put = |server: &Server| {
        call(server.addr, "POST", "/v1/topics/t/jobs", &json!({"text": "x", "delay": "1h"}))
    };
    let server = Server::start(&["--data", data]);
    put(&server);
    let base = address(server.addr);
    let browser = Browser::start();
    show(&browser, &base, "#/", "Overview");
    wait_for_delayed(&browser, 1);

    let addr = server.addr.to_string();
    drop(server);
    browser.wait_for_text("The server does not answer.");
    // The page is still there, with what it knew.
    wait_for_delayed(&browser, 1);

    let args = ["serve", "--http", &addr, "--resp", "off", "--data", data];
    let server = Server::ready(command(&args));
    put(&server);
    put(&server);
    browser.wait_for("!document.querySelector('.banner')");
    wait_for_delayed(&browser, 3);
}

/// The figures of the topics on a page come with the one stream of the browser.
#[test]
fn one_viewer_sees_the_lines_of_topics() {
    let server = serve(&[]);
    call(server.addr, "POST", "/v1/topics/t/jobs", &json!({"text": "x", "delay": "1h"}));
    let browser = Browser::start();
    show(&browser, &address(server.addr), "#/topics", "Topics");
    browser.wait_for("document.querySelector('.spark polyline')?.points.length > 3");
}

#[test]
fn eight_tabs_all_answer() {
    let server = serve(&[]);
    let base = address(server.addr);
    let browser = Browser::start();
    let mut tabs = Vec::new();
    for _ in 0..8 {
        tabs.push(browser.new_tab());
        show(&browser, &base, "#/", "Overview");
    }
    let put = json!({"text": "x", "delay": "1h"});
    call(server.addr, "POST", "/v1/topics/t/jobs", &put);
    for tab in &tabs {
        browser.switch(tab);
        wait_for_delayed(&browser, 1);
        // A call of its own is answered, too: the streams have not taken all connections.
        browser.run("location.hash = '#/t/t'; return null", &[]);
        crate::console::wait_for_title(&browser, "t –");
        browser.run("location.hash = '#/'; return null", &[]);
    }
}
