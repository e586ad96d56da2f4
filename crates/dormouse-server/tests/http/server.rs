//! The server itself: health, backups, hosts, paths and methods.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dormouse_core::error::Error;
use dormouse_server::{Backup, Options};
use serde_json::json;

use crate::rig::Rig;

#[tokio::test]
async fn health_follows_the_store() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    assert_eq!(client.get("/livez").await.ok(), json!({"code": "ok"}));
    assert_eq!(client.get("/readyz").await.ok(), json!({"code": "ok"}));
    rig.engine.close().unwrap();
    assert_eq!(client.get("/livez").await.ok(), json!({"code": "ok"}));
    let problem = client.get("/readyz").await.problem(503, "unavailable");
    assert_eq!(problem["retryable"], true);
    client.get("/v1/stats").await.problem(503, "unavailable");
    client.post("/v1/topics/t/jobs", json!({})).await.problem(503, "unavailable");
}

#[tokio::test]
async fn a_store_on_disk_keeps_its_jobs() {
    let rig = Rig::on_disk(Options::default()).await;
    let mut client = rig.client().await;
    client
        .post("/v1/topics/t/jobs", json!({"key": "k", "delay": "1s", "body": 1}))
        .await
        .expect(201);
    rig.advance(1);
    let job = client.post("/v1/topics/t/reserve", json!({})).await.ok();
    let form = json!({"token": job["jobs"][0]["token"]});
    assert_eq!(client.post("/v1/ack", form).await.ok()["code"], "done");
    client.post("/v1/topics/t/jobs", json!({"key": "k2", "delay": "1h"})).await.expect(201);
    let dir = rig.dir.unwrap();
    rig.server.stop(std::time::Duration::from_secs(10)).await;
    rig.engine.close().unwrap();
    drop(rig.engine);
    let engine = dormouse_disk::engine::Engine::open(
        dir.path(),
        dormouse_disk::engine::Options {
            clock: Arc::new(rig.clock.clone()),
            ..dormouse_disk::engine::Options::default()
        },
    );
    let http = Some(std::net::SocketAddr::from(([127, 0, 0, 1], 0)));
    let options = Options { http, ..Options::default() };
    let server = dormouse_server::Server::start(Arc::new(engine.unwrap()), options).await.unwrap();
    let mut client = crate::client::Client::connect(server.http_addr().unwrap()).await;
    assert_eq!(client.get("/v1/topics/t/keys/k2").await.ok()["state"], "delayed");
    client.get("/v1/topics/t/keys/k").await.problem(404, "not_found");
}

