//! Hearing the channels of one node, on a connection of their own.
//!
//! Not on the connection of calls: when a slot moves away the server says `sunsubscribe` unasked,
//! and redis-rs takes that for the reply to the oldest request, so every later reply would go to
//! the wrong caller. Here requests go one at a time, and a reply that is not the one we asked for
//! ends the connection.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{Pipeline, PushInfo, PushKind, ServerError, Value};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::meters::count;
use super::retry_delay::Pause;
use super::subscriptions::Ledger;
use super::topology::Net;
use super::url::Address;
use super::verdict::Verdict;

/// A connection that only listens does not notice that the other side is gone.
const PING_EVERY: Duration = Duration::from_secs(2);
/// Channels in one write.
const CHANNELS_MAX: usize = 64;

/// What happened on the channels. Only a hint: messages can be lost without any word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// Somebody published.
    Message {
        /// Where.
        channel: Bytes,
        /// What.
        payload: Bytes,
    },
    /// A connection with channels broke, or slots moved: look at everything again.
    Lost,
    /// The channels that were lost at one node are heard again.
    Restored,
}

/// Everything an ear needs but its node.
#[derive(Clone)]
pub(super) struct Hall {
    pub(super) net: Arc<Net>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) hints: mpsc::UnboundedSender<Hint>,
}

impl Hall {
    /// A hint that nobody takes is nobody's loss.
    pub(super) fn hint(&self, hint: Hint) {
        let _ = self.hints.send(hint);
    }

    /// Channels are no longer heard at a node, all of them with `None`.
    pub(super) fn lose(&self, channels: Option<&HashSet<Bytes>>, at: &Address) {
        if self.ledger.lose(channels, at) {
            self.hint(Hint::Lost);
        }
    }
}

/// Hears the channels of the node at `address` until the task is ended.
pub(super) async fn hear(hall: Hall, address: Address) {
    let mut pause = Pause::new();
    let mut is_first = true;
    loop {
        let (tell, pushes) = mpsc::unbounded_channel();
        let listening = listener(hall.hints.clone(), tell);
        if let Ok(connection) = hall.net.opener.open(&address, listening).await {
            if !std::mem::take(&mut is_first) {
                count(&hall.net.meters.reconnects);
            }
            let subscribed = HashSet::new();
            let mut ear =
                Ear { hall: &hall, address: &address, connection, subscribed, was_lost: false };
            ear.listen(pushes, &mut pause).await;
        }
        hall.lose(None, &address);
        hall.net.refresh_soon();
        sleep(pause.next()).await;
    }
}

/// Passes messages on at once, and to the ear what is not a reply to it: of thousands of
/// confirmations each would make it look at everything again.
fn listener(
    hints: mpsc::UnboundedSender<Hint>,
    tell: mpsc::UnboundedSender<PushInfo>,
) -> impl Fn(PushInfo) -> Result<(), ()> + Send + Sync + 'static {
    move |push: PushInfo| match (&push.kind, &push.data[..]) {
        (PushKind::SMessage, [channel, payload]) => {
            let (Some(channel), Some(payload)) = (bytes_of(channel), bytes_of(payload)) else {
                return Ok(());
            };
            hints.send(Hint::Message { channel, payload }).map_err(|_| ())
        }
        (PushKind::SSubscribe, _) => Ok(()),
        _ => tell.send(push).map_err(|_| ()),
    }
}

/// The connection cannot be trusted any more.
struct Broken;

/// Whether the server hears for us what we want.
enum Settled {
    Yes,
    /// Some channels were refused; worth another try later.
    NotYet,
}

struct Ear<'a> {
    hall: &'a Hall,
    address: &'a Address,
    connection: MultiplexedConnection,
    /// What this connection has subscribed to.
    subscribed: HashSet<Bytes>,
    /// Whether something lost has come back since the last word about it.
    was_lost: bool,
}

