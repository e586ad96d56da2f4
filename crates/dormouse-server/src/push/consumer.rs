//! The consumer of one topic: reserves its jobs, delivers them, and ends their leases.
//!
//! It waits in the backend for jobs, in the breaker for its receiver and in the room for its share;
//! nothing is polled. What it reserved and cannot deliver now goes back unspent.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use dormouse_core::command::Operation as _;
use dormouse_core::error::{Code, Error};
use dormouse_core::limits::WAIT_MS_MAX;
use dormouse_core::op::{LeasedJob, Reserve};
use dormouse_core::topic::TopicName;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::answer::Verdict;
use super::breaker::{Level, Permit};
use super::breakers::{BreakerCell, Breakers, Pass};
use super::clock::SteadyClock;
use super::deliver::Deliverer;
use super::ending::{Ending, Endings};
use super::load::{Load, OriginRoom, later_ms, origin_max};
use super::request::{URL_HEADER, job_header};
use super::room::{Room, TakenRoom};
use super::settings::PushSettings;
use super::status::TopicStatus;
use super::store::PushStore;
use super::url::PushUrl;
use crate::client::{BackendClient, BatchReplies, Custody, PendingBatch, unnumbered};
use crate::limits::PUSH_LEASE_MS;
use crate::metrics::{PushMeter, PushMeters, PushOutcome, Stopwatch};

/// Time before a backend that refused a reserve is asked again.
const REFUSED_MS: u64 = 250;
/// How often it is tried to store that a push is disabled, and after which time again.
const DISABLE_TRIES_MAX: usize = 60;
const DISABLE_AGAIN: Duration = Duration::from_secs(1);
/// A look for jobs of other origins comes so long after one that found none.
const SEARCH_MS: u64 = 20;

/// What all consumers share.
pub(super) struct Shared {
    pub(super) client: BackendClient,
    pub(super) deliverer: Arc<Deliverer>,
    pub(super) breakers: Breakers,
    pub(super) room: Arc<Room>,
    pub(super) endings: Endings,
    pub(super) meters: Arc<PushMeters>,
    pub(super) clock: SteadyClock,
    pub(super) allows_http: bool,
    /// Where pushes are kept; `None` = elsewhere.
    pub(super) store: Option<Arc<PushStore>>,
}

/// The settings of a topic; `None` = it is not pushed any more.
pub(super) type SettingsReceiver = watch::Receiver<Option<Arc<PushSettings>>>;

/// The consumer of one topic.
pub(super) struct Consumer {
    shared: Arc<Shared>,
    topic: TopicName,
    settings: SettingsReceiver,
    status: Arc<TopicStatus>,
    meter: Arc<PushMeter>,
    /// Each gives its origin back, if origins are counted.
    deliveries: JoinSet<Option<Arc<str>>>,
    /// Deliveries by origin, in topics whose jobs have URLs of their own.
    load: Load,
    /// Other origins are not looked for before then.
    search_at_ms: u64,
    reserve: Option<PendingBatch>,
    /// The breaker of the topic's own URL.
    breaker: Option<Arc<BreakerCell>>,
    /// The backend refused a reserve: not before then again.
    refused_until_ms: u64,
    /// Jobs went back because there was no room.
    is_short_of_room: bool,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    /// Take up to so many jobs.
    Reserve(usize),
    /// Wait for a change, or for this time.
    Wait(Option<u64>),
    /// Wait for room.
    WaitForRoom,
    /// Take nothing more, and end with the last delivery.
    Drain,
}

impl Consumer {
    pub(super) fn new(
        shared: Arc<Shared>,
        topic: TopicName,
        settings: SettingsReceiver,
        status: Arc<TopicStatus>,
    ) -> Consumer {
        let meter = shared.meters.of_topic(&topic);
        Consumer {
            shared,
            topic,
            settings,
            status,
            meter,
            deliveries: JoinSet::new(),
            load: Load::default(),
            search_at_ms: 0,
            reserve: None,
            breaker: None,
            refused_until_ms: 0,
            is_short_of_room: false,
        }
    }

