//! One token takes as much as it gets of what all share: others find their part.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::block_on;
use crate::connection::{connect_from, head_as};
use crate::guests::unfinished_bodies;
use crate::limited::{Server, secret};
use crate::victim::{self, VICTIM};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Opens an event stream; returns its status.
async fn follow(token: &str, http: SocketAddr) -> (TcpStream, String) {
    let mut stream = connect_from(2, http).await.unwrap();
    let head = head_as(Some(token), "GET", "/v1/events", 0);
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    timeout(TIMEOUT, stream.read_exact(&mut status)).await.unwrap().unwrap();
    (stream, String::from_utf8(status[9..].to_vec()).unwrap())
}

#[test]
fn streams_of_one_token_leave_some_to_others() {
    let server = Server::with_tokens(&[(VICTIM, "*:*"), ("hog", "viewer:in.*")], &[]);
    let http = server.addr();
    block_on(async {
        let attack = async {
            let mut streams = Vec::new();
            for _ in 0..200 {
                streams.push(follow("hog", http).await);
            }
            streams
        };
        let streams = victim::check("event streams", http, attack).await;
        assert!(streams.iter().any(|(_, status)| status == "503"), "it got all");
        for _ in 0..50 {
            assert_eq!(follow(VICTIM, http).await.1, "200");
        }
    });
    server.stop();
}

/// A RESP connection with this token.
pub(crate) async fn session(token: &str, resp: SocketAddr) -> BufReader<TcpStream> {
    let mut stream = BufReader::new(connect_from(2, resp).await.unwrap());
    let auth = format!("AUTH {}\r\n", secret(token));
    stream.write_all(auth.as_bytes()).await.unwrap();
    assert_eq!(line(&mut stream).await, "+OK\r\n");
    stream
}

pub(crate) async fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    timeout(TIMEOUT, stream.read_line(&mut line)).await.unwrap().unwrap();
    line
}

/// A put without the end of its body.
fn unfinished_put(bytes: usize) -> Vec<u8> {
    let mut put = format!("*3\r\n$3\r\nPUT\r\n$5\r\nout.x\r\n${bytes}\r\n").into_bytes();
    put.resize(put.len() + bytes, b'x');
    put
}

/// Puts some jobs, each in two parts.
async fn put_some(resp: SocketAddr) {
    let mut session = session(VICTIM, resp).await;
    for _ in 0..20 {
        session.write_all(&unfinished_put(60_000)).await.unwrap();
        session.write_all(b"\r\n").await.unwrap();
        let answer = line(&mut session).await;
        assert!(answer.starts_with('$'), "{answer}");
        line(&mut session).await;
    }
}

#[test]
fn unfinished_commands_of_one_token_leave_memory_to_others() {
    let server = Server::with_tokens(&[(VICTIM, "*:*"), ("hog", "put:in.*")], &[]);
    let (http, resp) = (server.addr(), server.resp());
    block_on(async {
        let attack = async {
            let mut sessions = Vec::new();
            // The last ones fill what is left.
            for (count, bytes) in [(40, 2_000_000), (30, 50_000), (30, 5_000)] {
                for _ in 0..count {
                    let mut session = session("hog", resp).await;
                    // It may be closed before all is sent.
                    let _ = session.write_all(&unfinished_put(bytes)).await;
                    sessions.push(session);
                }
            }
            put_some(resp).await;
            sessions
        };
        victim::check("unfinished commands", http, attack).await;
    });
    server.stop();
}

/// As many bodies as all together may have, by a token that may send them.
#[test]
fn bodies_of_one_token_leave_memory_to_others() {
    let server = Server::with_tokens(&[(VICTIM, "*:*"), ("hog", "ack:in.*")], &[]);
    let http = server.addr();
    block_on(victim::check("bodies", http, unfinished_bodies("hog", http)));
    server.stop();
}
