//! Calls to a stand-alone server that fails in every way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use redis::Value;
use rustix::process::Signal;

use super::harness::{Server, TIMEOUTS, call, connect, counting, run, until};
use crate::cluster::{Call, CallError, ClusterClient, Script};

const CALLERS: usize = 50;

/// Fifty callers, each one call after the other, until `trouble` is over. Each call must get its
/// own reply, and count once.
async fn calls_through(
    server: &mut Server,
    client: &ClusterClient,
    trouble: impl AsyncFnOnce(&mut Server),
) {
    let script = counting();
    let is_over = Arc::new(AtomicBool::new(false));
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let (client, script, is_over) = (client.clone(), Arc::clone(&script), Arc::clone(&is_over));
        callers.spawn(async move {
            let mut made = 0;
            loop {
                let is_last = is_over.load(Ordering::Acquire);
                run(&client, &call(&script, "t", &format!("{caller}/{made}"))).await;
                made += 1;
                if is_last {
                    return made;
                }
            }
        });
    }
    trouble(server).await;
    is_over.store(true, Ordering::Release);
    let made: u64 = callers.join_all().await.into_iter().sum();
    assert!(made > CALLERS as u64);
    assert_eq!(server.query_text("HGET dormouse:{t}:s count").await, made.to_string());
}

fn calls(client: &ClusterClient) -> u64 {
    client.meters().calls.load(Ordering::Relaxed)
}

async fn until_more_calls(client: &ClusterClient, more: u64) {
    let before = calls(client);
    until("calls go on", async || calls(client) > before + more).await;
}

