//! A client that disconnects during a reserve keeps no lease.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dormouse_check::conformance::client::Client;
use dormouse_check::harness::redis::wait::wait_for;
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_core::backend::Backend;
use dormouse_core::command::{Command, Reply};
use dormouse_core::op::{Put, Stats, TopicStats};
use dormouse_core::topic::TopicName;
use dormouse_redis::RedisBackend;
use dormouse_server::{Options, Server};
use tokio::runtime::{Builder, Runtime};

/// Longer than anything takes that comes at all; leases last longer.
const TIMEOUT: Duration = Duration::from_secs(25);
const JOBS: u64 = 150;

struct Rig {
    redis: RedisServer,
    client: Client,
    address: SocketAddr,
    _server: Server,
    _runtime: Runtime,
}

/// A server that speaks RESP, on a Redis with jobs in these topics.
fn rig(topics: &[&str]) -> Rig {
    let redis = RedisServer::start(RedisConfig::default());
    let backend = RedisBackend::open(&redis.url(), Default::default()).unwrap();
    let backend: Arc<dyn Backend> = Arc::new(backend);
    let client = Client::new(Arc::clone(&backend));
    for name in topics {
        let put = Put::new(named(name), "x");
        client.ask(Command::Put(vec![put; JOBS as usize])).unwrap();
    }
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let any = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let options = Options { resp: any, ..Options::default() };
    let server = runtime.block_on(Server::start(backend, options)).unwrap();
    let address = server.resp_addr().unwrap();
    Rig { redis, client, address, _server: server, _runtime: runtime }
}

fn named(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

fn stats(client: &Client, name: &str) -> TopicStats {
    match client.ask(Command::Stats(Stats { topic: Some(named(name)) })) {
        Ok(Reply::Stats(stats)) => *stats,
        other => panic!("stats are answered with {other:?}"),
    }
}

/// The client leaves while the server waits for Redis: whatever is granted after that comes back.
fn check(topics: &[&str]) {
    let mut rig = rig(topics);
    let mut socket = TcpStream::connect(rig.address).unwrap();
    socket.write_all(b"PING\r\n").unwrap();
    socket.read_exact(&mut [0; 7]).unwrap();
    rig.redis.freeze();
    let command = format!("RESERVE {} MAX 1000\r\n", topics.join(" "));
    socket.write_all(command.as_bytes()).unwrap();
    // The server must have sent the reserve to a Redis that cannot answer.
    thread::sleep(Duration::from_millis(300));
    drop(socket);
    thread::sleep(Duration::from_millis(100));
    rig.redis.thaw();
    for name in topics {
        wait_for("a job was granted", || stats(&rig.client, name).counts.reserves > 0);
        wait_for("all are ready again", || stats(&rig.client, name).ready == JOBS);
        assert_eq!(stats(&rig.client, name).counts.nacks, 0, "no attempt was spent");
    }
}

/// Nobody looked at the connection during a reserve without WAIT: all jobs rested until the end of
/// their leases.
#[test]
fn who_leaves_during_a_reserve_without_wait_takes_no_job_along() {
    check(&["one"]);
}

#[test]
fn who_leaves_during_a_reserve_over_several_topics_takes_no_job_along() {
    check(&["v0", "v1"]);
}

/// As `printf 'RESERVE t' | nc` does.
#[test]
fn who_only_ends_the_sending_side_gets_the_jobs() {
    let rig = rig(&["t"]);
    let mut socket = TcpStream::connect(rig.address).unwrap();
    socket.write_all(b"RESERVE t MAX 100\r\n").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let mut reply = Vec::new();
    socket.read_to_end(&mut reply).unwrap();
    assert!(reply.starts_with(b"*100\r\n"), "{}", reply[..20].escape_ascii());
    assert_eq!(stats(&rig.client, "t").ready, JOBS - 100);
}

/// The look at the connection read the next command, and nobody executed it.
#[test]
fn what_is_sent_during_a_reserve_without_wait_is_answered_after_it() {
    let mut rig = rig(&["t"]);
    let mut socket = TcpStream::connect(rig.address).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket.write_all(b"PING\r\n").unwrap();
    socket.read_exact(&mut [0; 7]).unwrap();
    rig.redis.freeze();
    socket.write_all(b"RESERVE t MAX 1\r\n").unwrap();
    // The server must have sent the reserve to a Redis that cannot answer.
    thread::sleep(Duration::from_millis(300));
    socket.write_all(b"PING\r\n").unwrap();
    thread::sleep(Duration::from_millis(100));
    rig.redis.thaw();
    let mut reply = Vec::new();
    let mut bytes = [0; 1_024];
    while !reply.ends_with(b"+PONG\r\n") {
        let count = socket.read(&mut bytes).unwrap();
        assert!(count > 0, "closed after {}", reply.escape_ascii());
        reply.extend_from_slice(&bytes[..count]);
    }
    assert!(reply.starts_with(b"*1\r\n"), "{}", reply.escape_ascii());
}
