//! Hosts behind a server: what a case asks goes over HTTP.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dormouse_core::backend::Backend;
use dormouse_server::{Options, Server};
use tokio::runtime::{Builder, Runtime};

use super::SUITE;
use super::subject::{Host, Subject};
use crate::client::http::{HttpBackend, PutForm, Witness};

/// Nothing is under way when a case restarts its backend.
const DRAIN: Duration = Duration::from_secs(5);

/// The cases that cannot work over HTTP, and why; `*` = all of the verb.
pub const NOT_OVER_HTTP: &[(&str, &str, &str)] = &[
    ("session", "*", "a client of HTTP may come from many connections: it has no session"),
    ("peek", "*", "it is for protocols that have the word; HTTP has list"),
    ("cancel", "it_tells_when_the_job_would_have_been_due", "a job that is gone is not due"),
    ("get", "the_fence_of_the_newest_lease", "a token is for who holds the lease"),
    ("get", "a_reply_is_bounded_in_bytes", "one job per request"),
    ("kick", "at_most_a_batch_at_once", "the server asks again until all are kicked"),
    ("revive", "at_most_a_batch_at_once", "the server asks again until all are revived"),
    ("put", "bodies_of_all_kinds_keep_their_kind", "a kind that the body is not of is refused"),
    ("put", "headers_keep_their_order_and_repetitions", "they are a JSON object"),
];

/// Why this case is not run over HTTP, if it is not.
pub fn not_over_http(verb: &str, case: &str) -> Option<&'static str> {
    let skipped = NOT_OVER_HTTP.iter().find(|(its_verb, its_case, _)| {
        *its_verb == verb && (*its_case == case || *its_case == "*")
    });
    skipped.map(|(.., reason)| *reason)
}

/// All cases that are not run over HTTP. Panics if the list names one that there is not.
pub fn skipped() -> Vec<(&'static str, &'static str)> {
    let mut skipped = Vec::new();
    for (verb, case, _) in NOT_OVER_HTTP {
        let before = skipped.len();
        let (_, cases) = SUITE.iter().find(|(name, _)| name == verb).expect("a verb of the suite");
        let named = cases.iter().filter(|(name, _)| name == case || *case == "*");
        skipped.extend(named.map(|(name, _)| (*verb, *name)));
        assert!(skipped.len() > before, "there is no case {verb}::{case}");
    }
    skipped
}

impl Subject {
    /// Behind a server, in memory; puts are JSON objects and arrays.
    pub fn http() -> Subject {
        Subject::new(Served::new(super::hosts::memory(), PutForm::Json))
    }

    /// Behind a server, on a directory, both restarted wherever a case allows it; puts are bare
    /// bodies and lines.
    pub fn http_disk() -> Subject {
        Subject::new(Served::new(super::hosts::disk_reopened(), PutForm::Plain))
    }
}

/// A host and the server before it.
struct Served<H> {
    host: H,
    form: PutForm,
    running: Option<(Server, Arc<HttpBackend>)>,
}

impl<H: Host> Served<H> {
    fn new(host: H, form: PutForm) -> Served<H> {
        let mut served = Served { host, form, running: None };
        served.start();
        served
    }

    fn start(&mut self) {
        let witness = Arc::new(Witness::default());
        let http = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let options = Options { http, ..Options::default() };
        let starting = Server::start(witness.before(self.host.backend()), options);
        let server = runtime().block_on(starting).expect("the server starts");
        let addr = server.http_addr().expect("an address");
        let backend = HttpBackend::witnessed(addr, self.form, witness);
        self.running = Some((server, Arc::new(backend)));
    }

    /// Restarts both, if the host can be.
    fn restart(&mut self, restart: impl FnOnce(&mut H) -> bool) -> bool {
        if let Some((server, _)) = self.running.take() {
            runtime().block_on(server.stop(DRAIN));
        }
        let restarted = restart(&mut self.host);
        self.start();
        restarted
    }
}

impl<H: Host> Host for Served<H> {
    fn backend(&self) -> Arc<dyn Backend> {
        let (_, backend) = self.running.as_ref().expect("the server runs");
        Arc::clone(backend) as Arc<dyn Backend>
    }

    fn now_ms(&self) -> u64 {
        self.host.now_ms()
    }

    fn advance(&self, ms: u64) {
        self.host.advance(ms);
    }

    fn step_wall_ms(&self, by_ms: i64) -> bool {
        self.host.step_wall_ms(by_ms)
    }

    fn reopen(&mut self, off_ms: u64) -> bool {
        self.restart(|host| host.reopen(off_ms))
    }

    fn reboot(&mut self, wall_ms: i64) -> bool {
        self.restart(|host| host.reboot(wall_ms))
    }

    fn churn(&mut self) {
        self.host.churn();
    }

    fn reopens_often(&self) -> bool {
        self.host.reopens_often()
    }
}

/// One runtime for all servers of the process.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime")
    })
}
