//! Every screen, in both schemes, on a wide and on a narrow window.

use std::time::{Duration, Instant};

use dormouse_check::browser::{Browser, key};
use serde_json::{Value, json};

use crate::console::{DIALOGS, SCREENS, address, call, faults, fill, open, pictures, serve, show};

/// Long enough for a line.
const BUSY: Duration = Duration::from_secs(20);

/// Shows all screens in one scheme and width, and judges what the browser noticed.
fn check(scheme: &str, width: u32) {
    let server = serve(&[]);
    fill(server.addr);
    let base = address(server.addr);
    let browser = Browser::start();
    browser.show_as(width, 900, scheme);
    for (name, hash, title) in SCREENS {
        show(&browser, &base, hash, title);
        if *name == "overview" {
            // The first seconds have no rates.
            browser.wait_for("document.querySelectorAll('.chart svg').length === 2");
        }
        let wide = browser.run("return document.documentElement.scrollWidth", &[]);
        assert!(wide.as_u64().unwrap() <= u64::from(width), "{name} is {wide} wide at {width}");
        browser.screenshot(&pictures().join(format!("{name}-{scheme}-{width}.png")));
    }
    for (name, hash, title, buttons) in DIALOGS {
        show(&browser, &base, hash, title);
        open(&browser, buttons);
        let fits = "const box = document.querySelector('dialog').getBoundingClientRect(); \
                    return box.left >= 0 && box.right <= innerWidth && box.bottom <= innerHeight";
        assert_eq!(browser.run(fits, &[]), json!(true), "{name} at {width}");
        browser.screenshot(&pictures().join(format!("{name}-{scheme}-{width}.png")));
        browser.press(key::ESCAPE);
        browser.wait_for("!document.querySelector('dialog')");
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

/// From the address to the figures, on a server that holds something.
#[test]
fn the_first_paint_comes_soon() {
    let server = serve(&[]);
    fill(server.addr);
    let browser = Browser::start();
    let start = Instant::now();
    browser.open(&address(server.addr));
    browser.wait_for("document.querySelector('.figures')");
    let whole = start.elapsed();
    let paint =
        browser.wait_for("performance.getEntriesByName('first-contentful-paint')[0]?.startTime");
    println!("first paint after {paint} ms, figures after {} ms", whole.as_millis());
    // The bar is 1 s on a machine with nothing else to do; this one may be busy.
    assert!(paint.as_f64().unwrap() < 3_000.0, "{paint} ms");
}

/// What a server with work to do looks like.
#[test]
fn a_busy_server_shows_its_rates() {
    let server = serve(&[]);
    fill(server.addr);
    let browser = Browser::start();
    browser.show_as(1280, 900, "light");
    show(&browser, &address(server.addr), "#/", "Overview");
    let start = Instant::now();
    for round in 1..u64::MAX {
        if start.elapsed() > BUSY {
            break;
        }
        let jobs: Vec<Value> = (0..8 + round % 5).map(|_| json!({"text": "mail"})).collect();
        call(server.addr, "POST", "/v1/topics/mails/jobs", &json!(jobs));
        let leased = call(server.addr, "POST", "/v1/topics/mails/reserve", &json!({"max": 20}));
        for job in leased["jobs"].as_array().unwrap() {
            call(server.addr, "POST", "/v1/ack", &json!({"token": job["token"]}));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    browser.wait_for("document.querySelector('.line.ink-dusk')?.getTotalLength() > 20");
    browser.screenshot(&pictures().join("overview-busy.png"));
    assert_eq!(faults(&browser), Vec::<String>::new());
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
