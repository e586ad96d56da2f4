//! The client of Redis and Redis Cluster: sends a script to the node that has its slot, and returns
//! its reply, through lost connections, restarts, failovers and moves of slots.
//!
//! Every call concerns one slot, and every script recognises a call that it has executed before. So
//! nearly all errors have one cure: send the call again, to the node that has the slot now.
//! `ClusterClient::call_tracked` loops over attempts; `verdict` classifies the error of an attempt,
//! and `CallAttempts::handle` does what it requires: load the script, follow a redirection, refresh
//! the slot map, back off.
//!
//! `topology` holds the nodes and the slot map, `refresh` renews the map, `sentinel` asks
//! sentinels, `node` and `connection` send commands, `wait_batcher` those that wait for replicas.
//! `subscriber`, one per node, receives wakeups. Not redis-rs' own cluster client, because that
//! cannot tell whether a call was sent (`SentFlag`), nor keep sharded subscriptions when slots move
//! (see `subscriber`).

mod check;
mod connection;
mod health;
mod info;
mod meters;
mod node;
mod opener;
mod refresh;
mod replicas;
mod retry_delay;
mod script;
mod sentinel;
mod slot;
mod slot_map;
mod subscriber;
mod subscribers;
mod subscriptions;
#[cfg(test)]
mod tests;
mod topology;
mod trouble;
mod url;
mod verdict;
mod wait_batcher;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dormouse_core::error::Error;
use tokio::sync::mpsc;
use tokio::time::sleep;

pub(crate) use check::Findings;
pub(crate) use meters::Meters;
pub(crate) use node::NodeState;
pub(crate) use opener::Timeouts;
pub(crate) use script::{Call, CallReply, Script, SentFlag};
pub(crate) use slot::slot_of;
pub(crate) use subscriber::Wakeup;
pub(crate) use verdict::CallError;

use crate::clock;
use health::HealthProbe;
use meters::count;
use node::Node;
use opener::Opener;
use refresh::watch_sentinels;
use retry_delay::RetryDelay;
use subscriber::SubscriberContext;
use subscribers::{Task, run_subscribers};
use subscriptions::Subscriptions;
use topology::Topology;
use url::{Address, RedisUrl};
use verdict::Verdict;

/// After this long without a reply, the slot map is refreshed: the node may have been replaced.
const SUSPECT_AFTER: Duration = Duration::from_millis(200);
/// Redirections in a row that are followed without a delay. Two nodes that name each other would
/// otherwise keep a call going round.
const REDIRECTIONS_MAX: u32 = 3;

/// Checks the syntax of a Redis URL, without connecting.
pub fn check_url(url: &str) -> Result<(), Error> {
    RedisUrl::parse(url).map(|_| ())
}

/// The client. Clones share everything.
#[derive(Clone)]
pub(crate) struct ClusterClient {
    inner: Arc<Inner>,
}

struct Inner {
    topology: Arc<Topology>,
    subscriptions: Arc<Subscriptions>,
    health: HealthProbe,
    /// Both stop with the last clone.
    _subscribers: Task,
    _sentinel_watch: Option<Task>,
}

impl ClusterClient {
    /// Connects, and checks that the installation can be used; every primary must have this many
    /// replicas.
    pub(crate) async fn open(
        url: &str,
        replicas: u32,
        wakeups: mpsc::UnboundedSender<Wakeup>,
    ) -> Result<(ClusterClient, Findings), Error> {
        ClusterClient::open_with(url, replicas, wakeups, Timeouts::default()).await
    }

