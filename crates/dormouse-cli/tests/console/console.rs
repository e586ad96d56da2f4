//! A server with some jobs, and a browser that shows its console.

use std::net::SocketAddr;
use std::path::PathBuf;

use dormouse_check::browser::Browser;
use serde_json::{Value, json};

use crate::process::{Server, request};

/// Every screen with something on it: its address, and its title.
pub(crate) const SCREENS: &[(&str, &str, &str)] = &[
    ("overview", "#/", "Overview"),
    ("topics", "#/topics", "Topics"),
    ("topics-sorted", "#/topics?sort=dead&prefix=o", "Topics"),
    ("topic", "#/t/orders", "orders"),
    ("jobs-delayed", "#/t/orders/jobs?state=delayed", "orders"),
    ("jobs-dead", "#/t/orders/jobs?state=dead", "orders"),
    ("dead", "#/t/orders/dead", "orders"),
    ("topic-push", "#/t/orders/push", "orders"),
    ("topic-events", "#/t/orders/events", "orders"),
    ("topic-settings", "#/t/orders/settings", "orders"),
    ("topic-schedules", "#/t/reports/schedules", "reports"),
    ("job", "#/k/orders/ord-1", "Job 2"),
    ("job-dead", "#/k/orders/dead-1", "Job"),
    ("schedules", "#/schedules", "Schedules"),
    ("schedule", "#/schedules/reports/nightly", "nightly"),
    ("events", "#/tail", "Events"),
    ("locks", "#/locks", "Locks"),
    ("connections", "#/connections", "Connections"),
    ("put", "#/put?topic=orders", "Put a job"),
    ("server", "#/server", "Server"),
    ("nowhere", "#/nowhere", "No such page"),
];

/// Every kind of dialog: where it is, and the buttons that open it.
pub(crate) const DIALOGS: &[(&str, &str, &str, &[&str])] = &[
    ("dialog-help", "#/", "Overview", &["?"]),
    ("dialog-final", "#/k/orders/dead-1", "Job", &["Cancel"]),
    ("dialog-reschedule", "#/k/orders/ord-1", "Job", &["Reschedule"]),
    ("dialog-bulk", "#/t/orders/jobs?state=dead", "orders", &["Revive: all 12 dead"]),
    ("dialog-many", "#/t/orders", "orders", &["Many jobs ▾", "Purge 12 dead"]),
];

/// A call that must work.
pub(crate) fn call(addr: SocketAddr, method: &str, path: &str, body: &Value) -> Value {
    let reply = request(addr, method, path, &[], &body.to_string());
    assert!(reply.status < 300, "{method} {path}: {} {}", reply.status, reply.body);
    serde_json::from_str(&reply.body).unwrap_or_default()
}

/// Jobs in all states, a schedule, a lock, a paused topic.
pub(crate) fn fill(addr: SocketAddr) {
    let order = |n: u32| {
        let delay = 30 + n * 97 % 3500;
        let key = format!("ord-{n}");
        json!({"body": {"order": n, "total": "19.90"}, "delay": format!("{delay}s"), "key": key})
    };
    let orders: Vec<Value> = (0..90).map(order).collect();
    call(addr, "POST", "/v1/topics/orders/jobs", &json!(orders));
    let failing = |n: u32| json!({"text": "charge", "attempts_max": 1, "key": format!("dead-{n}")});
    let failing: Vec<Value> = (0..12).map(failing).collect();
    call(addr, "POST", "/v1/topics/orders/jobs", &json!(failing));
    let leased = call(addr, "POST", "/v1/topics/orders/reserve", &json!({"max": 12}));
    for (n, job) in leased["jobs"].as_array().unwrap().iter().enumerate() {
        let error = match n % 3 {
            0 => format!("timeout after {} ms calling https://pay.example/charge", 3000 + n),
            1 => "card declined: insufficient funds".to_owned(),
            _ => format!("connection refused (os error {n})"),
        };
        call(addr, "POST", "/v1/nack", &json!({"token": job["token"], "error": error}));
    }
    let mails: Vec<Value> = (0..20).map(|n| json!({"text": format!("mail {n}")})).collect();
    call(addr, "POST", "/v1/topics/mails/jobs", &json!(mails));
    call(addr, "POST", "/v1/topics/mails/reserve", &json!({"max": 3}));
    call(addr, "POST", "/v1/topics/exports/jobs", &json!({"text": "all", "delay": "6h"}));
    call(addr, "POST", "/v1/topics/exports/pause", &json!({"for": "12m"}));
    let nightly = json!({"cron": "0 3 * * *", "zone": "Europe/Berlin", "text": "make them"});
    call(addr, "PUT", "/v1/topics/reports/schedules/nightly", &nightly);
    call(addr, "POST", "/v1/locks/deploy/acquire", &json!({"owner": "ci-7", "ttl": "10m"}));
}

