//! Every action of the console at least once, and what the server has after it.

use std::net::SocketAddr;

use dormouse_check::browser::{Browser, key};
use serde_json::{Value, json};

use crate::console::{address, agree, call, click, faults, fill, serve, show, write};
use crate::gateway::{Gateway, Mood};
use crate::process::{Server, request};

fn get(addr: SocketAddr, path: &str) -> Value {
    call(addr, "GET", path, &Value::Null)
}

/// A server with jobs, its console in a browser, and nothing that went wrong at the end.
fn check(screens: impl FnOnce(&Browser, SocketAddr, &str)) {
    let server = serve(&[]);
    fill(server.addr);
    let browser = Browser::start();
    browser.show_as(1280, 900, "light");
    screens(&browser, server.addr, &address(server.addr));
    assert_eq!(faults(&browser), Vec::<String>::new());
}

/// Says yes to the question of the open dialog.
fn submit(browser: &Browser) {
    browser.wait_for(
        "(() => { const found = document.querySelector('dialog [type=submit]:enabled'); \
         found?.click(); return !!found; })()",
    );
    browser.wait_for("!document.querySelector('dialog')");
}

#[test]
fn a_topic_is_paused_resumed_and_its_jobs_are_moved() {
    check(|browser, addr, base| {
        show(browser, base, "#/t/mails", "mails");
        click(browser, "Pause ▾");
        click(browser, "for 10 minutes");
        browser.wait_for_text("mails is paused.");
        assert_eq!(get(addr, "/v1/topics/mails")["paused"], json!(true));
        click(browser, "Resume");
        browser.wait_for_text("mails goes on.");
        assert_eq!(get(addr, "/v1/topics/mails")["paused"], json!(false));
        // What can be taken back has its way back beside it.
        click(browser, "Pause ▾");
        click(browser, "until it is resumed");
        click(browser, "Undo");
        browser.wait_for("document.querySelector('main summary')?.textContent === 'Pause ▾'");
        click(browser, "Many jobs ▾");
        click(browser, "Give 3 leased back");
        agree(browser, "mails", "Give leased jobs back");
        browser.wait_for_text("Give leased jobs back: 3 jobs.");
        show(browser, base, "#/t/exports", "exports");
        click(browser, "Many jobs ▾");
        click(browser, "Make 1 delayed ready");
        agree(browser, "exports", "Make delayed jobs ready");
        browser.wait_for_text("Make delayed jobs ready: 1 job.");
        assert_eq!(get(addr, "/v1/topics/exports")["ready"], json!(1));
    });
}

/// The number on the button is a promise: if there are more by then, nothing is removed.
#[test]
fn jobs_of_one_state_are_purged_and_no_more_than_were_seen() {
    let server = serve(&[]);
    fill(server.addr);
    let browser = Browser::start();
    let base = address(server.addr);
    show(&browser, &base, "#/t/orders", "orders");
    click(&browser, "Many jobs ▾");
    click(&browser, "Purge 12 dead");
    agree(&browser, "orders", "Purge dead jobs");
    browser.wait_for_text("Purge dead jobs: 12 jobs.");
    let topic = get(server.addr, "/v1/topics/orders");
    assert_eq!((&topic["dead"], &topic["delayed"]), (&json!(0), &json!(90)), "{topic}");

    show(&browser, &base, "#/t/mails", "mails");
    click(&browser, "Many jobs ▾");
    click(&browser, "Purge 17 ready");
    call(server.addr, "POST", "/v1/topics/mails/jobs", &json!({"text": "one more"}));
    agree(&browser, "mails", "Purge ready jobs");
    browser.wait_for("document.querySelector('.toast.is-bad')");
    assert_eq!(get(server.addr, "/v1/topics/mails")["ready"], json!(18));
}

