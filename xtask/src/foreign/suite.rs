//! The foreign suites and the commands that run them.

use std::path::{Path, PathBuf};

use super::fetch::{BEANSTALKC, BEANSTALKD_RS, CAP_LINTS, FIVEBEANS, PYSTALKD};
use super::server::Server;
use crate::step::Invocation;

/// One suite.
pub(super) struct Suite {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    kind: Kind,
}

enum Kind {
    /// A Python script of this repository.
    Python(&'static str),
    /// A JavaScript file of this repository.
    Node(&'static str),
    Pystalkd,
    Fivebeans,
    /// The tests of a crate.
    Crate(&'static str),
}

pub(super) const SUITES: &[Suite] = &[
    Suite { name: "pystalkd", about: "its test.py, beanstalkd protocol", kind: Kind::Pystalkd },
    Suite { name: "fivebeans", about: "its client tests, beanstalkd", kind: Kind::Fivebeans },
    Suite {
        name: BEANSTALKD_RS,
        about: "its live tests, beanstalkd protocol",
        kind: Kind::Crate(BEANSTALKD_RS),
    },
    Suite { name: BEANSTALKC, about: "its tests", kind: Kind::Crate(BEANSTALKC) },
    Suite { name: "redis-py", about: "every RESP verb", kind: Kind::Python("resp.py") },
    Suite { name: "ioredis", about: "every RESP verb", kind: Kind::Node("resp.js") },
    Suite { name: "redis-py loop", about: "docs/resp.md", kind: Kind::Python("snippets.py") },
    Suite { name: "ioredis loop", about: "docs/resp.md", kind: Kind::Node("snippets.js") },
];

impl Suite {
    /// The working directory.
    pub(super) fn directory(&self, root: &Path, place: &Path) -> PathBuf {
        match self.kind {
            Kind::Python(_) | Kind::Node(_) => root.join("xtask/foreign"),
            Kind::Pystalkd => place.join(PYSTALKD),
            Kind::Fivebeans => place.join(FIVEBEANS),
            Kind::Crate(name) => place.join(name),
        }
    }

    /// The command, which is killed after two minutes. Suites may pause the server.
    pub(super) fn invocation(&self, place: &Path, server: &Server) -> Invocation {
        let python = place.join("python").display().to_string();
        let modules = place.join("node/node_modules");
        let words: Vec<String> = match self.kind {
            Kind::Python(script) => vec!["python3".into(), script.into()],
            Kind::Node(script) => vec!["node".into(), script.into()],
            Kind::Pystalkd => vec!["python3".into(), "test.py".into()],
            Kind::Fivebeans => {
                let mocha = modules.join(".bin/mocha").display().to_string();
                // It leaves connections open, and node would wait for them for ever.
                [&mocha, "--exit", "-t", "8000", "test/test-client.js"].map(str::to_owned).into()
            }
            Kind::Crate(_) => {
                ["cargo", "test", "--offline", "--quiet", "--lib"].map(str::to_owned).into()
            }
        };
        let words = ["timeout", "120"].into_iter().chain(words.iter().map(String::as_str));
        Invocation::new(words)
            .with_env("DORMOUSE_PID", server.pid().to_string())
            .with_env("PYTHONPATH", python)
            .with_env("NODE_PATH", modules.display().to_string())
            .with_env("CARGO_TARGET_DIR", place.join("build").display().to_string())
            .with_env("RUSTFLAGS", CAP_LINTS)
    }
}
