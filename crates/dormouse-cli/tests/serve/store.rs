//! A store that fails while it is served.

use std::process::Command;

use crate::process::{Server, clean};

/// The operating system refuses to let files grow beyond 64 KiB.
#[test]
fn a_store_that_cannot_write_ends_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().to_str().unwrap();
    let mut shell = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 128; exec \"$0\" \"$@\"";
    shell.args(["-c", script, env!("CARGO_BIN_EXE_dormouse")]);
    let args = ["serve", "--data", data, "--http", "127.0.0.1:0", "--resp", "off"];
    let server = Server::ready(clean(shell, &args));
    let body = format!("{{\"text\": \"{}\"}}", "x".repeat(100_000));
    let put = server.post("/v1/topics/a/jobs", &body);
    assert_eq!(put.status, 503, "{put:?}");
    let ended = server.process.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let last = ended.stderr.lines().last().unwrap_or_default();
    assert!(last.contains("the store has stopped: "), "{ended:?}");
    assert!(last.contains("journal"), "{ended:?}");

    // Nothing is broken: with room it goes on.
    let server = Server::start(&["--data", data]);
    assert_eq!(server.post("/v1/topics/a/jobs", &body).status, 201);
    assert_eq!(server.stop().code, Some(0));
}
