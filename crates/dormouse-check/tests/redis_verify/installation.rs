//! A Redis with jobs in every state, raw hands on its keys, and a count of what comes out of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use dormouse_check::conformance::client::Client;
use dormouse_check::harness::redis::{RedisConfig, RedisServer, Reply as Raw};
use dormouse_core::command::{Command, Reply};
use dormouse_core::job::{JobId, Token};
use dormouse_core::op::{
    Kick, Kill, KillTarget, LeasedJob, Lock, Put, Release, Reserve, ReviveTopic,
};
use dormouse_core::topic::TopicName;
use dormouse_redis::{Options, RedisBackend, VerifyOptions, VerifyReport, verify};

pub(crate) const TOPIC: &str = "t";
pub(crate) const HOUR_MS: i64 = 3_600_000;
pub(crate) const ZONE: u64 = 1 << 45;

/// A server, and a Dormouse on it.
pub(crate) struct Installation {
    pub(crate) client: Client,
    /// By body.
    pub(crate) ids: BTreeMap<String, JobId>,
    tokens: Vec<Token>,
    backend: Arc<RedisBackend>,
    pub(crate) server: RedisServer,
}

pub(crate) fn topic(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn open(url: &str) -> Arc<RedisBackend> {
    Arc::new(RedisBackend::open(url, Options::default()).unwrap())
}

/// Checks, and shows what was found if that is not as expected.
pub(crate) fn check(url: &str, mend: bool) -> VerifyReport {
    verify(url, VerifyOptions { mend }).unwrap()
}

pub(crate) fn is_clean(report: &VerifyReport) {
    let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    assert_eq!((report.found, problems), (0, Vec::new()), "{report:?}");
}

impl Installation {
    /// A topic with a job in every state, its body telling which.
    pub(crate) fn new() -> Installation {
        let server = RedisServer::start(RedisConfig::default());
        let backend = open(&server.url());
        let client = Client::new(backend.clone());
        let mut installation =
            Installation { client, ids: BTreeMap::new(), tokens: Vec::new(), backend, server };
        installation.fill();
        installation
    }

    fn fill(&mut self) {
        let job = |body: &str, priority| Put {
            priority: Some(priority),
            ..Put::new(topic(TOPIC), text(body))
        };
        self.hold("k2");
        self.put(job("leased", 2));
        self.put(Put { attempts_max: Some(1), ..job("last", 3) });
        self.put(job("dead", 4));
        for leased in self.reserve(3) {
            self.tokens.push(leased.token);
        }
        let target = KillTarget::Token(self.tokens.pop().unwrap());
        self.client.ask(Command::Kill(vec![Kill { target, error: None, priority: None }])).unwrap();
        self.put(job("early", 7));
        let keyed = Put { key: Some(text("k1")), delay_ms: Some(HOUR_MS), ..job("keyed", 1024) };
        let headers = vec![("name".to_owned(), "value".to_owned())];
        self.put(Put { headers: Some(Arc::new(headers)), ..keyed });
        for number in 0..5 {
            self.put(job(&format!("plain{number}"), 1024));
        }
        let (name, owner) = (text("lock"), text("owner"));
        let lock = Lock { name, owner, ttl_ms: HOUR_MS, wait_ms: 0 };
        self.client.ask(Command::Lock(lock)).unwrap();
    }

    /// Holds a key after the ack of its job, which had this id.
    pub(crate) fn hold(&mut self, key: &str) -> JobId {
        let job = Put { priority: Some(1), ..Put::new(topic(TOPIC), text("held")) };
        self.put(Put { key: Some(text(key)), key_ttl_ms: Some(HOUR_MS), ..job });
        let held = self.reserve(1).remove(0);
        self.client.ask(Command::Ack(vec![held.token])).unwrap();
        self.ids.remove("held").unwrap()
    }

    pub(crate) fn put(&mut self, put: Put) {
        let body = String::from_utf8_lossy(&put.body).into_owned();
        let Reply::Put(mut replies) = self.client.ask(Command::Put(vec![put])).unwrap() else {
            panic!("a put is answered otherwise");
        };
        self.ids.insert(body, replies.remove(0).unwrap().id);
    }

    fn reserve(&self, max: usize) -> Vec<LeasedJob> {
        reserve(&self.client, max)
    }

    pub(crate) fn id(&self, body: &str) -> [u8; 8] {
        self.ids[body].0.to_be_bytes()
    }

    /// Runs one command whose words may be any bytes.
    pub(crate) fn raw(&self, words: &[&[u8]]) -> Raw {
        self.server.must(words)
    }

    /// A command on a key of the partition.
    pub(crate) fn on(&self, command: &str, key: &str, words: &[&[u8]]) -> Raw {
        let key = format!("dormouse:{{{TOPIC}/0}}:{key}");
        let mut all: Vec<&[u8]> = vec![command.as_bytes(), key.as_bytes()];
        all.extend(words);
        self.raw(&all)
    }

    /// The numbers of the partition header; lua/lib.lua says which is which.
    pub(crate) fn header(&self) -> Vec<f64> {
        let text = self.on("HGET", "s", &[b"b"]).bytes().to_vec();
        text.chunks(8).map(|number| f64::from_be_bytes(number.try_into().unwrap())).collect()
    }

    /// Writes one of them.
    pub(crate) fn write_header_number(&self, index: usize, value: f64) {
        let mut header = self.header();
        header[index] = value;
        let text: Vec<u8> = header.into_iter().flat_map(f64::to_be_bytes).collect();
        self.on("HSET", "s", &[b"b", &text]);
    }

    /// Which of the partitions of locks the lock is in.
    pub(crate) fn lock_place(&self) -> String {
        let keys = self.raw(&[b"KEYS", b"dormouse:{-lock/*}:j"]);
        let key = keys.list()[0].text();
        key["dormouse:{".len()..key.len() - "}:j".len()].to_owned()
    }

    /// A command on a key of that partition.
    pub(crate) fn on_lock(&self, command: &str, key: &str, words: &[&[u8]]) {
        let key = format!("dormouse:{{{}}}:{key}", self.lock_place());
        let mut all: Vec<&[u8]> = vec![command.as_bytes(), key.as_bytes()];
        all.extend(words);
        self.raw(&all);
    }

    /// Every job that was put and not acked comes out, after the mend, with all their tokens given
    /// back and all that waits or is dead made ready.
    pub(crate) fn delivers_all_but(&self, lost: &[&str]) {
        // This server's knowledge of Redis is no longer true.
        self.backend.close();
        let client = Client::new(open(&self.server.url()));
        let back = |&token: &Token| Release { token, delay_ms: None, priority: None };
        client.ask(Command::Release(self.tokens.iter().map(back).collect())).unwrap();
        let name = topic(TOPIC);
        client.ask(Command::ReviveTopic(ReviveTopic { topic: name.clone(), max: 100 })).unwrap();
        client.ask(Command::Kick(Kick { topic: name, max: 100 })).unwrap();
        let mut bodies = BTreeSet::new();
        loop {
            let jobs = reserve(&client, 10);
            if jobs.is_empty() {
                break;
            }
            let tokens = jobs.iter().map(|job| job.token).collect();
            let Reply::Ended(ended) = client.ask(Command::Ack(tokens)).unwrap() else {
                panic!("an ack is answered otherwise");
            };
            assert!(ended.iter().all(Result::is_ok), "{ended:?}");
            bodies.extend(jobs.iter().map(body));
        }
        let wanted = self.ids.keys().filter(|body| !lost.contains(&body.as_str()));
        assert_eq!(bodies, wanted.cloned().collect::<BTreeSet<_>>());
        is_clean(&check(&self.server.url(), false));
    }
}

fn body(job: &LeasedJob) -> String {
    String::from_utf8_lossy(&job.body).into_owned()
}

pub(crate) fn reserve(client: &Client, max: usize) -> Vec<LeasedJob> {
    let topics = vec![topic(TOPIC)];
    let reserve = Reserve { topics, max, wait_ms: 0, ttr_ms: None, session: None };
    match client.ask(Command::Reserve(reserve)).unwrap() {
        Reply::Jobs(jobs) => jobs,
        other => panic!("a reserve is answered with {other:?}"),
    }
}
