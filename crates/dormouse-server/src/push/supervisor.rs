//! Follows the settings of all topics: starts, changes and ends their consumers.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dormouse_core::error::Error;
use dormouse_core::topic::TopicName;
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::address::AddressRules;
use super::breaker::BreakerTiming;
use super::breakers::Breakers;
use super::clock::SteadyClock;
use super::connect::Connector;
use super::consumer::{Consumer, Shared, turned_on};
use super::deliver::{Deliverer, PushTest};
use super::ending;
use super::feed::Feed;
use super::lookups::Lookups;
use super::pool::Pool;
use super::resolver::{Resolver, SystemResolver};
use super::room::Room;
use super::secret::MasterKey;
use super::settings::{PushSettings, check_literal};
use super::status::{PushStatus, TopicStatus};
use super::store::PushStore;
use super::tls::{self, CaFileError};
use crate::client::BackendClient;
use crate::limits::{
    PUSH_BYTES_MAX_DEFAULT, PUSH_BYTES_MAX_MIN, PUSH_CONNECTIONS_MAX_DEFAULT, PUSH_TOPICS_MAX,
};
use crate::metrics::PushMeters;

/// The topics that are pushed, and how.
pub type PushTopics = Arc<Vec<(TopicName, Arc<PushSettings>)>>;

/// The settings of all pushes of a server.
pub struct PushOptions {
    /// The secrets of all topics are derived from it.
    pub key: MasterKey,
    /// The store's name in the ids of requests: the same for all servers of an installation, and
    /// after a restart.
    pub store: [u8; 4],
    /// Plain HTTP is allowed.
    pub allows_http: bool,
    /// The addresses that may be called.
    pub rules: AddressRules,
    /// Authorities to trust besides those of the system, PEM.
    pub ca_file: Option<PathBuf>,
    /// Requests of all topics at a time.
    pub connections_max: usize,
    /// Bytes of the jobs of these requests; a small number is raised to what jobs need.
    pub bytes_max: usize,
    /// How long receivers that fail are left alone.
    pub breaker: BreakerTiming,
    /// From names to addresses.
    pub resolver: Arc<dyn Resolver>,
    /// The topics that are pushed; may change at any time. `None` = those that the backend keeps.
    pub topics: Option<watch::Receiver<PushTopics>>,
}

impl PushOptions {
    /// Of the topics that the backend keeps, with the defaults of everything else.
    pub fn new(key: MasterKey) -> PushOptions {
        PushOptions {
            store: key.store(),
            key,
            allows_http: false,
            rules: AddressRules::default(),
            ca_file: None,
            connections_max: PUSH_CONNECTIONS_MAX_DEFAULT,
            bytes_max: PUSH_BYTES_MAX_DEFAULT,
            breaker: BreakerTiming::default(),
            resolver: Arc::new(SystemResolver::default()),
            topics: None,
        }
    }
}

/// The pushes of a running server.
#[derive(Clone)]
pub struct PushHandle {
    statuses: Arc<Statuses>,
    deliverer: Arc<Deliverer>,
    store: Option<Arc<PushStore>>,
    allows_http: bool,
}

type Statuses = Mutex<HashMap<TopicName, Arc<TopicStatus>>>;

impl PushHandle {
    /// How the pushes of a topic go; `None` if it is not pushed.
    pub fn status(&self, topic: &TopicName) -> Option<PushStatus> {
        lock(&self.statuses).get(topic).map(|status| status.view())
    }

    /// The pushes that the backend keeps; `None` if they come from elsewhere.
    pub(crate) fn store(&self) -> Option<&PushStore> {
        self.store.as_deref()
    }

    /// Sends a request that is none of a job.
    pub(crate) async fn test(
        &self,
        topic: &TopicName,
        settings: &PushSettings,
    ) -> Result<PushTest, Error> {
        settings.url_of(None, self.allows_http)?;
        Ok(self.deliverer.test(topic, settings).await)
    }

    /// Whether a job with this URL can be pushed so.
    pub(crate) fn check_url(&self, settings: &PushSettings, url: &str) -> Result<(), Error> {
        let url = settings.url_of(Some(url), self.allows_http)?;
        check_literal("url", &url, &self.deliverer.connector.rules)
    }

    /// Goes on with a topic whose pushes were disabled; false if it is not pushed.
    pub fn resume(&self, topic: &TopicName) -> bool {
        let status = lock(&self.statuses).get(topic).cloned();
        status.map(|status| status.resume()).is_some()
    }
}

fn lock(statuses: &Statuses) -> MutexGuard<'_, HashMap<TopicName, Arc<TopicStatus>>> {
    // Nothing panics while it is held.
    statuses.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All consumers of a server.
