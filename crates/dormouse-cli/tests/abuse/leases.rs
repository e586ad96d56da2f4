//! One token leases as much as it gets, for as long as it may: others go on, and an operator gets
//! it back with one command.

use std::process::Command;

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::block_on;
use crate::connection::{Conn, head_as};
use crate::limited::{Server, secret};
use crate::shares::{TIMEOUT, line, session};
use crate::victim::{self, VICTIM};

const MIB: usize = 1 << 20;
/// Of 256 MiB a topic alone has half.
const HALF: usize = 128;

/// Puts jobs of 1 MiB.
async fn fill(server: &Server, topic: &str, jobs: usize) {
    let mut conn = Conn::open(server.addr()).await;
    let head = head_as(Some("hog"), "POST", &format!("/v1/topics/{topic}/jobs"), MIB);
    let head = head.replace("application/json", "application/octet-stream");
    let put = [head.as_bytes(), &vec![b'x'; MIB]].concat();
    for _ in 0..jobs {
        let (status, text) = conn.ask(&put).await;
        assert_eq!(status, 201, "{text}");
    }
}

/// Reserves a job; gives the error if that is refused.
async fn reserve(stream: &mut BufReader<TcpStream>, topics: &str, ttr: &str) -> Result<(), String> {
    let command = format!("RESERVE {topics} TTR {ttr}\r\n");
    stream.write_all(command.as_bytes()).await.unwrap();
    let first = line(stream).await;
    if first != "*1\r\n" {
        return Err(first);
    }
    // Topic, id, token, attempt, due_at, body, ttr: the strings have a length before them.
    assert_eq!(line(stream).await, "*7\r\n");
    for _ in 0..3 * 2 + 2 {
        line(stream).await;
    }
    let length: usize = line(stream).await[1..].trim_end().parse().unwrap();
    let mut body = vec![0; length + 2];
    timeout(TIMEOUT, stream.read_exact(&mut body)).await.unwrap().unwrap();
    line(stream).await;
    Ok(())
}

/// The command line, with the rights of an operator.
fn operate(server: &Server, args: &[&str]) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_dormouse"))
        .args(["--url", &format!("http://{}", server.addr())])
        .args(args)
        .env("DORMOUSE_TOKEN", secret("operator"))
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn leases_of_one_topic_leave_some_to_others_and_can_be_freed() {
    let tokens =
        [(VICTIM, "*:*"), ("hog", "producer,consumer,lock:in.*"), ("operator", "operator:*")];
    let server = Server::unlimited(&tokens);
    block_on(async {
        let attack = async {
            fill(&server, "in.hog", HALF + 2).await;
            let mut hog = session("hog", server.resp()).await;
            let refused = reserve(&mut hog, "in.hog", "36500d").await.unwrap_err();
            assert!(refused.starts_with("-INVALID") && refused.contains("ttr_max"), "{refused}");
            let mut leased = 0;
            let refused = loop {
                match reserve(&mut hog, "in.hog", "24h").await {
                    Ok(()) => leased += 1,
                    Err(refused) => break refused,
                }
            };
            assert_eq!(leased, HALF);
            assert!(refused.starts_with("-OVERLOADED"), "{refused}");
            assert!(refused.contains("topic in.hog") && refused.contains("share"), "{refused}");
            hog
        };
        let mut hog = victim::check("leases", server.addr(), attack).await;
        assert_eq!(operate(&server, &["kick", "in.hog", "--leased", "--all"]), "128 released\n");
        reserve(&mut hog, "in.hog", "1h").await.unwrap();
    });
    server.stop();
}

/// No topic has its share, but all of them together have that of the token.
#[test]
fn leases_of_one_token_in_many_topics_leave_some_to_others() {
    let server = Server::unlimited(&[(VICTIM, "*:*"), ("hog", "producer,consumer:in.*")]);
    let topics = ["in.a", "in.b", "in.c", "in.d"];
    block_on(async {
        let attack = async {
            for topic in topics {
                fill(&server, topic, HALF / topics.len() + 1).await;
            }
            let mut hog = session("hog", server.resp()).await;
            let mut leased = 0;
            let refused = loop {
                match reserve(&mut hog, topics[leased % topics.len()], "24h").await {
                    Ok(()) => leased += 1,
                    Err(refused) => break refused,
                }
            };
            assert_eq!(leased, HALF);
            assert!(refused.starts_with("-OVERLOADED"), "{refused}");
            assert!(refused.contains("token `hog` has 128 jobs"), "{refused}");
            hog
        };
        drop(victim::check("leases of many topics", server.addr(), attack).await);
    });
    server.stop();
}

#[test]
fn a_lock_that_somebody_keeps_is_found_and_broken() {
    let tokens = [(VICTIM, "*:*"), ("hog", "lock:in.*"), ("operator", "operator:*")];
    let server = Server::with_tokens(&tokens, &[]);
    block_on(async {
        let mut hog = session("hog", server.resp()).await;
        hog.write_all(b"LOCK in.a me TTL 36500d\r\n").await.unwrap();
        let refused = line(&mut hog).await;
        assert!(refused.starts_with("-INVALID") && refused.contains("ttr_max"), "{refused}");
        hog.write_all(b"LOCK in.a me TTL 24h\r\n").await.unwrap();
        assert_eq!(line(&mut hog).await, "*3\r\n");
    });
    let listed = operate(&server, &["lock", "ls", "--prefix", "in."]);
    assert!(listed.contains("in.a") && listed.contains("me"), "{listed}");
    assert_eq!(operate(&server, &["lock", "break", "in.a"]), "broken\n");
    assert!(!operate(&server, &["lock", "ls"]).contains("in.a"));
    server.stop();
}
