//! Tokens from the configuration to the answer.

use rustix::process::Signal;

use crate::process::{Server, request, run};

/// A new token, and its table.
fn token(name: &str, scope: &str) -> (String, String) {
    let ended = run(&["config", "token", "--name", name, "--scope", scope]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let token = ended.stderr.split_once("once: ").unwrap().1.lines().next().unwrap().to_owned();
    assert!(!ended.stdout.contains(&token));
    (token, format!("{}\n", ended.stdout))
}

fn put(server: &Server, topic: &str, token: Option<&str>) -> u16 {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<(&str, &str)> =
        bearer.iter().map(|bearer| ("Authorization", bearer.as_str())).collect();
    request(server.addr, "POST", &format!("/v1/topics/{topic}/jobs"), &headers, "{}").status
}

#[test]
fn a_token_is_needed_and_limits_its_bearer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dormouse.toml");
    let (shop, table) = token("shop", "producer:orders.*");
    std::fs::write(&path, &table).unwrap();
    let args = ["--backend", "memory", "--config", path.to_str().unwrap()];
    let server = Server::start(&args);
    assert_eq!(put(&server, "orders.eu", Some(&shop)), 201);
    assert_eq!(put(&server, "mails", Some(&shop)), 403);
    assert_eq!(put(&server, "orders.eu", None), 401);
    assert_eq!(put(&server, "orders.eu", Some("a-wrong-token")), 401);
    let line = server.process.wait_for("127.0.0.1 was refused");
    assert!(line.contains("unknown token, 1 times (http)") && !line.contains("wrong"), "{line}");

    // Another one takes its place while the server runs.
    let (mail, table) = token("mail", "put:mails");
    std::fs::write(&path, &table).unwrap();
    server.process.signal(Signal::HUP);
    server.process.wait_for("tokens are read again: 1");
    assert_eq!(put(&server, "mails", Some(&mail)), 201);
    assert_eq!(put(&server, "orders.eu", Some(&shop)), 401);

    // A mistake changes nothing.
    std::fs::write(&path, "[[tokens]]\nnmae = \"x\"\n").unwrap();
    server.process.signal(Signal::HUP);
    server.process.wait_for("the old tokens stay: ");
    assert_eq!(put(&server, "mails", Some(&mail)), 201);

    let ended = server.stop();
    assert_eq!(ended.code, Some(0));
    for secret in [&shop, &mail] {
        assert!(!ended.stderr.contains(secret.as_str()), "{ended:?}");
    }
}

#[test]
fn with_tokens_others_may_be_served() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dormouse.toml");
    std::fs::write(&path, token("a", "*:*").1).unwrap();
    let args = ["--http", "0.0.0.0:0", "--backend", "memory", "--config", path.to_str().unwrap()];
    let server = Server::start(&args);
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn tokens_do_not_vanish_while_the_server_runs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dormouse.toml");
    let (shop, table) = token("shop", "producer:*");
    std::fs::write(&path, format!("http = \"0.0.0.0:0\"\n{table}")).unwrap();
    let args = ["serve", "--resp=off", "--backend=memory", "--config", path.to_str().unwrap()];
    let server = Server::ready(crate::process::command(&args));
    assert_eq!(put(&server, "mails", None), 401);

    // Right for a server on that address; this one listens on another.
    std::fs::write(&path, "http = \"127.0.0.1:0\"\n").unwrap();
    server.process.signal(Signal::HUP);
    server.process.wait_for("restart to serve without tokens");
    assert_eq!(put(&server, "mails", None), 401);
    assert_eq!(put(&server, "mails", Some(&shop)), 201);
    assert_eq!(server.stop().code, Some(0));
}
