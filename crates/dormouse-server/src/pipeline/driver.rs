//! Drives one connection of a pipelined protocol.
//!
//! A connection proceeds in turns. `run` reads the complete commands of the input into a turn,
//! `answer` sends them to the backend and writes the replies in order, and only then the next turn
//! begins. A pipeline is thus one batch and one write, and what a connection can hold is bounded:
//! one turn of requests and the input that was read ahead. While a turn is under way, the driver
//! owns its continuations, and `Output` owns custody of every grant until its bytes are flushed; a
//! connection that ends at any point drops both, which withdraws waiting commands and gives grants
//! back.
//!
//! A turn is one batch unless the order of its effects demands more:
//! - a request whose jobs must be looked up first, because the caller may touch only some topics,
//!   begins a new batch: the lookup must see the effects of the requests before it;
//! - a reserve behind a put waits for the put's reply: until the put is durable, the reserve would
//!   be granted a job behind it;
//! - a request that may wait, always the last of its turn, is a batch of its own, so that earlier
//!   replies can be flushed while it waits. Both batches are sent before either is awaited: a
//!   worker's ack and its next reserve take one round trip;
//! - a page of jobs is a batch of its own: pages of all connections are made one at a time.
//!
//! While a request waits, the driver reads ahead, within bounds, to notice that the client has
//! disconnected; then, and when the server stops, the request is withdrawn. After a request that
//! does not wait but grants something it looks once.

use std::io;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use dormouse_core::command::Command;
use dormouse_core::error::Error;
use dormouse_core::op::Target;
use dormouse_core::refusal::no_job;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::batch::{Batch, SpareLists};
use super::guest::GuestTimer;
use super::input::Input;
use super::listen::PipelineContext;
use super::output::{Output, ready};
use super::reply::{self, RequestReply, RowReplies};
use super::turn::{Pending, Request, Turn};
use super::{CloseReason, Flow, Protocol, Standing};
use crate::access::mask_absent;
use crate::budget::Held;
use crate::client::{BatchReplies, PendingBatch};
use crate::stop::{Changes, StopSignal};
use crate::visitor::Visitor;

/// Time for a client to read the last message before its connection is closed.
const LINGER: Duration = Duration::from_secs(1);

pub(super) struct Connection<S, P: Protocol> {
    socket: S,
    protocol: P,
    context: PipelineContext,
    input: Input,
    output: Output,
    stopping: StopSignal,
    tokens: Changes<()>,
    guest: GuestTimer,
    spare: SpareLists<P::PendingReply>,
}

