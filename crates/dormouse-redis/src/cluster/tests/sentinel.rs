//! Sentinels that say what the test wants, and real servers that they name. Failovers by real
//! sentinels are in dormouse-check.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use dormouse_core::error::Code;

use super::harness::{Server, call, connect, counting, free_port, refusal, run, until};

/// The port of the primary, and the configuration epoch; `None` is silence.
type Claim = Option<(u16, u64)>;

/// A sentinel of the service `main`.
struct Sentinel {
    port: u16,
    claim: Arc<Mutex<Claim>>,
}

impl Sentinel {
    fn start(claim: Claim) -> Sentinel {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let claim = Arc::new(Mutex::new(claim));
        let shared = Arc::clone(&claim);
        // It ends with the process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let claim = Arc::clone(&shared);
                std::thread::spawn(move || serve(&stream, &claim));
            }
        });
        Sentinel { port, claim }
    }

    fn say(&self, claim: Claim) {
        *self.claim.lock().unwrap() = claim;
    }
}

fn url(sentinels: &[&Sentinel]) -> String {
    let hosts: Vec<String> = sentinels.iter().map(|s| format!("127.0.0.1:{}", s.port)).collect();
    format!("redis+sentinel://{}/main", hosts.join(","))
}

/// Answers commands until the connection ends.
fn serve(stream: &TcpStream, claim: &Mutex<Claim>) {
    let mut input = BufReader::new(stream);
    while let Some(words) = read_command(&mut input) {
        let Some((port, epoch)) = *claim.lock().unwrap() else { continue };
        let (port, epoch) = (port.to_string(), epoch.to_string());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let answer = match &words[..] {
            ["SENTINEL", _, service] if *service != "main" => {
                "-ERR No such master with that name\r\n".to_owned()
            }
            ["SENTINEL", "MASTER", _] => map(&[("name", "main"), ("config-epoch", &epoch)]),
            ["SENTINEL", "MASTERS"] => format!("*1\r\n{}", map(&[("name", "main")])),
            ["SENTINEL", ..] => format!("*2\r\n{}{}", bulk("127.0.0.1"), bulk(&port)),
            ["HELLO", ..] => map(&[("proto", "3")]),
            _ => "+OK\r\n".to_owned(),
        };
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn map(fields: &[(&str, &str)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(n, v)| bulk(n) + &bulk(v)).collect();
    format!("%{}\r\n{}", fields.len(), fields.concat())
}

fn read_command(input: &mut impl BufRead) -> Option<Vec<String>> {
    let count = read_number(input)?;
    let word = |_| {
        let mut bytes = vec![0; read_number(input)? + 2];
        input.read_exact(&mut bytes).ok()?;
        bytes.truncate(bytes.len() - 2);
        String::from_utf8(bytes).ok()
    };
    (0..count).map(word).collect()
}

/// The number of a line such as `*3` or `$5`.
fn read_number(input: &mut impl BufRead) -> Option<usize> {
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    line.get(1..)?.trim_end().parse().ok()
}

async fn keys(server: &Server) -> String {
    server.query_text("DBSIZE").await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_answer_counts() {
    let (old, new) = (Server::start(&[]).await, Server::start(&[]).await);
    let sentinels = [
        Sentinel::start(Some((old.port, 1))),
        Sentinel::start(Some((new.port, 2))),
        Sentinel::start(None),
    ];
    let [first, second, third] = &sentinels;
    let (client, findings, _) = connect(&url(&[first, second, third])).await;
    assert!(!client.is_cluster());
    assert_eq!((findings.is_cluster, findings.primaries), (false, 1));
    let script = counting();
    assert_eq!(run(&client, &call(&script, "t", "a")).await, 1);
    assert_eq!((keys(&old).await, keys(&new).await), ("0".to_owned(), "1".to_owned()));
}

/// A sentinel of the machine of the old primary starts again with it, while the others are away.
#[tokio::test(flavor = "multi_thread")]
async fn one_old_answer_is_not_followed_but_most_are() {
    let (old, new) = (Server::start(&[]).await, Server::start(&[]).await);
    let sentinels = [0, 1, 2].map(|_| Sentinel::start(Some((new.port, 7))));
    let [first, second, third] = &sentinels;
    let (client, ..) = connect(&url(&[first, second, third])).await;
    second.say(None);
    third.say(None);
    first.say(Some((old.port, 6)));
    let asked = |client: &super::super::ClusterClient| {
        client.inner.topology.sentinels.as_ref().unwrap().failures()
    };
    until("the old answer was refused", async || asked(&client) >= 2).await;
    let script = counting();
    assert_eq!(run(&client, &call(&script, "t", "a")).await, 1);
    assert_eq!((keys(&old).await, keys(&new).await), ("0".to_owned(), "1".to_owned()));
    // All were set up anew, and count epochs from the beginning.
    second.say(Some((old.port, 0)));
    until("most of them are followed", async || {
        run(&client, &call(&script, "t", "b")).await;
        keys(&old).await == "1"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_follow_the_sentinels_while_the_old_primary_still_answers() {
    let (old, new) = (Server::start(&[]).await, Server::start(&[]).await);
    let sentinel = Sentinel::start(Some((old.port, 0)));
    let (client, ..) = connect(&url(&[&sentinel])).await;
    let script = counting();
    assert_eq!(run(&client, &call(&script, "t", "a")).await, 1);
    sentinel.say(Some((new.port, 1)));
    until("calls go to the new primary", async || {
        run(&client, &call(&script, "t", "b")).await;
        keys(&new).await == "1"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_not_followed() {
    let primary = Server::start(&[]).await;
    let replica = Server::start(&["--replicaof", &format!("127.0.0.1 {}", primary.port)]).await;
    let sentinel = Sentinel::start(Some((replica.port, 0)));
    let error = refusal(&url(&[&sentinel]), 0).await;
    let named = format!("name 127.0.0.1:{} as the primary of `main`", replica.port);
    assert_eq!(error.code, Code::Unavailable, "{error}");
    assert!(error.text.contains(&named) && error.text.contains("it is a replica"), "{error}");
    replica.query("REPLICAOF NO ONE").await;
    connect(&url(&[&sentinel])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_at_the_start_say_what_to_do() {
    async fn refused(url: &str, code: Code, parts: &[&str]) {
        let error = refusal(url, 0).await;
        assert_eq!(error.code, code, "{error}");
        for part in parts {
            assert!(error.text.contains(part), "no `{part}` in: {error}");
        }
    }
    let port = free_port();
    let nobody = format!("127.0.0.1:{port}");
    let silent = Sentinel::start(None);
    let both = format!("redis+sentinel://{nobody},127.0.0.1:{}/main", silent.port);
    let silence = format!("the sentinel at 127.0.0.1:{} has not answered", silent.port);
    refused(&both, Code::Unavailable, &["none of the 2 sentinels", &nobody, &silence]).await;

    let sentinel = Sentinel::start(Some((port, 0)));
    let other = url(&[&sentinel]).replace("/main", "/other");
    refused(&other, Code::Invalid, &["does not monitor `other`, but `main`"]).await;
    let dead = format!("name {nobody} as the primary of `main`");
    let parts = [&dead, "cannot be reached", "choose another"];
    refused(&url(&[&sentinel]), Code::Unavailable, &parts).await;

    let server = Server::start(&[]).await;
    let plain = format!("redis+sentinel://127.0.0.1:{}/main", server.port);
    refused(&plain, Code::Invalid, &["is not a sentinel", "26379", "redis://"]).await;
    let node = Server::start(&["--cluster-enabled", "yes"]).await;
    sentinel.say(Some((node.port, 0)));
    refused(&url(&[&sentinel]), Code::Invalid, &["part of a cluster", "by redis://"]).await;
}
