//! Clients without a token where one is needed.

use std::net::SocketAddr;
use std::time::Duration;

use dormouse_server::Options;
use dormouse_server::limits::{GUEST_MS_MAX, REFUSAL_MS, REFUSALS_AT_ONCE};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};

use crate::client::{Client, command};
use crate::rig::{Rig, access};
use crate::value::status;

/// More than a busy computer takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Reads until the server closes; the last reply must tell why.
async fn is_sent_away(mut client: Client, began: Instant) {
    let mut last = None;
    let closed = async {
        while let Some(reply) = client.try_hear().await {
            last = Some(reply);
        }
    };
    timeout(TIMEOUT, closed).await.expect("it is still connected");
    assert!(last.unwrap().error("NOAUTH").contains("no access token came in time"));
    assert!(began.elapsed() >= Duration::from_millis(GUEST_MS_MAX), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_guest_is_closed_unless_it_presents_a_token_in_time() {
    let rig = Rig::with_tokens(&[("admin", &["*:*"])]).await;
    let began = Instant::now();
    let mut known = rig.client_of("admin").await;
    let silent = rig.client().await;
    let mut wrong = rig.client().await;
    assert!(!wrong.ask("AUTH wrong").await.error("WRONGPASS").is_empty());
    let mut asking = rig.client().await;
    let mut forgetful = rig.client_of("admin").await;
    let busy = async move {
        // Whatever it sends does not prolong its time.
        while began.elapsed() < Duration::from_millis(GUEST_MS_MAX) - Duration::from_secs(1) {
            assert!(!asking.ask("PING").await.error("NOAUTH").is_empty());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        is_sent_away(asking, began).await;
    };
    assert_eq!(forgetful.ask("RESET").await, status("RESET"));
    tokio::join!(
        is_sent_away(silent, began),
        is_sent_away(wrong, began),
        is_sent_away(forgetful, began),
        busy
    );
    assert_eq!(known.ask("PING").await, status("PONG"));
}

#[tokio::test]
async fn who_guesses_tokens_is_slowed_and_nobody_else() {
    let rig = Rig::with_tokens(&[("admin", &["*:*"])]).await;
    let mut guesser = rig.client().await;
    let guesses = REFUSALS_AT_ONCE + 10;
    let began = Instant::now();
    guesser.send(&command(&["AUTH", "wrong"]).repeat(guesses as usize)).await;
    for _ in 0..guesses {
        assert!(!guesser.hear().await.error("WRONGPASS").is_empty());
    }
    // The first of them is paid for when it was sent.
    assert!(began.elapsed() >= Duration::from_millis(9 * REFUSAL_MS), "{:?}", began.elapsed());
    let good = timeout(TIMEOUT, rig.client_of("admin")).await.unwrap().ask("PING").await;
    assert_eq!(good, status("PONG"));
    assert_eq!(guesser.ask("AUTH admin").await, status("OK"));
}

/// The status of `/readyz` on a new connection.
async fn ready(http: SocketAddr) -> String {
    let mut socket = TcpStream::connect(http).await.unwrap();
    let request = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    socket.write_all(request).await.unwrap();
    let mut answer = String::new();
    timeout(TIMEOUT, socket.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

async fn connect_from(last: u8, to: SocketAddr) -> Client {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
    Client::of(socket.connect(to).await.unwrap())
}

/// With tokens and without: silent connections of one protocol leave room for the others.
#[tokio::test]
async fn many_silent_connections_keep_nobody_out() {
    let tokens = access(&[("admin", &["*:*"])]);
    for access in [tokens, dormouse_server::access::Access::open()] {
        let is_open = access.is_open();
        let rig = Rig::with_options(Options { access, connections_max: 64, ..Options::default() });
        let rig = rig.await;
        let mut silent = Vec::new();
        for _ in 0..100 {
            silent.push(rig.client().await);
        }
        // They are accepted in order: when the last is refused, there is no place left.
        let refused = silent.last_mut().unwrap().hear().await;
        assert!(refused.error("ERR").contains("max number of clients"), "{refused:?}");
        assert_eq!(ready(rig.server.http_addr().unwrap()).await, "200", "open: {is_open}");
        if !is_open {
            // Another address has a place among the guests, too.
            let mut other = connect_from(2, rig.addr).await;
            assert_eq!(other.ask("AUTH admin").await, status("OK"));
        }
    }
}