#[tokio::test]
async fn backups_are_made_by_name() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let problem = client.post("/v1/backups", json!({"name": "monday"})).await;
    let problem = problem.problem(422, "invalid");
    assert_eq!(problem["detail"], "this backend has no files to back up");
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let make = move |name: &str| {
        if name == "full" {
            return Err(Error::unavailable("no room on the disk"));
        }
        count.fetch_add(1, Ordering::SeqCst);
        Ok(Backup { path: format!("/data/backups/{name}").into(), files: 3, bytes: 42 })
    };
    let rig = Rig::with(Options { backup: Some(Box::new(make)), ..Options::default() }).await;
    let mut client = rig.client().await;
    let backup = client.post("/v1/backups", json!({"name": "monday"})).await.ok();
    let expected =
        json!({"name": "monday", "path": "/data/backups/monday", "files": 3, "bytes": 42});
    assert_eq!(backup, expected);
    let backup = client.request("POST", "/v1/backups", "", b"").await.ok();
    let name = backup["name"].as_str().unwrap();
    assert!(
        name.starts_with("backup-20") && name.len() == "backup-20270101T080000Z".len(),
        "{name}"
    );
    client.post("/v1/backups", json!({"name": "full"})).await.problem(503, "unavailable");
    for name in ["", "..", "../x", "/etc", "a b"] {
        client.post("/v1/backups", json!({"name": name})).await.problem(422, "invalid");
    }
    client.post("/v1/backups", json!({"nmae": "x"})).await.problem(400, "invalid");
    assert_eq!(made.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn only_own_hosts_are_answered() {
    let options = Options { hosts: vec!["queue.example".into()], ..Options::default() };
    let rig = Rig::with(options).await;
    for host in ["localhost", "127.0.0.1:7788", "[::1]", "queue.example:80"] {
        rig.client().await.with("host", host).get("/v1/stats").await.ok();
    }
    for path in ["/v1/stats", "/livez", "/openapi.json"] {
        let mut client = rig.client().await.with("host", "evil.example");
        client.get(path).await.problem(421, "misdirected");
        let mut client = rig.client().await.with("origin", "https://evil.example");
        client.get(path).await.problem(403, "forbidden");
    }
    // Another port of this machine is another site.
    for origin in ["http://localhost:3000", "http://127.0.0.1:9999"] {
        let mut client = rig.client().await.with("origin", origin);
        client.get("/v1/stats").await.problem(403, "forbidden");
    }
    let own = format!("http://{}", rig.addr);
    rig.client().await.with("origin", &own).get("/v1/stats").await.ok();
    // A name that somebody in the local network may have made up.
    rig.client().await.with("host", "wpad").get("/v1/stats").await.problem(421, "misdirected");
}

/// The status of a request whose head has these lines. If they are refused, the connection ends:
/// where the next request begins is not certain.
async fn status_of_head(rig: &Rig, lines: &str) -> u16 {
    let mut client = rig.client().await;
    client.send_raw(format!("GET /livez HTTP/1.1\r\n{lines}\r\n").as_bytes()).await;
    let status = client.receive(true).await.unwrap().status;
    if status == 200 {
        client.get("/livez").await.ok();
    } else {
        assert!(client.is_closed().await, "{lines:?}");
    }
    status
}

#[tokio::test]
async fn a_head_has_one_host_and_32_kib() {
    let rig = Rig::new().await;
    assert_eq!(status_of_head(&rig, "Host: localhost\r\n").await, 200);
    assert_eq!(status_of_head(&rig, "Host: localhost\r\nHost: evil.example\r\n").await, 400);
    assert_eq!(status_of_head(&rig, "").await, 400);
    // A proxy may see another request where a line ends with LF alone.
    assert_eq!(status_of_head(&rig, "Host: localhost\nX: y\r\n").await, 400);
    assert_eq!(status_of_head(&rig, "Host: localhost\n").await, 400);
    let coded = "Host: localhost\r\nTransfer-Encoding: gzip, chunked\r\n";
    assert_eq!(status_of_head(&rig, coded).await, 400);
    for (bytes, status) in [(32_000, 200), (33_000, 431), (36_000, 431), (40_000, 431)] {
        let lines = format!("Host: localhost\r\nX: {}\r\n", "x".repeat(bytes));
        assert_eq!(status_of_head(&rig, &lines).await, status, "{bytes}");
    }
}

#[tokio::test]
async fn wrong_paths_and_methods_are_refused() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for path in ["/x", "/v1", "/v1/jobs", "/v1/topics/a/b/jobs", "/v1/jobs/1/", "/v2/stats"] {
        client.get(path).await.problem(404, "not_found");
    }
    for (method, path, allowed) in [
        ("GET", "/v1/ack", "POST"),
        ("PUT", "/v1/jobs/1", "GET,HEAD,DELETE,PATCH"),
        ("POST", "/v1/topics/t", "GET,HEAD,PUT,DELETE"),
        ("DELETE", "/livez", "GET,HEAD"),
        ("OPTIONS", "/v1/stats", "GET,HEAD"),
        ("TRACE", "/v1/topics/t/jobs", "GET,HEAD,POST"),
    ] {
        let answer = client.request(method, path, "", b"").await;
        let mut given: Vec<_> = answer.header("allow").unwrap().split(',').collect();
        let mut allowed: Vec<_> = allowed.split(',').collect();
        given.sort_unstable();
        allowed.sort_unstable();
        assert_eq!(given, allowed, "{method} {path}");
        answer.problem(405, "not_allowed");
    }
    assert_eq!(client.request("HEAD", "/v1/stats", "", b"").await.status, 200);
    client.get("/v1/topics/%FF").await.problem(400, "invalid");
}

#[tokio::test]
async fn a_connection_serves_many_requests_in_order() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    for _ in 0..3 {
        client.send("POST", "/v1/topics/t/jobs", "application/json", b"{}").await;
    }
    for id in 1..=3 {
        let answer = client.receive(true).await.unwrap();
        assert_eq!(answer.expect(201)["id"], id.to_string());
    }
}

/// Slow uploads do not block small requests.
#[tokio::test]
async fn uploads_leave_room_for_acks() {
    let rig = Rig::new().await;
    let mut uploads = Vec::new();
    // All that one address alone may hold.
    for _ in 0..2 {
        let mut upload = rig.client().await;
        let head = "POST /v1/topics/t/jobs HTTP/1.1\r\nHost: localhost\r\n\
                    Content-Length: 16777216\r\n\r\n";
        upload.send_raw(head.as_bytes()).await;
        upload.send_raw(&vec![b'x'; (16 << 20) - 1]).await;
        uploads.push(upload);
    }
    let mut client = rig.client().await;
    let acked = client.post("/v1/ack", json!({"token": "1.1"})).await.ok();
    assert_eq!(acked["code"], "gone");
}

#[tokio::test]
async fn a_list_is_not_accepted_for_an_object() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.post("/v1/topics/t/reserve", json!([5, 0, 60_000])).await.problem(400, "invalid");
    let problem = client.post("/v1/topics/t/jobs", json!([{}, [1]])).await.problem(400, "invalid");
    assert!(problem["detail"].as_str().unwrap().starts_with("item 2: "), "{problem}");
    // What curl -d sends: its options would be lost.
    let form = "application/x-www-form-urlencoded";
    let put = br#"{"delay": "30m"}"#;
    let answer = client.request("POST", "/v1/topics/t/jobs", form, put).await;
    answer.problem(400, "invalid");
    client.request("POST", "/v1/topics/t/jobs", form, b"plain").await.expect(201);
}
