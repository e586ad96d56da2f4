//! Every screen, in both schemes, on a wide and on a narrow window.

use dormouse_check::browser::Browser;
use serde_json::json;

use crate::console::{SCREENS, address, faults, fill, pictures, serve, show};

/// Shows all screens in one scheme and width, and judges what the browser noticed.
fn check(scheme: &str, width: u32) {
    let server = serve(&[]);
    fill(server.addr);
    let base = address(server.addr);
    let browser = Browser::start();
    browser.show_as(width, 900, scheme);
    for (name, hash, title) in SCREENS {
        show(&browser, &base, hash, title);
        let wide = browser.run("return document.documentElement.scrollWidth", &[]);
        assert!(wide.as_u64().unwrap() <= u64::from(width), "{name} is {wide} wide at {width}");
        browser.screenshot(&pictures().join(format!("{name}-{scheme}-{width}.png")));
    }
    // Refusals of the policy are errors of the console, too.
    assert_eq!(faults(&browser), Vec::<String>::new(), "{scheme} {width}");
    let origin = base.trim_end_matches("ui/");
    let elsewhere: Vec<String> = browser
        .requests()
        .into_iter()
        .filter(|url| {
            // The browser's own first page is none of ours.
            !["data:", "chrome:", origin].iter().any(|known| url.starts_with(known))
        })
        .collect();
    assert_eq!(elsewhere, Vec::<String>::new(), "{scheme} {width}");
}

#[test]
fn every_screen_is_clean_in_light_and_wide() {
    check("light", 1280);
}

#[test]
fn every_screen_is_clean_in_light_and_narrow() {
    check("light", 360);
}

#[test]
fn every_screen_is_clean_in_dark_and_wide() {
    check("dark", 1280);
}

#[test]
fn every_screen_is_clean_in_dark_and_narrow() {
    check("dark", 360);
}

/// The policy must be one that these tests would notice.
#[test]
fn a_breach_of_the_policy_would_be_noticed() {
    let server = serve(&[]);
    let browser = Browser::start();
    show(&browser, &address(server.addr), "#/", "Overview");
    assert_eq!(faults(&browser), Vec::<String>::new());
    let breach = "document.body.insertAdjacentHTML('beforeend', '<b>no</b>')";
    let outcome = browser.run(
        &format!("try {{ {breach}; return 'it ran' }} catch (error) {{ return error.name }}"),
        &[],
    );
    assert_eq!(outcome, json!("TypeError"), "Trusted Types are not required");
    browser.run(
        "const style = document.createElement('style'); style.textContent = 'b {}'; \
         document.head.append(style); return null",
        &[],
    );
    let log = browser.log();
    assert!(log.iter().any(|line| line.contains("Content Security Policy")), "{log:?}");
}

/// What a new server shows: how to make the first job.
#[test]
fn an_empty_server_teaches() {
    let server = serve(&[]);
    let base = address(server.addr);
    let browser = Browser::start();
    show(&browser, &base, "#/", "Overview");
    browser.wait_for_text("Put the first one");
    for (hash, title, text) in [
        ("#/topics", "Topics", "No topic yet."),
        ("#/locks", "Locks", "No lock is held."),
        ("#/schedules", "Schedules", "No schedule."),
    ] {
        show(&browser, &base, hash, title);
        browser.wait_for_text(text);
    }
    // The line to copy names this server.
    show(&browser, &base, "#/topics", "Topics");
    let addr = json!(server.addr.to_string());
    browser.wait_for(&format!("document.querySelector('code').textContent.includes({addr})"));
    assert_eq!(faults(&browser), Vec::<String>::new());
}
