//! The command line against an HTTPS server.

use std::path::Path;

use crate::authority::Authority;
use crate::process::{Process, ProcessEnd, command};
use crate::server::Server;

fn dormouse(url: &str, ca_file: &Path, args: &[&str]) -> ProcessEnd {
    let mut command = command(args);
    command.arg("--url").arg(url).arg("--ca-file").arg(ca_file);
    Process::start(command).wait()
}

#[test]
fn a_trusted_server_is_used_as_any_other() {
    let server = Server::start();
    let ca_file = server.authority.write(server.dir.path());
    let put = dormouse(&server.url(), &ca_file, &["put", "mails", "hello"]);
    assert_eq!(put.code, Some(0), "{put:?}");
    let work = ["work", "mails", "--drain"];
    let mut command = command(&work);
    command.arg("--url").arg(server.url()).arg("--ca-file").arg(&ca_file);
    command.args(["--", "cat"]);
    let ended = Process::start(command).wait();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "hello"), "{ended:?}");
}

#[test]
fn an_untrusted_certificate_is_refused_with_the_way_out() {
    let server = Server::start();
    let elsewhere = tempfile::tempdir().unwrap();
    let ca_file = Authority::new().write(elsewhere.path());
    let health = dormouse(&server.url(), &ca_file, &["health"]);
    assert_ne!(health.code, Some(0), "{health:?}");
    let expected = format!("the certificate of {} is not trusted", server.url());
    assert!(health.stderr.contains(&expected), "{health:?}");
    assert!(health.stderr.contains("--ca-file"), "{health:?}");
}

#[test]
fn a_certificate_of_another_name_is_refused() {
    let server = Server::start();
    let ca_file = server.authority.write(server.dir.path());
    let url = format!("https://[::ffff:127.0.0.1]:{}", server.http.port());
    let health = dormouse(&url, &ca_file, &["health"]);
    assert_ne!(health.code, Some(0), "{health:?}");
    assert!(health.stderr.contains("is not accepted"), "{health:?}");
    assert!(health.stderr.contains("not valid for name"), "{health:?}");
}

#[test]
fn a_server_without_tls_is_recognised() {
    let plain = crate::process::Server::start(&["--backend=memory"]);
    let dir = tempfile::tempdir().unwrap();
    let ca_file = Authority::new().write(dir.path());
    let url = format!("https://{}", plain.addr);
    let health = dormouse(&url, &ca_file, &["health"]);
    assert_ne!(health.code, Some(0), "{health:?}");
    assert!(health.stderr.contains("does it serve https?"), "{health:?}");
}

#[test]
fn a_file_without_certificates_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let ended = dormouse("https://localhost:1", &empty, &["health"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("there is no certificate in it"), "{ended:?}");
}
