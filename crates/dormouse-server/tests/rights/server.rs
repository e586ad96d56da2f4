//! A server with a token for every cell of the matrix, and the subjects that calls name.

use std::net::SocketAddr;
use std::sync::Arc;

use dormouse_core::backend::{Backend as _, Request, Ticket};
use dormouse_core::op::{NewPush, SetPush};
use dormouse_core::topic::TopicName;
use dormouse_disk::engine::{Engine, Options as EngineOptions};
use dormouse_server::access::{Access, TokenEntry, Verb, hash_token};
use dormouse_server::push::{AddressRules, MasterKey, PushOptions};
use dormouse_server::{Backup, Options, Server};

use crate::client::Client;

/// The topics of a scope.
const PLACES: [&str; 3] = ["in.*", "in.a", "*"];
const ROLES: [&str; 6] = ["producer", "consumer", "viewer", "operator", "admin", "*"];
/// The token that makes the subjects.
const ADMIN: &str = "all-of-it";

/// A topic inside of all scopes, and one outside of all but `*`.
pub(crate) const TOPICS: [&str; 2] = ["in.a", "out.b"];

pub(crate) struct Served {
    /// It stops when it is dropped.
    _server: Server,
    engine: Engine,
    pub(crate) http: SocketAddr,
    pub(crate) resp: SocketAddr,
    pub(crate) access: Access,
    admin: Client,
    made: u32,
}

/// What a call can name.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) topic: String,
    pub(crate) id: String,
    pub(crate) key: String,
    pub(crate) token: String,
    pub(crate) cursor: String,
}

/// How a job is, or that there is a lock or a schedule of the topic's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prepared {
    Waiting,
    Leased,
    Dead,
    Locked,
    Scheduled,
    Pushed,
}

impl Served {
    pub(crate) async fn start() -> Served {
        let mut tokens = vec![(ADMIN.to_owned(), vec!["*:*".to_owned()])];
        tokens.extend(scopes().into_iter().map(|scope| (scope.clone(), vec![scope])));
        // Verbs that do not mix: all on one topic, one on another.
        tokens.push(("mixed".to_owned(), vec!["*:in.*".to_owned(), "get:out.*".to_owned()]));
        let entry = |(name, scopes): (String, Vec<String>)| TokenEntry {
            hash: hash_token(&name),
            scopes: scopes.iter().map(|scope| scope.parse().unwrap()).collect(),
            name,
        };
        let access = Access::new(tokens.into_iter().map(entry).collect()).unwrap();
        let free = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let backup = |_: &str| Ok(Backup { path: "/b".into(), files: 1, bytes: 1 });
        let options = Options {
            http: free,
            resp: free,
            access: access.clone(),
            backup: Some(Box::new(backup)),
            test_clock: Some(Box::new(|_| Ok(0))),
            ..Options::default()
        };
        let engine = Engine::memory(EngineOptions::default());
        let mut server = Server::start(Arc::new(engine.clone()), options).await.unwrap();
        let mut push = PushOptions::new(MasterKey::new([7; 32]));
        push.rules = AddressRules::new(vec!["127.0.0.0/8".parse().unwrap()], vec![9..=9]);
        server.start_push(push).unwrap();
        let (http, resp) = (server.http_addr().unwrap(), server.resp_addr().unwrap());
        let mut admin = Client::connect(resp).await;
        assert_eq!(admin.ask(&format!("AUTH {ADMIN}")).await.str(), "OK");
        // Short ids would be found in other numbers, as in 404.
        for _ in 0..1_000 {
            admin.put("first x").await;
        }
        Served { _server: server, engine, http, resp, access, admin, made: 0 }
    }

    /// A fresh subject.
    pub(crate) async fn subject(&mut self, topic: &str, prepared: Prepared) -> Subject {
        self.made += 1;
        let key = format!("k{:07}", self.made);
        let admin = &mut self.admin;
        let put = admin.ask(&format!("PUT {topic} x DELAY 1h KEY {key}")).await;
        let id = put.items()[0].str().to_owned();
        let mut token = absent(topic).token;
        match prepared {
            Prepared::Waiting => {}
            Prepared::Leased => {
                let jobs = admin.ask(&format!("RESERVEID {id}")).await;
                token = jobs.items()[0].items()[2].str().to_owned();
            }
            Prepared::Dead => assert_eq!(admin.ask(&format!("KILL {id}")).await.str(), "OK"),
            Prepared::Scheduled => {
                let reply = admin.ask(&format!("SCHEDULE {topic} {topic} x EVERY 1h")).await;
                assert!(!reply.items().is_empty());
            }
            Prepared::Pushed => {
                let record = br#"{"url":"https://127.0.0.1:9/","timeout_ms":1000,
                    "keep_reply":true,"generation":1}"#;
                let push = NewPush {
                    concurrency: 1_000,
                    is_disabled: true,
                    record: bytes::Bytes::from_static(record),
                };
                let topic = TopicName::new(topic).unwrap();
                let set = SetPush { topic, push: Some(push), if_version: None };
                let (sink, answers) = std::sync::mpsc::channel();
                let request = Request::new(Ticket::next(), set.into());
                self.engine.submit(vec![request], Arc::new(sink)).unwrap();
                answers.recv().unwrap().1.unwrap();
            }
            Prepared::Locked => drop(admin.ask(&format!("LOCK {topic} me TTL 1d")).await.items()),
        }
        // Of the topic that no scope but `*` has: it must lead nowhere.
        let outside = TOPICS[1];
        admin.ask(&format!("PUT {outside} x DELAY 1h")).await;
        admin.ask(&format!("PUT {outside} x DELAY 1h")).await;
        let page = admin.ask(&format!("LIST {outside} delayed LIMIT 1")).await;
        let cursor = page.items()[0].str().to_owned();
        Subject { topic: topic.to_owned(), id, key, token, cursor }
    }
}

/// Every verb and every role on every kind of place; the name of a token is its scope.
pub(crate) fn scopes() -> Vec<String> {
    let verbs = Verb::ALL.into_iter().map(Verb::as_str).chain(ROLES);
    verbs.flat_map(|verb| PLACES.map(|place| format!("{verb}:{place}"))).collect()
}

/// What is not there, in a topic beside this one.
pub(crate) fn absent(topic: &str) -> Subject {
    Subject {
        topic: format!("{topic}.none"),
        id: "900000000".to_owned(),
        key: "nokey".to_owned(),
        token: "900000000.1".to_owned(),
        cursor: "none".to_owned(),
    }
}

impl Subject {
    /// Puts its names into a template.
    pub(crate) fn fill(&self, template: &str) -> String {
        template
            .replace("{topic}", &self.topic)
            .replace("{name}", &self.topic)
            .replace("{id}", &self.id)
            .replace("{key}", &self.key)
            .replace("{token}", &self.token)
            .replace("{cursor}", &self.cursor)
    }

    /// Takes its names out of an answer. The token first: it begins with the id. A topic is quoted;
    /// without quotes it may be part of the caller's scope.
    pub(crate) fn erase(&self, answer: &str) -> String {
        answer
            .replace(&self.token, "{token}")
            .replace(&self.id, "{id}")
            .replace(&self.key, "{key}")
            .replace(&format!("`{}`", self.topic), "{topic}")
    }
}