    /// Runs until the topic is not pushed any more or the server stops; deliveries under way are
    /// finished, unless `aborting` turns true: then their jobs go back.
    pub(super) async fn run(mut self, mut aborting: watch::Receiver<bool>) {
        let mut stopping = self.shared.client.stop_signal();
        let mut freed = self.shared.room.freed();
        let mut resumed = self.status.changes();
        let mut breaker_changes = self.follow_url();
        loop {
            // A channel without a sender is that of a server that is gone.
            let is_over = *stopping.borrow() || stopping.has_changed().is_err();
            let plan = if is_over { Plan::Drain } else { self.plan() };
            self.carry_out(plan);
            if plan == Plan::Drain && self.reserve.is_none() && self.deliveries.is_empty() {
                break;
            }
            let is_draining = plan == Plan::Drain;
            let wake_at = match plan {
                Plan::Wait(at_ms) => at_ms.map(|at_ms| self.shared.clock.at(at_ms)),
                _ => None,
            };
            tokio::select! {
                replies = answered(&mut self.reserve) => {
                    self.reserve = None;
                    self.take(replies).await;
                }
                Some(ended) = self.deliveries.join_next() => self.ended(ended.ok().flatten()),
                () = sleep_until(wake_at) => {}
                changed = self.settings.changed(), if !is_draining => match changed {
                    Ok(()) => {
                        self.status.resume();
                        breaker_changes = self.follow_url();
                        self.trust_again();
                    }
                    Err(_) => break,
                },
                _ = breaker_changes.changed() => {}
                _ = resumed.changed() => self.trust_again(),
                _ = freed.changed(), if plan == Plan::WaitForRoom => self.is_short_of_room = false,
                () = turned_on(&mut stopping), if !is_draining => {}
                () = turned_on(&mut aborting) => break,
            }
        }
        // Jobs that are not delivered go back: each is in the custody of its task.
        self.deliveries.shutdown().await;
    }

    /// Follows the breaker of the topic's present URL; the result changes with it.
    fn follow_url(&mut self) -> watch::Receiver<u64> {
        let settings = self.settings.borrow_and_update().clone();
        let cell = settings.map(|settings| self.shared.breakers.cell(settings.url.origin()));
        let changes = cell.as_ref().map(|cell| cell.changes());
        self.breaker = cell;
        // The last value of a channel without a sender never changes: then nothing is awaited here.
        changes.unwrap_or_else(|| self.status.changes())
    }

    /// Whoever changes or resumes a push says that its receiver works.
    fn trust_again(&self) {
        let settings = self.settings.borrow();
        let is_on = settings.as_ref().is_some_and(|settings| settings.disabled.is_none());
        if let Some(breaker) = self.breaker.as_ref().filter(|_| is_on && !self.status.is_disabled())
        {
            breaker.reset();
        }
    }

    fn ended(&mut self, origin: Option<Arc<str>>) {
        let now_ms = self.shared.clock.now_ms();
        origin.into_iter().for_each(|origin| self.load.end(&origin, now_ms));
    }

    fn plan(&mut self) -> Plan {
        let settings = self.settings.borrow().clone();
        let (Some(settings), Some(breaker)) = (settings, &self.breaker) else { return Plan::Drain };
        let level = breaker.level();
        self.meter.set_breaker(level_number(level));
        self.status.set_open(level != Level::Closed);
        let is_disabled = settings.disabled.is_some() || self.status.is_disabled();
        self.meter.set_disabled(is_disabled);
        if is_disabled {
            return Plan::Wait(None);
        }
        let now_ms = self.shared.clock.now_ms();
        if now_ms < self.refused_until_ms {
            return Plan::Wait(Some(self.refused_until_ms));
        }
        let mut free = settings.concurrency.saturating_sub(self.deliveries.len());
        // Jobs with URLs of their own are judged one by one.
        if settings.job_urls.is_empty() {
            match breaker.permit() {
                Permit::Pass if breaker.is_closed() => {}
                Permit::Pass => free = free.min(1),
                Permit::At(at_ms) => return Plan::Wait(Some(at_ms)),
                Permit::AfterProbe { .. } => return Plan::Wait(None),
            }
        } else {
            match self.load.room(settings.concurrency, now_ms) {
                OriginRoom::Left(left) => free = free.min(left),
                OriginRoom::Stalled if now_ms < self.search_at_ms => {
                    return Plan::Wait(Some(self.search_at_ms));
                }
                // What is left is for the jobs of others.
                OriginRoom::Stalled => {}
                OriginRoom::FullUntil(at_ms) => return Plan::Wait(Some(at_ms)),
            }
        }
        if free == 0 {
            return Plan::Wait(None);
        }
        match self.shared.room.left_or_want(&self.topic) {
            0 => Plan::WaitForRoom,
            _ if self.is_short_of_room => Plan::WaitForRoom,
            left => Plan::Reserve(free.min(left)),
        }
    }

