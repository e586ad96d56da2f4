//! Calls that the server makes of many commands stop when their token is withdrawn.

use std::net::SocketAddr;
use std::sync::Arc;

use dormouse_core::backend::{Backend, Request, Sink};
use dormouse_core::command::Command;
use dormouse_core::error::Error;
use dormouse_core::limits::BATCH_MAX;
use dormouse_disk::engine::{Engine, Options as EngineOptions};
use dormouse_server::access::{Access, TokenEntry, hash_token};
use dormouse_server::{Options, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::Client;

/// An engine beside which a token is withdrawn as soon as the first jobs are kicked.
struct Revoking {
    engine: Engine,
    access: Access,
}

impl Backend for Revoking {
    fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        if batch.iter().any(|request| matches!(request.command, Command::Kick(_))) {
            self.access.replace(&access(&["admin"]));
        }
        self.engine.submit(batch, sink)
    }
}

fn access(tokens: &[&str]) -> Access {
    let entry = |name: &&str| TokenEntry {
        name: (*name).to_owned(),
        hash: hash_token(name),
        scopes: vec!["*:*".parse().unwrap()],
    };
    Access::new(tokens.iter().map(entry).collect()).unwrap()
}

/// A server with three batches of delayed jobs, of which nobody has kicked one.
async fn serve() -> (Server, Engine) {
    let engine = Engine::memory(EngineOptions::default());
    let access = access(&["admin", "old"]);
    let free = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let options = Options { http: free, resp: free, access: access.clone(), ..Options::default() };
    let backend = Revoking { engine: engine.clone(), access };
    let server = Server::start(Arc::new(backend), options).await.unwrap();
    let mut admin = Client::connect(server.resp_addr().unwrap()).await;
    assert_eq!(admin.ask("AUTH admin").await.str(), "OK");
    let put = b"*5\r\n$3\r\nPUT\r\n$1\r\nt\r\n$1\r\nx\r\n$5\r\nDELAY\r\n$2\r\n1h\r\n";
    for _ in 0..3 {
        admin.send(&put.repeat(BATCH_MAX)).await;
        for _ in 0..BATCH_MAX {
            admin.hear().await.str();
        }
    }
    (server, engine)
}

/// No more than the batch that was under way when the token was withdrawn.
async fn check_kicked(server: &Server) {
    let mut admin = Client::connect(server.resp_addr().unwrap()).await;
    assert_eq!(admin.ask("AUTH admin").await.str(), "OK");
    let stats = admin.ask("STATS t").await;
    assert_eq!(stats.field("ready").number(), BATCH_MAX as i64);
    assert_eq!(stats.field("delayed").number(), 2 * BATCH_MAX as i64);
}

#[tokio::test]
async fn a_kick_over_resp_stops_when_its_token_is_withdrawn() {
    let (server, _engine) = serve().await;
    let mut old = Client::connect(server.resp_addr().unwrap()).await;
    assert_eq!(old.ask("AUTH old").await.str(), "OK");
    assert!(!old.ask("KICK t ALL").await.error("NOAUTH").is_empty());
    assert_eq!(old.try_hear().await, None);
    check_kicked(&server).await;
}

#[tokio::test]
async fn a_kick_over_http_stops_when_its_token_is_withdrawn() {
    let (server, _engine) = serve().await;
    let mut old = TcpStream::connect(server.http_addr().unwrap()).await.unwrap();
    let request = "POST /v1/topics/t/kick HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                   Authorization: Bearer old\r\nContent-Length: 0\r\n\r\n";
    old.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    old.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    check_kicked(&server).await;
}
