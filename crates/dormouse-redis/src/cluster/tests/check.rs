//! The start-up check: refusals, warnings and their texts.

use std::io::{Read, Write};

use dormouse_core::error::Code;

use super::cluster::Cluster;
use super::harness::{Server, TIMEOUTS, connect, free_port, refusal};
use crate::cluster::ClusterClient;

/// Expects a refusal whose text contains all `parts`, and not the password.
async fn refused(url: &str, code: Code, parts: &[&str]) {
    let error = refusal(url, 0).await;
    assert_eq!(error.code, code, "{error}");
    for part in parts {
        assert!(error.text.contains(part), "no `{part}` in: {error}");
    }
    assert!(!error.text.contains("secret"), "{error}");
}

#[tokio::test]
async fn a_good_server_is_described() {
    let options = ["--appendonly", "yes", "--appendfsync", "always"];
    let server = Server::start(&options).await;
    let (client, findings, _) = connect(&server.url()).await;
    assert!(!client.is_cluster());
    assert!(findings.version.contains('.'), "{findings:?}");
    assert_eq!((findings.is_cluster, findings.primaries, findings.replicas), (false, 1, 0));
    assert_eq!(findings.appendfsync.as_deref(), Some("always"));
    assert_eq!(findings.warnings, [""; 0]);
    assert_eq!(server.query_text("DBSIZE").await, "0", "the check leaves nothing");
}

#[tokio::test]
async fn weak_durability_is_a_warning() {
    let server = Server::start(&[]).await;
    let (_, findings, _) = connect(&server.url()).await;
    assert_eq!(findings.appendfsync, None);
    assert!(findings.warnings[0].contains("appendonly yes"), "{findings:?}");
    server.query("CONFIG SET appendonly yes").await;
    for (policy, loss) in [("everysec", "last second"), ("no", "half a minute")] {
        server.query(&format!("CONFIG SET appendfsync {policy}")).await;
        let (_, findings, _) = connect(&server.url()).await;
        assert_eq!(findings.appendfsync.as_deref(), Some(policy));
        assert!(findings.warnings[0].contains(loss), "{findings:?}");
    }
    server.query("ACL SETUSER default -config").await;
    let (_, findings, _) = connect(&server.url()).await;
    assert_eq!(findings.appendfsync, None);
    assert!(findings.warnings[0].contains("could not be checked"), "{findings:?}");
}

#[tokio::test]
async fn passwords_are_asked_for_and_checked() {
    let server = Server::start(&["--requirepass", "se:cr/et"]).await;
    let with = |login: &str| format!("redis://{login}127.0.0.1:{}", server.port);
    refused(&with(""), Code::Invalid, &["wants a password", "redis://user:password@host"]).await;
    refused(&with(":secret@"), Code::Invalid, &["refuses the user or the password"]).await;
    refused(&with("u:secret@"), Code::Invalid, &["refuses the user or the password"]).await;
    connect(&with(":se%3Acr%2Fet@")).await;
    connect(&with("default:se%3Acr%2Fet@")).await;
}

#[tokio::test]
async fn eviction_is_refused() {
    let server = Server::start(&["--maxmemory", "100mb"]).await;
    connect(&server.url()).await;
    server.query("CONFIG SET maxmemory-policy volatile-lru").await;
    let (_, findings, _) = connect(&server.url()).await;
    assert!(findings.warnings[0].contains("volatile-lru"), "{findings:?}");
    server.query("CONFIG SET maxmemory-policy allkeys-lru").await;
    refused(&server.url(), Code::Invalid, &["allkeys-lru", "maxmemory-policy noeviction"]).await;
}

#[tokio::test]
async fn a_full_server_is_a_warning() {
    let server = Server::start(&["--maxmemory", "100kb"]).await;
    let (_, findings, _) = connect(&server.url()).await;
    assert!(findings.warnings[0].contains("out of memory"), "{findings:?}");
}

