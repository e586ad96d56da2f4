//! Deliveries to URLs by the program: its key, its secrets, and what a crash costs.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use rustix::process::Signal;

use crate::process::{Server, TIMEOUT, command, run};

/// The requests that arrived: webhook-id and body of each.
type Arrived = Arc<Mutex<Vec<(String, String)>>>;

/// A receiver that answers 200 to everything.
fn receiver() -> (SocketAddr, Arrived) {
    let (addr, arrived, _) = slow_receiver(Duration::ZERO);
    (addr, arrived)
}

/// The same after a while; and the most requests that it had at once.
fn slow_receiver(pause: Duration) -> (SocketAddr, Arrived, Arc<UnderWay>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let (arrived, under_way) = (Arrived::default(), Arc::new(UnderWay::default()));
    let (all, counts) = (Arc::clone(&arrived), Arc::clone(&under_way));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let (all, counts) = (Arc::clone(&all), Arc::clone(&counts));
            std::thread::spawn(move || drop(serve(stream, &all, &counts, pause)));
        }
    });
    (addr, arrived, under_way)
}

/// Requests that are being answered.
#[derive(Default)]
struct UnderWay {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// Ends with the connection.
fn serve(
    mut stream: TcpStream,
    arrived: &Arrived,
    under_way: &UnderWay,
    pause: Duration,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let (mut id, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim_end();
            if let Some(value) = line.strip_prefix("webhook-id: ") {
                id = value.to_owned();
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        arrived.lock().unwrap().push((id, String::from_utf8(body).unwrap()));
        let now = under_way.now.fetch_add(1, SeqCst) + 1;
        under_way.most.fetch_max(now, SeqCst);
        std::thread::sleep(pause);
        under_way.now.fetch_sub(1, SeqCst);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
    }
}

fn pushing(data: &str) -> Server {
    Server::start(&["--data", data, "--push", "--push-http", "--push-allow", "127.0.0.0/8"])
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn between<'a>(text: &'a str, before: &str) -> &'a str {
    text.split_once(before).expect(text).1.split('"').next().unwrap()
}

/// Whether a file below this directory has the bytes.
fn holds(dir: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(dir).unwrap().map(Result::unwrap).any(|entry| match entry.path() {
        path if path.is_dir() => holds(&path, bytes),
        path => fs::read(path).unwrap().windows(bytes.len()).any(|part| part == bytes),
    })
}

/// All events until the server ends.
fn events(addr: SocketAddr) -> std::thread::JoinHandle<String> {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    std::thread::spawn(move || {
        let mut told = Vec::new();
        let _ = stream.read_to_end(&mut told);
        String::from_utf8_lossy(&told).into_owned()
    })
}

#[test]
fn the_secret_is_shown_once_and_found_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().to_str().unwrap();
    let (addr, arrived) = receiver();
    // What it logs at most, and what it tells of.
    let server = Server::start(&[
        "--data",
        data,
        "--push",
        "--push-http",
        "--push-allow",
        "127.0.0.0/8",
        "--log",
        "debug",
    ]);
    let events = events(server.addr);
    let key = dir.path().join("push.key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let body = format!("{{\"url\": \"http://{addr}/\"}}");
    let set = server.put("/v1/topics/t/push", &body);
    assert_eq!(set.status, 201, "{set:?}");
    let first = between(&set.body, "\"secret\":\"whsec_").to_owned();
    let rotated = server.post("/v1/topics/t/push/rotate", "{}");
    let second = between(&rotated.body, "\"secret\":\"whsec_").to_owned();
    server.post("/v1/topics/t/jobs", "{\"text\": \"x\"}");
    until("it is delivered", || !arrived.lock().unwrap().is_empty());
    server.post("/v1/topics/t/push/test", "{}");
    server.post("/v1/backups", "{\"name\": \"monday\"}");
    let mut shown = String::new();
    for path in ["/v1/topics/t/push", "/v1/topics/t", "/metrics", "/v1/config"] {
        shown.push_str(&server.get(path).body);
    }
    let digits = fs::read_to_string(&key).unwrap();
    let end = server.stop();
    assert!(end.stderr.contains("log = \"debug\""), "{}", end.stderr);
    shown.push_str(&end.stderr);
    let told = events.join().unwrap();
    assert!(told.contains("push_set") && told.contains("acked"), "{told}");
    shown.push_str(&told);
    let backup = dir.path().join("backups/monday");
    assert!(backup.join("manifest.dmm").exists());
    assert!(!backup.join("push.key").exists(), "it is not part of a backup");
    for secret in [first.as_str(), second.as_str(), digits.trim()] {
        assert!(!shown.contains(secret), "{shown}");
        fs::rename(&key, dir.path().with_extension("aside")).unwrap();
        assert!(!holds(dir.path(), secret.as_bytes()), "{secret} is in a file");
        fs::rename(dir.path().with_extension("aside"), &key).unwrap();
    }
    // The same key signs after a restart.
    let server = pushing(data);
    assert_eq!(fs::read_to_string(&key).unwrap(), digits);
    let shown = server.get("/v1/topics/t/push");
    assert!(shown.body.contains("\"state\":\"on\""), "{shown:?}");
}

/// Kills the server while it pushes. Jobs that were answered are all delivered, and whatever
/// arrives twice has one id.
fn kills(rounds: usize) {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().to_str().unwrap();
    let (addr, arrived) = receiver();
    let mut answered = HashSet::new();
    for round in 0..rounds {
        let server = pushing(data);
        if round == 0 {
            let body = format!("{{\"url\": \"http://{addr}/\"}}");
            assert_eq!(server.put("/v1/topics/t/push", &body).status, 201);
        }
        let before = arrived.lock().unwrap().len();
        for number in 0..20 {
            let text = format!("{round}-{number}");
            let put = server.post("/v1/topics/t/jobs", &format!("{{\"text\": \"{text}\"}}"));
            if put.status == 201 {
                answered.insert(text);
            }
        }
        until("pushes are under way", || arrived.lock().unwrap().len() > before);
        server.process.signal(Signal::KILL);
        let _ = server.process.wait();
    }
    let server = pushing(data);
    let bodies = || -> HashSet<String> {
        arrived.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    };
    until("all are delivered", || bodies().is_superset(&answered));
    let mut ids: HashMap<String, String> = HashMap::new();
    for (id, body) in arrived.lock().unwrap().iter() {
        assert!(id.starts_with("dm_"), "{id}");
        let known = ids.entry(body.clone()).or_insert_with(|| id.clone());
        assert_eq!(known, id, "a repeat of {body} has another id");
    }
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_killed_server_loses_no_push() {
    kills(5);
}

#[test]
#[ignore = "a soak: minutes"]
fn soak_killed_servers_lose_no_push() {
    kills(100);
}

#[test]
fn wrong_options_are_refused_with_the_fix() {
    let check = |args: &[&str], parts: &[&str]| {
        let all = [&["serve", "--http", "127.0.0.1:0", "--resp", "off"], args].concat();
        let end = run(&all);
        assert_ne!(end.code, Some(0));
        parts.iter().for_each(|part| assert!(end.stderr.contains(part), "{end:?}"));
    };
    let redis = ["--backend", "redis", "--redis-url", "redis://127.0.0.1:1", "--push"];
    check(&redis, &["push.key", "openssl rand -hex 32"]);
    check(&["--backend", "memory", "--push-http"], &["push.http", "--push"]);
    check(&["--backend", "memory", "--push", "--push-allow", "10.0.0.0/40"], &["10.0.0.0/40"]);
    check(&["--backend", "memory", "--push", "--push-ports", "0"], &["443 or 8000-8999"]);
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    check(&["--backend", "memory", "--push", "--push-key", path], &["64 hexadecimal digits"]);
    check(&["--backend", "memory", "--push", "--push-key", "/nowhere"], &["/nowhere"]);
    check(&["--backend", "memory", "--push", "--push-ca-file", path], &["push.ca_file"]);
}

#[test]
fn commands_set_show_and_remove() {
    let (addr, arrived) = receiver();
    let server = Server::start(&[
        "--backend",
        "memory",
        "--push",
        "--push-http",
        "--push-allow",
        "127.0.0.0/8",
    ]);
    let (url, target) = (format!("http://{}", server.addr), format!("http://{addr}/hook"));
    let dormouse = |args: &[&str]| {
        let mut command = command(args);
        command.env("DORMOUSE_URL", &url);
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let done = |args: &[&str], part: &str| {
        let (code, stdout, stderr) = dormouse(args);
        assert_eq!(code, Some(0), "{args:?}: {stderr}");
        assert!(stdout.contains(part), "{args:?}: {stdout}");
        stdout
    };
    let own = format!("http://{addr}/own");
    let set = ["push", "set", "t", &target, "--header", "x-key=geheim", "--job-url", &own];
    done(
        &[&set[..], &["--concurrency", "3", "--fatal", "400,422", "--timeout", "2s"]].concat(),
        "whsec_",
    );
    let shown = done(&["push", "get", "t"], "***");
    assert!(!shown.contains("geheim") && !shown.contains("whsec_"), "{shown}");
    assert!(shown.contains("concurrency       3\n"), "{shown}");
    done(&["push", "test", "t"], "2xx");
    done(&["push", "rotate", "t", "--keep", "1h"], "whsec_");
    done(&["put", "t", "hello", "--push-url", &format!("{own}/1")], "created");
    until("it arrives", || arrived.lock().unwrap().iter().any(|(_, body)| body == "hello"));
    let (code, _, stderr) = dormouse(&["put", "t", "x", "--push-url", "http://127.0.0.1:9/"]);
    assert!(code != Some(0) && stderr.contains("job_urls"), "{stderr}");
    done(&["push", "resume", "t"], "on");
    done(&["push", "rm", "t"], "t");
    assert_eq!(dormouse(&["push", "get", "t"]).0, Some(3));
}

#[test]
fn servers_on_one_redis_push_together_and_within_the_limit() {
    const JOBS: usize = 60;
    const CONCURRENCY: usize = 3;
    let redis = RedisServer::start(RedisConfig::default());
    let key = tempfile::NamedTempFile::new().unwrap();
    fs::write(key.path(), "0a".repeat(32)).unwrap();
    let (addr, arrived, under_way) = slow_receiver(Duration::from_millis(20));
    let (url, key) = (redis.url(), key.path().to_str().unwrap());
    let start = || {
        Server::start(
            &[
                &["--backend", "redis", "--redis-url", &url, "--push", "--push-key", key][..],
                &["--push-http", "--push-allow", "127.0.0.0/8"],
            ]
            .concat(),
        )
    };
    let (one, other) = (start(), start());
    let body = format!("{{\"url\": \"http://{addr}/\", \"concurrency\": {CONCURRENCY}}}");
    let set = one.put("/v1/topics/t/push", &body);
    assert_eq!(set.status, 201, "{set:?}");
    let secret = between(&set.body, "\"secret\":\"whsec_").to_owned();
    let state = |server: &Server| server.get("/v1/topics/t/push").body;
    assert!(state(&other).contains("\"state\":\"on\""), "the other server reads it");
    let put = |server: &Server, number: usize| {
        let put = server.post("/v1/topics/t/jobs", &format!("{{\"text\": \"{number}\"}}"));
        assert_eq!(put.status, 201, "{put:?}");
    };
    let mut number = 0;
    let mut more = |server: &Server| {
        number += 1;
        put(server, number);
    };
    (0..JOBS).for_each(|_| more(&one));
    // Both deliver: the other one has seen the push after its next reading.
    until("the other server pushes, too", || {
        more(&other);
        !state(&other).contains("\"delivered\":0")
    });
    let ids = || -> HashSet<String> {
        arrived.lock().unwrap().iter().map(|(id, _)| id.clone()).collect()
    };
    until("all are delivered", || ids().len() == number);
    let most = under_way.most.load(SeqCst);
    assert!((1..=CONCURRENCY).contains(&most), "{most} at once");
    // Nothing in Redis holds the secret.
    let all = "local all = {} for _, key in ipairs(redis.call('KEYS', '*')) do \
               local kind = redis.call('TYPE', key).ok \
               local read = kind == 'hash' and redis.call('HGETALL', key) \
               or kind == 'zset' and redis.call('ZRANGE', key, 0, -1) \
               or { redis.call('GET', key) } \
               all[#all + 1] = key .. table.concat(read) end return table.concat(all)";
    let mut command = std::process::Command::new("redis-cli");
    let held = command.args(["-u", &url, "EVAL", all, "0"]).output().unwrap().stdout;
    let has = |text: &str| held.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has(&addr.to_string()), "the push is there: {}", String::from_utf8_lossy(&held));
    assert!(!has(&secret) && !has(&"0a".repeat(32)));
    // A change by one is one for both.
    assert_eq!(one.post("/v1/topics/t/push/rotate", "{}").status, 200);
    let removed = crate::process::request(other.addr, "DELETE", "/v1/topics/t/push", &[], "");
    assert_eq!(removed.status, 200, "{removed:?}");
    assert_eq!(one.get("/v1/topics/t/push").status, 404);
}

/// A server dies between the list of pushes and the partitions.
#[test]
fn a_removal_that_broke_off_can_be_repeated() {
    let redis = RedisServer::start(RedisConfig::default());
    let key = tempfile::NamedTempFile::new().unwrap();
    fs::write(key.path(), "0a".repeat(32)).unwrap();
    let (url, key) = (redis.url(), key.path().to_str().unwrap());
    let server = Server::start(
        &[
            &["--backend", "redis", "--redis-url", &url, "--redis-partitions", "1"][..],
            &["--push", "--push-key", key],
        ]
        .concat(),
    );
    let set = "{\"url\": \"https://name.example/\", \"concurrency\": 1, \"timeout\": \"1s\"}";
    assert_eq!(server.put("/v1/topics/t/push", set).status, 201);
    let forget = "for _, key in ipairs(redis.call('KEYS', '*')) do \
                  local kind, last = redis.call('TYPE', key).ok, key:sub(-1) \
                  if kind == 'hash' and last == 'u' then \
                  redis.call('HDEL', key, 't') redis.call('HINCRBY', key, '', 1) end \
                  if kind == 'zset' and last == 'p' then redis.call('ZREM', key, 't') end end";
    let mut command = std::process::Command::new("redis-cli");
    assert!(command.args(["-u", &url, "EVAL", forget, "0"]).status().unwrap().success());
    assert_eq!(server.get("/v1/topics/t/push").status, 404);
    until("it is not pushed", || server.get("/v1/topics/t").body.contains("\"waiters\":0"));
    (0..3).for_each(|_| drop(server.post("/v1/topics/t/jobs", "{\"text\": \"x\"}")));
    let taken = || {
        let taken = server.post("/v1/topics/t/reserve", "{\"max\": 3}").body;
        taken.matches("\"token\"").count()
    };
    assert_eq!(taken(), 1, "the topic keeps its part");
    let remove = || crate::process::request(server.addr, "DELETE", "/v1/topics/t/push", &[], "");
    assert_eq!(remove().status, 404);
    assert_eq!(taken(), 2);
}
