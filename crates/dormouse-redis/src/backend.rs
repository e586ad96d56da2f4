//! The backend: starts the thread that runs the dispatcher, and hands submissions to it.

use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::limits::{CLUSTER_PARTITIONS, PARTITIONS_MAX};
use dormouse_core::backend::{Backend, EventSink, Request, Sink};
use dormouse_core::error::Error;
use dormouse_core::event::Watcher;
use dormouse_core::meter::{Meter, MeterValue};
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use crate::clock::{Clock, ManualClock, Skew};
use crate::cluster::{ClusterClient, NodeState};
use crate::dispatch::Dispatcher;
use crate::inbox::Inbox;
use crate::intake::{Intake, IntakeSender, Submission};
use crate::partition::Shared;

/// Tasks polled between two looks at the sockets. There are few tasks, and a reply must not wait.
const EVENT_INTERVAL: u32 = 4;

/// Which servers must have a change before it is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// The primary. It survives a crash as far as Redis' own settings go.
    #[default]
    Applied,
    /// The primary and this many replicas; otherwise the answer is `unconfirmed`.
    Replicated(u32),
}

/// How to use an installation of Redis.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which servers must have a change before it is acknowledged.
    pub level: Level,
    /// Partitions of new topics; `None` = 1 on a single server, 8 on a cluster.
    pub partitions: Option<u16>,
    /// A clock in place of Redis' own, for tests.
    pub clock: Option<ManualClock>,
}

/// The backend on Redis or Redis Cluster.
pub struct RedisBackend {
    inbox: Arc<Inbox>,
    intake: Mutex<Option<IntakeSender>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    client: ClusterClient,
    skew: Skew,
    events: Arc<EventSink>,
    warnings: Vec<String>,
}

impl RedisBackend {
    /// Connects to `redis://` or `rediss://`, of a cluster to one or several seed nodes separated
    /// by commas. Refuses an installation that would lose jobs.
    pub fn open(url: &str, options: Options) -> Result<RedisBackend, Error> {
        if let Some(partitions) = options.partitions
            && !(1..=PARTITIONS_MAX).contains(&partitions)
        {
            return Err(Error::invalid(format!(
                "partitions is {partitions}; give 1 to {PARTITIONS_MAX}"
            )));
        }
        let (opened, is_open) = std::sync::mpsc::sync_channel(1);
        let url = url.to_owned();
        let events = Arc::new(EventSink::default());
        let sink = Arc::clone(&events);
        let skew = Skew::new();
        let clock = Clock::new(options.clock.clone(), skew.clone());
        let (sender, intake) = Intake::new();
        let work = move || serve(&url, &options, clock, sink, intake, &opened);
        let thread = std::thread::Builder::new().name("dormouse-redis".to_owned()).spawn(work);
        let thread = thread
            .map_err(|error| Error::unavailable(format!("cannot start a thread: {error}")))?;
        let gone = |_| Err(Error::unavailable("the thread of the Redis backend has ended"));
        let (client, warnings) = is_open.recv().unwrap_or_else(gone)?;
        Ok(RedisBackend {
            inbox: Arc::default(),
            intake: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
            client,
            skew,
            events,
            warnings,
        })
    }

    /// Settings of this installation that weaken durability, as texts for the operator.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn by_node(
        &self,
        name: &'static str,
        help: &'static str,
        value: impl Fn(&NodeState) -> u64,
    ) -> Meter {
        let nodes = self.client.nodes();
        let values = nodes.iter().map(|node| (node.address.clone(), value(node))).collect();
        Meter { name, help, value: MeterValue::Gauges { label: "node", values } }
    }

    /// Takes no more requests, answers blocking ones with an empty reply, and finishes the others.
    pub fn close(&self) {
        let intake = self.intake.lock().map(|mut intake| intake.take());
        drop(intake);
        if let Ok(mut thread) = self.thread.lock()
            && let Some(thread) = thread.take()
        {
            // After a panic, which is a bug, there is nothing to wait for.
            let _ended = thread.join();
        }
    }
}

impl Drop for RedisBackend {
    fn drop(&mut self) {
        self.close();
    }
}

type Opened = Result<(ClusterClient, Vec<String>), Error>;