#[test]
fn a_job_is_rescheduled_killed_revived_and_cancelled() {
    check(|browser, addr, base| {
        show(browser, base, "#/k/orders/ord-5", "Job");
        let id = get(addr, "/v1/topics/orders/keys/ord-5")["id"].clone();
        let job = || get(addr, &format!("/v1/jobs/{}", id.as_str().unwrap()));
        let before = job()["due_at"].clone();
        click(browser, "Reschedule");
        write(browser, "dialog input", "3d");
        browser.wait_for("document.querySelector('dialog').textContent.includes('in 3d')");
        submit(browser);
        browser.wait_for_text("has a new due time.");
        assert_ne!(job()["due_at"], before);
        click(browser, "Kill");
        click(browser, "Kill the job");
        browser.wait_for_text("is dead.");
        assert_eq!(job()["state"], json!("dead"));
        click(browser, "Revive");
        browser.wait_for_text("is ready, with new attempts.");
        assert_eq!(job()["state"], json!("ready"));
        // A way back would write another error over the one that was there.
        assert_eq!(
            browser.run("return document.querySelector('.toasts').innerText.includes('Undo')", &[]),
            json!(false)
        );
        assert_eq!(faults(browser), Vec::<String>::new());
        click(browser, "Cancel");
        click(browser, "Cancel the job");
        browser.wait_for_text("It was here until a moment ago");
        // That it is gone was told by a refusal.
        browser.log();
    });
}

#[test]
fn dead_jobs_of_one_cause_are_revived_and_others_cancelled() {
    check(|browser, addr, base| {
        show(browser, base, "#/t/orders/dead", "orders");
        browser.wait_for_text("timeout after # ms calling https://pay.example/charge");
        browser.wait_for_text("Looked at 12 of 12 dead jobs");
        let row = |word: &str, button: &str| {
            browser.wait_for(&format!(
                "(() => {{ const row = [...document.querySelectorAll('main tr[data-row]')] \
                 .find((one) => one.textContent.includes({})); \
                 const found = [...row?.querySelectorAll('button') ?? []] \
                 .find((one) => one.textContent === {}); found?.click(); return !!found; }})()",
                json!(word),
                json!(button)
            ));
        };
        row("timeout after", "Revive");
        browser.wait_for_text("Revive: 4 jobs");
        agree(browser, "orders", "Revive");
        browser.wait_for_text("4 done, 0 failed, 0 left.");
        click(browser, "Close");
        let topic = get(addr, "/v1/topics/orders");
        assert_eq!((&topic["dead"], &topic["ready"]), (&json!(8), &json!(4)), "{topic}");
        browser.wait_for("!document.querySelector('main').innerText.includes('timeout after')");
        row("card declined", "Cancel");
        agree(browser, "orders", "Cancel");
        browser.wait_for_text("4 done, 0 failed, 0 left.");
        click(browser, "Close");
        assert_eq!(get(addr, "/v1/topics/orders")["dead"], json!(4));
        row("connection refused", "Export");
        browser.wait_for_text("4 jobs written.");
    });
}

/// The console acts on the jobs of a cause: it must read errors as the server does.
#[test]
fn causes_are_those_of_the_server() {
    let errors = [
        "timeout after 1200ms, attempt 3/16",
        "no such user \"a b\" (0x1f3a)",
        "job 6f9619ff-8b86-d011-b42d-00c04fc964ff gone",
        "key 'k-1' and `x`; can't reach it",
        "an open \"quote 10.0.0.12:5432",
        "worker7: deadbeef1: cafe - größe 12 \u{202e}x \u{1f4a5}9",
        "",
    ];
    let long = "\u{1f4a5} ab ".repeat(100);
    let server = serve(&[]);
    for error in errors.into_iter().chain([long.as_str()]) {
        let put = json!({"text": "x", "attempts_max": 1});
        call(server.addr, "POST", "/v1/topics/t/jobs", &put);
        let leased = call(server.addr, "POST", "/v1/topics/t/reserve", &json!({}));
        let nack = json!({"token": leased["jobs"][0]["token"], "error": error});
        call(server.addr, "POST", "/v1/nack", &nack);
    }
    let found = get(server.addr, "/v1/topics/t/dead/groups");
    let mut theirs: Vec<&Value> =
        found["groups"].as_array().unwrap().iter().map(|group| &group["error"]).collect();
    let browser = Browser::start();
    show(&browser, &address(server.addr), "#/t/t/dead", "t");
    let script = "const [errors, done] = arguments; \
                  import(new URL('screens/dead.js', document.baseURI)).then( \
                  ({causeOf}) => done(errors.map(causeOf)), (error) => done(String(error)))";
    let all: Vec<&str> = errors.into_iter().chain([long.as_str()]).collect();
    let ours = browser.run_async(script, &[json!(all)]);
    let mut ours: Vec<&Value> =
        ours.as_array().unwrap_or_else(|| panic!("{ours}")).iter().collect();
    theirs.sort_by_key(|text| text.to_string());
    ours.sort_by_key(|text| text.to_string());
    assert_eq!(ours, theirs);
}

