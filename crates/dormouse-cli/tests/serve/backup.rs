//! Backups that are made over HTTP.

use crate::process::Server;

#[test]
fn a_backup_is_a_store_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().to_str().unwrap();
    let server = Server::start(&["--data", data]);
    let put = |text: &str| {
        let put = server.post("/v1/topics/a/jobs", &format!("{{\"text\": \"{text}\"}}"));
        assert_eq!(put.status, 201, "{put:?}");
    };
    put("before");
    let made = server.post("/v1/backups", "{\"name\": \"monday\"}");
    assert_eq!(made.status, 200, "{made:?}");
    let backup = dir.path().join("backups/monday");
    assert!(made.body.contains(backup.to_str().unwrap()), "{made:?}");
    put("after");
    let again = server.post("/v1/backups", "{\"name\": \"monday\"}");
    assert!((400..500).contains(&again.status), "{again:?}");
    let elsewhere = server.post("/v1/backups", "{\"name\": \"../tuesday\"}");
    assert!((400..500).contains(&elsewhere.status), "{elsewhere:?}");
    assert_eq!(server.stop().code, Some(0));

    let restored = Server::start(&["--data", backup.to_str().unwrap()]);
    let reserved = restored.post("/v1/topics/a/reserve", "{\"max\": 10}");
    assert!(reserved.body.contains("before"), "{reserved:?}");
    assert!(!reserved.body.contains("\"after\""), "{reserved:?}");
    assert_eq!(restored.stop().code, Some(0));
}

#[test]
fn memory_has_nothing_to_back_up() {
    let server = Server::start(&["--backend", "memory"]);
    let made = server.post("/v1/backups", "{\"name\": \"monday\"}");
    assert!((400..500).contains(&made.status), "{made:?}");
}
