//! Health, backup, verify, events.

use crate::fake::{Fake, Response, ok};
use crate::util::{dormouse, run};

#[test]
fn health_is_an_exit_code() {
    let fake = Fake::always(200, "");
    run(&fake.url, &["health"]).exits(0);
    assert_eq!(fake.only().line(), "GET /readyz");
    let fake = Fake::always(503, "");
    run(&fake.url, &["health"]).exits(6);
}

#[test]
fn backup_prints_where_it_is() {
    let fake = Fake::always(200, r#"{"name":"monday","path":"/data/monday","files":3,"bytes":9}"#);
    let done = run(&fake.url, &["backup", "monday"]).exits(0);
    assert_eq!(done.stdout, "/data/monday\n");
    assert_eq!(fake.only().body, r#"{"name":"monday"}"#);
}

/// A store with a few jobs in it.
fn store() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let queue = dormouse::Queue::open(dir.path()).unwrap();
    for key in 0..20 {
        let body = format!("the body of job {key}");
        queue.put("a", body).key(key.to_string()).wait().unwrap();
    }
    queue.close().unwrap();
    dir
}

#[test]
fn a_sound_store_is_said_to_be_and_a_damaged_one_with_file_and_offset() {
    let dir = store();
    let path = dir.path().to_str().unwrap();
    let done = run("", &["verify", path]).exits(0);
    assert!(done.stdout.contains("sound    yes"), "{}", done.stdout);

    let manifest = dir.path().join("manifest.dmm");
    let mut bytes = std::fs::read(&manifest).unwrap();
    bytes[30] ^= 1;
    std::fs::write(&manifest, bytes).unwrap();
    let done = run("", &["verify", path, "-o", "json"]).exits(1);
    assert!(done.stderr.contains("manifest.dmm is damaged at byte"), "{}", done.stderr);
    assert!(done.stdout.contains(r#""sound":false"#), "{}", done.stdout);
}

#[test]
fn a_directory_without_a_store_is_not_found() {
    let dir = tempfile::tempdir().unwrap();
    run("", &["verify", dir.path().to_str().unwrap()]).exits(3);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is made");
}

#[test]
fn events_are_followed_where_they_broke_off() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let event = move |n: u32| {
        let data = format!(r#"{{"topic":"a","id":"{n}","at":"now","attempt":1}}"#);
        format!("{head}: hello\n\nid: x-{n}\nevent: acked\ndata: {data}\n\n")
    };
    let fake = Fake::start(move |seen| match seen.nth {
        0 => Response::Raw(event(1)),
        1 => Response::Raw(event(2)),
        _ => ok("{}"),
    });
    let mut child = dormouse(&fake.url, &["tail", "a"]).spawn().unwrap();
    let second = fake.wait_for("/v1/events?topic=a", 2);
    assert!(second.head.contains("last-event-id: x-1"), "{}", second.head);
    fake.wait_for("/v1/events?topic=a", 3);
    child.kill().unwrap();
    let done = crate::util::finish(child);
    let expected = "now                       acked         a  1  attempt=1";
    assert_eq!(done.stdout.lines().next(), Some(expected));
    assert_eq!(done.stdout.lines().count(), 2, "{}", done.stdout);
}
