//! backoff.lua against the rule in Rust: the same millisecond for every job, attempt and backoff.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use dormouse_core::backoff::{Backoff, Delays};
use dormouse_core::job::JobId;
use dormouse_core::limits::{DELAY_MS_MAX, JITTER_PERMILLE_MAX};
use tempfile::TempDir;

use crate::script::with_constants;
use crate::testing::redis_server;
use crate::wire::record::encode_backoff;

/// What backoff.lua uses of lib.lua. AFTER: one result per three arguments: id, attempt, backoff.
const BEFORE: &str = "
local band, unpack_struct, floor, min, max = bit.band, struct.unpack, math.floor, math.min, math.max
";
const AFTER: &str = "
local answers = {}
for i = 1, #ARGV, 3 do
    local backoff = ARGV[i + 2] ~= '' and ARGV[i + 2] or nil
    local wait_ms = backoff_ms(ARGV[i], tonumber(ARGV[i + 1]), backoff)
    answers[#answers + 1] = string.format('%.0f', wait_ms)
end
return answers
";

/// A redis-server without a port.
struct Server {
    child: Child,
    directory: TempDir,
}

impl Server {
    fn start() -> Server {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = redis_server();
        command.args(["--port", "0", "--unixsocket", "socket", "--save", ""]);
        command.current_dir(directory.path()).stdin(Stdio::null()).stdout(Stdio::null());
        let child =
            command.spawn().expect("no redis-check-rdb in PATH: `cargo xtask install` brings it");
        Server { child, directory }
    }

    fn connect(&self) -> redis::Connection {
        let path = self.directory.path().join("socket");
        let client = redis::Client::open(format!("redis+unix://{}", path.display()));
        let client = client.expect("an address");
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match client.get_connection() {
                Ok(connection) => return connection,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Random numbers, the same each time; small and extreme ones often.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }

    fn below(&mut self, bound: u64) -> u64 {
        match self.next() % 8 {
            0 => self.next() % bound.min(4),
            1 => bound - 1 - self.next() % bound.min(4),
            _ => (self.next() >> (self.next() % 64)) % bound,
        }
    }

    fn delay_ms(&mut self) -> u64 {
        self.below(DELAY_MS_MAX + 1)
    }

    fn backoff(&mut self) -> Option<Backoff> {
        let delays = match self.next() % 8 {
            0 => return None,
            1 | 2 => Delays::Fixed { delay_ms: self.delay_ms() },
            3..=5 => Delays::Exponential {
                base_ms: self.delay_ms(),
                factor: self.below(1 << 32) as u32,
                cap_ms: self.delay_ms(),
            },
            _ => {
                let count = 1 + self.next() % 64;
                Delays::List { delays_ms: (0..count).map(|_| self.delay_ms()).collect() }
            }
        };
        let mut backoff = Backoff::from(delays);
        if self.next() % 2 == 0 {
            backoff.jitter_permille = self.below(u64::from(JITTER_PERMILLE_MAX) + 1) as u16;
        }
        Some(backoff)
    }
}

#[test]
fn the_script_waits_as_long_as_every_other_backend() {
    let server = Server::start();
    let mut connection = server.connect();
    let source =
        with_constants(&[BEFORE, include_str!("../../../lua/backoff.lua"), AFTER].concat());
    let mut random = Random(1);
    for _ in 0..20 {
        let cases: Vec<_> = (0..1_000)
            .map(|_| (JobId(random.next()), random.below(1 << 32) as u32, random.backoff()))
            .collect();
        let mut ask = redis::cmd("EVAL");
        ask.arg(&source).arg(0);
        for (id, attempt, backoff) in &cases {
            let rule = backoff.as_ref().map(encode_backoff).unwrap_or_default();
            ask.arg(&id.0.to_be_bytes()).arg(*attempt).arg(&rule[..]);
        }
        let waits: Vec<String> = ask.query(&mut connection).expect("the waits");
        assert_eq!(waits.len(), cases.len());
        for ((id, attempt, backoff), wait_ms) in cases.into_iter().zip(waits) {
            let expected = backoff.as_ref().unwrap_or(&Backoff::DEFAULT).delay_ms(id, attempt);
            assert_eq!(wait_ms, expected.to_string(), "{id} attempt {attempt} {backoff:?}");
        }
    }
}
