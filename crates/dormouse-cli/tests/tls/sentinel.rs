//! Redis and its sentinels by TLS: `rediss+sentinel://`. Trusted are the roots of the system, or
//! those in the file that `SSL_CERT_FILE` names.

use std::path::Path;
use std::time::Instant;

use dormouse_check::harness::redis::{RedisConfig, SentinelRig};
use tempfile::TempDir;

use crate::authority::Authority;
use crate::process::{Process, command, run};

/// A primary, a replica and a sentinel, and the directory with the certificate of their authority.
fn rig() -> (SentinelRig, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    authority.write(dir.path());
    authority.issue(dir.path());
    let tls = Some(dir.path().to_owned());
    (SentinelRig::with(1, 1, &RedisConfig { tls, ..RedisConfig::default() }), dir)
}

fn serve(rig: &SentinelRig, ca_file: &Path) -> Process {
    let url = rig.url().replace("redis+", "rediss+");
    let mut command = command(&["serve", "--backend=redis", "--http=127.0.0.1:0"]);
    command.args(["--redis-url", &url]).env("SSL_CERT_FILE", ca_file);
    Process::start(command)
}

#[test]
fn sentinels_and_what_they_name_are_followed_by_tls() {
    let (mut rig, dir) = rig();
    let server = serve(&rig, &dir.path().join("ca.pem"));
    let line = server.line().expect("the server did not start");
    let url = line.strip_prefix("http listening on ").unwrap_or_else(|| panic!("{line}"));
    let put = || run(&["put", "mails", "hello", "--url", url]);
    let first = put();
    assert_eq!(first.code, Some(0), "{first:?}");
    let primary = rig.primary(0).unwrap();
    rig.kill(primary);
    rig.await_failover(Instant::now());
    let second = put();
    assert_eq!(second.code, Some(0), "{second:?}");
}

#[test]
fn a_sentinel_that_is_not_trusted_is_refused() {
    let (rig, _dir) = rig();
    let elsewhere = tempfile::tempdir().unwrap();
    let ca_file = Authority::new().write(elsewhere.path());
    let ended = serve(&rig, &ca_file).wait();
    assert_ne!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("certificate"), "{ended:?}");
}
