//! Who else may read what the server writes.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use crate::process::{Process, Server, clean, run};

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Everything below a directory, itself included.
fn walk(path: &Path, found: &mut Vec<(String, u32, bool)>) {
    found.push((path.display().to_string(), mode(path), path.is_dir()));
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            walk(&entry.unwrap().path(), found);
        }
    }
}

#[test]
fn nobody_else_may_read_what_is_written_whatever_the_umask() {
    let dir = tempfile::tempdir().unwrap();
    let (data, socket) = (dir.path().join("a/data"), dir.path().join("d.sock"));
    let place = format!("unix:{}", socket.display());
    let script = "umask 0; exec \"$0\" \"$@\"";
    let program = env!("CARGO_BIN_EXE_dormouse");
    let (http, data_arg) = ("--http=127.0.0.1:0", format!("--data={}", data.display()));
    // So small that the first jobs make runs, checkpoints and more segments.
    let sizes = ["--store-memtable-bytes=16384", "--store-segment-bytes=16384"];
    let args =
        ["-c", script, program, "serve", http, "--resp=off", &data_arg, "--beanstalk", &place];
    let server = Server::ready(clean(Command::new("sh"), &[&args[..], &sizes].concat()));
    for _ in 0..20 {
        let put =
            server.post("/v1/topics/a/jobs", &format!("{{\"text\": \"{}\"}}", "x".repeat(4_000)));
        assert_eq!(put.status, 201, "{put:?}");
    }
    assert_eq!(server.post("/v1/backups", "{\"name\": \"b\"}").status, 200);
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(server.stop().code, Some(0));
    let mut found = Vec::new();
    walk(&dir.path().join("a"), &mut found);
    for part in ["lock", "manifest", "journal-", "run-", "checkpoint-", "backups/b/manifest"] {
        assert!(found.iter().any(|(path, ..)| path.contains(part)), "{part}: {found:?}");
    }
    for (path, mode, is_dir) in found {
        assert_eq!(mode, if is_dir { 0o700 } else { 0o600 }, "{path}: {mode:o}");
    }
}

#[test]
fn nothing_is_written_through_a_link_in_the_data_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (data, elsewhere) = (dir.path().join("data"), dir.path().join("elsewhere"));
    let precious = dir.path().join("precious");
    std::fs::create_dir(&data).unwrap();
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(&precious, "precious").unwrap();
    symlink(&precious, data.join("lock")).unwrap();
    let args = ["serve", "--http=127.0.0.1:0", "--resp=off", "--data", data.to_str().unwrap()];
    let refused = run(&args);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("`lock` is not a plain file"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");

    std::fs::remove_file(data.join("lock")).unwrap();
    symlink(&elsewhere, data.join("backups")).unwrap();
    let server = Server::start(&["--data", data.to_str().unwrap()]);
    let made = server.post("/v1/backups", "{\"name\": \"b\"}");
    assert!(made.status == 422 && made.body.contains("is a symbolic link"), "{made:?}");
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_data_directory_of_all_is_warned_about_and_refused_if_strict() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().to_str().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let server = Server::start(&["--data", data]);
    let line = server.process.wait_for("the data directory");
    assert!(line.contains("0777") && line.contains("chmod go-w,o="), "{line}");
    assert_eq!(server.stop().code, Some(0));
    let refused = run(&["serve", "--strict", "--http=127.0.0.1:0", "--data", data]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("chmod go-w,o="), "{refused:?}");
    let process = Process::start(crate::process::command(&["beanstalkd", "-p", "0", "-b", data]));
    process.wait_for("the data directory");
}