pub(crate) struct Supervisor {
    handle: PushHandle,
    aborting: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Supervisor {
    /// Starts to follow the topics. `own` are the addresses at which the server listens.
    pub(crate) fn start(
        client: BackendClient,
        meters: Arc<PushMeters>,
        own: Vec<SocketAddr>,
        options: PushOptions,
    ) -> Result<Supervisor, CaFileError> {
        let tls = tls::connector(options.ca_file.as_deref())?;
        let clock = SteadyClock::start();
        let mut rules = options.rules;
        rules.set_own(own);
        let changed = Arc::new(Notify::new());
        let (mut topics, store, feed) = match options.topics {
            Some(topics) => (topics, None, None),
            None => {
                let (sender, topics) = watch::channel(PushTopics::default());
                let feed = Feed::new(client.clone(), sender, Arc::clone(&changed));
                let (key, allows_http) = (options.key.clone(), options.allows_http);
                let store =
                    PushStore::new(client.clone(), key, allows_http, rules.clone(), changed);
                (topics, Some(Arc::new(store)), Some(feed))
            }
        };
        let connector = Connector { rules, lookups: Lookups::new(options.resolver), tls };
        let pool = Arc::new(Pool::new(clock, options.connections_max));
        let store_name = format!("{:08x}", u32::from_be_bytes(options.store));
        let deliverer =
            Arc::new(Deliverer { connector, pool, clock, key: options.key, store: store_name });
        let (endings, waiting) = ending::channel();
        let (aborting, aborts) = watch::channel(false);
        let ends = tokio::spawn(ending::run(client.clone(), clock, waiting, aborts.clone()));
        let bytes_max = options.bytes_max.max(PUSH_BYTES_MAX_MIN);
        let handle = PushHandle {
            statuses: Arc::default(),
            deliverer: Arc::clone(&deliverer),
            store: store.clone(),
            allows_http: options.allows_http,
        };
        let shared = Arc::new(Shared {
            client,
            deliverer,
            breakers: Breakers::new(options.breaker, clock),
            room: Arc::new(Room::new(options.connections_max.max(1), bytes_max)),
            endings,
            meters,
            clock,
            allows_http: options.allows_http,
            store,
        });
        let mut consumers = Consumers {
            shared,
            statuses: Arc::clone(&handle.statuses),
            running: HashMap::new(),
            tasks: JoinSet::new(),
            aborts,
        };
        // At once, so that the handle knows them.
        consumers.apply(&Arc::clone(&topics.borrow_and_update()));
        feed.into_iter().for_each(|feed| drop(tokio::spawn(feed.run())));
        let task = tokio::spawn(async move {
            consumers.follow(topics).await;
            // All consumers are gone, and with them those who report ends.
            let _ = ends.await;
        });
        Ok(Supervisor { handle, aborting, task })
    }

    pub(crate) fn handle(&self) -> PushHandle {
        self.handle.clone()
    }

    /// Waits for the deliveries under way, after the server was told to stop; those that are still
    /// there after `drain` are cut off, and their jobs go back unspent.
    pub(crate) async fn stop(mut self, drain: Duration) {
        if tokio::time::timeout(drain, &mut self.task).await.is_err() {
            let _ = self.aborting.send(true);
            let _ = self.task.await;
        }
    }
}

/// The consumers, as their task holds them.
struct Consumers {
    shared: Arc<Shared>,
    statuses: Arc<Statuses>,
    running: HashMap<TopicName, watch::Sender<Option<Arc<PushSettings>>>>,
    tasks: JoinSet<()>,
    aborts: watch::Receiver<bool>,
}

impl Consumers {
    /// Runs until the server stops and the last consumer has ended.
    async fn follow(mut self, mut topics: watch::Receiver<PushTopics>) {
        let mut stopping = self.shared.client.stop_signal();
        let mut is_followed = true;
        loop {
            tokio::select! {
                changed = topics.changed(), if is_followed => match changed {
                    Ok(()) => self.apply(&Arc::clone(&topics.borrow_and_update())),
                    // Nobody changes them any more.
                    Err(_) => is_followed = false,
                },
                Some(_) = self.tasks.join_next() => {}
                () = turned_on(&mut stopping) => break,
                () = turned_on(&mut self.aborts) => break,
            }
        }
        while self.tasks.join_next().await.is_some() {}
    }

    fn apply(&mut self, wanted: &[(TopicName, Arc<PushSettings>)]) {
        let wanted: HashMap<_, _> = wanted
            .iter()
            .take(PUSH_TOPICS_MAX)
            .map(|(topic, settings)| (topic, settings))
            .collect();
        self.running.retain(|topic, settings| {
            let is_wanted = wanted.contains_key(topic);
            if !is_wanted {
                settings.send_replace(None);
                lock(&self.statuses).remove(topic);
            }
            is_wanted
        });
        for (topic, settings) in wanted {
            match self.running.get(topic) {
                Some(sender) => {
                    sender.send_if_modified(|present| {
                        let is_new = present.as_ref() != Some(settings);
                        if is_new {
                            *present = Some(Arc::clone(settings));
                        }
                        is_new
                    });
                }
                None => self.begin(topic, settings),
            }
        }
    }

    fn begin(&mut self, topic: &TopicName, settings: &Arc<PushSettings>) {
        let (sender, receiver) = watch::channel(Some(Arc::clone(settings)));
        let status = Arc::new(TopicStatus::default());
        lock(&self.statuses).insert(topic.clone(), Arc::clone(&status));
        let consumer = Consumer::new(Arc::clone(&self.shared), topic.clone(), receiver, status);
        self.tasks.spawn(consumer.run(self.aborts.clone()));
        self.running.insert(topic.clone(), sender);
    }
}