impl Ear<'_> {
    /// Ends when the connection is of no more use.
    async fn listen(&mut self, mut pushes: mpsc::UnboundedReceiver<PushInfo>, pause: &mut Pause) {
        let mut changes = self.hall.ledger.watch();
        let mut map = self.hall.net.watch();
        loop {
            changes.mark_unchanged();
            map.mark_unchanged();
            let wait = match self.settle().await {
                Ok(Settled::Yes) => {
                    pause.reset();
                    PING_EVERY
                }
                Ok(Settled::NotYet) => pause.next(),
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

    /// Brings what the server hears for us to what is wanted.
    async fn settle(&mut self) -> Result<Settled, Broken> {
        let wanted = self.hall.ledger.wanted(&self.hall.net.map(), self.address);
        let unwanted: HashSet<Bytes> = self.subscribed.difference(&wanted).cloned().collect();
        // Of those that are still wanted, the slot has moved.
        self.hall.lose(Some(&unwanted), self.address);
        for channel in unwanted {
            // Before it is sent, so that the confirmation is not taken for news.
            self.subscribed.remove(&channel);
            self.one("SUNSUBSCRIBE", &channel).await?;
        }
        let missing: Vec<Bytes> = wanted.difference(&self.subscribed).cloned().collect();
        let mut settled = Settled::Yes;
        for channels in missing.chunks(CHANNELS_MAX) {
            if let Settled::NotYet = self.subscribe(channels).await? {
                settled = Settled::NotYet;
            }
        }
        if matches!(settled, Settled::Yes) && std::mem::take(&mut self.was_lost) {
            self.hall.hint(Hint::Restored);
        }
        Ok(settled)
    }

    async fn subscribe(&mut self, channels: &[Bytes]) -> Result<Settled, Broken> {
        let mut pipeline = Pipeline::new();
        for channel in channels {
            // One each: a node refuses channels of several slots in one command.
            pipeline.cmd("SSUBSCRIBE").arg(&channel[..]);
        }
        let sent = self.connection.send_packed_commands(&pipeline, 0, channels.len()).await;
        let replies = sent.map_err(|_| Broken)?;
        if replies.len() != channels.len() {
            return Err(Broken);
        }
        let mut heard = Vec::with_capacity(channels.len());
        for (channel, reply) in channels.iter().zip(&replies) {
            match reply {
                Value::ServerError(error) => self.refused(channel, error),
                reply if is_about(reply, &PushKind::SSubscribe, channel) => {
                    heard.push(channel.clone());
                }
                _ => return Err(Broken),
            }
        }
        self.subscribed.extend(heard.iter().cloned());
        self.was_lost |= self.hall.ledger.confirm(&heard, self.address);
        Ok(if heard.len() == channels.len() { Settled::Yes } else { Settled::NotYet })
    }

    /// The node would not have this channel: mostly because its slot is elsewhere.
    fn refused(&self, channel: &Bytes, error: &ServerError) {
        let net = &self.hall.net;
        match (Verdict::of_reply(error), self.hall.ledger.slot(channel)) {
            (Verdict::Moved(place), Some(slot)) => {
                if let Some(address) = Address::parse(&place, self.address) {
                    net.moved(slot, &address);
                }
            }
            (Verdict::Fatal(error), _) => {
                tracing::warn!(node = %self.address, %error, "cannot listen to a channel");
            }
            _ => {}
        }
        net.refresh_soon();
    }

    async fn one(&mut self, name: &str, channel: &Bytes) -> Result<(), Broken> {
        let mut command = redis::cmd(name);
        command.arg(&channel[..]);
        let reply = self.connection.send_packed_command(&command).await.map_err(|_| Broken)?;
        let is_mine = is_about(&reply, &PushKind::SUnsubscribe, channel);
        // An error is a reply too: the slot is gone, and the channel with it.
        if is_mine || matches!(reply, Value::ServerError(_)) { Ok(()) } else { Err(Broken) }
    }

    /// Ends when there is something to do: true if channels were lost, false if the connection was.
    async fn watch(&mut self, pushes: &mut mpsc::UnboundedReceiver<PushInfo>) -> bool {
        while let Some(push) = pushes.recv().await {
            match (&push.kind, push.data.first().and_then(bytes_of)) {
                (PushKind::Disconnection, _) => return false,
                (PushKind::SUnsubscribe, Some(channel)) if self.subscribed.remove(&channel) => {
                    // Unasked: the slot has moved. Nothing was under way, so no reply is displaced.
                    self.hall.lose(Some(&HashSet::from([channel])), self.address);
                    self.hall.net.refresh_soon();
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

fn is_about(reply: &Value, wanted: &PushKind, channel: &Bytes) -> bool {
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
