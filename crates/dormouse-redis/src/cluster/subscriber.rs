//! Receives the messages of the channels of one node, on a connection of its own.
//!
//! Not on the connection of calls: when a slot moves away the node sends `sunsubscribe` unasked,
//! and redis-rs takes that for the reply to the oldest request, so every later reply would go to
//! the wrong caller. Here requests are sent one at a time, and an unexpected reply ends the
//! connection.
//!
//! `sync` brings the node's subscriptions to what `Subscriptions` wants, whenever that or the slot
//! map changes. Messages may be lost at any time: `Wakeup::Lost` when a confirmed channel is lost,
//! and `Wakeup::Restored` when it is confirmed again, make partitions poll.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{Pipeline, PushInfo, PushKind, ServerError, Value};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::meters::count;
use super::retry_delay::RetryDelay;
use super::subscriptions::Subscriptions;
use super::topology::Topology;
use super::url::Address;
use super::verdict::Verdict;

/// A connection that only receives does not notice a dead peer.
const PING_EVERY: Duration = Duration::from_secs(2);
/// Channels in one write.
const CHANNELS_MAX: usize = 64;

/// News from the channels. Only a hint: messages can be lost without notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wakeup {
    /// A message was published.
    Message { channel: Bytes, payload: Bytes },
    /// Channels were lost with a connection or a moved slot: messages may be missed.
    Lost,
    /// The lost channels of a node are subscribed again: messages may have been missed.
    Restored,
}

/// The state that all subscribers share.
#[derive(Clone)]
pub(super) struct SubscriberContext {
    pub(super) topology: Arc<Topology>,
    pub(super) subscriptions: Arc<Subscriptions>,
    pub(super) wakeups: mpsc::UnboundedSender<Wakeup>,
}

impl SubscriberContext {
    /// The receiver is gone only when the backend closes.
    pub(super) fn wake(&self, wakeup: Wakeup) {
        let _ = self.wakeups.send(wakeup);
    }

    /// Marks channels of a node as lost, with `None` all of them.
    pub(super) fn mark_lost(&self, channels: Option<&HashSet<Bytes>>, at: &Address) {
        if self.subscriptions.mark_lost(channels, at) {
            self.wake(Wakeup::Lost);
        }
    }
}

/// Subscribes at the node at `address` until the task is cancelled.
pub(super) async fn run(context: SubscriberContext, address: Address) {
    let mut delay = RetryDelay::new();
    let mut is_first = true;
    loop {
        let (push_sender, pushes) = mpsc::unbounded_channel();
        let listening = push_handler(context.wakeups.clone(), push_sender);
        if let Ok(connection) = context.topology.opener.open(&address, listening).await {
            if !std::mem::take(&mut is_first) {
                count(&context.topology.meters.reconnects);
            }
            let subscribed = HashSet::new();
            let mut subscriber = Subscriber {
                context: &context,
                address: &address,
                connection,
                subscribed,
                was_lost: false,
            };
            subscriber.listen(pushes, &mut delay).await;
        }
        context.mark_lost(None, &address);
        context.topology.refresh_soon();
        sleep(delay.next()).await;
    }
}

/// Forwards messages at once, and other pushes to the subscriber; except confirmations, which it
/// gets as replies, and of which each would make it sync once more.
fn push_handler(
    wakeups: mpsc::UnboundedSender<Wakeup>,
    push_sender: mpsc::UnboundedSender<PushInfo>,
) -> impl Fn(PushInfo) -> Result<(), ()> + Send + Sync + 'static {
    move |push: PushInfo| match (&push.kind, &push.data[..]) {
        (PushKind::SMessage, [channel, payload]) => {
            let (Some(channel), Some(payload)) = (bytes_of(channel), bytes_of(payload)) else {
                return Ok(());
            };
            wakeups.send(Wakeup::Message { channel, payload }).map_err(|_| ())
        }
        (PushKind::SSubscribe, _) => Ok(()),
        _ => push_sender.send(push).map_err(|_| ()),
    }
}

/// The connection cannot be used any more.
struct Broken;

/// Whether the node has confirmed all wanted channels.
enum SyncState {
    Complete,
    /// Some were refused; to be tried again later.
    Partial,
}

struct Subscriber<'a> {
    context: &'a SubscriberContext,
    address: &'a Address,
    connection: MultiplexedConnection,
    /// The channels confirmed on this connection.
    subscribed: HashSet<Bytes>,
    /// Whether a lost channel was confirmed since the last `Wakeup::Restored`.
    was_lost: bool,
}