    /// Sends a reserve, or withdraws the one that waits. It is answered in any case.
    fn carry_out(&mut self, plan: Plan) {
        match (plan, &mut self.reserve) {
            (Plan::Reserve(max), None) => self.send_reserve(max),
            (Plan::Reserve(_), Some(_)) | (_, None) => {}
            (_, Some(reserve)) => reserve.withdraw(),
        }
    }

    fn send_reserve(&mut self, max: usize) {
        let Some(settings) = self.settings.borrow().clone() else { return };
        let reserve = Reserve {
            topics: vec![self.topic.clone()],
            max,
            wait_ms: i64::try_from(WAIT_MS_MAX).unwrap_or(i64::MAX),
            ttr_ms: i64::try_from(settings.timeout_ms + PUSH_LEASE_MS).ok(),
            session: None,
        };
        match self.shared.client.submit(vec![unnumbered(reserve)], None) {
            Ok(reserve) => self.reserve = Some(reserve),
            Err(error) => self.refused(&error),
        }
    }

    fn refused(&mut self, error: &Error) {
        self.refused_until_ms = self.shared.clock.now_ms() + REFUSED_MS;
        match error.code {
            Code::Busy => tracing::debug!(topic = %self.topic, %error, "no jobs to push now"),
            _ => tracing::warn!(topic = %self.topic, %error, "cannot take jobs to push"),
        }
    }

    async fn take(&mut self, mut replies: BatchReplies) {
        // Taken out with custody: whatever ends this task gives the jobs back.
        let (answer, custody) = replies.next();
        let jobs = match answer.and_then(Reserve::from_reply) {
            Ok(jobs) => jobs,
            Err(error) => return self.refused(&error),
        };
        let settings = self.settings.borrow().clone();
        let Some(settings) = settings.filter(|_| !self.shared.client.is_stopping()) else {
            // It ended meanwhile: the jobs go back with their custody.
            return;
        };
        let client = &self.shared.client;
        let each: Vec<Charge> = jobs.into_iter().map(|job| Charge::new(client, job)).collect();
        custody.into_iter().for_each(Custody::hand_over);
        for charge in each {
            self.start(charge, &settings).await;
        }
    }

    /// Begins a delivery, or gives the job back.
    async fn start(&mut self, charge: Charge, settings: &Arc<PushSettings>) {
        let own = job_header(&charge.job, URL_HEADER);
        let url = match settings.url_of(own, self.shared.allows_http) {
            Ok(url) => url,
            Err(error) => {
                self.shared.meters.note(&self.meter, PushOutcome::Blocked, Default::default());
                let error = format!("blocked: {error}");
                let verdict = Verdict::Nack { error, retry_after_ms: None };
                return charge.end(&self.shared.endings, verdict).await;
            }
        };
        let is_own = own.is_some();
        let cell = match (&self.breaker, is_own) {
            (Some(breaker), false) => Arc::clone(breaker),
            _ => self.shared.breakers.cell(url.origin()),
        };
        let now_ms = self.shared.clock.now_ms();
        let origin = (!settings.job_urls.is_empty()).then(|| Arc::from(url.origin()));
        let max = origin_max(settings.concurrency);
        if origin.as_ref().is_some_and(|origin| self.load.count(origin) >= max) {
            self.search_at_ms = now_ms + SEARCH_MS;
            let delay_ms = later_ms(settings.timeout_ms, charge.job.id, cell.send_back());
            return charge.release(&self.shared.endings, delay_ms).await;
        }
        let pass = match cell.pass() {
            Ok(pass) => pass,
            Err(permit) => {
                let wait_ms = match permit {
                    Permit::At(at_ms) => at_ms,
                    Permit::AfterProbe { since_ms } => since_ms + settings.timeout_ms,
                    Permit::Pass => 0,
                };
                let wait_ms = wait_ms.saturating_sub(now_ms);
                let delay_ms = later_ms(wait_ms, charge.job.id, cell.send_back());
                return charge.release(&self.shared.endings, delay_ms).await;
            }
        };
        let bytes = usize::try_from(charge.job.bytes()).unwrap_or(usize::MAX);
        let Some(room) = self.shared.room.take_or_want(&self.topic, bytes) else {
            self.is_short_of_room = true;
            return charge.release(&self.shared.endings, 0).await;
        };
        let delivery = Delivery {
            shared: Arc::clone(&self.shared),
            settings: Arc::clone(settings),
            status: Arc::clone(&self.status),
            meter: Arc::clone(&self.meter),
            url,
            is_own,
            pass,
            room,
        };
        origin.iter().for_each(|origin| self.load.begin(origin, now_ms));
        self.deliveries.spawn(async move {
            delivery.run(charge).await;
            origin
        });
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        if self.settings.borrow().is_none() {
            self.shared.meters.forget(&self.topic, &self.meter);
        }
    }
}

