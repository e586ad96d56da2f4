//! `/readyz` follows what is behind the server.

use std::time::{Duration, Instant};

use dormouse_check::harness::redis::{RedisConfig, RedisServer};

use crate::process::{Reply, Server, TIMEOUT};

/// Asks until the status is this one.
fn until(server: &Server, status: u16) -> Reply {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let reply = server.get("/readyz");
        if reply.status == status {
            return reply;
        }
        assert!(Instant::now() < deadline, "never {status}: {reply:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_server_is_not_ready_while_its_redis_is_away() {
    let mut redis = RedisServer::start(RedisConfig::default());
    let address = redis.address();
    let server = Server::start(&["--backend", "redis", "--redis-url", &redis.url()]);
    until(&server, 200);

    redis.kill_nine();
    let away = until(&server, 503);
    assert!(away.body.contains("Redis cannot be reached"), "{away:?}");
    // Nobody had to show a token for this.
    assert!(!away.body.contains(&address), "{away:?}");
    server.process.wait_for(&address);
    assert_eq!(server.get("/livez").status, 200);

    redis.restart();
    until(&server, 200);
    server.process.wait_for("redis: answers again");

    redis.freeze();
    until(&server, 503);
    redis.thaw();
    until(&server, 200);
    assert_eq!(server.stop().code, Some(0));
}

/// Puts until the status is this one.
fn put_until(server: &Server, status: u16) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let reply = server.post("/v1/topics/t/jobs", r#"{"text": "x"}"#);
        if reply.status == status {
            return;
        }
        assert!(Instant::now() < deadline, "never {status}: {reply:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The log was empty, and a server that was started then exited.
#[test]
fn missing_replicas_are_logged_once_and_told() {
    let primary = RedisServer::start(RedisConfig::default());
    let extra = vec![format!("replicaof {} {}", primary.host(), primary.port())];
    let mut replica = RedisServer::start(RedisConfig { extra, ..RedisConfig::default() });
    let url = primary.url();
    let options = ["--backend", "redis", "--redis-url", &url, "--redis-level", "replicated=1"];
    let server = Server::start(&options);
    put_until(&server, 201);
    assert!(!until(&server, 200).body.contains("detail"));

    replica.kill_nine();
    (0..5).for_each(|_| put_until(&server, 504));
    let ready = until(&server, 200);
    assert!(ready.body.contains("1 of 1 primaries of Redis have too few replicas"), "{ready:?}");
    let second = Server::start(&options);
    second.process.wait_for("0 of 1 replicas that are to confirm each change");
    put_until(&second, 504);

    replica.restart();
    for server in [&server, &second] {
        put_until(server, 201);
        assert!(!until(server, 200).body.contains("detail"));
    }
    let said = server.stop().stderr;
    let count = |text: &str| said.lines().filter(|line| line.contains(text)).count();
    // Once more if the replica was not yet up to date at the first put.
    assert!((1..=2).contains(&count("0 of 1 replicas of")), "{said}");
    assert_eq!(count("0 of 1 replicas of"), count("1 of 1 replicas of"), "{said}");
}