    /// The same with other timeouts, for tests.
    pub(crate) async fn open_with(
        url: &str,
        replicas: u32,
        wakeups: mpsc::UnboundedSender<Wakeup>,
        timeouts: Timeouts,
    ) -> Result<(ClusterClient, Findings), Error> {
        let opener = Arc::new(Opener { url: RedisUrl::parse(url)?, timeouts });
        let (topology, findings) = check::check(opener, replicas).await?;
        let subscriptions = Arc::new(Subscriptions::new());
        let context = SubscriberContext {
            topology: Arc::clone(&topology),
            subscriptions: Arc::clone(&subscriptions),
            wakeups,
        };
        let _subscribers = Task::spawn(run_subscribers(context));
        let watch = || Task::spawn(watch_sentinels(Arc::clone(&topology)));
        let _sentinel_watch = topology.sentinels.is_some().then(watch);
        let health = HealthProbe::default();
        let inner = Inner { topology, subscriptions, health, _subscribers, _sentinel_watch };
        Ok((ClusterClient { inner: Arc::new(inner) }, findings))
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.inner.topology.is_cluster
    }

    pub(crate) fn meters(&self) -> &Meters {
        &self.inner.topology.meters
    }

    /// The primaries, each with whether it takes work and how many replicas of it are missing.
    pub(crate) fn nodes(&self) -> Vec<NodeState> {
        let primaries = self.inner.topology.map().primaries();
        let mut states: Vec<_> = primaries.iter().map(|node| node.state()).collect();
        states.sort_by(|state, other| state.address.cmp(&other.address));
        states
    }

    /// Why the node of a slot takes no work.
    pub(crate) fn trouble(&self, slot: u16) -> String {
        let owner = self.inner.topology.owner(slot);
        owner.map_or_else(|| "no node of Redis has the slot".to_owned(), |node| node.trouble())
    }

    /// Subscribes to a channel, through reconnects, failovers and moves of its slot.
    pub(crate) fn subscribe(&self, slot: u16, channel: Bytes) {
        self.inner.subscriptions.add(channel, slot);
    }

    /// Returns when the present primary has confirmed the channel, or it was unsubscribed.
    pub(crate) async fn subscribed(&self, channel: &Bytes) {
        let Inner { topology, subscriptions, .. } = &*self.inner;
        let (mut changes, mut map) = (subscriptions.watch(), topology.watch());
        while subscriptions.slot(channel).is_some()
            && !subscriptions.is_confirmed(channel, &topology.map())
        {
            tokio::select! {
                _ = changes.changed() => {}
                _ = map.changed() => {}
            }
        }
    }

    pub(crate) fn unsubscribe(&self, channel: &Bytes) {
        self.inner.subscriptions.remove(channel);
    }

    /// Sends a call to the primary of its slot until it is answered. It has no deadline: a caller
    /// that gives up drops the future, and the script may still run.
    pub(crate) async fn call(&self, call: &Call) -> Result<CallReply, CallError> {
        self.call_tracked(call, &SentFlag::default()).await
    }

    /// The same; sets the flag when the call is first written to a connection.
    pub(crate) async fn call_tracked(
        &self,
        call: &Call,
        sent_flag: &SentFlag,
    ) -> Result<CallReply, CallError> {
        let topology = &self.inner.topology;
        count(&topology.meters.calls);
        let delay = RetryDelay::new();
        let mut attempts =
            CallAttempts { topology, call, sent_flag, delay, ask_node: None, redirections: 0 };
        let (mut was_resent, mut is_in_doubt) = (false, false);
        loop {
            let failed = match attempts.try_once().await {
                Ok(reply) => return Ok(CallReply { was_resent, ..reply }),
                Err((_, Verdict::Fatal(error))) => Err(error),
                Err((node, verdict)) => {
                    count(&topology.meters.retries);
                    is_in_doubt |= matches!(verdict, Verdict::Lost | Verdict::Elsewhere)
                        && attempts.sent_flag.is_sent();
                    was_resent = true;
                    attempts.handle(node, verdict).await
                }
            };
            failed.map_err(|error| if is_in_doubt { error.in_doubt() } else { error })?;
        }
    }
}