/// The body of the thread.
fn serve(
    url: &str,
    options: &Options,
    clock: Clock,
    events: Arc<EventSink>,
    intake: Intake,
    opened: &std::sync::mpsc::SyncSender<Opened>,
) {
    let mut builder = Builder::new_current_thread();
    let runtime = match builder.event_interval(EVENT_INTERVAL).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let error = Error::unavailable(format!("cannot start a runtime: {error}"));
            let _unheard = opened.send(Err(error));
            return;
        }
    };
    let local = LocalSet::new();
    local.block_on(&runtime, async move {
        let replicas = match options.level {
            Level::Applied => 0,
            Level::Replicated(replicas) => replicas,
        };
        let (wakeup_sender, wakeups) = mpsc::unbounded_channel();
        let (client, findings) = match ClusterClient::open(url, replicas, wakeup_sender).await {
            Ok(open) => open,
            Err(error) => {
                let _unheard = opened.send(Err(error));
                return;
            }
        };
        let usual = if client.is_cluster() { CLUSTER_PARTITIONS } else { 1 };
        let partitions = options.partitions.unwrap_or(usual);
        let shared = Shared::new(client.clone(), clock, events, replicas, seed(), intake);
        let dispatcher = Dispatcher::new(shared, partitions);
        if opened.send(Ok((client, findings.warnings))).is_ok() {
            Rc::clone(&dispatcher).run(wakeups).await;
        }
    });
}

/// Different for every process and backend.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

impl Backend for RedisBackend {
    fn submit(&self, batch: Vec<Request>, sink: Arc<dyn Sink>) -> Result<(), Error> {
        let share = self.inbox.admit(&batch)?;
        let closed = || Error::unavailable("the backend has been closed");
        let intake = self.intake.lock().map_err(|_| closed())?;
        let intake = intake.as_ref().ok_or_else(closed)?;
        if intake.send(Submission { batch, sink, share }) { Ok(()) } else { Err(closed()) }
    }

    fn watch(&self, watcher: Option<Arc<dyn Watcher>>) {
        self.events.set(watcher);
    }

    fn meters(&self) -> Vec<Meter> {
        use std::sync::atomic::Ordering::Relaxed;
        let counter = |name, help, value| Meter { name, help, value: MeterValue::Counter(value) };
        let gauge = |name, help, value| Meter { name, help, value: MeterValue::Gauge(value) };
        let meters = self.client.meters();
        let mut all = vec![
            counter("redis_calls_total", "Scripts sent to Redis", meters.calls.load(Relaxed)),
            counter(
                "redis_retries_total",
                "Scripts sent again because a reply was lost or a node was not ready",
                meters.retries.load(Relaxed),
            ),
            counter(
                "redis_redirections_total",
                "Scripts redirected to another node of the cluster",
                meters.redirections.load(Relaxed),
            ),
            counter(
                "redis_reconnects_total",
                "Connections to Redis opened again after a failure",
                meters.reconnects.load(Relaxed),
            ),
            counter(
                "redis_unconfirmed_total",
                "Changes that may or may not have been made, or may be lost with the primary",
                meters.unconfirmed.load(Relaxed),
            ),
            self.by_node("redis_node_up", "Whether the node takes work", |node| {
                u64::from(node.is_up)
            }),
            self.by_node(
                "redis_node_replicas_missing",
                "Replicas that did not confirm the last change of the node in time",
                |node| node.replicas_missing,
            ),
            gauge(
                "inbox_requests",
                "Requests not yet answered by Redis",
                self.inbox.requests() as u64,
            ),
        ];
        let help = "Difference between the clocks of Redis and of this server";
        all.extend(self.skew.ms().map(|ms| gauge("redis_clock_skew_ms", help, ms)));
        all
    }

    fn concern(&self) -> Option<String> {
        let nodes = self.client.nodes();
        let down = nodes.iter().filter(|node| !node.is_up).count();
        let short = nodes.iter().filter(|node| node.replicas_missing > 0).count();
        let all = nodes.len();
        let down = (down > 0).then(|| format!("{down} of {all} primaries of Redis take no work"));
        let short = (short > 0).then(|| {
            format!(
                "{short} of {all} primaries of Redis have too few replicas: changes are answered \
                 `unconfirmed`"
            )
        });
        let concerns: Vec<_> = down.into_iter().chain(short).collect();
        (!concerns.is_empty()).then(|| concerns.join("; "))
    }
}