impl Subscriber<'_> {
    /// Returns when the connection is broken.
    async fn listen(
        &mut self,
        mut pushes: mpsc::UnboundedReceiver<PushInfo>,
        delay: &mut RetryDelay,
    ) {
        let mut changes = self.context.subscriptions.watch();
        let mut map = self.context.topology.watch();
        loop {
            changes.mark_unchanged();
            map.mark_unchanged();
            let wait = match self.sync().await {
                Ok(SyncState::Complete) => {
                    delay.reset();
                    PING_EVERY
                }
                Ok(SyncState::Partial) => delay.next(),
                Err(Broken) => return,
            };
            let is_well = tokio::select! {
                is_well = self.watch(&mut pushes) => is_well,
                changed = changes.changed() => changed.is_ok(),
                changed = map.changed() => changed.is_ok(),
                () = sleep(wait) => self.ping().await,
            };
            if !is_well {
                return;
            }
        }
    }

    /// Brings the node's subscriptions to what is wanted.
    async fn sync(&mut self) -> Result<SyncState, Broken> {
        let wanted = self.context.subscriptions.wanted(&self.context.topology.map(), self.address);
        let unwanted: HashSet<Bytes> = self.subscribed.difference(&wanted).cloned().collect();
        // Unwanted here, but still wanted if the slot has moved.
        self.context.mark_lost(Some(&unwanted), self.address);
        for channel in unwanted {
            // Before it is sent, so that the confirmation is not taken for a moved slot.
            self.subscribed.remove(&channel);
            self.unsubscribe(&channel).await?;
        }
        let missing: Vec<Bytes> = wanted.difference(&self.subscribed).cloned().collect();
        let mut state = SyncState::Complete;
        for channels in missing.chunks(CHANNELS_MAX) {
            if let SyncState::Partial = self.subscribe(channels).await? {
                state = SyncState::Partial;
            }
        }
        if matches!(state, SyncState::Complete) && std::mem::take(&mut self.was_lost) {
            self.context.wake(Wakeup::Restored);
        }
        Ok(state)
    }

    async fn subscribe(&mut self, channels: &[Bytes]) -> Result<SyncState, Broken> {
        let mut pipeline = Pipeline::new();
        for channel in channels {
            // One command each: a node refuses channels of several slots in one.
            pipeline.cmd("SSUBSCRIBE").arg(&channel[..]);
        }
        let sent = self.connection.send_packed_commands(&pipeline, 0, channels.len()).await;
        let replies = sent.map_err(|_| Broken)?;
        if replies.len() != channels.len() {
            return Err(Broken);
        }
        let mut confirmed = Vec::with_capacity(channels.len());
        for (channel, reply) in channels.iter().zip(&replies) {
            match reply {
                Value::ServerError(error) => self.handle_refusal(channel, error),
                reply if confirms(reply, &PushKind::SSubscribe, channel) => {
                    confirmed.push(channel.clone());
                }
                _ => return Err(Broken),
            }
        }
        self.subscribed.extend(confirmed.iter().cloned());
        self.was_lost |= self.context.subscriptions.confirm(&confirmed, self.address);
        Ok(if confirmed.len() == channels.len() { SyncState::Complete } else { SyncState::Partial })
    }

    /// The node refused a channel, mostly because its slot is elsewhere.
    fn handle_refusal(&self, channel: &Bytes, error: &ServerError) {
        let topology = &self.context.topology;
        match (Verdict::of_reply(error), self.context.subscriptions.slot(channel)) {
            (Verdict::Moved(place), Some(slot)) => {
                if let Some(address) = Address::parse(&place, self.address) {
                    topology.moved(slot, &address);
                }
            }
            (Verdict::Fatal(error), _) => {
                tracing::warn!(node = %self.address, %error, "cannot subscribe to a channel");
            }
            _ => {}
        }
        topology.refresh_soon();
    }

    async fn unsubscribe(&mut self, channel: &Bytes) -> Result<(), Broken> {
        let mut command = redis::cmd("SUNSUBSCRIBE");
        command.arg(&channel[..]);
        let reply = self.connection.send_packed_command(&command).await.map_err(|_| Broken)?;
        let is_mine = confirms(&reply, &PushKind::SUnsubscribe, channel);
        // An error is fine too: the slot has moved, and the channel with it.
        if is_mine || matches!(reply, Value::ServerError(_)) { Ok(()) } else { Err(Broken) }
    }

    /// Returns true when a channel was lost, false when the connection was.
    async fn watch(&mut self, pushes: &mut mpsc::UnboundedReceiver<PushInfo>) -> bool {
        while let Some(push) = pushes.recv().await {
            match (&push.kind, push.data.first().and_then(bytes_of)) {
                (PushKind::Disconnection, _) => return false,
                (PushKind::SUnsubscribe, Some(channel)) if self.subscribed.remove(&channel) => {
                    // Unasked: the slot has moved. No request was in flight to be confused by it.
                    self.context.mark_lost(Some(&HashSet::from([channel])), self.address);
                    self.context.topology.refresh_soon();
                    return true;
                }
                _ => {}
            }
        }
        false
    }

    async fn ping(&mut self) -> bool {
        let reply = self.connection.send_packed_command(&redis::cmd("PING")).await;
        matches!(reply, Ok(Value::SimpleString(_)))
    }
}

fn confirms(reply: &Value, wanted: &PushKind, channel: &Bytes) -> bool {
    let Value::Push { kind, data } = reply else { return false };
    kind == wanted && data.first().and_then(bytes_of).as_ref() == Some(channel)
}

fn bytes_of(value: &Value) -> Option<Bytes> {
    match value {
        Value::BulkString(bytes) => Some(Bytes::copy_from_slice(bytes)),
        Value::SimpleString(text) => Some(Bytes::copy_from_slice(text.as_bytes())),
        _ => None,
    }
}
