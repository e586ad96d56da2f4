//! Exit codes, and what is said on stderr.

use std::io::Read as _;
use std::net::TcpListener;

use crate::fake::{Fake, Response, problem};
use crate::util::{dormouse, finish, run};

fn check(status: u16, code: &'static str, expected: i32) {
    let fake = Fake::start(move |_| problem(status, code));
    let done = run(&fake.url, &["get", "7"]).exits(expected);
    assert_eq!(done.stderr, format!("dormouse: {code}: detail of {code}\n"));
    assert_eq!(done.stdout, "");
}

#[test]
fn every_error_code_has_its_exit_code() {
    check(404, "not_found", 3);
    check(409, "conflict", 4);
    check(409, "lease_lost", 4);
    check(503, "busy", 6);
    check(503, "unavailable", 6);
    check(507, "full", 6);
    check(422, "invalid", 1);
    check(403, "forbidden", 1);
    check(504, "unconfirmed", 5);
}

#[test]
fn a_server_that_is_away_is_said_to_be() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let done = run(&format!("http://{free}"), &["stats"]).exits(5);
    assert!(done.stderr.contains("is the server running?"), "{}", done.stderr);
}

#[test]
fn a_server_that_hangs_up_is_unreachable() {
    let fake = Fake::start(|_| Response::Close);
    let done = run(&fake.url, &["stats"]).exits(5);
    assert!(done.stderr.contains("without an answer"), "{}", done.stderr);
}

#[test]
fn another_program_on_the_port_is_recognised() {
    let fake = Fake::always(200, "<html>welcome");
    let done = run(&fake.url, &["stats"]).exits(1);
    assert!(done.stderr.contains("is it a Dormouse server"), "{}", done.stderr);
    let fake = Fake::always(502, "bad gateway");
    run(&fake.url, &["stats"]).exits(6);
}

#[test]
fn wrong_usage_is_2() {
    let fake = Fake::always(200, "{}");
    for args in [
        &["fly"][..],
        &["get"],
        &["get", "seven"],
        &["get", "orders"],
        &["get", "7", "k", "--key", "k"],
        &["get", "t", "--topic", "t", "--key", "k"],
        &["put", "t", "x", "--delay", "-5s"],
        &["get", "--key", "k"],
        &["put", "orders", "x", "--delay", "soon"],
        &["put", "orders", "x", "--delay", "1s", "--at", "2027-01-01T00:00:00Z"],
        &["put", "orders", "{", "--json"],
        &["put", "orders", "--ndjson", "--delay", "1s"],
        &["put", "orders", "--file", "/no/such/file"],
        &["reschedule", "7"],
        &["work", "orders"],
        &["lock", "nightly"],
        &["kill", "seven"],
        &["revive", "orders"],
        &["topic", "set", "orders"],
        &["ls", "orders", "--cursor", "c"],
        &["serve", "--token", "secret"],
        &["--url", "http://127.0.0.1:1", "serve"],
        &["stats", "--url", "ftp://host"],
        &["stats", "--token-file", "/no/such/file"],
    ] {
        let done = run(&fake.url, args).exits(2);
        assert!(!done.stderr.is_empty(), "{args:?}");
    }
    assert!(fake.seen().is_empty());
}

#[test]
fn only_similar_words_are_suggested() {
    let check = |args: &[&str], hint: Option<&str>| {
        let done = run("", args).exits(2);
        let tip = done.stderr.lines().find_map(|line| line.trim().strip_prefix("tip: "));
        assert_eq!(tip.filter(|tip| tip.contains("similar")), hint, "{args:?}: {}", done.stderr);
    };
    check(&["cancle", "7"], Some("a similar subcommand exists: 'cancel'"));
    check(&["put", "a", "x", "--dleay", "1s"], Some("a similar argument exists: '--delay'"));
    check(&["stats", "-o", "jsn"], Some("a similar value exists: 'json'"));
    check(&["delete", "7"], None);
    check(&["put", "a", "x", "--later", "1s"], None);
    check(&["stats", "-o", "tell"], None);
}

#[test]
fn a_reader_that_left_is_no_error() {
    let fake = Fake::always(200, "{}");
    let mut child = dormouse(&fake.url, &["completions", "bash"]).spawn().unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
}

#[test]
fn the_token_is_sent_and_asked_for() {
    let fake = Fake::start(|_| problem(401, "unauthorized"));
    let done = run(&fake.url, &["stats"]).exits(1);
    assert!(done.stderr.contains("give --token"), "{}", done.stderr);
    assert!(!fake.only().head.contains("authorization"));

    let done = run(&fake.url, &["stats", "--token", "S3cret"]).exits(1);
    assert!(!done.stderr.contains("give --token"), "{}", done.stderr);
    assert!(done.stderr.contains("warning: --token shows the token"), "{}", done.stderr);
    assert!(!done.stderr.contains("S3cret"), "{}", done.stderr);
    assert!(fake.seen()[1].head.contains("authorization: Bearer S3cret"));

    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "from-file\n").unwrap();
    let path = file.path().to_str().unwrap();
    let mut command = dormouse(&fake.url, &["--token-file", path, "stats"]);
    let done = finish(command.env("DORMOUSE_TOKEN", "other").spawn().unwrap()).exits(1);
    assert!(!done.stderr.contains("warning"), "{}", done.stderr);
    assert!(fake.seen()[2].head.contains("authorization: Bearer from-file"));
}

#[test]
fn options_are_shown_where_they_are_used() {
    let check = |args: &[&str], of_clients: bool, output: bool| {
        let help = run("", &[args, &["--help"]].concat()).exits(0).stdout;
        for option in ["--url <", "--token <", "--token-file <", "--ca-file <"] {
            assert_eq!(help.contains(option), of_clients, "{args:?} {option}: {help}");
        }
        assert_eq!(help.contains("--output <"), output, "{args:?}: {help}");
    };
    for args in [&[][..], &["put"], &["bench"], &["health"], &["topic", "set"], &["tail"]] {
        check(args, true, true);
    }
    for args in [&["verify"][..], &["config"], &["config", "check"], &["config", "token"]] {
        check(args, false, true);
    }
    for args in [["serve"], ["beanstalkd"], ["completions"]] {
        check(&args, false, false);
    }
}

#[test]
fn options_are_refused_where_they_mean_nothing() {
    for args in [
        &["verify", "x", "--url", "http://127.0.0.1:1"][..],
        &["--token", "t", "config", "check"],
        &["config", "token", "--token-file", "x"],
        &["completions", "bash", "--ca-file", "x"],
        &["beanstalkd", "--url", "http://127.0.0.1:1"],
    ] {
        let done = run("", args).exits(2);
        assert!(done.stderr.contains("for commands that talk to a server"), "{}", done.stderr);
    }
    let mut command = dormouse("http://127.0.0.1:1", &["config", "example"]);
    finish(command.env("DORMOUSE_TOKEN", "t").spawn().unwrap()).exits(0);
}

#[test]
fn every_subcommand_explains_itself_with_an_example() {
    let top = run("", &["--help"]).exits(0).stdout;
    let commands = top.split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
    let names: Vec<&str> = commands
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .collect();
    assert!(names.len() > 25, "{names:?}");
    for name in names {
        let help = run("", &[name, "--help"]).exits(0).stdout;
        assert!(help.contains("dormouse ") && help.contains("Example"), "{name}: {help}");
    }
}
