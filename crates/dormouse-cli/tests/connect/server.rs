//! A server that can be killed and comes back at the same address.

use std::net::SocketAddr;
use std::path::Path;

use rustix::process::Signal;

use crate::process::{Process, command};

pub(crate) struct Server {
    process: Process,
    pub(crate) resp: SocketAddr,
    args: Vec<String>,
}

impl Server {
    /// On this directory and a free port.
    pub(crate) fn on(dir: &Path) -> Server {
        let dir = dir.to_str().expect("a path that is text").to_owned();
        Server::start(vec!["--data".to_owned(), dir], "127.0.0.1:0")
    }

    fn start(args: Vec<String>, resp: &str) -> Server {
        let mut all = vec!["serve", "--http=off", "--resp", resp];
        all.extend(args.iter().map(String::as_str));
        let process = Process::start(command(&all));
        let Some(line) = process.line() else {
            panic!("it did not start: {:?}", process.wait());
        };
        let resp = line.strip_prefix("resp listening on ").expect("an address");
        let resp = resp.parse().expect("an address");
        Server { process, resp, args }
    }

    pub(crate) fn url(&self) -> String {
        format!("dormouse://{}", self.resp)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Kills it without a warning, and starts it again.
    pub(crate) fn kill_and_start(self) -> Server {
        let Server { process, resp, args } = self;
        process.signal(Signal::KILL);
        process.wait();
        Server::start(args, &resp.to_string())
    }
}
