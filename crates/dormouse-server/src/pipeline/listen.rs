//! Serves a pipelined protocol on an address.

use std::sync::Arc;

use crate::limits::{ANSWERS_BYTES_MAX, INPUTS_BYTES_MAX, PAGES_MAX};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};

use super::Protocol;
use super::driver::Connection;
use crate::acceptor::{Acceptor, Listener};
use crate::budget::Budget;
use crate::client::BackendClient;
use crate::metrics::{Metrics, ProtocolKind};
use crate::shares::SharedLimit;
use crate::stop::StopSignal;
use crate::visitor::{Claimant, Visitor};

/// The state that all connections of pipelined protocols share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct PipelineContext {
    pub(crate) client: BackendClient,
    pub(crate) metrics: Arc<Metrics>,
    pub(super) inputs: SharedLimit<Claimant>,
    pub(super) answers: Budget,
    /// A page is large: they are made one at a time.
    pub(super) pages: Arc<Semaphore>,
    /// Changes when tokens have changed.
    pub(super) tokens: watch::Receiver<()>,
}

impl PipelineContext {
    pub(crate) fn new(
        client: BackendClient,
        metrics: Arc<Metrics>,
        tokens: watch::Receiver<()>,
    ) -> PipelineContext {
        let inputs = SharedLimit::new(INPUTS_BYTES_MAX, "bytes of unfinished commands");
        let answers = Budget::new(ANSWERS_BYTES_MAX, "answers");
        let pages = Arc::new(Semaphore::new(PAGES_MAX));
        PipelineContext { client, metrics, inputs, answers, pages, tokens }
    }
}

/// The server of one protocol.
pub(crate) struct PipelineServer<M> {
    pub(crate) acceptor: Acceptor,
    pub(crate) context: PipelineContext,
    pub(crate) kind: ProtocolKind,
    /// The message for a connection above the limit.
    pub(crate) crowded: &'static [u8],
    /// Makes the state of a new connection.
    pub(crate) begin: M,
}

impl<M, P> PipelineServer<M>
where
    M: Fn(&Arc<Visitor>) -> P,
    P: Protocol,
{
    /// Accepts connections until the server stops.
    pub(crate) async fn run<L>(self, listener: L)
    where
        L: Listener,
        L::Socket: AsyncRead + AsyncWrite + Unpin,
    {
        self.run_over(listener, |socket| std::future::ready(Some(socket))).await;
    }

    /// As `run`, with TLS.
    pub(crate) async fn run_tls(self, listener: tokio::net::TcpListener, tls: crate::Tls) {
        let handshake = |socket| {
            let tls = tls.clone();
            async move { tls.accept(socket).await }
        };
        self.run_over(listener, handshake).await;
    }

    /// Serves each socket once its handshake is done.
    async fn run_over<L, G, F, S>(self, listener: L, handshake: G)
    where
        L: Listener,
        G: Fn(L::Socket) -> F,
        F: Future<Output = Option<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let PipelineServer { acceptor, context, kind, crowded, begin } = self;
        let each = acceptor.clone();
        let serve = |socket, visitor| {
            let (protocol, context) = (begin(&visitor), context.clone());
            serve_connection(handshake(socket), visitor, protocol, context, each.clone())
        };
        acceptor.run(listener, kind, crowded, serve).await;
    }
}

async fn serve_connection<S, P>(
    handshake: impl Future<Output = Option<S>>,
    visitor: Arc<Visitor>,
    protocol: P,
    context: PipelineContext,
    acceptor: Acceptor,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    P: Protocol,
{
    let mut aborting = StopSignal::new(acceptor.aborting);
    let socket = tokio::select! {
        socket = handshake => socket,
        () = aborting.on() => None,
    };
    let Some(socket) = socket else { return };
    let mut connection = Connection::new(socket, visitor, protocol, context);
    tokio::select! {
        biased;
        ended = connection.run() => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
        }
        () = aborting.on() => {}
    }
}