#[tokio::test]
async fn a_server_that_is_not_redis_is_recognised() {
    let port = free_port();
    let url = format!("redis://:secret@127.0.0.1:{port}");
    refused(&url, Code::Unavailable, &["cannot be reached", "refused"]).await;
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    // The kernel accepts connections, but no one answers.
    refused(&url, Code::Unavailable, &["no answer within 500 ms"]).await;
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    refused(&url, Code::Invalid, &["is not Redis", "check host and port"]).await;
}

/// Some servers repeat an unknown command with its arguments.
#[tokio::test]
async fn a_password_repeated_by_the_server_is_not_repeated_here() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let answers = ["ERR unknown command 'HELLO', args: 'secret'", "ERR no secret here"];
        for (stream, answer) in listener.incoming().zip(answers) {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(format!("-{answer}\r\n").repeat(3).as_bytes());
        }
    });
    let url = format!("redis://:secret@127.0.0.1:{port}");
    refused(&url, Code::Invalid, &["does not know", "7.0 or newer"]).await;
    refused(&url, Code::Unavailable, &["no *** here"]).await;
}

#[tokio::test]
async fn missing_permissions_are_named() {
    let server = Server::start(&[]).await;
    for (rules, named) in [
        ("~* &* +@all -info", "INFO"),
        ("~* &* +@all -evalsha", "EVALSHA"),
        ("~* &* +@all -script", "SCRIPT LOAD"),
        ("~* &* +@all -hset", "HSET"),
        ("~* &* +@all -zrem", "ZREM"),
        ("~* &* +@all -spublish", "SPUBLISH"),
        ("~* &* +@all -ssubscribe", "SSUBSCRIBE"),
        ("~* &* +@all -sunsubscribe", "SUNSUBSCRIBE"),
        ("~* resetchannels &other +@all", "SPUBLISH"),
        ("~other &* +@all", "EVALSHA"),
    ] {
        server.query(&format!("ACL SETUSER u reset on >p {rules}")).await;
        let url = format!("redis://u:p@127.0.0.1:{}", server.port);
        refused(&url, Code::Invalid, &[&format!("run {named} ("), "~dormouse:*"]).await;
    }
    server.query("ACL SETUSER u reset on >p ~dormouse:* &dormouse:* +@all -config").await;
    connect(&format!("redis://u:p@127.0.0.1:{}", server.port)).await;
}

#[tokio::test]
async fn replicas_are_refused_and_counted() {
    let primary = Server::start(&[]).await;
    let address = format!("127.0.0.1 {}", primary.port);
    let replica = Server::start(&["--replicaof", &address]).await;
    let named = format!("127.0.0.1:{}", primary.port);
    refused(&replica.url(), Code::Invalid, &["is a replica", &named]).await;
    let (wakeups, _wakeups) = tokio::sync::mpsc::unbounded_channel();
    let opened = ClusterClient::open_with(&primary.url(), 2, wakeups, TIMEOUTS).await;
    let (_, findings) = opened.unwrap();
    let text = "of 2 replicas that are to confirm each change";
    assert!(findings.warnings.iter().any(|warning| warning.contains(text)), "{findings:?}");
}

#[tokio::test]
async fn unknown_databases_and_false_clusters_are_refused() {
    let server = Server::start(&[]).await;
    connect(&format!("{}/3", server.url())).await;
    refused(&format!("{}/99", server.url()), Code::Invalid, &["no database 99"]).await;
    let both = format!("{},127.0.0.1:1", server.url());
    refused(&both, Code::Invalid, &["names 2 nodes", "not part of a cluster"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_must_be_whole() {
    let cluster = Cluster::start(2).await;
    let url = cluster.nodes[0].url();
    refused(&format!("{url}/1"), Code::Invalid, &["no database 1", "cluster has only 0"]).await;
    let (client, findings, _) =
        connect(&format!("redis://127.0.0.1:1,127.0.0.1:{}", { cluster.nodes[0].port })).await;
    assert!(client.is_cluster());
    assert_eq!((findings.is_cluster, findings.primaries), (true, 2));
    for node in &cluster.nodes {
        node.query("CLUSTER DELSLOTS 7").await;
    }
    refused(&url, Code::Unavailable, &["1 of 16384 slots", "--cluster check"]).await;
}
