//! Reasons not to start, and their messages.

use std::net::TcpListener;

use crate::process::{ProcessEnd, Server, run};

/// It does not start: with this exit code, saying this, and nothing on stdout.
fn check(ended: ProcessEnd, code: i32, parts: &[&str]) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert_eq!(ended.stdout, "");
    let last = ended.stderr.lines().last().unwrap_or_default();
    for part in parts {
        assert!(last.contains(part), "{part}: {ended:?}");
    }
}

#[test]
fn an_address_that_others_reach_without_a_token() {
    let ended = run(&["serve", "--backend", "memory", "--http", "0.0.0.0:0"]);
    check(ended, 2, &["0.0.0.0:0", "dormouse config token", "127.0.0.1", "--insecure"]);
}

#[test]
fn an_unknown_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dormouse.toml");
    std::fs::write(&path, "data = \"x\"\ndurabilty = \"synced\"\n").unwrap();
    let path = path.to_str().unwrap();
    let place = format!("{path}:2: unknown key `durabilty`; did you mean `durability`?");
    check(run(&["serve", "--config", path]), 2, &[&place]);
}

#[test]
fn a_port_in_use() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    for flag in ["--http", "--resp", "--beanstalk"] {
        let mut args = vec!["serve", "--backend", "memory", "--http", "127.0.0.1:0"];
        args.extend(["--resp", "off", flag, &addr]);
        let (other, off) = (format!("{flag} ADDR"), format!("{flag} off"));
        check(run(&args), 1, &["cannot listen on", &addr, "in use", &other, &off]);
    }
}

#[test]
fn a_file_where_a_socket_should_be() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let place = format!("unix:{}", file.path().display());
    let args = ["serve", "--backend", "memory", "--http", "off", "--resp", "off"];
    let ended = run(&[&args[..], &["--beanstalk", &place]].concat());
    check(ended, 1, &["cannot listen on", "not a socket", "--beanstalk ADDR"]);
}

#[test]
fn a_data_directory_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().to_str().unwrap();
    let first = Server::start(&["--data", data]);
    let ended = run(&["serve", "--data", data, "--http", "127.0.0.1:0"]);
    check(ended, 1, &[data, "in use by process", "choose another directory"]);
    assert_eq!(first.get("/v1/topics/a/nothing").status, 404);
}

#[test]
fn a_data_directory_that_is_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let data = file.path().to_str().unwrap();
    check(run(&["serve", "--data", data]), 1, &[data, "this is a file"]);
}

#[test]
fn a_redis_without_an_address_or_that_is_away() {
    check(run(&["serve", "--backend", "redis"]), 2, &["redis.url", "--redis-url"]);
    let url = "redis://127.0.0.1:1";
    check(run(&["serve", "--redis-url", url]), 2, &["redis.url", "--backend redis"]);
    let away = ["serve", "--backend", "redis", "--redis-url", url, "--http", "127.0.0.1:0"];
    check(run(&away), 1, &["127.0.0.1:1", "cannot be reached", "host and port"]);
}