/// A server on a free port, with the options given besides.
pub(crate) fn serve(args: &[&str]) -> Server {
    Server::start(&[&["--backend", "memory"], args].concat())
}

pub(crate) fn address(addr: SocketAddr) -> String {
    format!("http://{addr}/ui/")
}

/// Shows a screen of the console, which is already open or not, and waits until it is whole.
pub(crate) fn show(browser: &Browser, base: &str, hash: &str, title: &str) {
    browser.open(&format!("{base}{hash}"));
    wait_for_title(browser, title);
}

pub(crate) fn wait_for_title(browser: &Browser, title: &str) {
    let title = json!(title);
    browser.wait_for(&format!(
        "document.title.startsWith({title}) && document.querySelector('main h1') && \
         !document.querySelector('[aria-busy]')"
    ));
}

/// Clicks the button with this text.
pub(crate) fn click(browser: &Browser, text: &str) {
    let text = json!(text);
    browser.wait_for(&format!(
        "(() => {{ const found = [...document.querySelectorAll('button, summary')].find((one) => \
         one.textContent.trim() === {text} && !one.disabled); found?.click(); return !!found; }})()"
    ));
}

/// Writes into a field as a person does, all at once.
pub(crate) fn write(browser: &Browser, selector: &str, text: &str) {
    browser.wait_for(&format!("document.querySelector({})", json!(selector)));
    let script = "const [selector, text] = arguments; \
                  const field = document.querySelector(selector); field.value = text; \
                  field.dispatchEvent(new Event('input', {bubbles: true})); return null";
    browser.run(script, &[json!(selector), json!(text)]);
}

/// Answers the question of a dialog: writes the topic's name, and clicks the button.
pub(crate) fn agree(browser: &Browser, topic: &str, button: &str) {
    write(browser, "dialog input", topic);
    let button = json!(button);
    browser.wait_for(&format!(
        "(() => {{ const found = document.querySelector('dialog [type=submit]'); \
         if (found?.disabled || found?.textContent.trim() !== {button}) return false; \
         found.click(); return true; }})()"
    ));
}

/// What the browser noticed and should not have. It also notes each answer that is a refusal; that
/// a topic is not pushed, or cannot be, is told by one.
pub(crate) fn faults(browser: &Browser) -> Vec<String> {
    let is_told =
        |line: &String| line.contains("Failed to load resource") && line.contains("/push -");
    browser.log().into_iter().filter(|line| !is_told(line)).collect()
}

/// Opens a dialog by its buttons.
pub(crate) fn open(browser: &Browser, buttons: &[&str]) {
    for button in buttons {
        click(browser, button);
    }
    browser.wait_for("document.querySelector('dialog[open]')");
}

/// Where pictures go: a build output, beside the target's others.
pub(crate) fn pictures() -> PathBuf {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_dormouse"));
    let target = program.parent().and_then(|profile| profile.parent()).unwrap();
    let directory = target.join("console-screenshots");
    std::fs::create_dir_all(&directory).unwrap();
    directory
}