#[test]
fn a_bar_of_the_forecast_leads_to_its_jobs() {
    check(|browser, _, base| {
        show(browser, base, "#/t/orders", "orders");
        click(browser, "as table");
        let first = "document.querySelector('.chart tbody button')";
        let count =
            browser.wait_for(&format!("{first}?.closest('tr').querySelector('td').textContent"));
        browser.run(&format!("{first}.click(); return null"), &[]);
        let rows = count.as_str().unwrap();
        browser.wait_for(&format!(
            "location.hash.includes('from=') && \
             document.querySelectorAll('main tr[data-row]').length === {rows}"
        ));
        click(browser, "any time");
        browser.wait_for("document.querySelectorAll('main tr[data-row]').length === 50");
        // Of several topics, one is chosen first.
        show(browser, base, "#/", "Overview");
        browser.wait_for("document.querySelector('.chart svg.is-pickable')");
        let pick = "const svg = document.querySelector('svg.is-pickable'); \
                    const box = svg.getBoundingClientRect(); \
                    svg.dispatchEvent(new MouseEvent('click', \
                    {bubbles: true, clientX: box.left + box.width / 2})); return null";
        browser.run(pick, &[]);
        browser.wait_for(
            "(() => { const found = [...document.querySelectorAll('dialog a')] \
             .find((one) => one.textContent === 'orders'); found?.click(); return !!found; })()",
        );
        crate::console::wait_for_title(browser, "orders");
        browser.wait_for("!document.querySelector('dialog') && location.hash.includes('from=')");
        // Newest first is an address of its own.
        show(browser, base, "#/t/orders/jobs?state=dead&newest=true&to=0s", "orders");
        browser.wait_for("document.querySelectorAll('main tr[data-row]').length === 12");
    });
}

/// The numbers of the account.
const ACCOUNT: &str = "document.querySelector('dialog [role=status]')?.textContent \
    .match(/\\d+/g)?.map(Number)";

#[test]
fn work_on_many_jobs_stops_half_way_and_tells_what_is_left() {
    let server = serve(&[]);
    fill(server.addr);
    let gateway = Gateway::start(server.addr, "");
    let browser = Browser::start();
    show(&browser, &address(gateway.addr), "#/t/orders/jobs?state=delayed", "orders");
    click(&browser, "Cancel: all 90 delayed");
    // What it does is also shown as a line to copy.
    browser.wait_for("document.querySelector('dialog code').textContent.includes('state=delayed')");
    write(&browser, "dialog input[name=rate]", "20");
    agree(&browser, "orders", "Cancel");
    browser.wait_for(&format!("{ACCOUNT}?.[0] >= 20"));
    // One refusal that passes does not end it.
    gateway.becomes(Mood::Busy);
    std::thread::sleep(std::time::Duration::from_secs(2));
    gateway.becomes(Mood::Good);
    let done = browser.run(&format!("return {ACCOUNT}[0]"), &[]).as_u64().unwrap();
    browser.wait_for(&format!("{ACCOUNT}?.[0] > {done}"));
    // Escape stops it, and leaves the account to be read.
    browser.press(key::ESCAPE);
    browser.wait_for_text("Stopped.");
    let account = browser.run(&format!("return {ACCOUNT}"), &[]);
    let numbers: Vec<u64> =
        account.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    let [done, failed, left] = numbers[..] else { panic!("{account}") };
    assert_eq!((done + failed + left, failed), (90, 0), "{account}");
    assert!(left > 0, "it was not stopped half way: {account}");
    assert_eq!(get(server.addr, "/v1/topics/orders")["delayed"], json!(left));
    click(&browser, "Close");
    browser.wait_for("!document.querySelector('dialog')");
}