/// Resolves when a switch is on, or nobody can turn it on any more.
pub(super) async fn turned_on(switch: &mut watch::Receiver<bool>) {
    let _ = switch.wait_for(|&is_on| is_on).await;
}

/// Resolves at an instant; never if there is none.
async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => pending().await,
    }
}

/// Resolves when a reserve is answered; never if there is none.
async fn answered(reserve: &mut Option<PendingBatch>) -> BatchReplies {
    match reserve {
        Some(reserve) => reserve.await,
        None => pending().await,
    }
}

fn level_number(level: Level) -> u64 {
    match level {
        Level::Closed => 0,
        Level::HalfOpen => 1,
        Level::Open => 2,
    }
}

/// A leased job, which goes back if this is dropped before its end was reported.
struct Charge {
    job: LeasedJob,
    custody: Custody,
}

impl Charge {
    fn new(client: &BackendClient, job: LeasedJob) -> Charge {
        let custody = Custody::of_jobs(client, std::slice::from_ref(&job));
        Charge { job, custody }
    }

    async fn end(self, endings: &Endings, verdict: Verdict) {
        let token = self.job.token;
        self.report(endings, Ending::judged(token, verdict)).await;
    }

    async fn release(self, endings: &Endings, delay_ms: u64) {
        self.end(endings, Verdict::Release { delay_ms }).await;
    }

    async fn report(self, endings: &Endings, ending: Ending) {
        if endings.send(ending).await.is_ok() {
            self.custody.hand_over();
        }
    }
}

/// One delivery under way.
struct Delivery {
    shared: Arc<Shared>,
    settings: Arc<PushSettings>,
    status: Arc<TopicStatus>,
    meter: Arc<PushMeter>,
    url: PushUrl,
    /// The URL is the job's own.
    is_own: bool,
    pass: Pass,
    room: TakenRoom,
}

impl Delivery {
    async fn run(self, charge: Charge) {
        let in_flight = self.shared.meters.begin();
        let begun = Stopwatch::start();
        let delivered = self.shared.deliverer.deliver(&charge.job, &self.url, &self.settings);
        let judgement = delivered.await;
        if let Verdict::Release { delay_ms } = judgement.verdict {
            // The pass ends without a result: nothing was learned about the receiver.
            return charge.release(&self.shared.endings, delay_ms).await;
        }
        self.shared.meters.note(&self.meter, judgement.outcome, begun.elapsed());
        let gives_up = self.pass.report(judgement.is_healthy, judgement.hold_ms);
        let error = match &judgement.verdict {
            Verdict::Ack | Verdict::Release { .. } => None,
            Verdict::Nack { error, .. } | Verdict::Kill { error } => Some(error.as_str()),
        };
        self.status.note(error);
        let topic = &charge.job.topic;
        // The receiver of one job says nothing about the topic's own.
        if !self.is_own && judgement.disables {
            disable(
                &self.shared,
                &self.settings,
                &self.status,
                topic,
                "its receiver wants no more",
            );
        } else if !self.is_own && gives_up {
            disable(
                &self.shared,
                &self.settings,
                &self.status,
                topic,
                "no push succeeded for too long",
            );
        }
        charge.end(&self.shared.endings, judgement.verdict).await;
        drop((in_flight, self.room));
    }
}

/// Disables a push: here at once, and for all servers and starts soon.
fn disable(
    shared: &Shared,
    settings: &PushSettings,
    status: &Arc<TopicStatus>,
    topic: &TopicName,
    why: &'static str,
) {
    if !status.disable(topic, why) {
        return;
    }
    let (topic, version) = (topic.clone(), settings.version);
    let Some(store) = shared.store.clone() else { return };
    let status = Arc::clone(status);
    tokio::spawn(async move {
        for _ in 0..DISABLE_TRIES_MAX {
            match store.disable(&topic, version, why).await {
                Ok(()) => return,
                // It was changed meanwhile: then this says nothing about it.
                Err(error) if [Code::Conflict, Code::NotFound].contains(&error.code) => {
                    status.resume();
                    return;
                }
                Err(error) => {
                    tracing::warn!(%topic, %error, "cannot store that a push is disabled");
                }
            }
            tokio::time::sleep(DISABLE_AGAIN).await;
        }
    });
}
