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