#[test]
fn a_schedule_is_defined_run_paused_and_removed() {
    check(|browser, addr, base| {
        show(browser, base, "#/schedules", "Schedules");
        browser.wait_for_text("nightly");
        for (name, text) in [("topic", "reports"), ("name", "weekdays"), ("text", "hello")] {
            write(browser, &format!("main input[name={name}]"), text);
        }
        click(browser, "Define a schedule by this rule");
        crate::console::wait_for_title(browser, "weekdays");
        let path = "/v1/topics/reports/schedules/weekdays";
        assert_eq!(get(addr, path)["text"], json!("hello"));
        click(browser, "Run now");
        browser.wait_for_text("weekdays has put one more job.");
        click(browser, "Pause");
        browser.wait_for_text("weekdays is paused.");
        assert_eq!(get(addr, path)["state"], json!("paused"));
        click(browser, "Resume");
        browser.wait_for_text("weekdays goes on.");
        click(browser, "Remove");
        submit(browser);
        browser.wait_for_text("weekdays is removed.");
        assert_eq!(request(addr, "GET", path, &[], "").status, 404);
    });
}

#[test]
fn a_lock_is_broken_and_settings_are_saved() {
    check(|browser, addr, base| {
        show(browser, base, "#/locks", "Locks");
        click(browser, "Break");
        click(browser, "Break the lock");
        browser.wait_for_text("deploy is free.");
        assert_eq!(get(addr, "/v1/locks")["locks"], json!([]));

        show(browser, base, "#/t/orders/settings", "orders");
        write(browser, "main form.sheet input[placeholder='60s']", "90s");
        browser.wait_for(
            "[...document.querySelectorAll('main code')].some((one) => \
             one.textContent.startsWith('dormouse topic set orders --ttr 90s'))",
        );
        click(browser, "Save settings");
        browser.wait_for_text("The settings are stored.");
        assert_eq!(get(addr, "/v1/topics/orders")["settings"]["ttr_ms"], json!(90_000));
        // The page has read what was stored: nothing is left to save.
        browser.wait_for("document.querySelector('main form.sheet button.primary').disabled");
        // What somebody else changes meanwhile is not taken back unseen.
        write(browser, "main form.sheet input[placeholder='16']", "3");
        call(addr, "PUT", "/v1/topics/orders", &json!({"ttr": "2m"}));
        browser.wait_for_text("Somebody changed ttr meanwhile.");
    });
}

#[test]
fn a_push_is_set_tested_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    let args = ["--data", data, "--push", "--push-http", "--push-allow", "127.0.0.1"];
    let server = Server::start(&args);
    fill(server.addr);
    let browser = Browser::start();
    let base = address(server.addr);
    show(&browser, &base, "#/t/exports/push", "exports");
    browser.wait_for_text("This topic is not pushed");
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    write(&browser, "main input[name=url]", &format!("http://{gone}/hook"));
    write(&browser, "main input[name=fatal]", "400, 422");
    click(&browser, "Save the push");
    browser.wait_for_text("The secret, shown once:");
    browser.wait_for("document.querySelector('.secret').textContent.startsWith('whsec_')");
    let push = get(server.addr, "/v1/topics/exports/push");
    assert_eq!(push["fatal"], json!([400, 422]), "{push}");
    click(&browser, "Test");
    browser.wait_for_text("connect after");
    click(&browser, "New secret");
    submit(&browser);
    browser.wait_for_text("The push has a new secret.");
    click(&browser, "Push no more");
    submit(&browser);
    browser.wait_for_text("This topic is not pushed");
    // Without --push there are words instead.
    let server = serve(&[]);
    fill(server.addr);
    show(&browser, &address(server.addr), "#/t/exports/push", "exports");
    browser.wait_for_text("There is nothing to see or set here");
}