/// A call and the state between its attempts.
struct CallAttempts<'a> {
    topology: &'a Arc<Topology>,
    call: &'a Call,
    sent_flag: &'a SentFlag,
    delay: RetryDelay,
    /// The target of the next attempt only, after an ASK redirection.
    ask_node: Option<Arc<Node>>,
    redirections: u32,
}

impl CallAttempts<'_> {
    /// Sends the call once. On failure: the node it was sent to, and what to do.
    async fn try_once(&mut self) -> Result<CallReply, (Option<Arc<Node>>, Verdict)> {
        let ask_node = self.ask_node.take();
        let is_asking = ask_node.is_some();
        let Some(node) = ask_node.or_else(|| self.topology.owner(self.call.slot)) else {
            return Err((None, Verdict::Retry));
        };
        match self.send(&node, is_asking).await {
            Ok(reply) => Ok(reply),
            Err(verdict) => {
                // The script must be loaded, and the call repeated, at the same node.
                self.ask_node = (is_asking && verdict == Verdict::Load).then(|| Arc::clone(&node));
                Err((Some(node), verdict))
            }
        }
    }

    /// Waits for a reply, or for the slot to move. A frozen node does not answer, but the others
    /// elect a new primary sooner than the response times out.
    async fn send(&self, node: &Arc<Node>, is_asking: bool) -> Result<CallReply, Verdict> {
        let sent_at = clock::instant();
        let mut sent = std::pin::pin!(node.send(self.call, is_asking, self.sent_flag));
        let mut moved_away = std::pin::pin!(self.topology.slot_moved(self.call.slot, node));
        loop {
            tokio::select! {
                biased;
                reply = &mut sent => return reply,
                () = &mut moved_away, if !is_asking => return Err(Verdict::Elsewhere),
                () = sleep(SUSPECT_AFTER) => {
                    // A call that waits for replicas may stand in line for a while.
                    if self.call.replicas == 0 {
                        node.note_silence(sent_at);
                    }
                    self.topology.refresh_soon();
                }
            }
        }
    }

    /// Prepares the next attempt.
    async fn handle(&mut self, node: Option<Arc<Node>>, verdict: Verdict) -> Result<(), CallError> {
        match (verdict, node) {
            (Verdict::Load, Some(node)) => self.load(&node).await,
            (Verdict::Moved(place), Some(node)) => {
                if let Some(address) = Address::parse(&place, &node.address) {
                    self.topology.moved(self.call.slot, &address);
                }
                self.topology.refresh_soon();
                self.redirected().await;
                Ok(())
            }
            (Verdict::Ask(place), Some(node)) => {
                count(&self.topology.meters.redirections);
                self.redirected().await;
                let address = Address::parse(&place, &node.address);
                self.ask_node = address.map(|address| self.topology.node(&address));
                Ok(())
            }
            (Verdict::Elsewhere, _) => Ok(()),
            (Verdict::Fatal(error), _) => Err(error),
            (verdict, node) => {
                if let (Verdict::Demoted, Some(node)) = (verdict, node) {
                    node.reset_connections();
                }
                self.back_off().await;
                Ok(())
            }
        }
    }

    async fn load(&mut self, node: &Arc<Node>) -> Result<(), CallError> {
        match node.load(&self.call.script).await {
            Ok(()) => Ok(()),
            Err(Verdict::Fatal(error)) => Err(error),
            Err(_) => {
                self.back_off().await;
                Ok(())
            }
        }
    }

    async fn redirected(&mut self) {
        self.redirections += 1;
        if self.redirections > REDIRECTIONS_MAX {
            self.back_off().await;
        }
    }

    /// Waits for a delay, or until the slot map names another node.
    async fn back_off(&mut self) {
        self.redirections = 0;
        let owner = self.topology.owner(self.call.slot);
        self.topology.refresh_soon();
        let delay = self.delay.next();
        let moved = async {
            match &owner {
                Some(node) => self.topology.slot_moved(self.call.slot, node).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = sleep(delay) => {}
            () = moved => {}
        }
    }
}
