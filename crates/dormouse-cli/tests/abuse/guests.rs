//! Clients without a token, or with one that gives no right here, keep nobody out.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::block_on;
use crate::connection::{Conn, connect_from, head_as};
use crate::limited::Server;
use crate::victim::{self, VICTIM};

const TIMEOUT: Duration = Duration::from_secs(60);
/// More than `connections_max` below.
const SILENT: usize = 400;
/// They would fill the memory for small bodies.
const BODIES: usize = 513;

/// Clients that connect, say nothing, and connect again when they are closed.
fn silent(addrs: &[SocketAddr]) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for number in 0..SILENT {
        let addr = addrs[number % addrs.len()];
        tasks.spawn(async move {
            loop {
                if let Ok(mut stream) = connect_from(2, addr).await {
                    let _ = stream.read_to_end(&mut Vec::new()).await;
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
    }
    tasks
}

#[test]
fn silent_guests_keep_nobody_out() {
    let server = Server::with_tokens(&[(VICTIM, "*:*")], &["--connections-max", "300"]);
    let (http, resp) = (server.addr(), server.resp());
    block_on(async {
        let attack = async { silent(&[resp, resp, http]) };
        let attackers = victim::check("silent guests", http, attack).await;
        for _ in 0..20 {
            let ask = async {
                Conn::open(http).await.ask(head_as(None, "GET", "/readyz", 0).as_bytes()).await
            };
            let (status, text) = timeout(TIMEOUT, ask).await.unwrap();
            assert_eq!(status, 200, "{text}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        drop(attackers);
    });
    server.stop();
}

/// Sends this part of a request's body.
async fn unfinished(token: &str, http: SocketAddr, bytes: usize) -> TcpStream {
    let mut stream = connect_from(2, http).await.unwrap();
    let mut request = head_as(Some(token), "POST", "/v1/ack", 65_536).into_bytes();
    request.resize(request.len() + bytes, b' ');
    // It may be refused and closed before all is sent.
    let _ = stream.write_all(&request).await;
    stream
}

/// As many as fill the memory for small bodies; the last ones fill what is left.
pub(crate) async fn unfinished_bodies(token: &str, http: SocketAddr) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for (count, bytes) in [(BODIES, 65_500), (20, 2_000), (20, 200), (20, 20), (20, 1)] {
        for _ in 0..count {
            streams.push(unfinished(token, http, bytes).await);
        }
    }
    streams
}

#[test]
fn bodies_of_a_token_without_the_right_keep_nobody_out() {
    let server = Server::with_tokens(&[(VICTIM, "*:*"), ("idle", "metrics:in.*")], &[]);
    let http = server.addr();
    let attack = unfinished_bodies("idle", http);
    block_on(victim::check("bodies without a right", http, attack));
    server.stop();
}