impl<S, P> Connection<S, P>
where
    S: AsyncRead + AsyncWrite + Unpin,
    P: Protocol,
{
    pub(super) fn new(
        socket: S,
        visitor: Arc<Visitor>,
        protocol: P,
        context: PipelineContext,
    ) -> Connection<S, P> {
        let input = Input::new(context.inputs.clone());
        let output = Output::new(context.answers.clone());
        let stopping = StopSignal::new(context.client.stop_signal());
        let tokens = Changes::new(context.tokens.clone());
        let (guest, spare) = (GuestTimer::new(visitor), SpareLists::new());
        Connection { socket, protocol, context, input, output, stopping, tokens, guest, spare }
    }

    /// Runs until the client disconnects, the protocol closes or the server stops.
    pub(super) async fn run(&mut self) -> io::Result<()> {
        loop {
            let mut turn = Turn::reusing(self.spare.requests());
            let before = self.input.bytes.len();
            let flow = self.protocol.read(&mut self.input.bytes, &mut turn);
            if self.input.bytes.len() < before {
                self.input.taken();
            }
            let left = self.input.bytes.len();
            // Who has presented a good token is no guest, also while its next command waits.
            self.guest.deadline(self.protocol.is_guest());
            let is_full = !turn.has_room();
            let mut requests = turn.into_requests();
            self.spare.note_requests(requests.len());
            if let Some(delay) = self.protocol.take_delay()
                && !self.pause(delay).await?
            {
                return Ok(());
            }
            if !requests.is_empty() {
                self.answer(&mut requests).await?;
            }
            self.spare.keep_requests(requests);
            if flow == Flow::Close {
                return self.close().await;
            }
            if self.stopping.is_on() {
                return Ok(());
            }
            // What was read ahead, to notice an end, may be a whole command.
            if is_full || self.input.bytes.len() > left {
                continue;
            }
            if self.input.is_over() || !self.read_more().await? {
                return Ok(());
            }
        }
    }

    /// Lets a caller whose token was refused wait; false if the connection is to be closed. What
    /// it has sent meanwhile must not prolong its time.
    async fn pause(&mut self, delay: Duration) -> io::Result<bool> {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = self.stopping.on() => return Ok(false),
        }
        if self.guest.is_over(self.protocol.is_guest()) {
            return self.close_because(CloseReason::Guest).await;
        }
        Ok(true)
    }

    /// Waits for more input; false if the connection is to be closed.
    async fn read_more(&mut self) -> io::Result<bool> {
        let Connection { input, protocol, guest, .. } = self;
        if let Err(why) = input.admit(|| guest.visitor.claimant(protocol.grant().token_name())) {
            return self.close_because(why).await;
        }
        if self.protocol.standing() == Standing::Gone {
            return self.close_because(CloseReason::Revoked).await;
        }
        let is_guest = self.protocol.is_guest();
        if self.guest.is_over(is_guest) {
            return self.close_because(CloseReason::Guest).await;
        }
        let guest_until = self.guest.deadline(is_guest);
        let deadline = [self.input.deadline(), guest_until].into_iter().flatten().min();
        let timeout = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let is_slow = tokio::select! {
            biased;
            filled = self.input.fill(&mut self.socket) => return filled.map(|()| true),
            () = timeout => true,
            () = self.stopping.on() => false,
            // The next turn reads them.
            () = self.tokens.changed() => return Ok(true),
        };
        if !is_slow {
            return Ok(false);
        }
        let is_late_guest = guest_until.is_some() && deadline == guest_until;
        self.close_because(if is_late_guest { CloseReason::Guest } else { CloseReason::Slow }).await
    }

    async fn close_because(&mut self, why: CloseReason) -> io::Result<bool> {
        tracing::debug!(?why, "a connection is closed");
        self.protocol.on_close(why, &mut self.output.bytes);
        self.flush().await?;
        self.close().await.map(|()| false)
    }

    /// Shuts the sending side down, then discards input for a moment: a socket that is closed with
    /// unread input is reset, and its client may lose the last message.
    async fn close(&mut self) -> io::Result<()> {
        // A client that sees the end expects that the connection's reservations have ended, too.
        self.end();
        let drained = async {
            self.socket.shutdown().await?;
            while !self.input.is_over() {
                self.input.bytes.clear();
                self.input.fill(&mut self.socket).await?;
            }
            Ok(())
        };
        tokio::time::timeout(LINGER, drained).await.unwrap_or(Ok(()))
    }

    /// Sends the requests of a turn, and writes the replies.
    async fn answer(&mut self, turn: &mut Vec<Request<P::PendingReply>>) -> io::Result<()> {
        let mut batch = Batch::expecting(turn.len());
        for mut request in turn.drain(..) {
            if self.must_check(&request) {
                self.finish(mem::take(&mut batch)).await?;
                match self.check(&mut request).await {
                    Ok(()) => batch.push(request, &mut self.spare),
                    Err(error) => self.refuse(request, error).await?,
                }
                continue;
            }
            match &request.command {
                Some(Command::Reserve(_)) if batch.has_puts() => {
                    self.finish(mem::take(&mut batch)).await?;
                    let reserve = Batch::of(request, &mut self.spare);
                    self.finish(reserve).await?;
                }
                Some(command) if command.may_wait() => {
                    let mut waiting = Batch::of(request, &mut self.spare);
                    batch.send(
                        &self.context.client,
                        self.protocol.grant().holder(),
                        &self.guest.visitor,
                    );
                    waiting.send(
                        &self.context.client,
                        self.protocol.grant().holder(),
                        &self.guest.visitor,
                    );
                    self.receive(mem::take(&mut batch)).await?;
                    self.receive(waiting).await?;
                }
                Some(Command::List(_)) => {
                    self.finish(mem::take(&mut batch)).await?;
                    let page = Batch::of(request, &mut self.spare);
                    self.finish_page(page).await?;
                }
                _ => batch.push(request, &mut self.spare),
            }
        }
        self.finish(batch).await?;
        self.flush().await
    }

    async fn flush(&mut self) -> io::Result<()> {
        match self.input.is_over() {
            false => self.output.flush(&mut self.socket).await,
            true => self.output.flush_last(&mut self.socket).await,
        }
    }

    fn must_check(&self, request: &Request<P::PendingReply>) -> bool {
        request.check.as_ref().is_some_and(|(verb, _)| !self.protocol.grant().covers_all(*verb))
    }

    /// Looks up the topics of a request's jobs, and refuses it if the caller may not touch one.
    async fn check(&mut self, request: &mut Request<P::PendingReply>) -> Result<(), Error> {
        let (Some((verb, ids)), Some(command)) = (request.check.take(), &mut request.command)
        else {
            return Ok(());
        };
        let grant = self.protocol.grant().clone();
        let absent = grant.check_jobs(&self.context.client, verb, ids.iter().copied()).await?;
        match (ids.as_slice(), &*command) {
            // Their replies tell by themselves that the job is gone.
            (_, Command::Ack(_) | Command::Nack(_) | Command::Release(_) | Command::Get(_)) => {}
            ([id], _) if absent.contains(id) => return Err(no_job(&Target::Id(*id))),
            _ => {}
        }
        mask_absent(command, &absent);
        Ok(())
    }

    async fn refuse(&mut self, request: Request<P::PendingReply>, error: Error) -> io::Result<()> {
        match request.pending {
            Pending::One(pending) => self.deliver(pending, Err(error)).await,
            Pending::Bytes(_) | Pending::Row(..) => {
                unreachable!("only single requests are checked")
            }
        }
    }

    /// Sends a batch, and writes its replies.
    async fn finish(&mut self, mut batch: Batch<P::PendingReply>) -> io::Result<()> {
        batch.send(&self.context.client, self.protocol.grant().holder(), &self.guest.visitor);
        self.receive(batch).await
    }

    /// As `finish`, for a large reply. The next page may be made while this one is written.
    async fn finish_page(&mut self, mut batch: Batch<P::PendingReply>) -> io::Result<()> {
        let pages = Arc::clone(&self.context.pages);
        let permit = pages.acquire().await;
        batch.send(&self.context.client, self.protocol.grant().holder(), &self.guest.visitor);
        let (replies, _held) = self.replies_to(&mut batch).await?;
        drop(permit);
        self.write(batch.pending, replies).await
    }

    /// Waits for the replies to a batch that was sent, and writes them.
    async fn receive(&mut self, mut batch: Batch<P::PendingReply>) -> io::Result<()> {
        if batch.pending.is_empty() {
            return Ok(());
        }
        let (replies, _held) = self.replies_to(&mut batch).await?;
        self.write(batch.pending, replies).await
    }

    async fn replies_to(
        &mut self,
        batch: &mut Batch<P::PendingReply>,
    ) -> io::Result<(BatchReplies, Held)> {
        let mut replies = match batch.take_sent(&self.context.client) {
            Ok(sent) => self.wait(sent).await?,
            Err(replies) => replies,
        };
        let held = reply::hold(&self.context, &mut replies);
        Ok((replies, held))
    }

    async fn write(
        &mut self,
        mut pending: Vec<Pending<P::PendingReply>>,
        mut replies: BatchReplies,
    ) -> io::Result<()> {
        for pending in pending.drain(..) {
            match pending {
                Pending::Bytes(bytes) => self.output.bytes.unsplit(bytes),
                Pending::One(pending) => {
                    let (answer, custody) = replies.next();
                    self.output.carry(custody);
                    self.deliver(pending, answer.map(RequestReply::Command)).await?;
                }
                Pending::Row(first, others) => {
                    let mut row = RowReplies::new(replies.next_answer(), 1 + others.len());
                    self.deliver(first, row.next()).await?;
                    for pending in others {
                        self.deliver(pending, row.next()).await?;
                    }
                }
            }
        }
        self.spare.keep_pending(pending);
        Ok(())
    }

    /// Gives the protocol a reply, and sends the requests that it leads to.
    async fn deliver(
        &mut self,
        pending: P::PendingReply,
        reply: Result<RequestReply, Error>,
    ) -> io::Result<()> {
        let mut next = self.protocol.on_reply(pending, reply, &mut self.output.bytes);
        while let Some(request) = next {
            // The commands that one request leads to may be many.
            let request = self.unless_revoked(request).await?;
            let mut batch = Batch::of(request, &mut self.spare);
            batch.send(&self.context.client, self.protocol.grant().holder(), &self.guest.visitor);
            let (mut replies, _held) = self.replies_to(&mut batch).await?;
            let (answer, custody) = replies.next();
            let Some(Pending::One(pending)) = batch.pending.pop() else { break };
            self.spare.keep_pending(batch.pending);
            self.output.carry(custody);
            let reply = answer.map(RequestReply::Command);
            next = self.protocol.on_reply(pending, reply, &mut self.output.bytes);
        }
        if self.output.is_large() { self.flush().await } else { Ok(()) }
    }

    /// Reads what has arrived meanwhile, to notice that the client has disconnected.
    async fn notice_end(&mut self) -> io::Result<()> {
        let Connection { input, protocol, guest, .. } = self;
        if !input.may_read_ahead(|| guest.visitor.claimant(protocol.grant().token_name())) {
            return Ok(());
        }
        let mut filling = std::pin::pin!(self.input.fill(&mut self.socket));
        ready(&mut filling).await.unwrap_or(Ok(()))
    }

    /// Waits for replies. If they are not there at once and may take long, the replies written
    /// before them are flushed first.
    async fn wait(&mut self, mut sent: PendingBatch) -> io::Result<BatchReplies> {
        if !sent.may_wait() {
            let may_grant = sent.may_grant();
            let replies = sent.await;
            if may_grant {
                self.notice_end().await?;
            }
            return Ok(replies);
        }
        if let Some(replies) = ready(&mut sent).await {
            return self.unless_revoked(replies).await;
        }
        self.flush().await?;
        let mut is_withdrawn = self.input.is_over();
        if is_withdrawn {
            sent.withdraw();
        }
        loop {
            let Connection { input, protocol, guest, .. } = self;
            let may_read =
                input.may_read_ahead(|| guest.visitor.claimant(protocol.grant().token_name()));
            tokio::select! {
                biased;
                replies = &mut sent => return self.unless_revoked(replies).await,
                () = self.tokens.changed() => sent = self.unless_revoked(sent).await?,
                filled = self.input.fill(&mut self.socket), if may_read => {
                    filled?;
                    if self.input.is_over() {
                        sent.withdraw();
                    }
                }
                () = self.stopping.on(), if !is_withdrawn => {
                    sent.withdraw();
                    is_withdrawn = true;
                }
            }
        }
    }

    /// What waits, or was granted, with rights that are no longer the caller's is given back, and
    /// the connection ends.
    async fn unless_revoked<T>(&mut self, waiting: T) -> io::Result<T> {
        if self.protocol.standing() == Standing::Same {
            return Ok(waiting);
        }
        drop(waiting);
        self.close_because(CloseReason::Revoked).await?;
        Err(io::Error::other("the token's rights have changed"))
    }
}

impl<S, P: Protocol> Connection<S, P> {
    /// Submits what remains to be done; does nothing the second time.
    fn end(&mut self) {
        self.context.client.submit_unread(self.protocol.end());
    }
}

impl<S, P: Protocol> Drop for Connection<S, P> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;
