//! Closing a connection: its last message reaches the client.

use crate::limits::{COMMAND_MS_MAX, INPUT_FREE_BYTES, INPUTS_BYTES_MAX};
use bytes::BytesMut;
use dormouse_core::backend::{Backend, Request, Sink};
use tokio::io::{AsyncReadExt, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::*;
use crate::access::{Access, Grant};
use crate::client::BackendClient;
use crate::metrics::{Metrics, ProtocolKind};
use crate::pipeline::Next;
use crate::visitor::{Address, Claimant};

/// A backend that is never used.
struct Idle;

impl Backend for Idle {
    fn submit(&self, _: Vec<Request>, _: Arc<dyn Sink>) -> Result<(), Error> {
        Err(Error::unavailable("there is no backend"))
    }
}

/// A protocol that answers `?` with `no` and closes; all other input is incomplete.
struct Curt(Grant);

impl Protocol for Curt {
    type PendingReply = ();

    fn read(&mut self, input: &mut BytesMut, turn: &mut Turn<()>) -> Flow {
        if !input.starts_with(b"?") {
            return Flow::Continue;
        }
        turn.reply_now().extend_from_slice(b"no");
        Flow::Close
    }

    fn on_reply(&mut self, (): (), _: Result<RequestReply, Error>, _: &mut BytesMut) -> Next<()> {
        None
    }

    fn grant(&self) -> &Grant {
        &self.0
    }

    fn is_guest(&self) -> bool {
        false
    }

    fn standing(&self) -> Standing {
        Standing::Same
    }

    fn take_delay(&mut self) -> Option<Duration> {
        None
    }

    fn on_close(&mut self, why: CloseReason, out: &mut BytesMut) {
        out.extend_from_slice(format!("{why:?}").as_bytes());
    }

    fn end(&mut self) -> Vec<Command> {
        Vec::new()
    }
}

/// A server that runs until this is dropped.
struct Rig {
    context: PipelineContext,
    #[expect(dead_code, reason = "its drop stops the server")]
    stopping: watch::Sender<bool>,
}

impl Rig {
    fn new() -> Rig {
        let (stopping, stops) = watch::channel(false);
        let context = PipelineContext::new(
            BackendClient::new(Arc::new(Idle), Arc::<Metrics>::default(), stops),
            Arc::default(),
            Access::open().changes(),
        );
        Rig { context, stopping }
    }

    /// A client, and the task that serves it.
    fn begin(&self) -> (DuplexStream, JoinHandle<io::Result<()>>) {
        let (client, socket) = duplex(64 << 10);
        let grant = Access::open().grant(None).unwrap();
        let visitor = Arc::new(Visitor::new(Address::Local, ProtocolKind::Resp, None));
        let mut connection = Connection::new(socket, visitor, Curt(grant), self.context.clone());
        (client, tokio::spawn(async move { connection.run().await }))
    }
}

async fn read_all(client: &mut DuplexStream) -> String {
    let mut said = String::new();
    client.read_to_string(&mut said).await.unwrap();
    said
}

/// A socket that is closed with unread input is reset, and its client may lose the last message.
#[tokio::test(start_paused = true)]
async fn input_is_discarded_until_the_client_disconnects() {
    let (rig, began) = (Rig::new(), Instant::now());
    let (mut client, served) = rig.begin();
    client.write_all(b"?").await.unwrap();
    assert_eq!(read_all(&mut client).await, "no");
    assert!(began.elapsed() < LINGER, "the end arrives at once");
    client.write_all(&[b'x'; 1 << 20]).await.unwrap();
    drop(client);
    served.await.unwrap().unwrap();
    assert!(began.elapsed() < LINGER, "a client that has left is not waited for");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stays_connected_is_closed_after_a_while() {
    let (rig, began) = (Rig::new(), Instant::now());
    let (mut client, served) = rig.begin();
    client.write_all(b"?").await.unwrap();
    served.await.unwrap().unwrap();
    assert_eq!(began.elapsed(), LINGER);
    assert_eq!(read_all(&mut client).await, "no");
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_gets_the_reason() {
    let (rig, began) = (Rig::new(), Instant::now());
    let (mut client, served) = rig.begin();
    client.write_all(b"half").await.unwrap();
    assert_eq!(read_all(&mut client).await, "Slow");
    assert!(began.elapsed() >= Duration::from_millis(COMMAND_MS_MAX));
    client.write_all(b" a command").await.unwrap();
    drop(client);
    served.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_exceeds_the_budget_gets_the_reason() {
    let rig = Rig::new();
    let others = [("a", 2), ("b", 4), ("c", 4)].map(|(name, part)| {
        rig.context.inputs.take(Claimant::Token(name.into()), INPUTS_BYTES_MAX / part).ok()
    });
    assert!(others.iter().all(Option::is_some));
    let (mut client, served) = rig.begin();
    client.write_all(&[b'x'; INPUT_FREE_BYTES + 1]).await.unwrap();
    assert_eq!(read_all(&mut client).await, "Crowded");
    client.write_all(&[b'x'; 1 << 20]).await.unwrap();
    drop(client);
    served.await.unwrap().unwrap();
}
