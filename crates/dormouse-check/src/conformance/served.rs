//! Hosts behind a server: the commands of a case go over HTTP or RESP.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dormouse_client::{ConnectOptions, RemoteBackend};
use dormouse_core::backend::Backend;
use dormouse_server::{Options, Server};
use tokio::runtime::{Builder, Runtime};

use super::SUITE;
use super::subject::{Host, Subject};
use crate::client::http::{HttpBackend, PutForm};
use crate::client::resp::{RespBackend, Version};
use crate::client::{Ordered, ParkObserver};

/// Nothing is under way when a case restarts its backend.
const DRAIN: Duration = Duration::from_secs(5);

/// The cases that cannot work over HTTP, and why; `*` = all of the verb.
pub const NOT_OVER_HTTP: Skips = &[
    ("session", "*", "a client of HTTP may come from many connections: it has no session"),
    ("peek", "*", "it is for protocols that have the word; HTTP has list"),
    ("topics_of", "*", OWN_QUESTION),
    ("push", "*", OWN_RECORD),
    ("pushes", "*", OWN_RECORD),
    ("cancel", "it_tells_when_the_job_would_have_been_due", "a job that is gone is not due"),
    ("done", "peek_gives_the_oldest", "HTTP has list"),
    ("limits", "parked_jobs_are_found_by_all_verbs", "one of them is peek"),
    ("get", "the_fence_of_the_newest_lease", "a token is for who holds the lease"),
    ("get", "a_reply_is_bounded_in_bytes", "one job per request"),
    ("kick", "at_most_a_batch_at_once", "the server asks again until all are kicked"),
    ("revive", "at_most_a_batch_at_once", "the server asks again until all are revived"),
    ("put", "bodies_of_all_kinds_keep_their_kind", "a kind that the body is not of is refused"),
    ("put", "headers_keep_their_order_and_repetitions", "they are a JSON object"),
];

/// The cases that cannot work over RESP, and why; `*` = all of the verb.
pub const NOT_OVER_RESP: Skips = &[
    ("session", "*", "RESP has no word for sessions: a lease outlives its connection"),
    ("topics_of", "*", OWN_QUESTION),
    ("push", "*", OWN_RECORD),
    ("pushes", "*", OWN_RECORD),
    ("cancel", "it_tells_when_the_job_would_have_been_due", "a job that is gone is not due"),
    ("get", "the_fence_of_the_newest_lease", "a token is only for the holder of the lease"),
    ("kick", "at_most_a_batch_at_once", "the server goes on until all are kicked"),
    ("put", "headers_keep_their_order_and_repetitions", "the last of a name counts"),
    ("put_limits", "backoffs_out_of_range", "an empty list cannot be written"),
    ("set_topic", "out_of_range", "an empty list of backoffs cannot be written"),
    ("reschedule", "delay_and_at_together", "one of both has a place in the grammar"),
    ("revive", "at_most_a_batch_at_once", "the server goes on until all are revived"),
];

const OWN_QUESTION: &str = "it is the server's own question, before it lets a command pass";

const OWN_RECORD: &str = "the record of a push is the server's own; its routes have fields";

/// Cases that are not run: verb, case, reason.
pub type Skips = &'static [(&'static str, &'static str, &'static str)];

/// Why this case is not run, if it is not.
pub fn reason(skips: Skips, verb: &str, case: &str) -> Option<&'static str> {
    let skipped = skips.iter().find(|(its_verb, its_case, _)| {
        *its_verb == verb && (*its_case == case || *its_case == "*")
    });
    skipped.map(|(.., reason)| *reason)
}

/// All cases that are not run. Panics if the list names a case that does not exist.
pub fn skipped(skips: Skips) -> Vec<(&'static str, &'static str)> {
    let mut skipped = Vec::new();
    for (verb, case, _) in skips {
        let before = skipped.len();
        let (_, cases) = SUITE.iter().find(|(name, _)| name == verb).expect("a verb of the suite");
        let named = cases.iter().filter(|(name, _)| name == case || *case == "*");
        skipped.extend(named.map(|(name, _)| (*verb, *name)));
        assert!(skipped.len() > before, "there is no case {verb}::{case}");
    }
    skipped
}

impl Subject {
    /// Behind HTTP, in memory; puts are JSON objects and arrays.
    pub fn http() -> Subject {
        Subject::new(Served::new(super::hosts::memory(), Speaks::Http(PutForm::Json)))
    }

    /// Behind HTTP, on a directory, both restarted wherever a case allows it; puts are bare bodies
    /// and lines.
    pub fn http_disk() -> Subject {
        Subject::new(Served::new(super::hosts::disk_reopened(), Speaks::Http(PutForm::Plain)))
    }

    /// Behind RESP 2, in memory.
    pub fn resp() -> Subject {
        Subject::new(Served::new(super::hosts::memory(), Speaks::Resp(Version::Two)))
    }

    /// Behind RESP 3, on a directory, both restarted wherever a case allows it.
    pub fn resp_disk() -> Subject {
        Subject::new(Served::new(super::hosts::disk_reopened(), Speaks::Resp(Version::Three)))
    }
}

impl Subject {
    /// Behind the client of the library, in memory.
    pub fn connect() -> Subject {
        Subject::new(Served::new(super::hosts::memory(), Speaks::Connect))
    }

    /// Behind the client of the library, on a directory, all restarted wherever a case allows it.
    pub fn connect_disk() -> Subject {
        Subject::new(Served::new(super::hosts::disk_reopened(), Speaks::Connect))
    }
}

/// A protocol and its variant.
#[derive(Clone, Copy)]
enum Speaks {
    Http(PutForm),
    Resp(Version),
    /// RESP, as `Queue::connect` does.
    Connect,
}

/// A host and the server before it.
struct Served<H> {
    host: H,
    speaks: Speaks,
    running: Option<(Server, Arc<dyn Backend>)>,
}

impl<H: Host> Served<H> {
    fn new(host: H, speaks: Speaks) -> Served<H> {
        let mut served = Served { host, speaks, running: None };
        served.start();
        served
    }

    fn start(&mut self) {
        let observer = Arc::new(ParkObserver::default());
        let any = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let options = match self.speaks {
            Speaks::Http(_) => Options { http: any, ..Options::default() },
            Speaks::Resp(_) | Speaks::Connect => Options { resp: any, ..Options::default() },
        };
        let starting = Server::start(observer.before(self.host.backend()), options);
        let server = runtime().block_on(starting).expect("the server starts");
        let backend: Arc<dyn Backend> = match self.speaks {
            Speaks::Http(form) => {
                let addr = server.http_addr().expect("an address");
                Arc::new(HttpBackend::new(addr, form, Some(observer)))
            }
            Speaks::Resp(version) => {
                let addr = server.resp_addr().expect("an address");
                Arc::new(RespBackend::new(addr, version, Some(observer)))
            }
            Speaks::Connect => {
                let url = format!("dormouse://{}", server.resp_addr().expect("an address"));
                let opened = RemoteBackend::open(&url, &ConnectOptions::default());
                let backend = opened.expect("the server takes a connection");
                Arc::new(Ordered::new(Arc::new(backend), observer))
            }
        };
        self.running = Some((server, backend));
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
        Arc::clone(backend)
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
