//! A Redis whose clock is wrong, by an amount that can be changed.
//!
//! Redis reads the wall clock by `gettimeofday` alone, so a library of one function does it.
//! libfaketime, which would be the usual way, does not get along with Redis' memory allocator.

use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Command;

use tempfile::TempDir;

use crate::harness::redis::{RedisConfig, RedisServer};

/// A server and its clock.
pub struct Shifted {
    /// The server.
    pub server: RedisServer,
    shift: fs::File,
    _dir: TempDir,
}

impl Shifted {
    /// Starts a server whose clock is right.
    pub fn start() -> Shifted {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| dir.path().join(name);
        fs::write(path("shift.c"), include_str!("shift.c")).expect("a file");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-o"]).args([path("shift.so"), path("shift.c")]);
        // It links all Rust programs, so it is here.
        assert!(cc.status().expect("a C compiler").success(), "the shim compiles");
        fs::write(path("shift"), 0_i64.to_ne_bytes()).expect("a file");
        let shift = fs::OpenOptions::new().write(true).open(path("shift")).expect("a file");
        let under = vec![
            "env".to_owned(),
            format!("LD_PRELOAD={}", path("shift.so").display()),
            format!("DORMOUSE_CLOCK_SHIFT={}", path("shift").display()),
        ];
        let server = RedisServer::start(RedisConfig { under, ..RedisConfig::default() });
        Shifted { server, shift, _dir: dir }
    }

    /// From now on its clock is ahead by so much, or behind.
    pub fn set_ms(&self, ahead_ms: i64) {
        let bytes = (ahead_ms * 1_000).to_ne_bytes();
        self.shift.write_all_at(&bytes, 0).expect("the shift is written");
    }

    /// The time of its clock.
    pub fn now_ms(&self) -> u64 {
        let time = self.server.must(&["TIME"]);
        let parts: Vec<u64> =
            time.list().iter().map(|part| part.text().parse().expect("a number")).collect();
        parts[0] * 1_000 + parts[1] / 1_000
    }
}
