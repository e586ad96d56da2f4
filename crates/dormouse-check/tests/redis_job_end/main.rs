//! A server that dies between two scripts of a dead letter or a chain, wherever that is: no letter
//! twice and none lost, no ack without its puts.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod chains;
mod letters;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use dormouse_check::conformance::client::Client;
use dormouse_check::harness::redis::{RedisConfig, RedisServer};
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::JobId;
use dormouse_core::op::*;
use dormouse_core::topic::{Settings, TopicName};
use dormouse_redis::{Options, RedisBackend};

/// More scripts than the longest of these operations needs.
const SCRIPTS_MAX: i64 = 8;

/// The way to Redis, which ends after so many scripts, for good.
struct Fuse {
    address: SocketAddr,
    /// Scripts that still pass; below 0 = all.
    left: Arc<AtomicI64>,
    is_burnt: Arc<AtomicBool>,
}

impl Fuse {
    fn to(redis: String) -> Fuse {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (left, is_burnt) = (Arc::new(AtomicI64::new(-1)), Arc::new(AtomicBool::new(false)));
        let (its_left, its_burnt) = (Arc::clone(&left), Arc::clone(&is_burnt));
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(&redis) else { continue };
                if its_burnt.load(Ordering::SeqCst) {
                    continue;
                }
                let (left, burnt) = (Arc::clone(&its_left), Arc::clone(&its_burnt));
                let (from, to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                std::thread::spawn(move || pass(from, to, |bytes| count(bytes, &left, &burnt)));
                let burnt = Arc::clone(&its_burnt);
                std::thread::spawn(move || pass(far, near, |_| !burnt.load(Ordering::SeqCst)));
            }
        });
        Fuse { address, left, is_burnt }
    }

    fn burn_after(&self, scripts: i64) {
        self.left.store(scripts, Ordering::SeqCst);
    }
}

/// Passes bytes on as long as `goes_on` says so.
fn pass(mut from: TcpStream, mut to: TcpStream, goes_on: impl Fn(&[u8]) -> bool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length) = from.read(&mut buffer)
        && length > 0
        && goes_on(&buffer[..length])
        && to.write_all(&buffer[..length]).is_ok()
    {}
    let _gone = (from.shutdown(std::net::Shutdown::Both), to.shutdown(std::net::Shutdown::Both));
}

/// Counts scripts in a request; false = it is one too many.
fn count(bytes: &[u8], left: &AtomicI64, burnt: &AtomicBool) -> bool {
    let scripts = bytes.windows(7).filter(|word| *word == b"EVALSHA").count();
    for _ in 0..scripts {
        let before = left.load(Ordering::SeqCst);
        if before == 0 {
            burnt.store(true, Ordering::SeqCst);
        } else if before > 0 {
            left.store(before - 1, Ordering::SeqCst);
        }
    }
    !burnt.load(Ordering::SeqCst)
}

fn topic(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

struct World {
    redis: RedisServer,
    fuse: Fuse,
    /// Dies when the fuse burns. It is never closed: that would wait for its answers.
    first: std::mem::ManuallyDrop<Client>,
}

impl World {
    fn new() -> World {
        let redis = RedisServer::start(RedisConfig::default());
        let fuse = Fuse::to(redis.address());
        let url = format!("redis://{}", fuse.address);
        let backend = RedisBackend::open(&url, Options::default()).unwrap();
        let first = std::mem::ManuallyDrop::new(Client::new(Arc::new(backend)));
        World { redis, fuse, first }
    }

    /// A job of the topic `mail`, leased by the first server.
    fn lease(&self) -> LeasedJob {
        self.first.ask(Command::Put(vec![Put::new(topic("mail"), "body")])).unwrap();
        reserve(&self.first, "mail")
    }

    /// Sends a command to the first server, which dies after so many scripts.
    fn die_during(&self, command: Command, scripts: i64) {
        self.fuse.burn_after(scripts);
        let pending = self.first.send(command);
        wait_for(|| self.fuse.is_burnt.load(Ordering::SeqCst) || pending.is_answered());
    }

    fn second(&self) -> Client {
        let backend = RedisBackend::open(&self.redis.url(), Options::default()).unwrap();
        Client::new(Arc::new(backend))
    }
}

fn wait_for(mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "it never happens");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Settings by which a topic exists, and is counted, when it has no jobs.
fn kept() -> Settings {
    Settings { ttr_ms: Some(60_000), ..Settings::default() }
}

/// Puts so far, and jobs that wait; both 0 if there is no such topic.
fn counts(client: &Client, name: &str) -> (u64, u64) {
    match client.ask(Command::Stats(Stats { topic: Some(topic(name)) })) {
        Ok(Reply::Stats(stats)) => (stats.counts.puts, stats.counts.waiting),
        _ => (0, 0),
    }
}

fn is_there(client: &Client, id: JobId) -> bool {
    view(client, Target::Id(id)).is_some()
}

fn reserve(client: &Client, name: &str) -> LeasedJob {
    let reserve =
        Reserve { topics: vec![topic(name)], max: 1, wait_ms: 0, ttr_ms: None, session: None };
    match client.ask(Command::Reserve(reserve)) {
        Ok(Reply::Jobs(mut jobs)) => jobs.remove(0),
        other => panic!("{other:?}"),
    }
}

fn set(client: &Client, name: &str, settings: Settings) {
    client.ask(Command::from(SetTopic { topic: topic(name), settings })).unwrap();
}

fn view(client: &Client, target: Target) -> Option<JobView> {
    match client.ask(Command::Get(vec![target])) {
        Ok(Reply::Views(mut views)) => views.remove(0).ok(),
        other => panic!("{other:?}"),
    }
}
