//! Look-ups of names under way, of all topics together. One that hangs takes a thread until the
//! system gives up; so those who ask for the same name share one, and each topic has its share.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dormouse_core::topic::TopicName;
use tokio::sync::{Notify, watch};

use super::resolver::Resolver;
use crate::limits::{PUSH_LOOKUPS_MAX, PUSH_RESOLVE_MS_MAX};
use crate::shares::Shares;

/// A delivery waits so long for its look-up to begin: less than the shortest time for a push, so
/// that no receiver is blamed for it.
const BEGIN: Duration = Duration::from_millis(500);

/// What a look-up found; all who wait for it get it.
type LookupResult = Result<Arc<[IpAddr]>, Arc<str>>;
type Waiting = watch::Receiver<Option<LookupResult>>;

/// Why a name has no addresses.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LookupFault {
    /// The name service says so, or says nothing.
    Failed(String),
    /// Nobody was asked: too many look-ups are under way.
    Busy,
}

/// Resolves names for all topics.
pub(super) struct Lookups {
    shared: Arc<Shared>,
}

struct Shared {
    resolver: Arc<dyn Resolver>,
    under_way: Mutex<UnderWay>,
    /// A look-up has ended.
    ended: Notify,
}

struct UnderWay {
    lookups: HashMap<Arc<str>, Waiting>,
    shares: Shares<TopicName>,
}

impl Lookups {
    pub(super) fn new(resolver: Arc<dyn Resolver>) -> Lookups {
        let shares = Shares::new(PUSH_LOOKUPS_MAX);
        let under_way = Mutex::new(UnderWay { lookups: HashMap::new(), shares });
        Lookups { shared: Arc::new(Shared { resolver, under_way, ended: Notify::new() }) }
    }

    /// All addresses of a name.
    pub(super) async fn resolve(
        &self,
        topic: &TopicName,
        name: &Arc<str>,
    ) -> Result<Arc<[IpAddr]>, LookupFault> {
        let span = Duration::from_millis(PUSH_RESOLVE_MS_MAX);
        let lookup = tokio::time::timeout(BEGIN, self.joined(topic, name)).await;
        let mut lookup = lookup.map_err(|_| LookupFault::Busy)?;
        let silent = || LookupFault::Failed(format!("no answer within {} s", span.as_secs()));
        let found = tokio::time::timeout(span, lookup.wait_for(Option::is_some)).await;
        let found = found.map_err(|_| silent())?.map(|found| found.clone());
        match found {
            Ok(Some(Ok(addresses))) => Ok(addresses),
            Ok(Some(Err(error))) => Err(LookupFault::Failed(error.to_string())),
            // Its task is gone: the server stops.
            Ok(None) | Err(_) => Err(LookupFault::Busy),
        }
    }

    /// The look-up of a name, begun as soon as the topic may have one more.
    async fn joined(&self, topic: &TopicName, name: &Arc<str>) -> Waiting {
        loop {
            // Before the look: what ends after it is seen.
            let ended = self.shared.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if let Some(lookup) = self.join_or_begin(topic, name) {
                return lookup;
            }
            ended.await;
        }
    }

    fn join_or_begin(&self, topic: &TopicName, name: &Arc<str>) -> Option<Waiting> {
        let mut under_way = self.shared.lock();
        if let Some(lookup) = under_way.lookups.get(name) {
            return Some(lookup.clone());
        }
        under_way.shares.take(topic, 1).ok()?;
        let (sender, lookup) = watch::channel(None);
        under_way.lookups.insert(Arc::clone(name), lookup.clone());
        drop(under_way);
        // It goes on without those who wait: its thread does, too.
        let landing =
            Landing { shared: Arc::clone(&self.shared), topic: topic.clone(), name: name.clone() };
        tokio::spawn(async move {
            let found = landing.shared.resolver.resolve(Arc::clone(&landing.name)).await;
            let found = found.map(Arc::from).map_err(|error| Arc::from(plain(&error)));
            // First, so that the next one asks anew.
            drop(landing);
            sender.send_replace(Some(found));
        });
        Some(lookup)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, UnderWay> {
        // Nothing panics while it is held.
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the place of a look-up back, however it ended.
struct Landing {
    shared: Arc<Shared>,
    topic: TopicName,
    name: Arc<str>,
}

impl Drop for Landing {
    fn drop(&mut self) {
        let mut under_way = self.shared.lock();
        under_way.lookups.remove(&self.name);
        under_way.shares.give(&self.topic, 1);
        drop(under_way);
        self.shared.ended.notify_waiters();
    }
}

/// What went wrong, without the operating system's number.
pub(super) fn plain(error: &io::Error) -> String {
    match error.get_ref() {
        Some(cause) => cause.to_string(),
        None => error.kind().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;
    use crate::push::resolver::Lookup;

    /// Never answers for names that begin with `black`; counts.
    #[derive(Default)]
    struct Zones(AtomicUsize);

    impl Resolver for Zones {
        fn resolve(&self, name: Arc<str>) -> Lookup<'_> {
            self.0.fetch_add(1, SeqCst);
            Box::pin(async move {
                match &*name {
                    name if name.starts_with("black") => std::future::pending().await,
                    "none" => Err(io::Error::other("no such name")),
                    _ => {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        Ok(vec![IpAddr::from([1, 1, 1, 1])])
                    }
                }
            })
        }
    }

    fn topic(name: &str) -> TopicName {
        TopicName::new(name).unwrap()
    }

    async fn ask(lookups: &Lookups, who: &str, name: &str) -> Result<usize, LookupFault> {
        lookups.resolve(&topic(who), &Arc::from(name)).await.map(|found| found.len())
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_zone_takes_no_look_ups_of_others_and_is_not_their_fault() {
        let lookups = Arc::new(Lookups::new(Arc::new(Zones::default())));
        let asked = (0..200).map(|n| {
            let lookups = Arc::clone(&lookups);
            tokio::spawn(async move { ask(&lookups, "dead", &format!("black{n}")).await })
        });
        let asked: Vec<_> = asked.collect();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(ask(&lookups, "good", "name").await, Ok(1));
        assert_eq!(ask(&lookups, "other", "name").await, Ok(1));
        let (mut silent, mut busy) = (0, 0);
        for one in asked {
            match one.await.unwrap() {
                Err(LookupFault::Failed(reason)) if reason.contains("no answer") => silent += 1,
                Err(LookupFault::Busy) => busy += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((silent, busy), (PUSH_LOOKUPS_MAX / 2, 200 - PUSH_LOOKUPS_MAX / 2));
        // Their threads hang, and others go on.
        assert_eq!(ask(&lookups, "good", "name").await, Ok(1));
        assert_eq!(ask(&lookups, "dead", "black new").await, Err(LookupFault::Busy));
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_at_the_same_time_share_a_look_up() {
        let zones = Arc::new(Zones::default());
        let lookups = Lookups::new(zones.clone());
        let (a, b) = tokio::join!(ask(&lookups, "a", "name"), ask(&lookups, "b", "name"));
        assert_eq!((a, b, zones.0.load(SeqCst)), (Ok(1), Ok(1), 1));
        assert_eq!(ask(&lookups, "a", "name").await, Ok(1));
        assert_eq!(zones.0.load(SeqCst), 2, "nothing is kept: names change what they stand for");
        let none = ask(&lookups, "a", "none").await;
        assert_eq!(none, Err(LookupFault::Failed("no such name".to_owned())));
    }
}
