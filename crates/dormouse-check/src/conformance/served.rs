//! Hosts behind a server: the commands of a case go over HTTP or RESP.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dormouse_core::backend::Backend;
use dormouse_server::{Options, Server};
use tokio::runtime::{Builder, Runtime};

use super::SUITE;
use super::subject::{Host, Subject};
use crate::client::ParkObserver;
use crate::client::http::{HttpBackend, PutForm};
use crate::client::resp::{RespBackend, Version};

/// Nothing is under way when a case restarts its backend.
const DRAIN: Duration = Duration::from_secs(5);

/// The cases that cannot work over HTTP, and why; `*` = all of the verb.
pub const NOT_OVER_HTTP: Skips = &[
    ("session", "*", "a client of HTTP may come from many connections: it has no session"),
    ("peek", "*", "it is for protocols that have the word; HTTP has list"),
    ("topics_of", "*", OWN_QUESTION),
    ("cancel", "it_tells_when_the_job_would_have_been_due", "a job that is gone is not due"),
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
    ("set_topic", "*", SETTINGS),
    ("cancel", "it_tells_when_the_job_would_have_been_due", "a job that is gone is not due"),
    ("cancel", "leased_with_unless_leased_is_a_conflict", JOB_IN_TEXT),
    ("get", "the_fence_of_the_newest_lease", "a token is only for the holder of the lease"),
    ("get", "missing_is_not_found", "a missing job is null, which has no text"),
    ("get", "a_reply_is_bounded_in_bytes", "one job per command"),
    ("kick", "at_most_a_batch_at_once", "the server goes on until all are kicked"),
    ("kill", "a_dead_job_is_a_conflict", JOB_IN_TEXT),
    ("kill", "a_leased_job_by_id_is_a_conflict", JOB_IN_TEXT),
    ("nack", "a_topics_backoff_is_used", SETTINGS),
    ("purge", "is_final_through_restarts", SETTINGS),
    ("purge", "the_topic_goes_on", SETTINGS),
    ("put", "bodies_of_all_kinds_keep_their_kind", "a body is bytes"),
    ("put", "everything_given_comes_back", "a body is bytes"),
    ("put", "headers_keep_their_order_and_repetitions", "the last of a name counts"),
    ("put_limits", "backoffs_out_of_range", "an empty list cannot be written"),
    ("put_on_key", "a_full_topic_leaves_the_key_with_the_dead_job", SETTINGS),
    ("put_on_key", "keep_answers_a_hold", "PUT does not say when a held key becomes free"),
    ("put_on_key", "reject_names_the_job_and_its_state", JOB_IN_TEXT),
    ("reschedule", "dead_is_a_conflict", JOB_IN_TEXT),
    ("reschedule", "delay_and_at_together", "one of both has a place in the grammar"),
    ("reschedule", "leased_is_a_conflict", JOB_IN_TEXT),
    ("reserve", "no_topic_is_invalid", "the first argument is a topic, whatever it is"),
    ("reserve_id", "a_leased_job_is_a_conflict", JOB_IN_TEXT),
    ("revive", "at_most_a_batch_at_once", "the server goes on until all are revived"),
    ("revive", "not_dead_is_a_conflict", JOB_IN_TEXT),
    ("change_schedule", "a_replan_gives_up_what_was_to_be_given", SETTINGS),
    ("put_schedule", "a_full_topic_loses_no_tick", SETTINGS),
    ("put_schedule", "one_that_does_not_fit_holds_up_no_other", SETTINGS),
    ("put_schedule", "a_full_topic_does_not_keep_a_job_from_being_replaced", SETTINGS),
    ("stats", "waiters_and_pause_and_settings", SETTINGS),
    ("topics", "come_with_the_first_put_or_setting", SETTINGS),
    ("topics", "vanish_when_empty_unset_and_unwatched", SETTINGS),
];

const OWN_QUESTION: &str = "it is the server's own question, before it lets a command pass";
const SETTINGS: &str = "settings are changed over HTTP or with the command line";
const JOB_IN_TEXT: &str = "an error is one line of text: the job in the way is named only there";

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

/// A protocol and its variant.
#[derive(Clone, Copy)]
enum Speaks {
    Http(PutForm),
    Resp(Version),
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
            Speaks::Resp(_) => Options { resp: any, ..Options::default() },
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