#[tokio::test]
async fn a_flushed_script_is_loaded_again() {
    let server = Server::start(&[]).await;
    let (client, ..) = connect(&server.url()).await;
    let script = counting();
    assert_eq!(run(&client, &call(&script, "t", "a")).await, 1);
    server.query("SCRIPT FLUSH").await;
    assert_eq!(run(&client, &call(&script, "t", "b")).await, 2);
    assert_eq!(run(&client, &call(&script, "t", "a")).await, 1, "a repeat is recognised");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_survive_the_loss_of_connections() {
    let mut server = Server::start(&[]).await;
    let (client, ..) = connect(&server.url()).await;
    calls_through(&mut server, &client, async |server| {
        for _ in 0..20 {
            until_more_calls(&client, 100).await;
            server.query("CLIENT KILL TYPE normal").await;
        }
    })
    .await;
    assert!(client.meters().reconnects.load(Ordering::Relaxed) >= 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_survive_a_kill_of_the_server() {
    let mut server = Server::start(&["--appendonly", "yes", "--appendfsync", "always"]).await;
    let (client, ..) = connect(&server.url()).await;
    calls_through(&mut server, &client, async |server| {
        for _ in 0..3 {
            until_more_calls(&client, 200).await;
            server.kill();
            server.start_again().await;
        }
        until_more_calls(&client, 200).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_survive_a_freeze_longer_than_their_timeout() {
    let mut server = Server::start(&[]).await;
    let (client, ..) = connect(&server.url()).await;
    calls_through(&mut server, &client, async |server| {
        until_more_calls(&client, 100).await;
        server.signal(Signal::STOP);
        let retries = || client.meters().retries.load(Ordering::Relaxed);
        let (before, frozen_at) = (retries(), Instant::now());
        until("the freeze is noticed", async || retries() > before).await;
        assert!(frozen_at.elapsed() >= Duration::from_millis(TIMEOUTS.response_ms / 2));
        server.signal(Signal::CONT);
        until_more_calls(&client, 100).await;
    })
    .await;
}

#[tokio::test]
async fn many_callers_share_one_connection_attempt() {
    let mut server = Server::start(&[]).await;
    let (client, ..) = connect(&server.url()).await;
    server.kill();
    // In place of the server, a listener that counts connections and does not answer.
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", server.port)).await.unwrap();
    let script = counting();
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let (client, call) = (client.clone(), call(&script, "t", &caller.to_string()));
        callers.spawn(async move { run(&client, &call).await });
    }
    let mut connections = Vec::new();
    let watched = tokio::time::timeout(Duration::from_millis(2 * TIMEOUTS.connect_ms), async {
        loop {
            connections.push(listener.accept().await.unwrap());
        }
    });
    assert!(watched.await.is_err());
    assert!((1..=3).contains(&connections.len()), "{} connections", connections.len());
    drop((listener, connections));
    server.start_again().await;
    assert_eq!(callers.join_all().await.len(), CALLERS);
}

#[tokio::test]
async fn a_call_waits_until_a_demoted_server_is_primary_again() {
    let server = Server::start(&[]).await;
    let (client, ..) = connect(&server.url()).await;
    let script = counting();
    run(&client, &call(&script, "t", "a")).await;
    server.query("REPLICAOF 127.0.0.1 1").await;
    for replicas in [0, 1] {
        let call = Call { replicas, ..call(&script, "t", "b") };
        let tried = client.call(&call);
        let tried = tokio::time::timeout(Duration::from_millis(300), tried).await;
        assert!(tried.is_err(), "{tried:?}");
    }
    assert!(client.meters().reconnects.load(Ordering::Relaxed) > 0, "on new connections");
    server.query("REPLICAOF NO ONE").await;
    assert_eq!(run(&client, &call(&script, "t", "b")).await, 2);
}

#[tokio::test]
async fn errors_of_scripts_are_returned() {
    let server = Server::start(&[]).await;
    let (client, ..) = connect(&server.url()).await;
    for (source, code, text) in [
        ("return redis.error_reply('WRONG way')", "WRONG", "way"),
        ("return redis.call('HGET', KEYS[1])", "ERR", "Wrong number of args"),
        ("this is no script", "ERR", "Error compiling script"),
    ] {
        let script = Arc::new(Script::new(source.to_owned()));
        match client.call(&call(&script, "t", "a")).await {
            Err(CallError::Script { code: said, text: reason }) => {
                assert_eq!(said, code, "{source}");
                assert!(reason.contains(text), "{source}: {reason}");
            }
            other => panic!("{source}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_revoked_password_is_an_error_at_once() {
    let server = Server::start(&[]).await;
    server.query("ACL SETUSER u on >p ~* &* +@all").await;
    let (client, ..) = connect(&format!("redis://u:p@127.0.0.1:{}", server.port)).await;
    let script = counting();
    run(&client, &call(&script, "t", "a")).await;
    server.query("ACL SETUSER u resetpass >q").await;
    server.query("CLIENT KILL USER u").await;
    let error = client.call(&call(&script, "t", "b")).await.unwrap_err();
    assert!(matches!(error.without_doubt(), CallError::Refused(_)));
}

#[tokio::test]
async fn a_call_waits_for_replicas() {
    let primary = Server::start(&["--repl-diskless-sync-delay", "0"]).await;
    let (client, ..) = connect(&primary.url()).await;
    let script = counting();
    let waiting = |name: &str, replicas| Call { replicas, ..call(&script, "t", name) };
    let reply = client.call(&waiting("none", 1)).await.unwrap();
    assert_eq!(reply.replicas, 0, "there is none");
    assert!(reply.received_at - reply.sent_at >= Duration::from_millis(TIMEOUTS.wait_ms));
    let address = format!("127.0.0.1 {}", primary.port);
    let replica = Server::start(&["--replicaof", &address]).await;
    until("the replica confirms", async || {
        client.call(&waiting("one", 1)).await.unwrap().replicas == 1
    })
    .await;
    assert_eq!(replica.query_text("HGET dormouse:{t}:s one").await, "2");
    assert_eq!(client.call(&call(&script, "t", "without")).await.unwrap().replicas, u64::MAX);
}

#[tokio::test]
async fn calls_that_wait_share_their_wait() {
    let server = Server::start(&[]).await;
    let (client, ..) = connect(&server.url()).await;
    let script = counting();
    let started = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let call = Call { replicas: 1, ..call(&script, "t", &caller.to_string()) };
        let client = client.clone();
        callers.spawn(async move { run(&client, &call).await });
    }
    let mut numbers = callers.join_all().await;
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=CALLERS as u64).collect::<Vec<_>>());
    let waits = started.elapsed().as_millis() as u64 / TIMEOUTS.wait_ms;
    assert!(waits < 10, "{waits} waits one after the other");
}

#[tokio::test]
async fn large_requests_and_replies_pass() {
    let server = Server::start(&[]).await;
    let (client, ..) = connect(&server.url()).await;
    let script = Arc::new(Script::new("return ARGV[1]".to_owned()));
    let body = Bytes::from(vec![7; 16 << 20]);
    let call = Call { args: vec![body.clone()], ..call(&script, "t", "") };
    let reply = client.call(&call).await.unwrap();
    assert_eq!(reply.value, Value::BulkString(body.to_vec()));
}
